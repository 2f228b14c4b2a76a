"""Runs a test file in several processes that `jax.distributed` connects, and merges their records into one.

The processes of a job execute the same tests at the same time. A test has passed if no process fails it. The job ends
if a process dies or hangs, so that such a test costs one test.
"""

import argparse
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

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


class Job:
    """Processes of a job. With MPI, `mpiexec` is the only child, and its children are the ranks."""

    def __init__(self, record: pathlib.Path, processes: int, command: list, mpiexec: list):
        self.merged = Record(record)
        self.ranks = [Rank(self.merged, number) for number in range(processes)]
        shared = os.environ | {"JAX_TESTS_RECORD": str(record), "JAX_TESTS_COORDINATOR": f"localhost:{free_port()}"}
        shared["JAX_TESTS_PROCESSES"] = str(processes)
        if mpiexec:
            self.children = [start([*mpiexec, "-n", str(processes), *command], shared, self.ranks[0].log)]
        else:
            environments = [shared | {"JAX_TESTS_RANK": str(rank.number)} for rank in self.ranks]
            self.children = [start(command, own, rank.log) for own, rank in zip(environments, self.ranks)]

    def wait(self, limit: float) -> int:
        """Waits for the processes; returns the exit code of the tests, or [`BROKEN`]."""
        last = time.monotonic()
        while True:
            has_ended = all(child.poll() is not None for child in self.children)
            if self.read():
                last = time.monotonic()
            if fault := self.fault():
                return self.stop(*fault)
            if has_ended:
                return self.finish()
            is_at_end = all(rank.finished is not None for rank in self.ranks)
            if time.monotonic() - last > (END if is_at_end else limit + GRACE):
                return self.stop("Timeout", "no process has written anything since", self.behind())
            time.sleep(0.02)

    def read(self) -> bool:
        """Merges the lines that are new; false if there are none."""
        has_new = any([rank.refresh() for rank in self.ranks])
        if has_new:
            merge(self.merged, self.ranks)
        return has_new

    def fault(self) -> tuple | None:
        """Kind and text of the first death of a process before its tests were done, with its rank."""
        for number, child in enumerate(self.children):
            status = child.poll()
            ranks = self.ranks if len(self.children) == 1 else [self.ranks[number]]
            lost = [rank for rank in ranks if rank.finished is None]
            if status is None or not lost:
                continue
            rank = next((rank for rank in lost if rank.crash()), lost[0])
            kind = "Timeout" if rank.crash().startswith("Timeout") else "Fatal"
            return kind, ended(status), rank
        return None

    def behind(self) -> Rank:
        return min(self.ranks, key=lambda rank: len(rank.outcomes))

    def stop(self, kind: str, text: str, rank: Rank) -> int:
        """Ends all processes. Describes the fault in the crash file and the log of the job."""
        for child in self.children:
            child.kill()
        for child in self.children:
            child.wait()
        # Lines of the last moments, which may name the test that was executed.
        self.read()
        message = f"{kind}: process {rank.number} of {len(self.ranks)}: {text}"
        pathlib.Path(f"{self.merged.path}.crash").write_text(f"{message}\n{rank.crash()}")
        print(message)
        if rank.log.exists():
            print(*rank.log.read_text(errors="replace").splitlines()[-LAST_LINES:], sep="\n")
        return BROKEN

    def finish(self) -> int:
        """Records that all tests are done."""
        codes = [rank.finished for rank in self.ranks]
        code = max(codes, key=lambda code: (not is_done(code), code))
        self.merged.append(finished=code)
        return code


def ended(status: int) -> str:
    if status < 0:
        return f"signal {-status} ({signal.Signals(-status).name})"
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
