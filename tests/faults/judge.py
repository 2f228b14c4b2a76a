"""Judgement of a run: faults of its end, its messages and its files."""

import json
import pathlib
import zipfile

import cases

# Parts of messages that no failure may print.
FORBIDDEN = ("panicked", "internal error", "terminate called", "fatal runtime error", "memory allocation of",
             "stack overflow", "LLVM ERROR", "Assertion", "stack backtrace")
# Contents of the outputs before a run.
OLD = b"old\n"


def faults(case, ended, folder: pathlib.Path, wanted: dict) -> list:
    """Faults of a run; `wanted` has the contents of all outputs without a fault, by name."""
    found = []
    if ended.hung:
        return [f"hangs: did not end in {ended.seconds:.0f} s"]
    found += [f"leaves a process: {line}" for line in ended.left]
    found += end_faults(case, ended)
    found += file_faults(case, ended, folder, wanted)
    return found


def end_faults(case, ended) -> list:
    """Faults of the exit code and the messages."""
    found = [f"prints '{word}'" for word in FORBIDDEN if word in ended.error]
    lines = [line for line in ended.error.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("error")]
    others = [line for line in lines if not line.startswith(("error", "warning", "note", " "))]
    if ended.code < 0:
        if case.kind != "signal" or -ended.code != cases.number_of(case.signal):
            found.append(f"ends by signal {-ended.code}")
    elif ended.code == 0:
        if errors:
            found.append(f"succeeds with an error: {errors[0][:200]}")
    elif ended.code in (1, 2):
        if len(errors) != 1:
            found.append(f"fails with {len(errors)} errors instead of one")
        if others:
            found.append(f"prints something else than its error: {others[0][:200]}")
    else:
        found.append(f"exit code {ended.code}, which is not documented")
    return found


def file_faults(case, ended, folder: pathlib.Path, wanted: dict) -> list:
    """Faults of outputs, traces and temporary files."""
    found = []
    for name, contents in wanted.items():
        state = state_of(folder / name, contents)
        if state == "damaged":
            found.append(f"leaves a damaged {name}")
        elif ended.code == 0 and state != "whole":
            found.append(f"succeeds without {name}")
    if "trace.json" in case.options:
        trace = folder / "trace.json"
        if trace.exists() and not is_trace(trace):
            found.append("leaves a damaged trace.json")
        elif ended.code == 0 and not trace.exists():
            found.append("succeeds without trace.json")
    if ended.code == 0 and "/dev/full" in case.options:
        found.append("succeeds with an output that it cannot write")
    if ended.code == 0 and case.verb == "bench" and not is_json(ended.out):
        found.append("succeeds without a line of JSON")
    if ended.code >= 0:
        temporary = [path.relative_to(folder) for path in folder.rglob("*.tmp*")]
        found += [f"leaves the temporary file {path}" for path in temporary]
    return found


def state_of(path: pathlib.Path, wanted) -> str:
    """`absent` (also if the old contents are there), `whole` or `damaged`."""
    if not path.exists() or path.read_bytes() == OLD:
        return "absent"
    return "whole" if contents_of(path) == wanted else "damaged"


def contents_of(path: pathlib.Path):
    """Contents that two equal outputs share: the arrays of an .npz file, otherwise all bytes."""
    if path.suffix != ".npz":
        return path.read_bytes()
    try:
        with zipfile.ZipFile(path) as archive:
            return {name: archive.read(name) for name in archive.namelist()}
    except (zipfile.BadZipFile, EOFError, OSError):
        return None


def outputs(folder: pathlib.Path, case) -> dict:
    """Contents of all outputs of a run without a fault."""
    paths = [folder / word for word in case.options if word in ("out.npz", "out.hlo")]
    if "build" in case.options:
        paths += [path for path in sorted((folder / "build").rglob("*")) if path.is_file()]
    return {str(path.relative_to(folder)): contents_of(path) for path in paths}


def is_json(text: str) -> bool:
    try:
        json.loads(text)
        return True
    except ValueError:
        return False


def is_trace(path: pathlib.Path) -> bool:
    """Whether a file is a whole trace; the old contents are none."""
    return path.read_bytes() == OLD or is_json(path.read_text(errors="replace"))
