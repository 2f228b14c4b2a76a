"""Tests of jobs of several processes."""

import contextlib
import io
import itertools
import os
import pathlib
import signal
import subprocess
import sys
import unittest
import unittest.mock

import job
import process
import run
from records import CRASHED, FAILED, PASSED, SKIPPED, TIMED_OUT, Record
from test_suite import Case

# A fake pytest: runs those of the tests `a b c` without an outcome in the record of its rank, with a fault in one rank.
# `exit`: dies after its last line. `linger`: does not end after it. `late`: writes it once a file exists. `partial`: two
# ranks have fewer tests. `signal`: dies of a signal without a name.
FAKE = r"""
import json, os, pathlib, signal, sys, time
rank, fault = int(os.environ["JAX_TESTS_RANK"]), sys.argv[1]
record = pathlib.Path(os.environ["JAX_TESTS_RECORD"])
record = record.with_name(f"{record.stem}.rank{rank}.jsonl")
def write(**fields):
    with open(record, "a") as file:
        file.write(json.dumps(fields) + "\n")
done = [line["id"] for line in map(json.loads, record.read_text().splitlines()) if "id" in line]
if fault == "start" and rank == 1:
    sys.exit(3)
def wait_for_all(text):
    while not all(text in path.read_text() for path in record.parent.glob("*.rank*.jsonl")):
        time.sleep(0.005)
tests = ["ac", "ab", "abc"][rank] if fault == "partial" else "abc"
for test in [test for test in tests if test not in done]:
    write(start=test)
    # A barrier, as at the start of each of JAX's tests.
    if fault != "partial":
        wait_for_all(f'"start": "{test}"')
    if (test, rank) == ("b", 1):
        if fault == "die":
            os.kill(os.getpid(), 9)
        if fault == "signal":
            os.kill(os.getpid(), signal.SIGRTMIN + 3)
        if fault == "hang":
            pathlib.Path(f"{record}.crash").write_text("Timeout (0:02:00)!\nThread")
            sys.exit(1)
        if fault == "stuck":
            time.sleep(60)
    outcome = "failed" if (test, rank, fault) == ("b", 1, "fail") else "passed"
    write(id=test, outcome=outcome, seconds=rank, message="wrong" if outcome == "failed" else "")
while (fault, rank) == ("late", 1) and not (record.parent / "go").exists():
    time.sleep(0.005)
code = int(fault == "fail" and rank == 1)
write(finished=code)
if (fault, rank) == ("exit", 1):
    wait_for_all('"finished"')
    os.kill(os.getpid(), 9)
if (fault, rank) == ("linger", 1):
    time.sleep(60)
sys.exit(code)
"""

# A fake mpiexec: kills all processes after the first one that fails, and returns its status as shells do.
MPIEXEC = r"""
import os, subprocess, sys, time
count, command = int(sys.argv[2]), sys.argv[3:]
ranks = [subprocess.Popen(command, env=os.environ | {"JAX_TESTS_RANK": str(rank)}) for rank in range(count)]
status = None
while status is None:
    statuses = [rank.poll() for rank in ranks]
    failed = [status for status in statuses if status]
    status = failed[0] if failed else None if None in statuses else 0
    time.sleep(0.005)
for rank in ranks:
    rank.kill()
    rank.wait()
sys.exit(status if status >= 0 else 128 - status)
"""

# Starts as a process of a job whose parent is process `JAX_TESTS_PARENT`.
CHILD = """
import jax_tests_parent
jax_tests_parent.end_with_parent()
print("runs")
"""


class Outcomes(unittest.TestCase):
    def combined(self, *lines: tuple) -> tuple:
        lines = [{"id": "T::a", "outcome": outcome, "seconds": 1, "message": text} for outcome, text in lines]
        found = job.combined(lines)
        return found["outcome"], found["message"]

    def test_a_test_fails_if_one_process_fails_it(self) -> None:
        outcome, message = self.combined((PASSED, ""), (FAILED, "ValueError: 3"), (SKIPPED, "no"))
        self.assertEqual((outcome, message), (FAILED, "ValueError: 3\n[process 1; failed in [1]]"))

    def test_the_first_cause_is_named_instead_of_its_consequences(self) -> None:
        barrier = "RuntimeError: Test test_a failed in another process.  We recommend"
        outcome, message = self.combined((FAILED, barrier), (FAILED, "ValueError: 3"))
        self.assertEqual((outcome, message), (FAILED, "ValueError: 3\n[process 1; failed in [0, 1]]"))

    def test_a_process_without_a_part_in_a_test_skips_it(self) -> None:
        self.assertEqual(self.combined((SKIPPED, "no part"), (PASSED, ""))[0], PASSED)
        self.assertEqual(self.combined((SKIPPED, "first"), (SKIPPED, "second")), (SKIPPED, "first"))


class Jobs(Case):
    def python(self, text: str) -> list:
        """Command of a script."""
        script = self.folder / f"script{len(list(self.folder.glob('*.py')))}.py"
        script.write_text(text)
        return [sys.executable, str(script)]

    def run_fake(self, fault: str, limit: float = 5, mpiexec: str | None = None) -> Record:
        path = self.folder / "x_test.jsonl"
        command = [sys.executable, job.__file__, "--processes", "3", "--limit", str(limit)]
        if mpiexec:
            command += ["--mpiexec", *self.python(mpiexec)]
        variables = {"JAX_TESTS_RECORD": str(path)}
        process.run(path, limit, [*command, "--", *self.python(FAKE), fault], env=variables)
        return Record(path)

    def start_fake(self, fault: str) -> job.Job:
        """Starts a job in this process."""
        path = self.record({"subject": "s"}).path
        with unittest.mock.patch.dict("os.environ", JAX_TESTS_RECORD=str(path)):
            return job.Job(path, 3, [*self.python(FAKE), fault], [])

    def expire(self, stuck: job.Job, is_stuck) -> str:
        """Waits for a job with a clock that runs once `is_stuck()`; returns the printed text."""
        seconds = itertools.count(step=10)
        monotonic = lambda: next(seconds) if is_stuck() else 0
        with unittest.mock.patch.object(job.time, "monotonic", monotonic):
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                self.assertEqual(stuck.wait(limit=5), job.BROKEN)
        self.assertTrue(all(child.returncode is not None for child in stuck.children))
        return printed.getvalue()

    def test_outcomes_of_all_processes_become_one(self) -> None:
        record = self.run_fake("none")
        self.assertEqual((record.is_complete, record.count(PASSED), record.notes), (True, 3, []))
        self.assertEqual(record.outcomes["a"]["seconds"], 2)

    def test_a_failure_of_one_process_is_recorded(self) -> None:
        record = self.run_fake("fail")
        self.assertEqual((record.is_complete, record.count(PASSED), record.notes), (True, 2, []))
        self.assertIn("wrong\n[process 1;", record.outcomes["b"]["message"])

    def test_the_death_of_a_process_costs_one_test_and_names_it(self) -> None:
        record = self.run_fake("die")
        self.assertEqual((record.is_complete, record.count(PASSED), record.count(CRASHED)), (True, 2, 1))
        self.assertIn("Fatal: process 1 of 3: signal 9 (SIGKILL)", record.outcomes["b"]["message"])

    def test_a_hang_of_a_process_costs_one_test(self) -> None:
        record = self.run_fake("hang")
        self.assertEqual((record.count(PASSED), record.outcomes["b"]["outcome"]), (2, TIMED_OUT))
        self.assertIn("Timeout: process 1 of 3", record.outcomes["b"]["message"])

    def test_a_process_that_writes_nothing_ends_the_job(self) -> None:
        stuck = self.start_fake("stuck")
        # Only process 1 is left in test b.
        printed = self.expire(stuck, lambda: all(len(stuck.ranks[rank].outcomes) == 2 for rank in (0, 2)))
        self.assertEqual(stuck.merged.open, "b")
        self.assertIn("Timeout: process 1 of 3", printed)
        crash = pathlib.Path(f"{stuck.merged.path}.crash").read_text()
        self.assertTrue(crash.startswith("Timeout: process 1 of 3"))

    def test_a_process_that_does_not_end_is_noted_after_the_last_test(self) -> None:
        stuck = self.start_fake("linger")
        has_ended = lambda rank: stuck.children[rank].returncode is not None
        # Only process 1 is left, after its last line.
        printed = self.expire(stuck, lambda: has_ended(0) and has_ended(2) and stuck.ranks[1].finished is not None)
        self.assertIn("Timeout: process 1 of 3: no end within", printed)
        self.assertEqual((stuck.merged.is_complete, stuck.merged.count(PASSED)), (True, 3))

    def test_a_death_after_the_last_test_is_noted(self) -> None:
        for mpiexec, text in [(None, "process 1 of 3: signal 9 (SIGKILL)"), (MPIEXEC, "a process of 3: exit status 137")]:
            with self.subTest(mpiexec=mpiexec):
                (self.folder / "x_test.jsonl").unlink(missing_ok=True)
                record = self.run_fake("exit", mpiexec=mpiexec)
                self.assertEqual((record.is_complete, record.count(PASSED)), (True, 3))
                self.assertEqual(record.notes, [f"after the last test: exit status: 70: Fatal: {text}"])

    def test_a_process_that_ends_while_the_records_are_read_is_not_dead(self) -> None:
        late = self.start_fake("late")
        read = late.read

        def read_then_end() -> bool:
            """Reads the records; process 1 writes its last line and ends right after its tests have been read."""
            has_new = read()
            if len(late.ranks[1].outcomes) == 3 and late.ranks[1].finished is None:
                (self.folder / "go").touch()
                late.children[1].wait()
            return has_new

        with unittest.mock.patch.object(late, "read", read_then_end):
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                self.assertEqual((late.wait(limit=5), printed.getvalue()), (0, ""))

    def test_a_test_that_some_processes_do_not_run_fails(self) -> None:
        record = self.run_fake("partial")
        self.assertEqual((record.is_complete, record.finished, record.notes), (True, 1, []))
        found = {test: (line["outcome"], line.get("message")) for test, line in record.outcomes.items()}
        missing = lambda rank: (FAILED, f"the test did not run in processes [{rank}]")
        self.assertEqual(found, {"a": (PASSED, ""), "b": missing(0), "c": missing(1)})

    def test_below_mpiexec_a_death_without_a_traceback_blames_no_process(self) -> None:
        record = self.run_fake("die", mpiexec=MPIEXEC)
        self.assertEqual((record.is_complete, record.count(PASSED), record.count(CRASHED)), (True, 2, 1))
        self.assertIn("Fatal: a process of 3: exit status 137", record.outcomes["b"]["message"])

    def test_below_mpiexec_a_traceback_names_its_process(self) -> None:
        record = self.run_fake("hang", mpiexec=MPIEXEC)
        self.assertEqual((record.count(PASSED), record.outcomes["b"]["outcome"]), (2, TIMED_OUT))
        self.assertIn("Timeout: process 1 of 3: exit status 1", record.outcomes["b"]["message"])

    @unittest.skipUnless(hasattr(signal, "SIGRTMIN"), "no real-time signals")
    def test_signals_without_a_name_have_a_number(self) -> None:
        number = signal.SIGRTMIN + 3
        record = self.run_fake("signal")
        self.assertIn(f"Fatal: process 1 of 3: signal {number} (", record.outcomes["b"]["message"])
        self.assertIn(f"signal: {number} (", process.death(-number, "", "")[1])

    @unittest.skipUnless(sys.platform == "linux", "prctl")
    def test_a_process_whose_parent_has_ended_does_not_start(self) -> None:
        own = str(os.getpid())
        # Process 0 is the parent of no process.
        for parent, starts in [(own, True), ("", True), ("0", False)]:
            variables = os.environ | {"PYTHONPATH": str(run.PLUGIN), "JAX_TESTS_PARENT": parent}
            child = subprocess.run([sys.executable, "-c", CHILD], env=variables, capture_output=True, text=True)
            self.assertEqual((child.returncode == 0, child.stdout), (starts, "runs\n" if starts else ""))
            self.assertEqual("the parent, process 0, has ended" in child.stderr, not starts)

    def test_a_failure_before_the_tests_is_noted(self) -> None:
        record = self.run_fake("start")
        self.assertTrue(record.is_complete)
        self.assertIn("process 1 of 3: exit status 3", record.notes[0])


class Choices(Case):
    KNOWN = ["array_test", "lax_test", "multiprocess/array_test", "multiprocess/pmap_test"]

    def test_several_processes_run_their_own_files(self) -> None:
        self.assertEqual(run.select(self.KNOWN, [], 4), ["multiprocess/array_test", "multiprocess/pmap_test"])
        self.assertEqual(run.select(self.KNOWN, ["array", "multiprocess/pmap"], 4), self.KNOWN[2:])
        self.assertEqual(run.select(self.KNOWN, ["array"], 1), ["array_test"])
        self.assertIn("no test file lax", self.error(run.select, self.KNOWN, ["lax"], 4))
        self.assertIn("needs several processes", self.error(run.select, self.KNOWN, ["multiprocess/pmap_test"]))

    def test_settings_of_jobs_have_outcomes_of_their_own(self) -> None:
        options = run.parse(["jax", "--processes", "4", "--devices-per-process", "2", "--collectives", "mpi"])
        self.assertEqual((options.setting, options.output.name), ("x64-4x2", "cpu-x64-4x2-mpi"))
        self.assertEqual(run.parse(["jax"]).setting, "x64")
        for words, message in [
            (["jax", "--collectives", "mpi"], "need --processes"),
            (["jax", "--devices-per-process", "2"], "need --processes"),
            (["jax", "--baseline", "--processes", "4", "--collectives", "mpi"], "Gloo"),
        ]:
            self.assertIn(message, self.error(run.parse, words))

    def test_the_module_of_the_ranks_is_loaded_before_the_recorder(self) -> None:
        options = run.parse(["jax", "--processes", "2", "--collectives", "mpi", "--mpiexec", "/x/mpiexec"])
        words = run.job_command(options, ["python", "-m", "pytest", "-p", "jax_tests_recorder", "tests/a.py"])
        self.assertEqual(words[-5:], ["-p", "jax_tests_rank", "-p", "jax_tests_recorder", "tests/a.py"])
        self.assertIn("/x/mpiexec", words)


if __name__ == "__main__":
    unittest.main()
