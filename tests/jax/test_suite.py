"""Tests of the runner of JAX's tests: `python3 -m unittest discover -s tests/jax`."""

import contextlib
import io
import json
import pathlib
import tempfile
import unittest

import process
import report
import run
from records import CRASHED, FAILED, PASSED, SKIPPED, TIMED_OUT, Record

# A fake pytest: runs those of the tests `a b c d` without an outcome in the record, some with a fault.
FAKE = r"""
record=$1; fault=$2
for test in a b c d; do
    grep -q "\"id\": *\"$test\"" "$record" && continue
    echo "{\"start\":\"$test\"}" >> "$record"
    case $fault-$test in
        abort-b) echo "thread 'x' panicked at lib.rs:1:1:" ; echo "index out of bounds" ; kill -ABRT $$ ;;
        hang-c) echo "Timeout (0:02:00)!" > "$record.crash"; exit 1 ;;
    esac
    echo "{\"id\":\"$test\",\"outcome\":\"passed\",\"seconds\":0.25}" >> "$record"
done
[ "$fault" = outside ] && exit 3
echo '{"finished":0}' >> "$record"
[ "$fault" = late ] && kill -SEGV $$
exit 0
"""


class Case(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def record(self, *lines: dict) -> Record:
        path = self.folder / "x_test.jsonl"
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        return Record(path)

    def error(self, function, *arguments) -> str:
        with self.assertRaises(SystemExit) as raised, contextlib.redirect_stderr(io.StringIO()) as printed:
            function(*arguments)
        return f"{raised.exception} {printed.getvalue()}"


class Records(Case):
    def test_a_test_without_an_outcome_stays_open(self) -> None:
        lines = [{"subject": "s"}, {"process": 0}, {"collected": 3}, {"start": "T::a"}]
        lines += [{"id": "T::a", "outcome": "passed", "seconds": 0.5}, {"start": "T::b"}]
        crashed = self.record(*lines)
        self.assertEqual((crashed.open, crashed.is_complete), ("T::b", False))
        done = self.record(*lines, {"process": 1}, {"collected": 3}, {"finished": 0})
        self.assertEqual((done.open, done.is_complete, len(done.outcomes)), (None, True, 1))
        self.assertFalse(self.record({"uncollected": "ImportError: x"}, {"finished": 2}).is_complete)

    def test_a_damaged_record_is_named(self) -> None:
        path = self.folder / "y_test.jsonl"
        path.write_text("{}\n{")
        self.assertIn(f"line 2 of {path}", self.error(Record, path))

    def test_an_earlier_run_is_continued_as_chosen(self) -> None:
        path = self.folder / "x_test.jsonl"

        def taken(subject: str, misses: bool = False, again: bool = False) -> tuple:
            is_left = run.take_up(path, subject, misses, again)
            return is_left, " ".join(Record(path).outcomes)

        self.assertEqual(taken("one"), (True, ""))
        Record(path).append(id="a", outcome=PASSED, seconds=1)
        Record(path).append(id="b", outcome=FAILED, seconds=1)
        self.assertEqual(taken("one"), (True, "a b"))
        Record(path).append(finished=1)
        self.assertEqual(taken("one"), (False, "a b"))
        self.assertEqual(taken("two", misses=True), (True, "a"))
        # The outcomes of another library do not count.
        self.assertEqual(taken("three"), (True, ""))
        Record(path).append(id="a", outcome=PASSED, seconds=1)
        self.assertEqual(taken("three", again=True), (True, ""))


class Processes(Case):
    def run_fake(self, fault: str, *lines: dict) -> Record:
        path = self.record(*lines).path
        process.run(path, 5, ["sh", "-c", FAKE, "sh", path, fault])
        return Record(path)

    def test_a_crash_costs_one_test(self) -> None:
        record = self.run_fake("abort")
        self.assertEqual((record.is_complete, len(record.outcomes), record.count(PASSED)), (True, 4, 3))
        self.assertEqual(record.outcomes["b"]["outcome"], CRASHED)
        self.assertEqual(record.outcomes["b"]["message"], "signal: 6 (SIGABRT): index out of bounds")

    def test_a_hang_costs_one_test(self) -> None:
        record = self.run_fake("hang")
        self.assertEqual((record.is_complete, record.count(PASSED)), (True, 3))
        self.assertEqual((record.outcomes["c"]["outcome"], record.outcomes["c"]["seconds"]), (TIMED_OUT, 5))

    def test_a_run_continues_behind_the_tests_with_an_outcome(self) -> None:
        # The earlier run was interrupted in test b, which is no crash.
        record = self.run_fake("none", {"id": "a", "outcome": "failed", "seconds": 1}, {"start": "b"})
        self.assertEqual([record.outcomes[test]["outcome"] for test in "ab"], [FAILED, PASSED])
        self.assertEqual((record.is_complete, len(record.outcomes), record.seconds()), (True, 4, 1.75))

    def test_deaths_outside_of_tests_are_noted(self) -> None:
        late = self.run_fake("late")
        self.assertEqual(late.notes, ["after the last test: signal: 11 (SIGSEGV)"])
        outside = self.run_fake("outside")
        self.assertTrue(outside.is_complete)
        self.assertEqual(set(outside.notes), {"outside of tests: exit status: 3"})

    def test_a_process_that_writes_nothing_is_killed(self) -> None:
        status, _ = process.watch(self.folder / "none.jsonl", 0, ["sleep", "60"], {}, grace=0.03)
        self.assertIsNone(status)
        self.assertTrue(process.death(None, "", "")[0])
        self.assertIn("SIGKILL", process.death(-9, "", "")[1])


class Choices(Case):
    def test_defaults_and_choices(self) -> None:
        options = run.parse(["jax", "lax", "nn_test.py"])
        self.assertEqual((options.folder, options.files), (pathlib.Path("jax"), ["lax", "nn_test.py"]))
        self.assertEqual((options.platform, options.workers, options.misses), ("cpu", 2, False))
        options = run.parse(["jax", "--baseline", "--no-x64", "--misses", "lax"])
        self.assertEqual((options.output.name, options.misses, options.files), ("baseline-x32", True, ["lax"]))

    def test_contradictions_are_refused(self) -> None:
        for words, message in [
            ([], "FOLDER"),
            (["jax", "--baseline", "--platform", "cpu"], "--platform: not allowed with argument --baseline"),
            (["jax", "--again", "--report"], "--report: not allowed with argument --again"),
            (["jax", "--workers", "0"], "at least 1"),
            (["jax", "--fast"], "--fast"),
        ]:
            self.assertIn(message, self.error(run.parse, words))

    def test_files_are_left_out_unless_named(self) -> None:
        known = ["array_test", "lax_test", "pallas/ops_test", "third_party/scipy/line_search_test"]
        self.assertEqual(run.select(known, []), ["lax_test", "third_party/scipy/line_search_test"])
        self.assertEqual(run.select(known, ["tests/lax_test.py", "array", "lax"]), ["array_test", "lax_test"])
        self.assertEqual(run.reason("array_test"), "programs of several devices")
        self.assertEqual(run.reason("pallas/ops_test"), "kernels for GPUs and TPUs")
        self.assertIn("there is no test file lux", self.error(run.select, known, ["lux"]))

    def test_a_folder_that_is_no_checkout_is_named(self) -> None:
        self.assertIn("there is no folder no/such", self.error(run.checkout, pathlib.Path("no/such")))
        self.assertIn("is no checkout of JAX", self.error(run.checkout, self.folder))
        for part in ("tests", "conftest.py", "pyproject.toml"):
            (self.folder / part).mkdir()
        (self.folder / "tests/lax_test.py").touch()
        root = run.checkout(self.folder / "tests")
        self.assertEqual((root, run.test_files(root)), (self.folder.resolve(), ["lax_test"]))

    def test_other_platforms_are_added_to_the_cpu(self) -> None:
        self.assertEqual([run.platforms("baseline"), run.platforms("cpu")], [("cpu", "cpu"), ("xlars", "cpu")])
        self.assertEqual(run.platforms("template"), ("xlars_template,cpu", "xlars_template"))

    def test_an_incomplete_environment_is_described(self) -> None:
        good = {"versions": {"python": "3.11", "jax": "0.10.2"}, "under_test": "cpu", "platform": "cpu"}
        self.assertEqual(run.versions(good, "python3", "cpu"), "jax 0.10.2, python 3.11")
        for change, message in [
            ({"missing": ["'pytest<9'", "scipy"]}, "python3 -m pip install 'pytest<9' scipy"),
            ({"failure": "RuntimeError: no xlars"}, "JAX does not start: RuntimeError: no xlars"),
            ({"versions": {"jax": "0.10.1"}}, "has JAX 0.10.1"),
            ({"under_test": "gpu"}, "the device gpu"),
            ({"platform": "xlars_template"}, "xlars_template, not on cpu"),
        ]:
            self.assertIn(message, self.error(run.versions, good | change, "python3", "cpu"))


class Reports(Case):
    def test_outcomes_are_read_back_and_files_added(self) -> None:
        path = self.folder / "baseline.zip"
        self.assertEqual(report.read_baseline(path), {})
        outcomes = {"T::a = b": PASSED, "T::c": SKIPPED, "T::d": TIMED_OUT}
        references = {"x64/lax_test": report.Reference("jax 0.10.2", 1.5, outcomes)}
        report.write_baseline(path, references | {"x64/nn_test": report.Reference()})
        read = report.read_baseline(path)
        self.assertEqual(read, references | {"x64/nn_test": report.Reference()})
        self.assertEqual(read["x64/lax_test"].passed(), ["T::a = b"])
        first = path.read_bytes()
        report.write_baseline(path, read)
        self.assertEqual(path.read_bytes(), first)

    def test_whatever_did_not_pass_is_a_miss(self) -> None:
        record = self.record(
            {"id": "T::a", "outcome": "passed", "seconds": 1},
            {"id": "T::b", "outcome": "skipped", "message": "Skipped: not here"},
            {"id": "T::c", "outcome": "failed", "message": "ValueError: 3"},
            {"id": "T::d", "outcome": "crashed", "message": "signal: 11"},
            {"id": "T::x", "outcome": "failed", "message": "XLA:CPU skips it"},
            {"id": "T::new", "outcome": "failed", "message": "XLA:CPU has no such test"},
        )
        passed = dict.fromkeys(["T::a", "T::b", "T::c", "T::d", "T::e"], PASSED)
        found = report.misses("lax_test", record, report.Reference("", 2.0, passed | {"T::x": SKIPPED}))
        kinds = {miss.test: miss.kind for miss in found}
        self.assertEqual(kinds, {"T::b": "skipped", "T::c": "failed", "T::d": "crashed", "T::e": "not run"})

    def test_a_file_that_does_not_collect_misses_everything(self) -> None:
        record = self.record({"uncollected": "x.py:1: in <module>\nImportError: no"}, {"finished": 2})
        [miss] = report.misses("lax_test", record, report.Reference("", 2.0, {"T::a": PASSED}))
        self.assertEqual((miss.kind, miss.message), ("not collected", "ImportError: no"))
        self.assertEqual(report.notes({"lax_test": record}), "lax_test: not collected: ImportError: no\n")

    def test_shares_are_rounded_down(self) -> None:
        shares = [report.percent(*pair) for pair in [(1, 5), (0, 0), (9999, 10_000), (29_999_999, 30_000_000), (3, 3)]]
        self.assertEqual(shares, ["20.00%", "-", "99.99%", "99.99%", "100.00%"])

    def test_numbers_and_numbered_names_are_removed(self) -> None:
        for line, expected in [
            ("shapes (3, 4) and (5,) differ at 0x7f3a", "shapes (N) and (N,) differ at N"),
            ("f32[2,3] is no s64[]", "f32[N] is no s64[]"),
            ("operand %fusion.12 and %add", "operand %.. and %.."),
            ("%call.1 of body_3.5: no handler", "%..: no handler"),
            ("no target 'lapack_sgesdd' but 'call_17'", "no target 'lapack_sgesdd' but '..'"),
            ("rtol=1e-06, atol=0.5 at -3", "rtol=N, atol=N at N"),
            ("it isn't 12% of it", "it isn't N% of it"),
            ("Größe 3 „x“ 2.", "Größe N „x“ N"),
            ("jax_test_17", "jax_test_17"),
            ("x" * 500, "x" * report.LONGEST),
        ]:
            self.assertEqual(report.normalised(line), expected)

    def test_the_table_counts_the_files_of_the_baseline(self) -> None:
        passed = [{"id": f"T::{number}", "outcome": "passed", "seconds": 0.03} for number in range(397)]
        message = "AssertionError: \n\nNot equal to tolerance rtol={}\nMismatched elements"
        failed = [
            {"id": f"T::{name}", "outcome": "failed", "message": message.format(rtol), "trace": "a.py:1: in test"}
            for name, rtol in [("a", "1e-6"), ("b", "0.001"), ("c", "7")]
        ]
        record = self.record(*passed, *failed, {"note": "after the last test: signal: 11"})
        reference = report.Reference("", 10.0, dict.fromkeys(record.outcomes, PASSED))
        records = {"lax_test": record, "new_test": Record(self.folder / "none")}
        expected = """
file       tests       P  passed    score   seconds   XLA:CPU
lax_test     400     400     397   99.25%      11.9      10.0
new_test       0       -  not in the baseline
total        400     400     397   99.25%      11.9      10.0
"""
        self.assertEqual(report.table(records, {"lax_test": reference, "new_test": None}), expected)
        self.assertEqual(report.notes(records), "lax_test: after the last test: signal: 11\n")
        found = report.groups(report.misses("lax_test", record, reference))
        cause = "failed: AssertionError: Not equal to tolerance rtol=N"
        short = report.causes(found)
        self.assertEqual(short, f"    3  {cause}\n         lax_test.py::T::a\n         lax_test.py::T::b\n")
        text = report.whole_list(found)
        self.assertIn("lax_test.py::T::c\n    AssertionError: Not equal to tolerance rtol=7\n", text)
        self.assertIn(f"-- the first of them\n{message.format('1e-6')}\na.py:1: in test\n", text)

    def test_each_outcome_has_its_junit_element(self) -> None:
        record = self.record(
            {"id": "T::a", "outcome": "passed", "seconds": 0.5},
            {"id": "T::b", "outcome": "failed", "message": '1 < "2"\n\x1b', "trace": "a & b"},
            {"id": "T::c", "outcome": "skipped", "message": "no"},
            {"id": "T::d", "outcome": "timed out", "message": "late"},
        )
        expected = """<?xml version='1.0' encoding='utf-8'?>
<testsuite name="x_test" tests="4" failures="1" errors="1" skipped="1" time="0.500">\
<testcase classname="T" name="a" time="0.500" />\
<testcase classname="T" name="b" time="0.000"><failure message="1 &lt; &quot;2&quot;&#10;\ufffd">a &amp; b</failure></testcase>\
<testcase classname="T" name="c" time="0.000"><skipped message="no" /></testcase>\
<testcase classname="T" name="d" time="0.000"><error message="late" /></testcase>\
</testsuite>"""
        self.assertEqual(report.junit("x_test", record).decode(), expected)


if __name__ == "__main__":
    unittest.main()
