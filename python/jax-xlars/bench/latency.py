"""Latency of small steps, this plugin beside XLA:CPU in one process: medians of interleaved rounds and their ratios.

    JAX_PLATFORMS=xlars,cpu python latency.py
"""

import statistics
import threading
import time

import jax
import numpy as np

ROUNDS = 20


def steps(device):
    """Named steps on a device: a function, and how often a round runs it."""
    small, large = np.ones(8, np.float32), np.ones(16 << 20, np.float32)
    increment = jax.jit(lambda x: x + 1)
    on_device = jax.device_put(small, device)
    large_on_device = jax.device_put(large, device)
    increment(on_device).block_until_ready()

    def from_threads():
        def work():
            for _ in range(200):
                increment(on_device)
            increment(on_device).block_until_ready()

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return {
        "jit(x + 1), 8 floats": (lambda: increment(on_device), 1000),
        "the same until it is ready": (lambda: increment(on_device).block_until_ready(), 1000),
        "device_put, 8 floats": (lambda: jax.device_put(small, device), 500),
        "device_put, 64 MB": (lambda: jax.device_put(large, device).block_until_ready(), 3),
        "asarray of x + 1, 8 floats": (lambda: np.asarray(increment(on_device)), 500),
        "asarray of x + 1, 64 MB": (lambda: np.asarray(increment(large_on_device)), 3),
        "4 threads of 200 jit(x + 1)": (from_threads, 1),
    }


def microseconds(step, repetitions):
    start = time.perf_counter()
    for _ in range(repetitions):
        step()
    return (time.perf_counter() - start) / repetitions * 1e6


def main():
    ours, theirs = steps(jax.devices("xlars")[0]), steps(jax.devices("cpu")[0])
    print(f"{'step':32}{'xlars':>12}{'XLA:CPU':>12}{'ratio':>8}   (microseconds, medians of {ROUNDS} rounds)")
    for name, (step, repetitions) in ours.items():
        times = [(microseconds(step, repetitions), microseconds(theirs[name][0], repetitions)) for _ in range(ROUNDS)]
        a, b = (statistics.median(column) for column in zip(*times))
        print(f"{name:32}{a:12.1f}{b:12.1f}{a / b:8.2f}")


if __name__ == "__main__":
    main()
