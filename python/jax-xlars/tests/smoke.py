"""A little of everything that programs ask of a platform, each result checked on the host: for each version of JAX."""

import os
import subprocess
import sys
import tempfile
import traceback

import jax
import jax.numpy as jnp
import numpy as np
from jax import export
from jax.experimental.buffer_callback import buffer_callback

CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


def close(found, expected, tolerance=1e-4):
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=tolerance, atol=tolerance)


def matrix(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def symmetric():
    return matrix(6, 6) @ matrix(6, 6).T + 6 * np.eye(6, dtype=np.float32)


@check
def jit():
    x = matrix(5, 7)
    close(jax.jit(lambda x: jnp.tanh(x @ x.T).sum(axis=0))(x), np.tanh(x @ x.T).sum(axis=0))


@check
def grad():
    x = matrix(9)
    close(jax.jit(jax.grad(lambda x: jnp.sum(jnp.sin(x) * x)))(x), np.cos(x) * x + np.sin(x))


@check
def scan():
    x = matrix(20, 3)
    last, all_of_them = jax.jit(lambda x: jax.lax.scan(lambda c, e: (c + e, c * 2), jnp.zeros(3), x))(x)
    close(last, x.sum(axis=0))
    close(all_of_them[1:], 2 * np.cumsum(x, axis=0)[:-1])


@check
def control_flow():
    def step(state):
        n, steps = state
        return jax.lax.cond(n % 2 == 0, lambda n: n // 2, lambda n: 3 * n + 1, n), steps + 1

    collatz = jax.jit(lambda n: jax.lax.while_loop(lambda state: state[0] != 1, step, (n, 0)))
    assert collatz(27)[1] == 111


@check
def convolution():
    x, kernel = matrix(1, 1, 6, 6), np.ones((1, 1, 2, 2), np.float32)
    found = jax.jit(lambda x, k: jax.lax.conv(x, k, (1, 1), "VALID"))(x, kernel)
    close(found, x[:, :, 1:, 1:] + x[:, :, :-1, 1:] + x[:, :, 1:, :-1] + x[:, :, :-1, :-1])


@check
def sort():
    x = matrix(4, 33)
    close(jnp.sort(x), np.sort(x))
    assert (np.asarray(jnp.argsort(x)) == np.argsort(x)).all()
    close(jax.lax.top_k(x, 3)[0], -np.sort(-x)[:, :3])


@check
def fft():
    x = matrix(3, 24)
    close(jnp.fft.rfft(x), np.fft.rfft(x))
    close(jnp.fft.ifft(jnp.fft.fft(x)).real, x)


@check
def cholesky():
    a = symmetric()
    close(jnp.linalg.cholesky(a), np.linalg.cholesky(a))


@check
def solve():
    a, b = symmetric(), matrix(6, 2)
    close(jnp.linalg.solve(a, b), np.linalg.solve(a, b))
    q, r = jnp.linalg.qr(a)
    close(q @ r, a)


@check
def eigh():
    a = symmetric()
    values, vectors = jnp.linalg.eigh(a)
    close(values, np.linalg.eigvalsh(a), 1e-3)
    close(vectors @ jnp.diag(values) @ vectors.T, a, 1e-3)


@check
def svd():
    a = matrix(5, 8)
    u, s, vt = jnp.linalg.svd(a, full_matrices=False)
    close(s, np.linalg.svd(a, compute_uv=False), 1e-3)
    close(u @ jnp.diag(s) @ vt, a, 1e-3)


@check
def random():
    key = jax.random.key(3)
    assert jax.random.bits(key, (2,)).tolist() == jax.jit(lambda k: jax.random.bits(k, (2,)))(key).tolist()
    x = jax.random.normal(key, (20000,))
    assert abs(x.mean()) < 0.03 and abs(x.std() - 1) < 0.03
    assert sorted(jax.random.permutation(key, 50).tolist()) == list(range(50))


@check
def donation():
    x = jnp.ones(1000)
    y = jax.jit(lambda x: x + 1, donate_argnums=0)(x)
    assert x.is_deleted() and y.sum() == 2000


@check
def device_put():
    x = np.arange(12, dtype=np.int32).reshape(3, 4)
    assert (np.asarray(jax.device_put(x, jax.devices()[0])) == x).all()
    assert (np.asarray(jax.device_put(x[:, ::2])) == x[:, ::2]).all()


@check
def element_types():
    for dtype in ["bool", "int8", "uint16", "int32", "float16", "bfloat16", "float32", "complex64", "float8_e4m3fn"]:
        x = jnp.ones(4, dtype)
        assert (np.asarray(jax.jit(lambda x: x * x)(x)) == np.asarray(x)).all(), dtype
    with jax.enable_x64(True):
        assert jnp.ones(4, "float64").sum() == 4.0 and jnp.arange(4).dtype == "int64"


@check
def calls_to_python():
    x, seen = matrix(3), []
    close(jax.jit(lambda x: jax.pure_callback(lambda x: np.asarray(x) * 2, x, x))(x), x * 2)
    jax.jit(lambda x: jax.debug.callback(lambda x: seen.append(float(x)), x))(3.0)
    jax.effects_barrier()
    assert seen == [3.0]
    negate = lambda context, out, x: np.copyto(np.asarray(out), -np.asarray(x))
    close(jax.jit(buffer_callback(negate, jax.ShapeDtypeStruct(x.shape, x.dtype)))(x), -x)


@check
def artifact():
    x = matrix(7)
    exported = export.export(jax.jit(lambda x: jnp.cumsum(x) @ x), platforms=[jax.default_backend()])(x)
    close(export.deserialize(exported.serialize()).call(x), np.cumsum(x) @ x)


@check
def ahead_of_time():
    compiled = jax.jit(lambda x: x @ x).lower(matrix(8, 8)).compile()
    close(compiled(matrix(8, 8)), matrix(8, 8) @ matrix(8, 8))
    assert "HloModule" in compiled.as_text() and compiled.cost_analysis()["flops"] >= 1024
    assert compiled.memory_analysis().argument_size_in_bytes == 256


@check
def errors_are_exceptions():
    try:
        shape = jax.ShapeDtypeStruct((2,), np.float32)
        jax.jit(lambda x: jax.lax.infeed(jax.lax.create_token(x), shape)[0])(1.0)
    except Exception as error:
        assert str(error), "an empty message"
    else:
        raise AssertionError("an infeed without a queue ran")


CACHED = """
import jax, sys
from jax._src import monitoring
hits = []
monitoring.register_event_listener(lambda event, **_: hits.append(event) if event.endswith("cache_hits") else None)
assert jax.jit(lambda x: (x * 3).sum())(jax.numpy.arange(5.0)) == 30
print(len(hits))
"""


@check
def persistent_cache():
    with tempfile.TemporaryDirectory() as folder:
        cache = {
            "JAX_COMPILATION_CACHE_DIR": folder,
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        }
        run = [sys.executable, "-c", CACHED]
        first, second = (int(subprocess.check_output(run, env=os.environ | cache)) for _ in range(2))
        assert first == 0 and second > 0, (first, second)


def main():
    failed = []
    for function in CHECKS:
        try:
            function()
        except Exception:
            failed.append(function.__name__)
            traceback.print_exc()
    platform = jax.devices()[0].client.platform_version
    print(f"jax {jax.__version__}, {platform!r}: {len(CHECKS) - len(failed)} passed, {len(failed)} failed")
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
