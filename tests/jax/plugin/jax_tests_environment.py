"""The environment that JAX's tests run in: versions, missing packages, the platform. Printed as one JSON object."""

import importlib
import json
import os
import sys

# Modules and their requirements.
NEEDED = {
    "jax": "jax==0.10.2 jaxlib==0.10.2",
    "numpy": "numpy",
    "scipy": "scipy",
    "pytest": "'pytest<9'",
    "absl": "absl-py",
    "hypothesis": "hypothesis==6.142.1",
    "mpmath": "mpmath==1.3.0",
    "cloudpickle": "cloudpickle",
    "flatbuffers": "flatbuffers",
    "PIL": "pillow",
    "matplotlib": "matplotlib",
}
VERSIONS = ("jax", "jaxlib", "numpy", "scipy", "pytest", "hypothesis")


def missing() -> list[str]:
    found = []
    for name, requirement in NEEDED.items():
        try:
            importlib.import_module(name)
        except ImportError:
            found.append(requirement)
    return found


def device_under_test() -> str:
    """Sets the device whose results the tests expect to `JAX_TEST_DUT`; by default it is the platform's name."""
    import jax
    from jax._src import test_util

    if device := os.environ.get("JAX_TEST_DUT"):
        jax.config.update("jax_test_dut", device)
    return test_util.device_under_test()


def describe() -> dict:
    if lacks := missing():
        return {"missing": lacks}
    versions = {name: importlib.import_module(name).__version__ for name in VERSIONS}
    versions["python"] = ".".join(map(str, sys.version_info[:2]))
    import jax

    try:
        platform = jax.default_backend()
        return {"versions": versions, "platform": platform, "under_test": device_under_test()}
    except Exception as error:  # A plugin that fails when it starts.
        return {"versions": versions, "failure": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    print(json.dumps(describe()))
