"""Record of one program: runs our side, compares, and keeps the files of a program that does not agree."""

import argparse
import json
import pathlib
import shutil
import time
import traceback

import compare
import ours

# Longest compile time, as a multiple of the reference's, and a time in seconds that is never too long.
SLOW_FACTOR, SLOW_SECONDS = 10.0, 1.0


def arguments(description):
    """Arguments of a process that runs programs, as `run.py` passes them."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("module")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--command")
    parser.add_argument("--library")
    parser.add_argument("--timeout", type=float, default=120)
    return parser.parse_args()


def record_of(head, make, side, work, keep):
    """Fields of `head` with the result; `make()` returns a `tolerance.Expected`. The files are in `work`, copied to `keep` unless all agree."""
    record = dict(head, via=side.name)
    try:
        expected = make()
    except Exception as error:
        lines = traceback.format_exc().splitlines()
        return record | {"result": "no reference", "message": f"{type(error).__name__}: {str(error)[:300]}", "trace": lines[-12:]}
    record |= {"reference": expected.source, "input_bytes": sum(a.nbytes for a in expected.inputs)}
    if expected.code is not None:
        record |= {"xla_compile": round(expected.compile_time, 3), "code_bytes": len(expected.code)}
    store(work, expected)
    try:
        record["ours"] = round(side.run(work), 3)
        outputs = ours.load(work / "out.npz", [a.dtype for a in expected.expected])
        record |= verdict(expected, outputs)
        if "xla_compile" in record and record["ours"] > max(SLOW_SECONDS, SLOW_FACTOR * expected.compile_time):
            record["slow"] = True
    except ours.Failure as failure:
        record |= {"result": failure.kind, "message": str(failure)}
    if record["result"] != "agree" or record.get("slow"):
        shutil.rmtree(keep, ignore_errors=True)
        shutil.copytree(work, keep)
    return record


def verdict(expected, outputs):
    ratio, message = compare.compare(expected, outputs)
    return {"ratio": min(ratio, 1e30), "message": message, "result": "agree" if ratio <= 1 else "differ"}


def store(work, expected):
    """Writes the program, its inputs and its expected outputs into an empty folder."""
    work.mkdir(parents=True, exist_ok=True)
    for old in work.iterdir():
        old.unlink()
    if expected.code is not None:
        (work / "module.mlirbc").write_bytes(expected.code)
        (work / "module.mlir").write_text(expected.text)
    if expected.inputs:
        ours.store(work / "inputs.npz", "arg", expected.inputs)
    ours.store(work / "expected.npz", "out", expected.expected)
    kinds = {"inputs": [str(a.dtype) for a in expected.inputs], "outputs": [str(a.dtype) for a in expected.expected]}
    (work / "dtypes.json").write_text(json.dumps(kinds))


def list_all(heads):
    """Prints the programs, a line of JSON each."""
    for head in heads:
        print(json.dumps(head), flush=True)


def run_all(names, out, one):
    """Runs `one(name)` for each name, writes OUT/NAME.json, and reports to `run.py` on standard output."""
    for name in names:
        started = time.perf_counter()
        print(f"begin {name}", flush=True)
        record = one(name)
        record["seconds"] = round(time.perf_counter() - started, 2)
        (out / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
        print(f"end {json.dumps(record)}", flush=True)
