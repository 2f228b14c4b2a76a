"""The score of test files: the share of the tests that XLA:CPU passes. Misses are grouped by cause."""

import pathlib
import re
import xml.etree.ElementTree as xml
import zipfile
from dataclasses import dataclass, field

from records import CRASHED, FAILED, KINDS, PASSED, SKIPPED, TIMED_OUT, Record

# Length at which the name of a cause is cut.
LONGEST = 200
# Names of tests that are printed for each cause.
EXAMPLES = 2


@dataclass
class Reference:
    """XLA:CPU's outcomes of a test file."""

    # The environment of that run.
    subject: str = ""
    # Time of all tests.
    seconds: float = 0.0
    outcomes: dict = field(default_factory=dict)

    @staticmethod
    def of(record: Record) -> "Reference":
        outcomes = {test: line["outcome"] for test, line in record.outcomes.items()}
        return Reference(record.subject, record.seconds(), outcomes)

    def passed(self) -> list:
        return sorted(test for test, kind in self.outcomes.items() if kind == PASSED)

    def text(self) -> str:
        """The environment, the seconds, then the tests under the name of their outcome."""
        lines = [self.subject, f"{self.seconds:.1f}"]
        for kind in KINDS:
            lines += [f"= {kind}", *sorted(test for test, of in self.outcomes.items() if of == kind)]
        return "".join(f"{line}\n" for line in lines)

    @staticmethod
    def parse(text: str) -> "Reference":
        subject, seconds, *lines = text.splitlines()
        outcomes, kind = {}, None
        for line in lines:
            if line.startswith("= "):
                kind = KINDS[KINDS.index(line[2:])]
            else:
                outcomes[line] = kind
        return Reference(subject, float(seconds), outcomes)


def read_baseline(path: pathlib.Path) -> dict:
    """References by `WIDTH/FILE`; none if there is no archive."""
    if not path.exists():
        return {}
    with zipfile.ZipFile(path) as archive:
        return {name: Reference.parse(archive.read(name).decode()) for name in archive.namelist()}


def write_baseline(path: pathlib.Path, references: dict) -> None:
    """Writes the archive: equal bytes for equal outcomes."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, reference in sorted(references.items()):
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, reference.text())


@dataclass
class Miss:
    """A test that XLA:CPU passes and the plugin does not."""

    file: str
    test: str
    kind: str
    message: str = ""
    trace: str = ""

    def cause(self) -> str:
        line = normalised(headline(self.message))
        return f"{self.kind}: {line}" if line else self.kind

    def name(self) -> str:
        return f"{self.file}.py::{self.test}"


def misses(file: str, record: Record, reference: Reference) -> list:
    found = []
    for test in reference.passed():
        line = record.outcomes.get(test)
        if line is None and record.uncollected:
            found.append(Miss(file, test, "not collected", last_line(record.uncollected[0])))
        elif line is None:
            found.append(Miss(file, test, "not run"))
        elif line["outcome"] != PASSED:
            found.append(Miss(file, test, line["outcome"], line.get("message", ""), line.get("trace", "")))
    return found


def last_line(text: str) -> str:
    return text.splitlines()[-1] if text else ""


def headline(message: str) -> str:
    """The first line that is not blank, with the next one if it ends with a colon."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return " ".join(lines[: 2 if lines and lines[0].endswith(":") else 1])


# Digits in a word belong to its name, as in `f32`; digits after `_` only in a line that is one word.
TOKEN = r"""
    (?P<word>(?<=[^\W{}])[0-9]+)
  | (?P<number>0x[0-9a-fA-F]* | [0-9]+(\.[0-9]*)?(e[-+]?[0-9]+)?)
  | (?P<instruction>%[^\W\d_][\w.-]*(\ of\ [\w.-]*)?)
  | (?P<mark>['"`])(?P<quoted>(?:(?!(?P=mark)).){{0,80}})(?P=mark)
"""


def normalised(line: str) -> str:
    """A line with `N` for lists of numbers, `%..` for names of instructions, `'..'` for quoted names with numbers."""

    def replace(match: re.Match) -> str:
        if match["word"]:
            return match[0]
        if match["number"]:
            return "N"
        if match["instruction"]:
            return "%.."
        return re.sub(r"^(.).*[0-9].*$", r"\1..\1", match[0])

    out = re.sub(TOKEN.format(r"\d_" if " " in line else r"\d"), replace, line, flags=re.VERBOSE)
    return re.sub(r"N(?:(?:, |,| |x)N)+", "N", out.replace("-N", "N"))[:LONGEST]


def groups(found: list) -> list:
    """Pairs of a cause and its misses, the largest first."""
    by_cause = {}
    for miss in found:
        by_cause.setdefault(miss.cause(), []).append(miss)
    return sorted(by_cause.items(), key=lambda group: (-len(group[1]), group[0]))


def percent(passed: int, expected: int) -> str:
    """Rounded down, so that 100 % is all of them; there is no share of nothing."""
    hundredths = passed * 10_000 // expected if expected else 0
    return f"{hundredths // 100}.{hundredths % 100:02}%" if expected else "-"


def table(records: dict, references: dict) -> str:
    """A line for each test file, and the total over the files of the baseline."""
    widest = max(len(name) for name in [*records, "total"])
    text = f"\n{'file':<{widest}}   tests       P  passed    score   seconds   XLA:CPU\n"
    total = [0, 0, 0, 0.0, 0.0]

    def row(name: str, tests: int, expected: int, passed: int, ours: float, theirs: float) -> str:
        share = percent(passed, expected)
        return f"{name:<{widest}}  {tests:>6}  {expected:>6}  {passed:>6}  {share:>7}  {ours:>8.1f}  {theirs:>8.1f}\n"

    for file, record in records.items():
        if reference := references.get(file):
            expected = len(reference.passed())
            passed = expected - len(misses(file, record, reference))
            numbers = [len(record.outcomes), expected, passed, record.seconds(), reference.seconds]
            total = [sum(pair) for pair in zip(total, numbers)]
            text += row(file, *numbers)
        else:
            text += f"{file:<{widest}}  {len(record.outcomes):>6}  {'-':>6}  not in the baseline\n"
    return text + row("total", *total)


def notes(records: dict) -> str:
    """A line for each error outside of tests."""
    text = ""
    for file, record in records.items():
        for note in [*record.notes, *(f"not collected: {last_line(error)}" for error in record.uncollected)]:
            text += f"{file}: {note}\n"
    return text


def causes(found: list) -> str:
    """A paragraph for each cause, with some of its tests."""
    text = ""
    for cause, group in found:
        text += f"{len(group):>5}  {cause}\n"
        text += "".join(f"         {miss.name()}\n" for miss in group[:EXAMPLES])
    return text


def whole_list(found: list) -> str:
    """Misses by cause, with their messages; the first of each cause with its traceback."""
    text = ""
    for cause, group in found:
        text += f"== {len(group)} x {cause}\n"
        text += "".join(f"{miss.name()}\n    {headline(miss.message)}\n" for miss in group)
        text += f"-- the first of them\n{group[0].message}\n{group[0].trace}\n\n"
    return text


def junit(file: str, record: Record) -> bytes:
    """JUnit XML of a test file, which CI systems show."""
    errors = record.count(CRASHED) + record.count(TIMED_OUT)
    counts = {"tests": len(record.outcomes), "failures": record.count(FAILED), "errors": errors}
    counts["skipped"] = record.count(SKIPPED)
    counts = {key: str(count) for key, count in counts.items()}
    suite = xml.Element("testsuite", name=file, **counts, time=f"{record.seconds():.3f}")
    elements = {SKIPPED: "skipped", FAILED: "failure", CRASHED: "error", TIMED_OUT: "error"}
    for test, line in sorted(record.outcomes.items()):
        group, _, name = test.partition("::") if "::" in test else ("", "", test)
        case = xml.SubElement(suite, "testcase", classname=group, name=name, time=f"{line.get('seconds', 0):.3f}")
        if line["outcome"] in elements:
            message = printable(line.get("message", ""))
            inner = xml.SubElement(case, elements[line["outcome"]], message=message)
            inner.text = printable(line.get("trace", ""))
    return xml.tostring(suite, encoding="utf-8", xml_declaration=True)


def printable(text: str) -> str:
    """Text without the control characters that XML does not have."""
    return re.sub(r"[^\t\n\r\x20-\uD7FF\uE000-\uFFFD\U00010000-\U0010FFFF]", "\ufffd", text)
