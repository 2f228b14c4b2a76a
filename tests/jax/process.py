"""Runs a test file to its end: a process that dies fails its current test, and a new process continues after it."""

import pathlib
import signal
import subprocess
import time

from records import CRASHED, TIMED_OUT, Record, is_done

# Number of crashes in a file after which the rest of it is left.
MOST_CRASHES = 100
# Seconds after the time limit of a test; a process without a new line in the record by then is killed.
GRACE = 120


def run(path: pathlib.Path, limit: float, command: list, **options) -> None:
    """Runs `command` until every test has an outcome in the record; it runs all tests without one."""
    crashes = Record(path).count(CRASHED)
    while not (before := Record(path)).is_complete:
        before.append(process=crashes)
        status, log = watch(path, limit, command, options)
        after = Record(path)
        is_timeout, message, trace = death(status, crash_text(path), log)
        if after.open is not None:
            outcome, seconds = (TIMED_OUT, limit) if is_timeout else (CRASHED, 0)
            after.append(id=after.open, outcome=outcome, seconds=seconds, message=message, trace=trace)
        elif after.finished is None:
            after.append(note=f"outside of tests: {message}")
            if len(after.outcomes) == len(before.outcomes):
                return after.append(complete=True)
        elif is_done(after.finished):
            # A process that dies, or does not end, after pytest's last line.
            if status != after.finished:
                after.append(note=f"after the last test: {message}")
            return None
        else:
            after.append(note=f"pytest ended with code {after.finished}")
            return after.append(complete=True)
        crashes += 1
        if crashes > MOST_CRASHES:
            after.append(note=f"the rest was left after {MOST_CRASHES} crashes")
            return after.append(complete=True)


def watch(path: pathlib.Path, limit: float, command: list, options: dict, grace: float = GRACE) -> tuple:
    """Starts a process and waits for it; returns its status, `None` if it was killed, and its output."""
    with open(path.with_suffix(".log"), "ab") as log:
        start = log.tell()
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **options)
    last, size = time.monotonic(), -1
    while (status := child.poll()) is None:
        now = path.stat().st_size if path.exists() else 0
        if now != size:
            last, size = time.monotonic(), now
        elif time.monotonic() - last > limit + grace:
            child.kill()
            child.wait()
            break
        time.sleep(0.02)
    return status, path.with_suffix(".log").read_bytes()[start:].decode(errors="replace")


def crash_text(path: pathlib.Path) -> str:
    """Tracebacks that the last process wrote when it died."""
    crash = pathlib.Path(f"{path}.crash")
    text = crash.read_text(errors="replace") if crash.exists() else ""
    crash.unlink(missing_ok=True)
    return text


def signal_name(number: int) -> str:
    """Name of a signal; Python has none for most real-time signals."""
    names = {entry.value: entry.name for entry in signal.Signals}
    return names.get(number) or signal.strsignal(number) or "unknown"


def death(status: int | None, crash: str, log: str) -> tuple:
    """Whether a process exceeded a time limit, the cause of its death, and its last output."""
    if status is None:
        message = "killed, as it wrote nothing any more"
    elif status < 0:
        message = f"signal: {-status} ({signal_name(-status)})"
    else:
        message = f"exit status: {status}"
    is_timeout = status is None or crash.startswith("Timeout")
    log, crash = log.splitlines(), crash.splitlines()
    # A panic prints two lines: the position, then the message.
    panics = [after for line, after in zip(log, log[1:]) if "panicked at" in line]
    fatal = [line for line in crash if line.startswith(("Fatal", "Timeout"))]
    message += "".join(f": {line}" for line in (panics[:1] or fatal[:1]))
    trace = "\n".join([*crash[:60], "-- log:", *log[-30:]])
    return is_timeout, message, trace
