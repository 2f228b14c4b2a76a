"""Everything that is to be known about the compiler on this machine's GPU: a note, and a file of results for each step.

  python3 report.py --xla XLA [--tests XLA-TESTS] [--data DIR] [--executables DIR] [--out DIR] [--steps A,B]
                    [--deadline SECONDS] [--resume] [--jobs N] [--quick | --small]

Each step is a process of its own with a time limit. Its results go to OUT/STEP.jsonl line by line as they come, with whole messages, and
what it prints to OUT/STEP.log. A step that fails, hangs or takes the device with it costs itself; OUT/report.md is made of whatever is there
after each step. When the run is ended from outside, the step under way is lost and no other: start again with --resume. A step that was
ended at its limit has been run; --steps STEP without --resume runs it once more.

XLA and XLA-TESTS are the commands `xla` and `xla-tests`, built anywhere. DATA is the folder `tests` of the repository, with corpus/suites
and conformance/programs; --executables has SUITE/NAME.xlax of the same programs, with machine code. What is not given is left out. Needs
Python 3.8 and nothing else; with jax (and numpy) that sees the GPU, each benchmark program is timed with it, too. NVIDIA's libraries that
Python packages brought are found. Without a GPU that the compiler can use: one sentence, exit code 1.
"""
import argparse
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from steps import STEPS, summary  # noqa: E402
from steps.results import Results, is_finished, stop  # noqa: E402
from steps.toolbox import Options, find_device, find_libraries, misfit  # noqa: E402


def main():
    opt, chosen = arguments()
    if opt.one:
        return one(Options.read(opt.out), STEPS[opt.one])
    os.makedirs(opt.out, exist_ok=True)
    opt.libraries = opt.libraries or find_libraries(opt.python)
    opt.device = find_device(opt)
    opt.misfit = misfit(opt)
    if opt.misfit:
        print("gpu-report: %s" % opt.misfit)
        opt.executables = None
    opt.write()
    left_out = run(opt, chosen)
    note = summary.write(opt, left_out)
    print(note)
    for name in left_out:
        print("gpu-report: no time was left for %s" % name)
    return 0 if not left_out and all(is_finished(opt.out, name)[1] for name in chosen) else 1


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="steps, in their order:\n" + listing())
    parser.add_argument("--xla", help="the command `xla`")
    parser.add_argument("--tests", help="the command `xla-tests`; without it there is no conformance run")
    parser.add_argument("--data", help="the folder `tests`, with corpus/suites/*.zip and conformance/programs/*.hlo")
    parser.add_argument("--executables", help="a folder with SUITE/NAME.xlax, as `xla compile` writes them")
    parser.add_argument("--out", default="gpu-report", help="where results go (default: gpu-report)")
    parser.add_argument("--steps", help="only these steps, such as `life,corpus`, in the order of the list below")
    parser.add_argument("--deadline", type=float, metavar="SECONDS",
                        help="time for the whole run: steps that no longer fit are left out and named")
    parser.add_argument("--resume", action="store_true", help="leave out steps that OUT has finished results of")
    parser.add_argument("--jobs", type=int, default=min(8, os.cpu_count() or 1),
                        help="programs and cases side by side where nothing is timed (default: the cores, 8 at most)")
    parser.add_argument("--quick", action="store_true", help="smaller sizes, fewer repetitions")
    parser.add_argument("--small", action="store_true", help="a few programs of a few elements: tries the steps themselves")
    parser.add_argument("--python", default=sys.executable, help="a Python that may have jax")
    parser.add_argument("--platform", default="gpu", help="another platform, to try the report itself: gpu-emulated")
    parser.add_argument("--driver", metavar="DIR", help="folder of another libcuda.so.1, such as the simulated one's")
    parser.add_argument("--libraries", metavar="DIR[:DIR]",
                        help="folders of cuBLASLt, cuDNN and cuFFT (default: those of Python's packages)")
    parser.add_argument("--one", choices=list(STEPS), help=argparse.SUPPRESS)
    opt = parser.parse_args()
    names = opt.steps.split(",") if opt.steps else list(STEPS)
    unknown = [name for name in names if name not in STEPS]
    if unknown:
        parser.error("there is no step %s; there are %s" % (unknown[0], ", ".join(STEPS)))
    if not opt.xla and not opt.one:
        parser.error("--xla is needed")
    opt.quick = opt.quick or opt.small
    # Commands run in other folders, too.
    for name in ("xla", "tests", "data", "executables", "out", "driver"):
        path = getattr(opt, name)
        setattr(opt, name, os.path.abspath(path) if path else path)
    return Options(vars(opt)), [name for name in STEPS if name in names]


def listing():
    return "\n".join("  %-18s %s" % (name, step.TITLE) for name, step in STEPS.items())


def run(opt, chosen):
    """Runs steps one after the other; returns those for which no time was left."""
    begun, left_out = time.monotonic(), []
    for name in chosen:
        step = STEPS[name]
        if opt.resume and is_finished(opt.out, name)[0]:
            print("gpu-report: %s has been run" % name, flush=True)
            continue
        left = opt.deadline - (time.monotonic() - begun) if opt.deadline else float("inf")
        if left < step.LEAST * (0.05 if opt.small else 1):
            left_out.append(name)
            continue
        print("gpu-report: %s: %s" % (name, step.TITLE), flush=True)
        start(opt, name, min(step.LIMIT, left))
        summary.write(opt, left_out)
    return left_out


def start(opt, name, limit):
    """Runs a step in a group of processes of its own, all of which are ended after it."""
    words = [sys.executable, os.path.abspath(__file__), "--one", name, "--out", opt.out]
    begun = time.monotonic()
    with open(os.path.join(opt.out, name + ".log"), "w") as log:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        why = None
        try:
            process.wait(timeout=limit)
            why = "its process died: exit code %d" % process.returncode if process.returncode else None
        except subprocess.TimeoutExpired:
            why = "it has not ended after %.0f s" % limit
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except OSError:
                pass  # All of them have ended.
            process.wait()
    if not is_finished(opt.out, name)[0]:
        stop(opt.out, name, why or "it ended without a word", time.monotonic() - begun)


def one(opt, step):
    """The process of a step."""
    opt.end_with_parent()
    name = step.__name__.rsplit(".", 1)[-1]
    with Results(opt.out, name, step.TITLE) as results:
        step.run(opt, results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
