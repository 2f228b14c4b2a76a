"""Calls to Python from programs: values, order, errors, threads, programs inside of calls.

With `JAX_PLATFORMS=xlars` and `XLARS_LIBRARY`, by pytest. XLA's own CPU passes as well.
"""

import functools
import os
import signal
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import checkify, io_callback
from jax.experimental.buffer_callback import buffer_callback

F32 = np.float32


def _doubled(x):
    return np.asarray(x) + np.asarray(x)


def _pure(function, result, *args, **options):
    return jax.jit(lambda *args: jax.pure_callback(function, result, *args, **options))(*args)


def _message(function) -> str:
    try:
        function()
    except Exception as error:
        return str(error)
    raise AssertionError("no error")


def test_every_type_of_element_comes_in_and_goes_out():
    types = "bool_ int8 int16 int32 uint8 uint16 uint32 float16 float32 bfloat16 complex64 int4 uint4 int2 uint2"
    types += " float8_e4m3fn float8_e5m2 float8_e4m3b11fnuz float8_e8m0fnu float4_e2m1fn"
    for name in types.split():
        dtype = getattr(jnp, name)
        x = jnp.asarray(np.array([0, 1, 1, 0, 1, 0, 1], dtype))
        seen = []
        y = np.asarray(_pure(lambda x: (seen.append(np.asarray(x)), np.flip(x))[1], x, x))
        assert seen[0].dtype == x.dtype and y.dtype == x.dtype, name
        assert seen[0].tobytes() == np.asarray(x).tobytes(), name
        assert y.tobytes() == np.flip(np.asarray(x)).tobytes(), name
    for dtype, values in ((jnp.int4, [-8, -1, 7]), (jnp.int2, [-2, -1, 1]), (jnp.uint4, [15, 8, 0])):
        x = jnp.asarray(np.array(values, dtype))
        np.testing.assert_array_equal(np.asarray(_pure(lambda x: x, x, x)), np.array(values, dtype))


def test_results_may_have_any_strides():
    x = jnp.arange(12.0, dtype=F32).reshape(3, 4)
    y = _pure(lambda x: np.asarray(x).T, jax.ShapeDtypeStruct((4, 3), F32), x)
    np.testing.assert_array_equal(y, np.arange(12.0).reshape(3, 4).T)
    z = _pure(lambda x: np.broadcast_to(np.asarray(x)[0, 1], (5,)), jax.ShapeDtypeStruct((5,), F32), x.T)
    np.testing.assert_array_equal(z, [4.0] * 5)


def test_values_outlive_the_call():
    kept = []
    f = jax.jit(lambda x: io_callback(lambda x: kept.append(x), None, x))
    for i in range(20):
        f(jnp.full(1000, i))
    jax.effects_barrier()
    assert sorted(int(x[0]) for x in kept) == list(range(20))
    assert all((np.asarray(x) == x[0]).all() for x in kept)


def test_values_without_elements():
    x = jnp.zeros((0, 3))
    assert _pure(_doubled, x, x).shape == (0, 3)
    calls = []
    y = jax.jit(lambda x: io_callback(lambda x: (calls.append(1), x)[1], x, x, ordered=True))(x)
    jax.effects_barrier()
    assert y.shape == (0, 3) and calls == [1]


def test_several_results_and_none():
    shapes = (jax.ShapeDtypeStruct((2,), F32), {"a": jax.ShapeDtypeStruct((), np.int32)})
    y, rest = _pure(lambda x: (x * 2, {"a": np.int32(7)}), shapes, jnp.ones(2))
    assert y.tolist() == [2.0, 2.0] and int(rest["a"]) == 7
    jax.jit(lambda x: io_callback(lambda x: None, None, x))(1.0)
    jax.effects_barrier()


def test_errors_carry_the_traceback():
    def breaks(x):
        raise ValueError("boom é")

    message = _message(lambda: _pure(breaks, jax.ShapeDtypeStruct((), F32), 1.0).block_until_ready())
    assert "CpuCallback error calling callback: Traceback (most recent call last):" in message, message
    assert message.startswith("INTERNAL: ") and "in breaks\n" in message and "ValueError: boom é" in message, message
    x = jnp.ones(3)
    shorter = _message(lambda: _pure(lambda x: np.asarray(x)[:2], x, x).block_until_ready())
    assert "Incorrect output shape for return value #0: Expected: (3,), Actual: (2,)" in shorter, shorter
    # The next one is fine.
    assert _pure(_doubled, x, x).tolist() == [2.0] * 3


def test_errors_come_out_of_the_call():
    def check(x):
        if x < 0:
            raise ValueError("negative")
        return x

    f = jax.jit(lambda x: jax.pure_callback(check, jax.ShapeDtypeStruct((), F32), x))
    f(F32(1)).block_until_ready()
    # The result is not looked at.
    assert "ValueError: negative" in _message(lambda: f(F32(-1)))
    assert float(f(F32(2))) == 2.0


def test_calls_are_made_when_the_call_returns():
    seen, threads = [], set()

    def note(i):
        seen.append(int(i))
        threads.add(threading.get_ident())

    def body(i, x):
        jax.debug.callback(note, i, ordered=True)
        return jnp.sin(x) @ x

    f = jax.jit(lambda x: jax.lax.fori_loop(0, 10, body, x))
    x = jnp.ones((200, 200))
    jax.block_until_ready(f(x))
    jax.effects_barrier()
    seen.clear()
    threads.clear()
    f(x)
    assert seen == list(range(10)), seen
    jax.effects_barrier()


def test_many_calls_that_wait_have_few_threads():
    def wait(x):
        time.sleep(0.02)
        return np.asarray(x) * 2

    slow = jax.jit(lambda x: jax.lax.fori_loop(0, 50, lambda i, x: x @ x / 200, x)[0])
    f = jax.jit(lambda x: jax.pure_callback(wait, x, x) + 1)
    x = jnp.ones((200, 200))
    f(slow(x)).block_until_ready()
    before = len(os.listdir("/proc/self/task"))
    late = slow(x)
    results = [f(late) for _ in range(200)]
    time.sleep(0.1)
    threads = len(os.listdir("/proc/self/task")) - before
    jax.block_until_ready(results)
    assert threads < 64, threads


@pytest.fixture
def interrupts():
    """Python's handler of SIGINT, which a process in the background of a shell starts without."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_before_a_call_is_an_error(interrupts):
    signals = []

    def start(x):
        def interrupt():
            time.sleep(0.002)
            os.kill(os.getpid(), signal.SIGINT)

        signals.append(threading.Thread(target=interrupt))
        signals[-1].start()
        return np.asarray(x)

    def run(x):
        x = jax.lax.fori_loop(0, 300, lambda i, x: x @ x / 200, jax.pure_callback(start, x, x))
        return jax.pure_callback(_doubled, x, x)

    x = jnp.ones((200, 200)).block_until_ready()
    f = jax.jit(run).lower(x).compile()
    for _ in range(3):
        # Python handles the signal on this thread: where it enters a function, which nothing can catch.
        assert "KeyboardInterrupt" in _message(lambda: f(x))
        signals.pop().join()
    assert _pure(_doubled, x, x)[0, 0] == 2.0


def test_errors_that_end_programs_are_errors_of_the_call():
    for kind in (KeyboardInterrupt, SystemExit, GeneratorExit):

        def fail(x):
            raise kind("stop")

        x = np.ones(3, F32)
        assert f"{kind.__name__}: stop" in _message(lambda: _pure(fail, x, x))


def test_calls_of_threads_run_programs_with_calls():
    inner = jax.jit(lambda x: jax.pure_callback(_doubled, x, x) + 1)
    outer = jax.jit(lambda x: jax.pure_callback(lambda x: np.asarray(inner(jnp.asarray(x))), x, x))

    def wait_for_another_thread(x):
        results = []
        thread = threading.Thread(target=lambda: results.append(np.asarray(outer(jnp.asarray(x)))))
        thread.start()
        thread.join()
        return results[0]

    f = jax.jit(lambda x: jax.pure_callback(wait_for_another_thread, x, x))
    late = jax.jit(lambda x: jax.lax.fori_loop(0, 50, lambda i, x: x @ x / 200, x)[0, :3])(jnp.ones((200, 200)))
    expected, found = [3.0, 5.0, 7.0], []

    def run():
        found.extend(f(jnp.arange(1.0, 4.0)).tolist() == expected for _ in range(5))

    threads = [threading.Thread(target=run) for _ in range(8)]
    results = [f(late) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 40
    assert all(result.tolist() == [3.0] * 3 for result in results)


def test_arguments_of_calls_are_donated():
    f = jax.jit(lambda x: jax.pure_callback(_doubled, x, x) + x, donate_argnums=0)
    x = jnp.ones(64)
    assert f(x).tolist() == [3.0] * 64 and x.is_deleted()

    def fail(x):
        raise ValueError("no")

    failing = jax.jit(lambda x: jax.pure_callback(fail, x, x) + x, donate_argnums=0)
    x = jnp.ones(64).block_until_ready()
    assert "ValueError: no" in _message(lambda: failing(x))
    assert x.is_deleted()


def test_ordered_calls_keep_their_order():
    seen = []
    f = jax.jit(lambda x: io_callback(lambda x: seen.append(int(x)), None, x, ordered=True))
    for i in range(100):
        f(i)
    jax.effects_barrier()
    assert seen == list(range(100))


def test_errors_of_ordered_calls_are_told_and_over():
    def breaks(x):
        raise RuntimeError("ordered boom")

    f = jax.jit(lambda x: io_callback(breaks, None, x, ordered=True))
    g = jax.jit(lambda x: io_callback(lambda x: None, None, x, ordered=True))

    def run():
        f(1.0)
        g(1.0)
        jax.effects_barrier()

    assert "ordered boom" in _message(run)
    from jax._src import dispatch

    dispatch.runtime_tokens.clear()
    g(1.0)
    jax.effects_barrier()


def test_the_barrier_waits_for_all_effects():
    seen = []

    def slow(x):
        time.sleep(0.05 if int(x) % 3 == 0 else 0)
        seen.append(int(x))

    f = jax.jit(lambda x: jax.debug.callback(slow, x))
    for i in range(12):
        f(i)
    jax.effects_barrier()
    assert sorted(seen) == list(range(12))


def test_calls_in_loops_and_branches():
    seen = []
    note = lambda x: seen.append(float(x))

    def body(x):
        io_callback(note, None, x, ordered=True)
        return x + 1

    loop = jax.jit(lambda x: jax.lax.while_loop(lambda x: x < 5, body, x))
    assert float(loop(0.0)) == 5.0
    jax.effects_barrier()
    assert seen == [0.0, 1.0, 2.0, 3.0, 4.0]

    def step(carry, x):
        y = jax.pure_callback(lambda a, b: np.asarray(a) + np.asarray(b), jax.ShapeDtypeStruct((), F32), carry, x)
        return y, y * 2

    total, ys = jax.jit(lambda xs: jax.lax.scan(step, jnp.zeros((), F32), xs))(jnp.arange(6.0, dtype=F32))
    assert float(total) == 15.0 and ys.tolist() == [0.0, 2.0, 6.0, 12.0, 20.0, 30.0]
    branch = jax.jit(
        lambda x: jax.lax.cond(x > 0, lambda x: jax.pure_callback(_doubled, x, x), lambda x: x - 1, x)
    )
    assert (float(branch(F32(3))), float(branch(F32(-3)))) == (6.0, -4.0)


def test_programs_run_inside_of_calls():
    inner = jax.jit(lambda x: (x @ x.T).sum())

    def call(x):
        return np.asarray(inner(jnp.asarray(np.asarray(x))), F32)

    f = jax.jit(lambda x: io_callback(call, jax.ShapeDtypeStruct((), F32), x))
    x = jnp.ones((4, 4), F32)
    results = [f(x + i) for i in range(100)]
    assert [float(y) for y in results] == [64.0 * (1 + i) ** 2 for i in range(100)]
    # A call inside of a call.
    outer = jax.jit(lambda x: jax.pure_callback(lambda x: np.asarray(f(jnp.asarray(np.asarray(x)))), f(x), x))
    assert float(outer(x)) == 64.0


def test_a_call_may_wait_for_a_program_of_another_thread():
    def call(x):
        results = []
        work = lambda: results.append(np.asarray(jax.jit(lambda x: jax.pure_callback(_doubled, x, x))(jnp.ones(2))))
        thread = threading.Thread(target=work)
        thread.start()
        thread.join(60)
        return results[0]

    f = jax.jit(lambda x: io_callback(call, x, x))
    assert f(jnp.zeros(2)).tolist() == [2.0, 2.0]


def test_many_threads_call():
    f = jax.jit(lambda x: jax.pure_callback(_doubled, x, x) + 1)
    x = jnp.arange(100.0, dtype=F32)
    failures = []

    def work(i):
        try:
            for _ in range(20):
                np.testing.assert_array_equal(f(x + i), 2 * (np.arange(100.0, dtype=F32) + i) + 1)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not failures, failures


def test_calls_are_mapped():
    f = lambda x, **how: jax.pure_callback(_doubled, jax.ShapeDtypeStruct(x.shape, x.dtype), x, **how)
    for method in ("sequential", "expand_dims", "broadcast_all"):
        y = jax.jit(jax.vmap(functools.partial(f, vmap_method=method)))(jnp.arange(4.0))
        assert y.tolist() == [0.0, 2.0, 4.0, 6.0], method


def test_printing_and_partitioned_calls(capsys=None):
    seen = []
    partitioned = jax.jit(lambda x: jax.debug.callback(lambda x: seen.append(int(x.sum())), x, partitioned=True))
    partitioned(jnp.arange(4))
    jax.jit(lambda x: jax.debug.print("x = {}", x, ordered=True))(3)
    jax.effects_barrier()
    assert seen == [6]
    if capsys is not None:
        assert "x = 3" in capsys.readouterr().out


def test_buffers_are_changed_in_place():
    def add(context, out, x):
        np.asarray(out)[...] = np.asarray(x) + 1

    x = jnp.arange(5.0, dtype=F32)
    y = jax.jit(lambda x: buffer_callback(add, jax.ShapeDtypeStruct(x.shape, x.dtype))(x))(x)
    assert y.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]


def test_checks_are_reported():
    def f(x):
        checkify.check(x > 0, "{x} must be positive", x=x)
        return jnp.log(x)

    error, _ = jax.jit(checkify.checkify(f))(-1.0)
    assert "-1.0 must be positive" in error.get()
    error, y = jax.jit(checkify.checkify(f))(1.0)
    assert error.get() is None and float(y) == 0.0
