#!/usr/bin/env python3
"""Makes the corpus: generate.py [--out DIR] [--suite NAME ...] [--only TEXT ...]"""

import argparse
import importlib
from pathlib import Path

from harness import Suite

SUITES = ["elementwise", "shapes", "reductions", "dot", "conv", "gather_scatter", "control_flow", "sort",
          "rng", "linalg", "fft", "complex", "models", "multi_device", "hlo_text"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parent.parent / "unpacked")
    parser.add_argument("--suite", nargs="*", default=SUITES)
    parser.add_argument("--only", nargs="*")
    options = parser.parse_args()
    for name in options.suite:
        suite = Suite(name, options.out, options.only)
        importlib.import_module(f"suite_{name}").build(suite)
        print(suite.summary(), flush=True)


if __name__ == "__main__":
    main()
