"""Runs the command under faults; `cargo xtask faults --help` describes it."""

import argparse
import collections
import concurrent.futures
import dataclasses
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import threading

import cases
import judge
import process
import programs

ROOT = pathlib.Path(__file__).resolve().parents[2]
# `records.py` is shared with the runner of StableHLO's tests.
sys.path.append(str(ROOT / "tests/stablehlo"))
import records  # noqa: E402

# Limit of a run: seconds, and a multiple of the time without a fault.
LONGEST, FACTOR = 60.0, 20.0


class NotPossible(Exception):
    """A case that this machine or the command cannot run at all."""


class Campaign:
    """Folder, command and programs of all runs."""

    def __init__(self, options):
        self.seed, self.out = options.seed, options.out
        self.texts = programs.texts()
        self.out.mkdir(parents=True, exist_ok=True)
        # Other users can run a copy in a folder that all can enter.
        self.command = self.out / "xla"
        shutil.copy2(options.command, self.command)
        for folder in (self.out, *self.out.parents):
            if not folder.stat().st_mode & 0o001:
                print(f"{folder}: other users cannot enter it, so that limits of threads do not apply to root")
                break
        self.baselines, self.lock = {}, threading.Lock()

    def case(self, number: int) -> cases.Case:
        return cases.case(self.seed, number, sorted(self.texts))

    def folder(self, name: str, program: str) -> pathlib.Path:
        """Empty folder with a program, open to all users."""
        folder = self.out / "runs" / name
        unmount(folder / "disk")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        folder.chmod(0o777)
        (folder / "program.hlo").write_text(self.texts[program])
        return folder

    def baseline(self, case) -> tuple:
        """Time and outputs without a fault."""
        options = list(case.options)
        for name in ("--trace", "--dump-to", "--output"):
            # Traces and dumps do not change outputs; an output at /dev/full is none.
            if name in options and (name != "--output" or "/dev/full" == options[options.index(name) + 1]):
                at = options.index(name)
                del options[at:at + 2]
        plain = dataclasses.replace(case, options=tuple(options), cache="none", kind="none")
        key = (plain.verb, plain.program, plain.options)
        with self.lock:
            ready = self.baselines.setdefault(key, concurrent.futures.Future())
            first = not hasattr(ready, "started")
            ready.started = True
        if first:
            try:
                ready.set_result(self.measure(plain, f"baseline-{case.number}"))
            except BaseException as error:
                ready.set_exception(error)
        return ready.result()

    def measure(self, plain, name: str) -> tuple:
        """Least time of two runs, which must have the same outputs, and these."""
        results = []
        for _ in range(2):
            folder = self.folder(name, plain.program)
            ended = process.run([str(self.command), *plain.words()], folder, LONGEST)
            if ended.code:
                raise NotPossible(f"fails without a fault: {ended.error.strip()[:300]}")
            results.append((ended.seconds, judge.outputs(folder, plain)))
            shutil.rmtree(folder)
        if results[0][1] != results[1][1]:
            raise NotPossible("two runs without a fault have different outputs")
        return min(seconds for seconds, _ in results), results[0][1]


def unmount(folder: pathlib.Path) -> None:
    if folder.is_mount():
        subprocess.run(["umount", "--lazy", folder], capture_output=True)


def mount(folder: pathlib.Path, size: float) -> bool:
    """Puts a small disk at a folder; without the right to do so, returns False."""
    words = ["mount", "-t", "tmpfs", "-o", f"size={int(size)},mode=777", "tmpfs", folder]
    return os.geteuid() == 0 and subprocess.run(words, capture_output=True).returncode == 0


def perform(campaign: Campaign, case: cases.Case) -> dict:
    """Runs a case; returns the fields of its record."""
    seconds, wanted = campaign.baseline(case)
    folder = campaign.folder(str(case.number), case.program)
    if case.kind == "full disk":
        # The program stays outside of the small disk; outputs, traces, dumps and caches are on it.
        (folder / "disk").mkdir()
        if not mount(folder / "disk", case.limit):
            raise NotPossible("no right to mount a small disk")
        shutil.move(folder / "program.hlo", folder / "source.hlo")
        folder = folder / "disk"
        (folder / "program.hlo").symlink_to("../source.hlo")
    clean(folder, wanted)
    words = [str(campaign.command), *case.words()]
    timeout = LONGEST + FACTOR * seconds
    if case.cache == "warm":
        process.run(words, folder, timeout)
        clean(folder, wanted)
    wait = max(0.001, case.limit * seconds) if case.kind == "signal" else None
    ended = process.run(words, folder, timeout, case, wait)
    found = judge.faults(case, ended, folder, wanted)
    if case.kind == "full disk":
        subprocess.run(["mount", "-o", "remount,size=4g", folder], capture_output=True)
    found += after(campaign, case, folder, timeout, wanted)
    first = next((line for line in ended.error.splitlines() if line.strip()), "")
    result = "bad" if found else result_of(ended)
    record = {"result": result, "faults": found, "message": first[:300], "code": ended.code}
    unmount(folder)
    if not found:
        shutil.rmtree(campaign.out / "runs" / str(case.number), ignore_errors=True)
    return record | {"wait": round(wait, 3) if wait else None, "seconds": round(ended.seconds, 2)}


def result_of(ended) -> str:
    if ended.code < 0:
        return "ended by its signal"
    return "success" if ended.code == 0 else "one error"


def clean(folder: pathlib.Path, wanted: dict) -> None:
    """Makes the outputs old again after the run that fills the cache."""
    shutil.rmtree(folder / "build", ignore_errors=True)
    shutil.rmtree(folder / "dump", ignore_errors=True)
    (folder / "trace.json").unlink(missing_ok=True)
    for name in wanted:
        if not name.startswith("build"):
            (folder / name).write_bytes(judge.OLD)


def after(campaign: Campaign, case, folder: pathlib.Path, timeout: float, wanted: dict) -> list:
    """Faults of the next run in the folder, without a limit: the cache and the outputs must serve it."""
    plain = dataclasses.replace(case, kind="none")
    if "/dev/full" in case.options:
        options = ["next" if word == "/dev/full" else word for word in case.options]
        plain = dataclasses.replace(plain, options=tuple(options))
    for path in [folder / "cache", folder / "user", folder / "build", folder / "dump"]:
        # Root reads and writes files of all users.
        if path.exists() and not os.access(path, os.W_OK):
            return [f"{path.name} cannot be written"]
    ended = process.run([str(campaign.command), *plain.words()], folder, timeout)
    faults = judge.faults(plain, ended, folder, wanted)
    found = [f"the next run: {fault}" for fault in faults if "temporary file" not in fault]
    if ended.code:
        found.append(f"the next run fails: {ended.error.strip()[:300]}")
    return found


def repeat(campaign: Campaign, case: cases.Case, record: dict) -> str:
    """Command line of a bad run, and the command that repeats it."""
    user = process.FIRST_USER
    limit = {
        "memory": f"prlimit --as={int(case.limit) << 20}",
        "threads": f"setpriv --reuid={user} --regid={user} --clear-groups prlimit --nproc={int(case.limit)}",
        "file size": f"prlimit --fsize={int(case.limit)}",
        "open files": f"prlimit --nofile={int(case.limit)}",
        "signal": f"timeout --signal={case.signal} {record.get('wait') or 0}",
    }.get(case.kind, "")
    line = f"{limit} xla {shlex.join(case.words())}".strip()
    return f"{line}\n    repeat: cargo xtask faults --seed {campaign.seed} --only {case.number}"


def table(found: list) -> str:
    """Counts of results by kind of fault."""
    columns = ("success", "one error", "ended by its signal", "bad", "not possible")
    counts = collections.defaultdict(collections.Counter)
    for record in found:
        for row in (record["kind"], "total"):
            counts[row][record["result"]] += 1
    lines = [f"{'fault':<14}{'runs':>6}" + "".join(f"{name:>21}" for name in columns)]
    for row in (*cases.KINDS, "total"):
        if counts[row]:
            cells = [f"{row:<14}", f"{sum(counts[row].values()):>6}"]
            lines.append("".join(cells + [f"{counts[row][name]:>21}" for name in columns]))
    return "\n".join(lines)


def report(campaign: Campaign, found: list) -> int:
    """Prints bad runs and the table; the exit status is 1 if there is a bad run."""
    bad = [record for record in found if record["result"] == "bad"]
    for record in bad:
        case = campaign.case(int(record["name"]))
        print(f"\nbad run {case.number}: {case.program}, {case.fault()}: {repeat(campaign, case, record)}")
        print(f"    folder: {campaign.out / 'runs' / str(case.number)}; first line: {record['message']}")
        for fault in record["faults"]:
            print(f"    - {fault}")
    for record in found:
        if record["result"] == "not possible":
            print(f"not possible: run {record['name']}: {record['message']}")
    print("\n" + table(found))
    return 1 if bad else 0


def parse(words: list | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="cargo xtask faults", add_help=False, allow_abbrev=False)
    parser.add_argument("--command", type=pathlib.Path, default=ROOT / "target/release/xla")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, action="append")
    parser.add_argument("--kind", choices=cases.KINDS)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "target/faults")
    kept = parser.add_mutually_exclusive_group()
    kept.add_argument("--again", action="store_true")
    kept.add_argument("--list", action="store_true")
    options = parser.parse_args(words)
    options.out = options.out.absolute()
    if not os.access(options.command, os.X_OK):
        raise SystemExit(f"error: there is no command {options.command}")
    return options


def main() -> int:
    options = parse()
    campaign = Campaign(options)
    chosen = [campaign.case(number) for number in options.only or range(options.runs)]
    chosen = [case for case in chosen if options.kind in (None, case.kind)]
    if options.list:
        for case in chosen:
            print(f"{case.number:>5}  {case.program:<40} {case.fault()}: xla {shlex.join(case.words())}")
        return 0
    subject = f"{records.digest(options.command.read_bytes())} seed {options.seed}"
    kept = records.Records(campaign.out / f"seed-{options.seed}.jsonl", subject, keep=not options.again)

    def one(case):
        text = campaign.texts[case.program] + repr(case)
        record = None if options.only else kept.find(str(case.number), text)
        if record is None:
            try:
                fields = perform(campaign, case)
            except NotPossible as error:
                fields = {"result": "not possible", "faults": [], "message": str(error)}
            record = kept.add(str(case.number), text, kind=case.kind, **fields)
            print(f"[{case.number}] {record['result']:<20} {case.fault()}: {case.verb} {case.program}", flush=True)
        return record

    pool = concurrent.futures.ThreadPoolExecutor(options.workers)
    try:
        found = list(pool.map(one, chosen))
    finally:
        # After Ctrl-C, only the runs that have begun end.
        pool.shutdown(cancel_futures=True)
    return report(campaign, found)


if __name__ == "__main__":
    sys.exit(main())
