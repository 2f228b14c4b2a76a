"""Tests of the runs under faults: `python3 -m unittest discover -s tests/faults`."""

import contextlib
import dataclasses
import io
import json
import pathlib
import stat
import tempfile
import unittest
import zipfile

import cases
import judge
import process
import programs
import run

PLAIN = cases.Case(0, "none", 0, "SIGTERM", "run", "dense", ("--output", "out.npz", "--trace", "trace.json"), "none")


class Case(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)


class DrawTest(unittest.TestCase):
    def test_a_case_depends_on_seed_and_number_alone(self):
        names = sorted(programs.texts())
        first = [cases.case(7, number, names) for number in range(60)]
        self.assertEqual(first[41], cases.case(7, 41, names))
        self.assertNotEqual(first, [cases.case(8, number, names) for number in range(60)])
        self.assertEqual({case.kind for case in first}, set(cases.KINDS))
        self.assertEqual({case.verb for case in first}, set(cases.VERBS))
        for case in first:
            self.assertEqual("/dev/full" in case.options, case.kind == "full device")
            if case.kind == "memory":
                self.assertTrue(400 <= case.limit <= 1400)

    def test_there_are_programs_of_all_sources(self):
        names = programs.texts()
        for prefix in ("models-", "regressions-", "dense"):
            self.assertTrue(any(name.startswith(prefix) for name in names), prefix)


class ProcessTest(Case):
    def shell(self, script: str, timeout: float = 20, **fields) -> process.Ended:
        case = dataclasses.replace(PLAIN, **fields) if fields else None
        wait = case.limit if case and case.kind == "signal" else None
        return process.run(["sh", "-c", script], self.folder, timeout, case, wait)

    def test_signals_are_sent_in_time(self):
        ended = self.shell("exec sleep 30", kind="signal", limit=0.2, signal="SIGINT")
        self.assertEqual(ended.code, -2)
        self.assertLess(ended.seconds, 15)

    def test_limits_apply(self):
        self.assertEqual(self.shell("ulimit -v", kind="memory", limit=500).out.strip(), str(500 << 10))
        self.assertEqual(self.shell("ulimit -n", kind="open files", limit=9).out.strip(), "9")

    def test_processes_that_stay_and_hangs_are_found(self):
        ended = self.shell("sleep 31 > /dev/null 2>&1 & exit 0")
        self.assertEqual((ended.code, ended.hung), (0, False))
        self.assertIn("sleep 31", ended.left[0])
        self.assertEqual(process.marked("no such mark"), [])
        ended = self.shell("exec sleep 32", timeout=0.3)
        self.assertTrue(ended.hung)
        self.assertEqual(self.shell("sleep 0.1 > /dev/null 2>&1 & exit 0").left, [])


class JudgeTest(Case):
    def faults(self, code=1, error="error: memory ran out\n", out="", case=PLAIN, left=(), hung=False) -> list:
        ended = process.Ended(code, out, error, 1.0, hung, list(left))
        return judge.faults(case, ended, self.folder, {"build/a.o": b"whole"})

    def setUp(self) -> None:
        super().setUp()
        (self.folder / "build").mkdir()

    def test_one_error_is_no_fault(self):
        self.assertEqual(self.faults(), [])
        self.assertEqual(self.faults(code=2, error="warning: x\nerror: a\n  more of it\n"), [])

    def test_messages_and_codes(self):
        for fields, part in [
            ({"error": ""}, "0 errors"),
            ({"error": "error: a\nerror: b\n"}, "2 errors"),
            ({"error": "error: a\nbacktrace\n"}, "something else"),
            ({"error": "error: internal error: a\n"}, "internal error"),
            ({"error": "thread 'x' panicked at y\n"}, "panicked"),
            ({"code": 3}, "exit code 3"),
            ({"code": -6}, "ends by signal 6"),
            ({"left": ["7: sleep"]}, "leaves a process: 7"),
            ({"hung": True}, "hangs"),
        ]:
            found = self.faults(**fields)
            self.assertTrue(any(part in fault for fault in found), (fields, found))

    def test_the_signal_that_was_sent_is_no_fault(self):
        case = dataclasses.replace(PLAIN, kind="signal", signal="SIGKILL")
        self.assertEqual(self.faults(code=-9, error="", case=case), [])
        self.assertEqual(self.faults(code=-15, error="", case=case), ["ends by signal 15"])

    def test_files_are_whole_or_absent(self):
        (self.folder / "build/a.o").write_bytes(b"who")
        self.assertEqual(self.faults(), ["leaves a damaged build/a.o"])
        (self.folder / "build/a.o").write_bytes(b"whole")
        self.assertEqual(self.faults(), [])
        (self.folder / "trace.json").write_text("[1, ")
        self.assertEqual(self.faults(), ["leaves a damaged trace.json"])
        (self.folder / "trace.json").write_text("[]")
        (self.folder / "a.tmp").write_text("")
        self.assertEqual(self.faults(), ["leaves the temporary file a.tmp"])

    def test_a_success_has_its_files(self):
        self.assertEqual(self.faults(code=0, error=""), ["succeeds without build/a.o", "succeeds without trace.json"])
        full = dataclasses.replace(PLAIN, verb="bench", options=("--trace", "/dev/full"))
        (self.folder / "build/a.o").write_bytes(b"whole")
        found = self.faults(code=0, error="", case=full, out="no json")
        self.assertEqual(found, ["succeeds with an output that it cannot write", "succeeds without a line of JSON"])

    def test_archives_are_equal_by_their_arrays(self):
        for name, year in (("a.npz", 1990), ("b.npz", 1991)):
            with zipfile.ZipFile(self.folder / name, "w") as archive:
                archive.writestr(zipfile.ZipInfo("out0.npy", (year, 1, 1, 0, 0, 0)), b"data")
        wanted = judge.contents_of(self.folder / "a.npz")
        self.assertEqual(judge.state_of(self.folder / "b.npz", wanted), "whole")
        (self.folder / "b.npz").write_bytes((self.folder / "a.npz").read_bytes()[:-9])
        self.assertEqual(judge.state_of(self.folder / "b.npz", wanted), "damaged")
        (self.folder / "b.npz").write_bytes(judge.OLD)
        self.assertEqual(judge.state_of(self.folder / "b.npz", wanted), "absent")


class CampaignTest(Case):
    # Fails under a limit of 500 MB; the text of the program decides whether it leaves a part of its output.
    COMMAND = """#!/bin/sh
for word; do [ "$last" = --output ] && output=$word; last=$word; done
if [ "$(ulimit -v)" = 512000 ]; then
    [ "$(cat program.hlo)" = bad ] && echo wh > "$output"
    echo "error: memory ran out" >&2
    exit 1
fi
echo whole > "$output"
"""

    def test_a_bad_run_is_found_and_reported(self):
        command = self.folder / "command"
        command.write_text(self.COMMAND)
        command.chmod(command.stat().st_mode | stat.S_IXUSR)
        options = run.parse(["--command", str(command), "--out", str(self.folder / "out"), "--seed", "3"])
        with contextlib.redirect_stdout(io.StringIO()):
            campaign = run.Campaign(options)
        campaign.texts = {"good": "good", "bad": "bad"}
        case = cases.Case(5, "memory", 500, "SIGTERM", "opt", "good", ("--output", "out.hlo"), "cold")
        self.assertEqual(run.perform(campaign, case)["result"], "one error")
        record = run.perform(campaign, dataclasses.replace(case, number=6, program="bad"))
        self.assertEqual((record["result"], record["faults"]), ("bad", ["leaves a damaged out.hlo"]))
        campaign.case = lambda number: dataclasses.replace(case, number=6, program="bad")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            code = run.report(campaign, [{"name": "6", "kind": "memory", **json.loads(json.dumps(record))}])
        self.assertEqual(code, 1)
        self.assertIn("cargo xtask faults --seed 3 --only 6", printed.getvalue())
        line = "prlimit --as=524288000 xla opt program.hlo --output out.hlo --cache-dir cache"
        self.assertIn(line, printed.getvalue())


if __name__ == "__main__":
    unittest.main()
