"""Runs the conformance suite in quick sizes, with NVIDIA's libraries where they are."""
import json
import os
import threading

from . import toolbox
from .toolbox import Failure

TITLE = "conformance with libraries, quick sizes"
LIMIT, LEAST = 3600, 60

LEVELS = "0,1,2,3,5,6"
# What there is of the suite where the step itself is tried: programs that call libraries, and one in every way it can be run.
SMALL = (["--quick", "--level", "2", "--filter", "fft"], ["--quick", "--level", "3", "--filter", "softmax"])


def run(opt, results):
    suites(opt, results, [["--quick", "--level", LEVELS]])


def suites(opt, results, parts, libraries=True, patience=120):
    """Runs parts of the suite, each chosen by options."""
    if not opt.tests:
        return results.leave_out("no --tests")
    for words in SMALL if opt.small else parts:
        suite(opt, results, words, libraries, 20 if opt.small else patience)


def suite(opt, results, words, libraries, patience):
    """Runs a part of the suite; its results are appended to a file of its own, and are copied here as they are."""
    log = opt.scratch("conformance-%d.jsonl" % os.getpid())
    if os.path.exists(log):
        os.remove(log)
    command = [opt.tests, "conformance", opt.platform, "--log", log, "--patience", patience, "--jobs", opt.jobs]
    with Follower(log, results) as follower:
        try:
            # The step is ended at its limit, whatever runs in it.
            toolbox.run(command + words, timeout=None, env=opt.environment(libraries))
        except Failure as error:
            ended = error
        else:
            ended = None
    if ended is not None and not follower.failed:
        # It fails when a case does; here none did.
        results.add("the suite", ok=False, message=str(ended))
    results.fact(" ".join(words), follower.outcomes)


class Follower:
    """Takes lines over from a file that another process appends to."""

    def __init__(self, path, results):
        self.path, self.results, self.at, self.failed, self.outcomes = path, results, 0, 0, {}
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.follow)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *error):
        self.ended.set()
        self.thread.join()

    def follow(self):
        while not self.ended.wait(0.5):
            self.take()
        self.take()

    def take(self):
        try:
            with open(self.path, "rb") as file:
                file.seek(self.at)
                data = file.read()
        except OSError:
            return
        whole = data[:data.rfind(b"\n") + 1]
        self.at += len(whole)
        for line in whole.decode(errors="replace").splitlines():
            self.case(json.loads(line))

    def case(self, case):
        outcome = case["outcome"]
        kind = outcome if isinstance(outcome, str) else next(iter(outcome))
        self.outcomes[kind] = self.outcomes.get(kind, 0) + 1
        ok = kind in ("Passed", "Expected", "Skipped")
        self.failed += not ok
        more = {} if kind == "Passed" else {"message": outcome[kind] if not isinstance(outcome, str) else ""}
        self.results.add(case["id"], ok=ok, outcome=kind, seconds=round(case["seconds"], 3), **more)
