"""Runs a test file in several processes that `jax.distributed` connects, and merges their records into one.

The processes of a job execute the same tests at the same time. A test has passed if no process fails it. The job ends
if a process dies or hangs, so that a death or a hang costs one test.
"""

import argparse
import os
import pathlib
import socket
import subprocess
import sys
import time

from process import signal_name
from records import FAILED, PASSED, SKIPPED, Record, is_done

sys.path.append(str(pathlib.Path(__file__).parent / "plugin"))
from jax_tests_parent import end_with_parent  # noqa: E402

# Seconds after the time limit of a test; a job without a new line in its records by then is killed.
GRACE = 60
# Seconds that processes get to disconnect after their last test.
END = 60
# Exit code of a job in which a process died or hung.
BROKEN = 70
# Lines of a process's log that are printed after its death.
LAST_LINES = 40
# Failures of a process whose cause is the failure of another one: JAX's barriers around each test.
CONSEQUENCES = ("failed in another process", "executed earlier than")


class Rank(Record):
    """Record of one process, which is read while the process writes it."""

    def __init__(self, merged: Record, number: int):
        path = rank_path(merged.path, number)
        self.log = path.with_suffix(".log")
        pathlib.Path(f"{path}.crash").unlink(missing_ok=True)
        path.write_text("")
        super().__init__(path)
        self.number = number
        self.offset = 0
        # Tests with an outcome are not run again.
        for line in merged.outcomes.values():
            self.append(**line)
        self.offset = path.stat().st_size

    def refresh(self) -> bool:
        """Reads the lines that are new; false if there are none."""
        with open(self.path, "rb") as file:
            file.seek(self.offset)
            data = file.read()
        size = data.rfind(b"\n") + 1
        self.read_lines(data[:size].decode())
        self.offset += size
        return size > 0

    def crash(self) -> str:
        """Tracebacks that the process wrote when it died."""
        path = pathlib.Path(f"{self.path}.crash")
        return path.read_text(errors="replace") if path.exists() else ""


def rank_path(record: pathlib.Path, number: int) -> pathlib.Path:
    return record.with_name(f"{record.stem}.rank{number}.jsonl")


def combined(lines: list) -> dict:
    """Outcome of a test, from its outcomes in all processes."""
    failed = [(rank, line) for rank, line in enumerate(lines) if line["outcome"] not in (PASSED, SKIPPED)]
    seconds = max(line.get("seconds", 0) for line in lines)
    if failed:
        is_cause = lambda line: not any(text in line.get("message", "") for text in CONSEQUENCES)
        rank, line = next((pair for pair in failed if is_cause(pair[1])), failed[0])
        headline = f"{line.get('message', '')}\n[process {rank}; failed in {[rank for rank, _ in failed]}]"
        return line | {"outcome": FAILED, "seconds": seconds, "message": headline}
    # A process may have no part in a test.
    line = next((line for line in lines if line["outcome"] == PASSED), lines[0])
    return line | {"seconds": seconds}


def merge(merged: Record, ranks: list) -> None:
    """Adds to a record the outcomes that all processes have, and the test that is executed."""
    for test in list(ranks[0].outcomes):
        lines = [rank.outcomes.get(test) for rank in ranks]
        if test not in merged.outcomes and all(lines):
            merged.append(**combined(lines))
    behind = min(ranks, key=lambda rank: len(rank.outcomes))
    if behind.open not in (None, merged.open):
        merged.append(start=behind.open)
    for rank in ranks:
        for text in rank.uncollected:
            if text not in merged.uncollected:
                merged.append(uncollected=text)


def add_partial(merged: Record, ranks: list) -> bool:
    """Adds a failure for each test that only some of the processes ran; false if there are none."""
    tests = [test for rank in ranks for test in rank.outcomes if test not in merged.outcomes]
    for test in dict.fromkeys(tests):
        without = [rank.number for rank in ranks if test not in rank.outcomes]
        merged.append(id=test, outcome=FAILED, seconds=0, message=f"the test did not run in processes {without}")
    return bool(tests)


def culprit(ranks: list) -> Rank | None:
    """Process that wrote a traceback when it died. Without a traceback, several processes of one child hide it."""
    return next((rank for rank in ranks if rank.crash()), ranks[0] if len(ranks) == 1 else None)


class Job:
    """Processes of a job. With MPI, `mpiexec` is the only child, and its children are the ranks."""

    def __init__(self, record: pathlib.Path, processes: int, command: list, mpiexec: list):
        self.merged = Record(record)
        self.ranks = [Rank(self.merged, number) for number in range(processes)]
        shared = os.environ | {"JAX_TESTS_RECORD": str(record), "JAX_TESTS_COORDINATOR": f"localhost:{free_port()}"}
        shared |= {"JAX_TESTS_PROCESSES": str(processes), "JAX_TESTS_PARENT": "" if mpiexec else str(os.getpid())}
        # `groups` has the ranks of each child.
        if mpiexec:
            self.children = [start([*mpiexec, "-n", str(processes), *command], shared, self.ranks[0].log)]
            self.groups = [self.ranks]
        else:
            environments = [shared | {"JAX_TESTS_RANK": str(rank.number)} for rank in self.ranks]
            self.children = [start(command, own, rank.log) for own, rank in zip(environments, self.ranks)]
            self.groups = [[rank] for rank in self.ranks]

    def wait(self, limit: float) -> int:
        """Waits for the processes; returns the exit code of the tests, or [`BROKEN`]."""
        last = time.monotonic()
        while True:
            # Polled before the records are read: the record of a process that has ended is then complete.
            statuses = [child.poll() for child in self.children]
            if self.read():
                last = time.monotonic()
            if fault := self.fault(statuses):
                return self.stop(*fault)
            is_at_end = all(rank.finished is not None for rank in self.ranks)
            is_late = time.monotonic() - last > (END if is_at_end else limit + GRACE)
            if None not in statuses or is_at_end and is_late:
                return self.finish(statuses)
            if is_late:
                return self.stop("Timeout", "no process has written anything since", self.behind())
            time.sleep(0.02)

    def read(self) -> bool:
        """Merges the lines that are new; false if there are none."""
        has_new = any([rank.refresh() for rank in self.ranks])
        if has_new:
            merge(self.merged, self.ranks)
        return has_new

    def fault(self, statuses: list) -> tuple | None:
        """Kind and text of the first death of a process before its tests were done, with its rank."""
        for status, ranks in zip(statuses, self.groups):
            if status is None or all(rank.finished is not None for rank in ranks):
                continue
            rank = culprit(ranks)
            kind = "Timeout" if rank and rank.crash().startswith("Timeout") else "Fatal"
            return kind, ended(status), rank
        return None

    def exit_fault(self, statuses: list) -> tuple | None:
        """Kind, text and rank of a process that died or hung after its tests were done; a death may cause a hang."""
        for status, ranks in zip(statuses, self.groups):
            # `mpiexec` returns the code of one of its processes, or its own code for a signal.
            codes = {rank.finished for rank in ranks} | ({0} if len(ranks) > 1 else set())
            if status is not None and status not in codes:
                return "Fatal", ended(status), culprit(ranks)
        for status, ranks in zip(statuses, self.groups):
            if status is None:
                return "Timeout", f"no end within {END} seconds of the last test", culprit(ranks)
        return None

    def behind(self) -> Rank:
        return min(self.ranks, key=lambda rank: len(rank.outcomes))

    def stop(self, kind: str, text: str, rank: Rank | None) -> int:
        """Ends all processes. Describes the fault in the crash file and the log of the job.

        `rank` is `None` if the process with the fault is unknown.
        """
        for child in self.children:
            child.kill()
        for child in self.children:
            child.wait()
        # Lines of the last moments, which may name the test that was executed.
        self.read()
        name = f"process {rank.number}" if rank else "a process"
        message = f"{kind}: {name} of {len(self.ranks)}: {text}"
        trace = rank.crash() if rank else ""
        pathlib.Path(f"{self.merged.path}.crash").write_text(f"{message}\n{trace}")
        print(message)
        # All processes of `mpiexec` share the first log.
        log = rank.log if rank and rank.log.exists() else self.ranks[0].log
        print(*log.read_text(errors="replace").splitlines()[-LAST_LINES:], sep="\n")
        return BROKEN

    def finish(self, statuses: list) -> int:
        """Records that all tests are done. Returns their exit code, or [`BROKEN`] after a fault at the exit."""
        codes = [rank.finished for rank in self.ranks]
        if add_partial(self.merged, self.ranks):
            codes.append(1)
        code = max(codes, key=lambda code: (not is_done(code), code))
        self.merged.append(finished=code)
        fault = self.exit_fault(statuses)
        return self.stop(*fault) if fault else code


def ended(status: int) -> str:
    if status < 0:
        return f"signal {-status} ({signal_name(-status)})"
    return f"exit status {status}"


def start(command: list, variables: dict, log: pathlib.Path) -> subprocess.Popen:
    with open(log, "ab") as file:
        return subprocess.Popen(command, env=variables, stdin=subprocess.DEVNULL, stdout=file, stderr=file)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("localhost", 0))
        return listener.getsockname()[1]


def main() -> int:
    end_with_parent()
    parser = argparse.ArgumentParser()
    parser.add_argument("--processes", type=int, required=True)
    parser.add_argument("--limit", type=float, required=True)
    parser.add_argument("--mpiexec", nargs="*", default=[])
    split = sys.argv.index("--")
    options = parser.parse_args(sys.argv[1:split])
    record = pathlib.Path(os.environ["JAX_TESTS_RECORD"])
    job = Job(record, options.processes, sys.argv[split + 1 :], options.mpiexec)
    return job.wait(options.limit)


if __name__ == "__main__":
    sys.exit(main())
