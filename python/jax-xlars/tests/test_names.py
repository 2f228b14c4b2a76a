"""Names that platforms go by: ours in the place of `cpu`, platforms under names of their own, vendors' own packages.

With `XLARS_LIBRARY`, by pytest. Each program runs in a process of its own.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

import jax_plugins.xlars

TESTS = pathlib.Path(__file__).parent
OWN = "xlars_interpreter,cpu"

BEFORE = """
import jax, jax.numpy as jnp, numpy as np
def is_ours(device): return "\\nxlars " in "\\n" + device.client.platform_version
def message(function):
    try: function()
    except Exception as error: return str(error)
    raise AssertionError("no error")
"""


def _run(text: str, platforms: str | None, **variables: str) -> str:
    environment = {key: value for key, value in os.environ.items() if key != "JAX_PLATFORMS"} | variables
    if platforms is not None:
        environment["JAX_PLATFORMS"] = platforms
    command = [sys.executable, "-c", BEFORE + text]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_ours_in_the_place_of_cpu():
    program = """
import jax_xlars
jax_xlars.replace_cpu()
assert [repr(d) for d in jax.devices("cpu")] == ["XlarsCpuDevice(id=0)"] and is_ours(jax.devices("cpu")[0])
assert jax.devices()[0] == jax.devices("cpu")[0]
x = jnp.eye(3) * 2
assert jax.jit(jnp.linalg.eigvalsh, backend="cpu")(x).tolist() == [2, 2, 2] and is_ours(x.device)
assert jax.jit(lambda x: jax.pure_callback(lambda x: np.asarray(x) + 1, x, x))(x)[0, 0] == 3
jax.clear_caches(); jax.extend.backend.clear_backends()
assert is_ours(jax.devices("cpu")[0]) and jnp.ones(3).sum() == 3
"""
    for platforms in ("cpu", "xlars", None):
        _run("import jax.extend\n" + program, platforms)


def test_ours_beside_cpu_have_another_name():
    program = """
ours, xlas = jax.devices()[0], jax.devices("cpu")[0]
assert is_ours(ours) and not is_ours(xlas)
assert (repr(ours), str(ours)) == ("XlarsCpuDevice(id=0)", "xlars_cpu:0"), (repr(ours), str(ours))
assert (repr(xlas), str(xlas)) == ("CpuDevice(id=0)", "cpu:0")
x, y = jax.device_put(jnp.ones(3), ours), jax.device_put(jnp.ones(3), xlas)
said = message(lambda: x + y)
assert "CPU (XlarsCpuDevice(id=0), of jax-xlars)" in said and "CPU (CpuDevice(id=0))" in said, said
assert is_ours((x + jax.device_put(y, ours)).device)
"""
    _run(program, None)


def test_the_number_of_devices_is_that_of_cpus():
    flags = {"XLA_FLAGS": "--xla_cpu_enable_fast_math=false --xla_force_host_platform_device_count=3"}
    _run("assert [d.id for d in jax.devices()] == [0, 1, 2] and is_ours(jax.devices()[2])", "xlars", **flags)
    _run("jax.config.update('jax_num_cpu_devices', 2); assert len(jax.devices()) == 2", "xlars")


def test_names_are_chosen_before_jax_is_used():
    _run(
        """
import jax_xlars
assert not is_ours(jax.devices()[0])
for late in (jax_xlars.replace_cpu, lambda: jax_xlars.register("interpreter")):
    assert "comes too late" in message(late)
assert not is_ours(jax.devices("cpu")[0])
""",
        "cpu",
    )


def test_own_names_are_there_when_asked_for():
    absent = """
from jax._src import xla_bridge
jax.devices()
assert "xlars_interpreter" not in xla_bridge._backend_factories
"""
    _run(absent, None)
    _run(absent, "cpu")
    _run(
        """
import jax_xlars
jax_xlars.register("interpreter")
jax_xlars.register("interpreter")
assert is_ours(jax.devices("xlars_interpreter")[0]) and jax.devices()[0].platform == "cpu"
""",
        None,
    )
    missing = "assert 'no/such.so is missing' in (said := message(jax.devices)) and 'xlars_x' in said, said"
    _run(missing, "xlars_x,cpu", XLARS_LIBRARY="no/such.so")
    _run("assert 'abacus' in (said := message(jax.devices)) and 'interpreter' in said, said", "xlars_abacus,cpu")


def test_a_platform_beside_xlas_cpu():
    _run(
        """
ours, cpu = jax.devices()[0], jax.devices("cpu")[0]
assert ours.platform == "xlars_interpreter" and is_ours(ours) and not is_ours(cpu)
a = np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32)
x = jnp.asarray(a)
assert x.device == ours
for f in (jnp.linalg.eigh, jnp.linalg.svd, jnp.linalg.qr, jnp.linalg.eig, jnp.linalg.det, jax.scipy.linalg.schur):
    y = jax.tree.leaves(jax.jit(f)(x @ x.T))
    z = jax.tree.leaves(jax.jit(f)(jax.device_put(x @ x.T, cpu)))
    assert all(y.device == ours and z.device == cpu for y, z in zip(y, z))
    for y, z in zip(y, z):
        np.testing.assert_allclose(np.abs(y), np.abs(z), atol=1e-3)
plus = lambda n: lambda x: x + n
choose = lambda **ways: float(jax.jit(lambda x: jax.lax.platform_dependent(x, **ways))(0.0))
assert choose(cuda=plus(1), cpu=plus(2)) == 2 and choose(cpu=plus(2), default=plus(3)) == 3
assert choose(cpu=plus(2), xlars_interpreter=plus(4)) == 4
there = jax.device_put(x, cpu)
back = jax.device_put(there + 1, ours)
assert there.device == cpu and back.device == ours and (np.asarray(back) == a + 1).all()
jax.jit(lambda x: x + 1, donate_argnums=0)(back)
assert back.is_deleted()
kinds = [memory.kind for memory in ours.addressable_memories()]
assert kinds == ["device", "pinned_host", "unpinned_host"], kinds
pinned = jax.device_put(x, jax.sharding.SingleDeviceSharding(ours, memory_kind="pinned_host"))
assert pinned.sharding.memory_kind == "pinned_host" and (np.asarray(pinned) == a).all()
assert "xlars_interpreter" in message(lambda: np.from_dlpack(x))
assert "xlars_interpreter" in message(lambda: jax.dlpack.from_dlpack(x))
assert jax.dlpack.from_dlpack(a.copy()).device == cpu
""",
        OWN,
    )


def test_callbacks_on_two_platforms():
    _run(
        """
import gc, threading
from jax_plugins.xlars.callback_table import TABLE
from jax.experimental import io_callback
ours, cpu = jax.devices()[0], jax.devices("cpu")[0]
x, there = jax.device_put(3.0, ours), jax.device_put(4.0, cpu)
seen = []
note = lambda x: (seen.append(float(x)), np.asarray(x) + 1)[1]
f = jax.jit(lambda x: io_callback(note, x, x))
assert (f(x), f(there)) == (4, 5) and seen == [3, 4]
assert f(x).device == ours and f(there).device == cpu
# The function of the program, and of nothing else.
assert len(TABLE.held()) == 1
del f
# A program that is dropped while it waits for its turn. Its call is made on another thread, as an argument is missing.
go, late = threading.Event(), jax.jit(lambda x: jax.lax.fori_loop(0, 30, lambda i, y: y @ y / 200, x)[0, 0] + 2)
ones = jax.device_put(np.ones((200, 200), np.float32), ours)
late(ones).block_until_ready()
wait = jax.jit(lambda x: jax.pure_callback(lambda x: (go.wait(60), x)[1], x, x))(late(ones))
assert not wait.is_ready()
y = jax.jit(lambda x: io_callback(note, x, x))(wait)
jax.clear_caches(); gc.collect()
go.set()
assert y == 4
del wait, y
jax.clear_caches(); gc.collect()
for i in range(100):
    if not TABLE.held(): break
    threading.Event().wait(0.05)
assert not TABLE.held() and not TABLE._functions
""",
        OWN,
    )


def test_libraries_may_emit_callbacks():
    _run(
        """
import jax.extend
from jax.interpreters import mlir
twice_p = jax.extend.core.Primitive("twice")
twice_p.def_impl(lambda x: jax.jit(twice_p.bind)(x))
twice_p.def_abstract_eval(lambda x: x)
def lower(ctx, x):
    twice = lambda x: (np.asarray(x) * 2,)
    return mlir.emit_python_callback(ctx, twice, None, [x], ctx.avals_in, ctx.avals_out, has_side_effect=False)[0]
mlir.register_lowering(twice_p, lower, platform="cpu")
assert twice_p.bind(jnp.float32(4)) == 8
assert twice_p.bind(jax.device_put(np.float32(5), jax.devices("cpu")[0])) == 10
""",
        OWN,
    )


def test_programs_for_a_name_of_ones_own_are_cached():
    program = """
from jax._src import monitoring
hits = []
monitoring.register_event_listener(lambda event, **_: hits.append(event) if event.endswith("cache_hits") else None)
assert jax.jit(lambda x: (x * 3).sum())(jnp.arange(5.0)) == 30
jax.jit(lambda x: jax.debug.print("{}", x))(7)
jax.effects_barrier()
print(len(hits))
"""
    cache = {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1"}
    with tempfile.TemporaryDirectory() as folder:
        cache["JAX_COMPILATION_CACHE_DIR"] = folder
        first, second = (_run(program, OWN, **cache).split() for _ in range(2))
        assert first == ["7", "0"] and second[0] == "7" and int(second[1]) > 0, (first, second)


ACME = '''
import os
from jax_plugins import xlars

def initialize():
    xlars.register_platform("acme", os.environ["ACME_LIBRARY"], options={"platform": "interpreter"})
'''


def test_a_package_of_a_vendor(tmp_path):
    package = tmp_path / "jax_plugins" / "acme"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(ACME)
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    variables = {"PYTHONPATH": path, "ACME_LIBRARY": str(jax_plugins.xlars.library_path())}
    program = """
acme = jax.devices("acme")[0]
assert acme.platform == "acme" and repr(acme) == "AcmeDevice(id=0)"
x = jax.device_put(np.eye(3, dtype=np.float32) * 2, acme)
assert jnp.linalg.eigvalsh(x).tolist() == [2, 2, 2] and jnp.linalg.eigvalsh(x).device == acme
assert jax.jit(lambda x: jax.pure_callback(lambda x: np.asarray(x) + 1, x, x))(x)[0, 0] == 3
# A rule of the vendor's own.
from jax.interpreters import mlir
mlir.register_lowering(jax.lax.sin_p, mlir.lower_fun(lambda x, **_: x + 40, False), platform="acme")
assert jax.jit(jnp.sin)(jax.device_put(2.0, acme)) == 42
assert jax.jit(jnp.sin)(jax.device_put(0.0, jax.devices("cpu")[0])) == 0
"""
    _run(program, "acme,cpu", **variables)
    # Hardware that is not there is in nobody's way.
    _run("assert jnp.ones(3).sum() == 3", None, **(variables | {"ACME_LIBRARY": "/dev/null"}))
    _run(ACME_IS_MISSING, None, **variables)


ACME_IS_MISSING = """
import jax_plugins.acme as acme
from jax_plugins import xlars
import os
acme.initialize = lambda: xlars.register_platform("acme", os.environ["ACME_LIBRARY"], options={"platform": "none"})
assert jnp.ones(3).sum() == 3
assert "none" in message(lambda: jax.devices("acme"))
"""


def test_handlers_and_calls_under_a_name_of_ones_own():
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += [str(TESTS / name) for name in ("test_callbacks.py", "test_ffi.py")]
    environment = os.environ | {"JAX_PLATFORMS": OWN}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
