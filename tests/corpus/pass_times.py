"""What share each pass has in optimising large programs, beside XLA's whole compilation of them.

    /path/to/venv/bin/python tests/corpus/pass_times.py ../shared/bench [--only gpt2_forward transformer_train_step] [--command target/release/xla]

The Python is one with jaxlib. Times of passes come from what `xla opt -vv` says, the middle of several runs; XLA's from
`xla_baseline.py` of the benchmarks, in the same minute: its optimiser and its code generator together, without reading the program.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

from scaling import ROOT, seconds

PROGRAMS = ["gpt2_forward", "gpt2_decode_step", "transformer_train_step", "cnn_train_step", "resnet18_b1"]
RUNS = 5


def middle(runs):
    """Of the seconds of each pass in several runs, those of the run whose whole is in the middle."""
    return sorted(runs, key=lambda run: sum(run.values()))[len(runs) // 2]


def xla_milliseconds(bench, name):
    words = [sys.executable, str(bench / "xla_baseline.py"), "--only", name, "--no-run", "--compiles", "3"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return statistics.median(json.loads(done.stdout.splitlines()[0])["compile_all_ms"])


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("bench", type=pathlib.Path)
    args.add_argument("--only", nargs="*", default=PROGRAMS)
    args.add_argument("--command", default=str(ROOT / "target/release/xla"))
    args = args.parse_args()
    for name in args.only:
        text = (args.bench / "programs" / f"{name}.hlo").read_text()
        passes = middle([seconds(args.command, text) for _ in range(RUNS)])
        whole, xla = 1e3 * sum(passes.values()), xla_milliseconds(args.bench, name)
        print(f"{name}: all passes {whole:.1f} ms, XLA's whole compilation {xla:.1f} ms: {whole / xla:.3f} of it", flush=True)
        for what, time in sorted(passes.items(), key=lambda item: -item[1]):
            if 1e3 * time >= 0.01 * whole:
                print(f"    {what:<28} {1e3 * time:8.2f} ms {1e5 * time / whole:5.1f}%")


if __name__ == "__main__":
    main()
