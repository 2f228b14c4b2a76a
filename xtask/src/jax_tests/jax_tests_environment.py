"""Prints, as one JSON object, what JAX's tests would run in: versions, packages that are missing, the platform."""

import importlib
import json
import sys

# Modules and what installs them.
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


def version(name: str) -> str:
    return getattr(importlib.import_module(name), "__version__", "")


def missing() -> list[str]:
    found = []
    for name, requirement in NEEDED.items():
        try:
            importlib.import_module(name)
        except ImportError:
            found.append(requirement)
    return found


def describe() -> dict:
    if lacks := missing():
        return {"missing": lacks}
    versions = {name: version(name) for name in ("jax", "jaxlib", "numpy", "scipy", "pytest", "hypothesis")}
    versions["python"] = ".".join(map(str, sys.version_info[:2]))
    import jax
    import jax_tests_device

    try:
        platform = jax.default_backend()
        return {"versions": versions, "platform": platform, "under_test": jax_tests_device.under_test()}
    except Exception as error:  # Whatever a plugin does when it starts.
        return {"versions": versions, "failure": f"{type(error).__name__}: {error}"}


print(json.dumps(describe()))
