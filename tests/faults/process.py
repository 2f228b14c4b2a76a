"""A run of the command under a fault: limits, signals, time, and the processes that it leaves."""

import dataclasses
import os
import pathlib
import resource
import signal
import subprocess
import threading
import time

import cases

# Seconds after which a process of a run that has ended is a fault.
GRACE = 2.0
MARK = "XLA_FAULT_RUN"
# First user of runs with a limit of threads, which the kernel counts for each user.
FIRST_USER = 54000


@dataclasses.dataclass
class Ended:
    """End of a run. A negative code is a signal; `left` are command lines of processes that outlived it."""

    code: int
    out: str
    error: str
    seconds: float
    hung: bool
    left: list


def limits(case) -> tuple:
    """Resource limits of a case, and its user; `None` is the user of this process."""
    if case is None:
        return {}, None
    number = int(case.limit)
    if case.kind == "memory":
        return {resource.RLIMIT_AS: number << 20}, None
    if case.kind == "threads":
        return {resource.RLIMIT_NPROC: number}, (FIRST_USER + case.number % 1000 if os.geteuid() == 0 else None)
    if case.kind == "file size":
        return {resource.RLIMIT_FSIZE: number}, None
    if case.kind == "open files":
        return {resource.RLIMIT_NOFILE: number}, None
    return {}, None


def run(words: list, folder: pathlib.Path, timeout: float, case=None, send_after: float | None = None) -> Ended:
    """Runs a command in a folder, under the fault of `case`."""
    mark = f"{os.getpid()}-{threading.get_ident()}-{time.monotonic_ns()}"
    values, user = limits(case)

    def prepare():
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if user is not None:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
        for name, value in values.items():
            resource.setrlimit(name, (value, value))

    folders = {"HOME": str(folder), "XDG_CACHE_HOME": str(folder / "user"), "TMPDIR": str(folder)}
    environment = {**os.environ, **folders, MARK: mark}
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(words, cwd=folder, env=environment, preexec_fn=prepare, start_new_session=True, **pipes)
    # The command has started; the time of the fork is not its time.
    started = time.monotonic()
    timer = threading.Timer(send_after or 0, lambda: process.send_signal(cases.number_of(case.signal)))
    if send_after:
        timer.start()
    hung = False
    try:
        out, error = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        # The pipes may be those of a process that the command left; only the command itself can hang.
        hung = process.poll() is None
        left = marked(mark)
        stop(left)
        out, error = process.communicate()
        seconds = time.monotonic() - started
        return Ended(process.returncode, text(out), text(error), seconds, hung, [] if hung else names(left))
    finally:
        timer.cancel()
    seconds = time.monotonic() - started
    return Ended(process.returncode, text(out), text(error), seconds, False, remaining(mark))


def text(data: bytes) -> str:
    return data.decode(errors="replace")


def remaining(mark: str) -> list:
    """Command lines of processes of a run that has ended, which exist longer than `GRACE`; they are ended."""
    deadline = time.monotonic() + GRACE
    while left := marked(mark):
        if time.monotonic() > deadline:
            found = names(left)
            stop(left)
            return found
        time.sleep(0.05)
    return []


def marked(mark: str) -> list:
    """Processes whose environment has the mark of a run."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            pass
    return found


def names(processes: list) -> list:
    found = []
    for process in processes:
        try:
            line = pathlib.Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ")
            found.append(f"{process}: {text(line).strip()}")
        except OSError:
            pass
    return found


def stop(processes: list) -> None:
    for process in processes:
        try:
            os.kill(process, signal.SIGKILL)
        except OSError:
            pass
