"""Tools of JAX around programs: profiles, the persistent cache, dumps.

With `JAX_PLATFORMS=xlars` and `XLARS_LIBRARY`, by pytest.
"""

import glob
import gzip
import json
import os
import subprocess
import sys
import tempfile

import jax
import jax.numpy as jnp
import numpy as np

# The interpreter has no instructions of its own, and no code.
HAS_CODE = os.environ.get("XLARS_PLATFORM", "cpu") == "cpu"


def _events(work) -> set[str]:
    """Names of what happens while `work` is done, by JAX's profiler."""
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            work()
        (file,) = glob.glob(folder + "/**/*.trace.json.gz", recursive=True)
        with gzip.open(file) as trace:
            return {str(event.get("name")) for event in json.load(trace)["traceEvents"]}


def test_a_profile_has_the_instructions_of_programs():
    f = jax.jit(lambda x: jnp.sort(jnp.tanh(x @ x), axis=0))
    x = jnp.ones((100, 100))
    text = f.lower(x).compile().as_text()
    expected = f(x).block_until_ready()
    instructions = {line.split("=")[0].replace("ROOT", "").strip(" %") for line in text.splitlines() if " = " in line}
    for _ in range(2):
        events = _events(lambda: np.testing.assert_array_equal(f(x), expected))
        assert any(event.startswith("execute jit") for event in events), events
        assert not HAS_CODE or "sort" in events & instructions, events
    # Between profiles nothing is kept.
    f(x).block_until_ready()
    assert not any(event.startswith("execute jit") for event in _events(lambda: None))


# Loops whose bodies have instructions of the same names.
def _loops(x):
    for i in range(3):
        x = jax.lax.scan(lambda c, _: (jnp.tanh(c @ c) + i, None), x, None, 10)[0]
    return x


def test_a_program_of_the_persistent_cache_is_not_compiled_again():
    names = "jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs"
    names += ("jax_persistent_cache_min_entry_size_bytes",)
    before = [getattr(jax.config, name) for name in names]
    with tempfile.TemporaryDirectory() as folder:
        for name, value in zip(names, (folder, 0, -1)):
            jax.config.update(name, value)
        try:
            events = []
            for _ in range(2):
                jax.clear_caches()
                lowered = jax.jit(_loops).lower(jnp.ones((16, 16)))
                events.append(_events(lowered.compile))
        finally:
            for name, value in zip(names, before):
                jax.config.update(name, value)
    missed, hit = [[event for event in events if event.startswith("machine-code")] for events in events]
    assert bool(missed) == HAS_CODE and not hit, (missed, hit)


def test_flags_dump_programs():
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"XLA_FLAGS": f"--xla_dump_to={folder}"}
        program = "import jax; jax.jit(lambda x: x + 1)(1.0)"
        subprocess.run([sys.executable, "-c", program], env=environment, check=True, timeout=300)
        assert any(name.endswith("before-passes.hlo") for name in os.listdir(folder)), os.listdir(folder)
