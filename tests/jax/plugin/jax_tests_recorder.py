"""pytest plugin: writes the outcome of each test to a file at once, so that a crash or a hang costs one test.

`JAX_TESTS_RECORD` names the file, of JSON lines: those of tests that have an outcome there are not run again.
`JAX_TESTS_TIMEOUT` is the limit of a test in seconds; `JAX_TESTS_WORKER`, as in `0/2`, says which of several processes at a time this
one is, which share the processors.
"""

import faulthandler
import importlib.util
import json
import os
import pathlib
import sys

import pytest

LONGEST_MESSAGE = 4000
LONGEST_TRACE = 8000

# Descriptors, not files: nobody warns of those that stay open to the end.
RECORD = pathlib.Path(os.environ["JAX_TESTS_RECORD"])
record = os.open(RECORD, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
# Where a fatal signal and the end of a test's time leave their tracebacks.
crash = os.open(f"{RECORD}.crash", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
timeout = float(os.environ.get("JAX_TESTS_TIMEOUT", "120"))
reports = {}


def write(**fields) -> None:
    os.write(record, f"{json.dumps(fields)}\n".encode())


def name_of(nodeid: str) -> str:
    """The test's name within its file."""
    return nodeid.partition("::")[2]


def stay_on_processors() -> None:
    """Bounds the threads of whatever asks how many processors there are."""
    if not hasattr(os, "sched_setaffinity"):
        return
    worker, workers = map(int, os.environ.get("JAX_TESTS_WORKER", "0/1").split("/"))
    processors = sorted(os.sched_getaffinity(0))
    each = max(1, len(processors) // workers)
    first = worker * each % len(processors)
    os.sched_setaffinity(0, processors[first : first + each])


def find_test_helpers() -> None:
    """Loads the one module of JAX's tests that is no part of its wheel, and stands in the checkout instead."""
    name = "jax._src.hypothesis_test_util"
    root = pathlib.Path.cwd()
    for path in (root / "jax/_src/hypothesis_test_util.py", root / "hypothesis_test_util.py"):
        if importlib.util.find_spec(name) is None and path.exists():
            spec = importlib.util.spec_from_file_location(name, path)
            sys.modules[name] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(sys.modules[name])
            return


def pytest_configure(config) -> None:
    stay_on_processors()
    faulthandler.enable(crash)


def pytest_collection(session) -> None:
    find_test_helpers()
    if "JAX_TEST_DUT" in os.environ:
        import jax_tests_environment

        jax_tests_environment.device_under_test()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items) -> None:
    lines = [json.loads(line) for line in RECORD.read_text().splitlines()]
    done = {line["id"] for line in lines if "outcome" in line}
    write(collected=len(items))
    left = [item for item in items if name_of(item.nodeid) not in done]
    config.hook.pytest_deselected(items=[item for item in items if name_of(item.nodeid) in done])
    items[:] = left


def pytest_collectreport(report) -> None:
    if report.failed:
        write(uncollected=last_lines(report.longreprtext))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    write(start=name_of(item.nodeid))
    reports[item.nodeid] = []
    faulthandler.dump_traceback_later(timeout, exit=True, file=crash)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


def pytest_runtest_logreport(report) -> None:
    reports[report.nodeid].append(report)


def pytest_runtest_logfinish(nodeid) -> None:
    phases = reports.pop(nodeid, [])
    outcome = next((kind for kind in ("failed", "skipped") if any(p.outcome == kind for p in phases)), "passed")
    fields = {"id": name_of(nodeid), "outcome": outcome, "seconds": round(sum(p.duration for p in phases), 3)}
    told = next((p for p in phases if p.outcome == outcome != "passed"), None)
    if outcome == "failed":
        write(**fields, message=message_of(told), trace=told.longreprtext[-LONGEST_TRACE:])
    elif outcome == "skipped":
        write(**fields, message=reason_of(told))
    else:
        write(**fields)


def message_of(report) -> str:
    entry = getattr(report.longrepr, "reprcrash", None)
    return entry.message[:LONGEST_MESSAGE] if entry else last_lines(report.longreprtext)


def reason_of(report) -> str:
    # An expected failure is a skip to pytest.
    where = report.longrepr[-1] if isinstance(report.longrepr, tuple) else report.longreprtext
    return str(getattr(report, "wasxfail", where))[:LONGEST_MESSAGE]


def last_lines(text: str) -> str:
    """The lines of an exception in a traceback, which pytest marks."""
    marked = [line[1:].strip() for line in text.splitlines() if line.startswith("E ")]
    return "\n".join(marked or text.splitlines()[-3:])[:LONGEST_MESSAGE]


def pytest_sessionfinish(exitstatus) -> None:
    # 0: all passed, 1: some failed, 2: no collection or Ctrl-C, 5: there are no tests.
    write(finished=int(exitstatus))
