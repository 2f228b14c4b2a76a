"""Runs the programs of the corpus, as text and as executables with machine code, and compares what comes out."""
import json
import os

from . import toolbox
from .toolbox import Failure

TITLE = "corpus: every program with its inputs and expected outputs"
LIMIT, LEAST = 2400, 60

# Seconds for a program.
PATIENCE = 120
# Programs of each suite, and their largest files, where the step itself is tried.
SMALL, SMALL_BYTES = 2, 4000


def run(opt, results):
    if not opt.data:
        return results.leave_out("no --data")
    for item, ok, facts in opt.side_by_side(lambda case: judge(opt, case), list(cases(opt))):
        results.add(item, ok=ok, **facts)


def cases(opt):
    """Item, case.json and program of each run."""
    for suite in opt.suites():
        folder, taken = opt.suite(suite), 0
        for name in sorted(os.listdir(folder)):
            path = os.path.join(folder, name)
            if not os.path.exists(os.path.join(path, "module.hlo")):
                continue
            if opt.small and (taken >= SMALL or size(path) > SMALL_BYTES):
                continue
            if is_stored_wider(path):
                continue
            taken += 1
            yield "%s/%s" % (suite, name), path, [os.path.join(path, "module.hlo"), "--platform", opt.platform]
            executable = opt.executable(suite, name)
            if executable and opt.platform == "gpu":
                yield "%s/%s, machine code" % (suite, name), path, ["--executable", executable]


def size(folder):
    return sum(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder) if name.endswith(".npz"))


def is_stored_wider(folder):
    """Whether expected values are doubles of narrower results, which the conformance suite alone compares."""
    with open(os.path.join(folder, "case.json")) as file:
        info = json.load(file)
    return "f64" not in info["dtypes"] and any(output["shape"].startswith("f64[") for output in info["outputs"])


def judge(opt, case):
    item, folder, program = case
    with open(os.path.join(folder, "case.json")) as file:
        info = json.load(file)
    path = lambda name: os.path.join(folder, name)
    words = [opt.xla, "run"] + program + ["--inputs", path("inputs.npz"), "--expect", path("expected.npz")]
    try:
        toolbox.run(words + ["--rtol", info["rtol"], "--atol", info["atol"]], timeout=PATIENCE, env=opt.environment())
    except Failure as error:
        return item, False, {"message": str(error)}
    return item, True, {}
