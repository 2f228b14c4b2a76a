#!/usr/bin/env python3
"""Writes the programs of `captured.txt` as cases of the corpus: suite `zoo`.

    capture.py --out tests/corpus/unpacked [--filter TEXT]
    python3 tests/corpus/pack.py tests/corpus/unpacked --suite zoo

Expected outputs are in double precision where the program has such a reference. Tolerances hold for all outputs of a case.
"""

import argparse
import os
import pathlib
import sys

import worker  # chooses the backend, before JAX is imported

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "corpus/generate"))
os.environ.setdefault("XLA_FLAGS", "")

import harness
import jax
import numpy as np
import reference
import tolerance as rule
from harness import ir, jax_mlir
from registry import Random

# Room for platforms that add in another order than XLA:CPU and this machine do.
MARGIN = 4.0


def tolerances(made):
    """`(rtol, atol)` of a case: at least the tolerance of every element; `None` where a decision may flip."""
    rtol = atol = 0.0
    for expected, exact, tolerance in zip(made.expected, made.centre, made.tolerance):
        if not rule.is_float(expected):
            if np.isinf(tolerance).any():
                return None
            continue
        size = np.abs(rule.wide(expected))
        size = np.where(np.isfinite(size), size, 0.0)
        relative = rule.ULPS * float(jax.numpy.finfo(expected.dtype).eps)
        rtol = max(rtol, relative)
        atol = max(atol, float(np.max(tolerance - relative * size, initial=0.0)))
    return float(f"{MARGIN * rtol:.3g}"), float(f"{MARGIN * atol:.3g}")


def capture(program, root):
    """Writes one case; returns its size in bytes."""
    made = reference.make(program, Random(program.name))
    limits = tolerances(made)
    if limits is None:
        raise harness.Unusable("a decision depends on the last bit of an input")
    expected = []
    for ours, exact in zip(made.expected, made.centre):
        expected.append(np.asarray(exact).astype(ours.dtype) if rule.is_float(ours) else ours)
    case = harness.Case("zoo", program.name.replace(".", "_"), "function", signed_zero=False, note=None, custom_calls=(), keep_metadata=False)
    with jax_mlir.make_ir_context():
        module = harness.strip_locations(ir.Module.parse(made.text))
        hlo = harness.hlo_from_mlir(module).get_hlo_module()
        text = harness.hlo_text(hlo, False)
        if harness.custom_call_targets(text):
            raise harness.Unusable(f"custom calls {harness.custom_call_targets(text)}")
        source = "float64" if made.source == "float64" else "xla"
        files, inputs, outputs, description = harness.finish(
            case, text, hlo, None, None, None, made.inputs, expected, *limits, source, {})
    # The archive holds the text alone.
    return harness.write(root, case, ({"module.hlo": files["module.hlo"]}, inputs, outputs, description))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=HERE.parent / "corpus/unpacked")
    parser.add_argument("--filter", default="")
    parser.add_argument("--again", action="store_true", help="make cases again that are in the folder")
    options = parser.parse_args()
    names = [line for line in (HERE / "captured.txt").read_text().split() if options.filter in line]
    programs = {}
    for module in sorted({name.split(".")[0] for name in names}):
        programs |= worker.programs_of(module)
    failed = 0
    for name in names:
        # A run that was interrupted goes on where it was.
        if (options.out / "zoo" / name.replace(".", "_") / "case.json").exists() and not options.again:
            continue
        try:
            print(f"{name:<70}{capture(programs[name], options.out):>9} bytes", flush=True)
        except Exception as error:
            failed += 1
            print(f"{name:<70} LEFT OUT: {type(error).__name__}: {str(error)[:200]}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
