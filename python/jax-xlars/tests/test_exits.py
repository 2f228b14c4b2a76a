"""Ends of processes with work in flight, and processes that fork.

With `JAX_PLATFORMS=xlars` and `XLARS_LIBRARY`, by pytest. Each way to end is tried in
`ROUNDS` (5) processes of its own; an end is clean if its code is 0 and it says nothing. Threads that Python does not wait
for (`daemon`) are left out: with them jaxlib's own frames are unwound by force, and XLA's CPU aborts as well.
"""

import os
import subprocess
import sys
import time

ROUNDS = int(os.environ.get("ROUNDS", "5"))

BEFORE = """
import functools, os, sys, threading, time
import jax, jax.numpy as jnp, numpy as np
from jax.experimental import io_callback
x = jnp.ones((64, 64))
long = jax.jit(lambda x: jax.lax.fori_loop(0, 300, lambda i, x: x @ x / 64, x))
slow = jax.jit(lambda x: io_callback(lambda x: (time.sleep(0.02), np.asarray(x) + 1)[1], x, x))
ordered = jax.jit(lambda x: io_callback(lambda x: time.sleep(0.02), None, x, ordered=True))
inside = jax.jit(lambda x: io_callback(lambda x: np.asarray(long(jnp.asarray(np.asarray(x)))), x, x))
"""

WAYS = {
    "a program": "y = long(x)",
    "programs, of which each needs the one before": "y = long(long(long(x)))",
    "calls": "ys = [slow(x + i) for i in range(8)]",
    "ordered calls": "[ordered(x) for i in range(8)]",
    "programs inside of calls": "y = inside(x)",
    "prints": "[jax.jit(lambda x: jax.debug.callback(lambda x: time.sleep(0.01), x))(x) for i in range(4)]",
    "nothing kept": "slow(x); long(x); del x",
    "an exit from inside": "y = slow(x); sys.exit(0)",
    "threads that wait for results": """
[threading.Thread(target=lambda: np.asarray(slow(long(x)))).start() for i in range(4)]
""",
}

# Calls that fail: on the main thread, and on one of the runtime's while Python ends.
FAILURES = {
    "a call": "y = fails(x)",
    "a call of which an argument is not there yet": "y = fails(long(x)); sys.exit(1)",
    "the same, in the middle": "y = fails(long(x)); time.sleep(0.05); sys.exit(1)",
}
FAILS = """
def fail(x):
    raise ValueError("negative")
fails = jax.jit(lambda x: jax.pure_callback(fail, x, x))
"""

FORKS = {
    "a child that uses NumPy": """
y = long(x)
child = os.fork()
if child == 0:
    os._exit(0 if np.ones(3).sum() == 3 else 1)
assert os.waitpid(child, 0)[1] == 0
assert np.isfinite(np.asarray(y)).all()
assert (np.asarray(slow(x)) == 2).all()
""",
    "a pool of processes": """
import multiprocessing
np.asarray(long(x))
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.map(abs, range(-4, 0)) == [4, 3, 2, 1]
assert (np.asarray(slow(x)) == 2).all()
""",
    "a child that uses JAX": """
np.asarray(slow(long(x)))
y = long(x)
child = os.fork()
if child == 0:
    for use in (
        lambda: np.asarray(jax.jit(lambda x: x + 1)(np.ones(3))),
        lambda: np.asarray(slow(long(x))),
        lambda: np.asarray(long(y)),
        lambda: jax.device_put(np.ones(1000)).block_until_ready(),
    ):
        try:
            use()
        except Exception as error:
            # An error will do if it says why.
            if "forked" not in str(error):
                print(error, flush=True)
    # As multiprocessing ends its children; at a usual exit jaxlib joins threads that are not there.
    os._exit(0)
for i in range(600):
    done, status = os.waitpid(child, os.WNOHANG)
    if done:
        break
    time.sleep(0.1)
else:
    os.kill(child, 9)
    raise SystemExit("the child hangs")
assert status == 0, status
assert (np.asarray(slow(x)) == 2).all()
""",
}


def _run(text: str) -> tuple[int, str]:
    # JAX warns of forks whenever it is used.
    command = [sys.executable, "-W", "ignore", "-c", BEFORE + text]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return -1, "the process hangs"
    return done.returncode, done.stdout + done.stderr


def _check(ways: dict[str, str], rounds: int) -> None:
    wrong = []
    for name, text in ways.items():
        start, outcomes = time.time(), [_run(text) for _ in range(rounds)]
        failed = [f"{name}: code {code}\n{said[-2000:]}" for code, said in outcomes if (code, said) != (0, "")]
        print(f"{name}: {rounds - len(failed)} of {rounds} in {time.time() - start:.0f} s", flush=True)
        wrong += failed
    assert not wrong, "\n".join(wrong[:5])


def test_processes_end_with_work_in_flight():
    _check(WAYS, ROUNDS)


def test_processes_whose_calls_fail_end_with_status_1():
    for name, text in FAILURES.items():
        for _ in range(ROUNDS):
            code, said = _run(FAILS + text)
            assert code == 1 and "FATAL" not in said, f"{name}: code {code}\n{said[-2000:]}"


def test_processes_fork():
    _check(FORKS, 1)
