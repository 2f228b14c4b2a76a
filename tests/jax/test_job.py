"""Tests of jobs of several processes."""

import contextlib
import io
import itertools
import pathlib
import sys
import unittest
import unittest.mock

import job
import process
import run
from records import CRASHED, FAILED, PASSED, SKIPPED, TIMED_OUT, Record
from test_suite import Case

# A fake pytest: runs those of the tests `a b c` without an outcome in the record of its rank, with a fault in one rank.
FAKE = r"""
import json, os, pathlib, sys, time
rank, fault = int(os.environ["JAX_TESTS_RANK"]), sys.argv[1]
record = pathlib.Path(os.environ["JAX_TESTS_RECORD"])
record = record.with_name(f"{record.stem}.rank{rank}.jsonl")
def write(**fields):
    with open(record, "a") as file:
        file.write(json.dumps(fields) + "\n")
done = [line["id"] for line in map(json.loads, record.read_text().splitlines()) if "id" in line]
if fault == "start" and rank == 1:
    sys.exit(3)
for test in [test for test in "abc" if test not in done]:
    write(start=test)
    # A barrier, as at the start of each of JAX's tests.
    while not all(f'"start": "{test}"' in path.read_text() for path in record.parent.glob("*.rank*.jsonl")):
        time.sleep(0.005)
    if (test, rank) == ("b", 1):
        if fault == "die":
            os.kill(os.getpid(), 9)
        if fault == "hang":
            pathlib.Path(f"{record}.crash").write_text("Timeout (0:02:00)!\nThread")
            sys.exit(1)
        if fault == "stuck":
            time.sleep(60)
    outcome = "failed" if (test, rank, fault) == ("b", 1, "fail") else "passed"
    write(id=test, outcome=outcome, seconds=rank, message="wrong" if outcome == "failed" else "")
code = int(fault == "fail" and rank == 1)
write(finished=code)
sys.exit(code)
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
    def run_fake(self, fault: str, limit: float = 5) -> Record:
        path = self.folder / "x_test.jsonl"
        script = self.folder / "fake.py"
        script.write_text(FAKE)
        command = [sys.executable, job.__file__, "--processes", "3", "--limit", str(limit)]
        variables = {"JAX_TESTS_RECORD": str(path)}
        process.run(path, limit, [*command, "--", sys.executable, script, fault], env=variables)
        return Record(path)

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
        path = self.record({"subject": "s"}).path
        script = self.folder / "fake.py"
        script.write_text(FAKE)
        with unittest.mock.patch.dict("os.environ", JAX_TESTS_RECORD=str(path)):
            stuck = job.Job(path, 3, [sys.executable, str(script), "stuck"], [])
        seconds = itertools.count(step=10)

        def monotonic() -> int:
            """A clock that runs once only process 1 is left in test b."""
            is_stuck = all(len(stuck.ranks[rank].outcomes) == 2 for rank in (0, 2))
            return next(seconds) if is_stuck else 0

        with unittest.mock.patch.object(job.time, "monotonic", monotonic):
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                self.assertEqual(stuck.wait(limit=5), job.BROKEN)
        self.assertEqual(stuck.merged.open, "b")
        self.assertIn("Timeout: process 1 of 3", printed.getvalue())
        self.assertTrue(pathlib.Path(f"{path}.crash").read_text().startswith("Timeout: process 1 of 3"))
        self.assertTrue(all(child.returncode is not None for child in stuck.children))

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
