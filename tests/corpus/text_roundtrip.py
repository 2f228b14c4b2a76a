"""Checks that XLA reads what we print, and reads it as the same program.

    python tests/corpus/text_roundtrip.py CORPUS --xla target/release/xla [--suite NAME] [--limit N]

CORPUS is a folder of cases (`SUITE/CASE/module.hlo`). For each module: our print of it goes through XLA's parser (jaxlib), and XLA's
print of that is compared with XLA's print of the original; then our print is read by us and printed again, which must change nothing.
Needs jaxlib 0.10.2. Modules that we refuse by name (`not implemented yet`) are counted apart.
"""

import argparse
import difflib
import pathlib
import re
import subprocess
import sys
import tempfile

from jaxlib import _hlo


# XLA prints a negative zero as `-0` and reads that as a positive one; we print `-0.0`, which it reads as what it is.
NEGATIVE_ZERO = re.compile(r"(?<![\w.])-0(?=[,} )])")


def xla_print(text):
    return NEGATIVE_ZERO.sub("0", _hlo.hlo_module_from_text(text).to_string())


def our_print(xla, path):
    done = subprocess.run([xla, "convert", str(path), "--to", "hlo"], capture_output=True, text=True)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise ValueError(lines[0] if lines else f"exit status {done.returncode}")
    return done.stdout


def difference(expected, actual):
    lines = difflib.unified_diff(expected.splitlines(), actual.splitlines(), lineterm="", n=0)
    return [line for line in lines if not line.startswith(("---", "+++", "@@"))]


def check(xla, path, scratch):
    """What is wrong with a module, as a kind and lines; `None` if nothing is."""
    original = path.read_text()
    try:
        expected = xla_print(original)
    except Exception as error:  # jaxlib's own error type differs between versions
        return "XLA refuses the original", [str(error).splitlines()[0]]
    try:
        ours = our_print(xla, path)
    except ValueError as error:
        return ("not there yet" if "not implemented yet" in str(error) else "we refuse it"), [str(error)]
    scratch.write_text(ours)
    try:
        again = our_print(xla, scratch)
    except ValueError as error:
        return "we do not read our print", [str(error)]
    if again != ours:
        return "our print is no fixed point", difference(ours, again)
    try:
        actual = xla_print(ours)
    except Exception as error:
        return "XLA refuses our print", str(error).splitlines()[:4]
    if actual != expected:
        return "XLA reads another program", difference(expected, actual)
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=pathlib.Path)
    parser.add_argument("--xla", default="target/release/xla")
    parser.add_argument("--suite", action="append")
    parser.add_argument("--limit", type=int, default=6, help="lines told of each difference")
    args = parser.parse_args()
    counts = {}
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder) / "module.hlo"
        for path in sorted(args.corpus.glob("*/*/module.hlo")):
            suite, case = path.parts[-3:-1]
            if args.suite and suite not in args.suite:
                continue
            kind, lines = check(args.xla, path, scratch) or ("fine", [])
            counts[kind] = counts.get(kind, 0) + 1
            if kind not in ("fine", "not there yet"):
                print(f"{suite}/{case}: {kind}")
                for line in lines[: args.limit]:
                    print(f"    {line[:300]}")
    print(", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())))
    return 0 if set(counts) <= {"fine", "not there yet", "XLA refuses the original"} else 1


if __name__ == "__main__":
    sys.exit(main())
