"""The steps of a report, in their order: what a device is worth most for comes first.

A step is a module with TITLE, LIMIT (seconds after which it is ended), LEAST (seconds below which it is not begun) and run(opt, results).
"""
import importlib

NAMES = [
    "presence", "life", "corpus", "conformance", "own_kernels", "sanitizer", "ceilings", "bench", "bench_large", "products",
    "device_time", "launches", "conformance_slow", "stress",
]

STEPS = {name: importlib.import_module("." + name, __name__) for name in NAMES}
