"""Outcomes of a test file: JSON lines, written at once, so that a run can continue after an interruption."""

import json
import pathlib

PASSED, FAILED, SKIPPED, CRASHED, TIMED_OUT = KINDS = ("passed", "failed", "skipped", "crashed", "timed out")


def is_done(code: int) -> bool:
    """Whether pytest has run every test: all passed, some failed, or there are none."""
    return code in (0, 1, 5)


class Record:
    """Contents of a record file; empty if there is none."""

    def __init__(self, path: pathlib.Path):
        self.path = path
        # Library and environment under test.
        self.subject = ""
        # Lines with an outcome, by the test's name within its file.
        self.outcomes = {}
        # Errors that kept the file, or a part of it, from being collected.
        self.uncollected = []
        # Errors outside of tests.
        self.notes = []
        # Test that had started and not ended when the last process wrote its last line.
        self.open = None
        # Exit code that pytest was about to return.
        self.finished = None
        self.is_complete = False
        self.read_lines(path.read_text() if path.exists() else "")

    def read_lines(self, text: str) -> None:
        """Adds lines of the file to this record."""
        for number, line in enumerate(text.splitlines(), 1):
            try:
                self.add(json.loads(line))
            except ValueError:
                raise SystemExit(f"error: line {number} of {self.path} is not JSON: remove the file and run again")

    def add(self, line: dict) -> None:
        if "subject" in line:
            self.subject = line["subject"]
        elif "process" in line:
            self.open = self.finished = None
        elif "start" in line:
            self.open = line["start"]
        elif "outcome" in line:
            self.outcomes[line["id"]] = line
            self.open = None
        elif "uncollected" in line:
            self.uncollected.append(line["uncollected"])
        elif "note" in line:
            self.notes.append(line["note"])
        elif "complete" in line:
            self.is_complete = True
        elif "finished" in line:
            self.finished = line["finished"]
            self.is_complete |= is_done(self.finished)

    def append(self, **line) -> None:
        """Adds a line to the file and to this record."""
        with open(self.path, "a") as file:
            file.write(f"{json.dumps(line)}\n")
        self.add(line)

    def restart(self, subject: str, keeps_passed: bool) -> None:
        """Starts the file again with the tests that passed, or with none."""
        kept = [line for line in self.outcomes.values() if keeps_passed and line["outcome"] == PASSED]
        lines = [{"subject": subject}, *kept]
        self.path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))

    def seconds(self) -> float:
        """Time of all tests."""
        return sum(line.get("seconds", 0) for line in self.outcomes.values())

    def count(self, kind: str) -> int:
        return sum(line["outcome"] == kind for line in self.outcomes.values())
