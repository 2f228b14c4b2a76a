"""Process that runs the programs of one module of `programs/`; `run.py` starts it, and starts it again after a crash.

    worker.py MODULE --list                        prints the names of its programs
    worker.py MODULE --out DIR --via ... NAME ...  runs them, and writes DIR/NAME.json after each
"""

import argparse
import importlib
import json
import os
import pathlib
import shutil
import sys
import time
import traceback

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("KERAS_BACKEND", "jax")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# Checks of Equinox at run time are callbacks into Python otherwise.
os.environ.setdefault("EQX_ON_ERROR", "nan")
# Libraries initialize weights operation by operation, which compiles hundreds of small programs.
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

# Longest compile time, as a multiple of XLA's, and a time in seconds that is never too long.
SLOW_FACTOR, SLOW_SECONDS = 10.0, 1.0


def programs_of(module):
    from registry import Registry

    registry = Registry(module)
    importlib.import_module(f"programs.{module}").register(registry)
    return registry.programs


def one(program, side, work, keep):
    """Record of one program; the files of a program that does not agree stay in `keep`."""
    import compare
    import ours
    import reference
    from registry import Random

    record = {"name": program.name, "kind": program.kind, "batch": program.batch, "via": side.name}
    try:
        expected = reference.make(program, Random(program.name))
    except Exception as error:
        lines = traceback.format_exc().splitlines()
        return record | {"result": "no reference", "message": f"{type(error).__name__}: {str(error)[:300]}", "trace": lines[-12:]}
    record |= {"xla_compile": round(expected.compile_time, 3), "reference": expected.source,
               "code_bytes": len(expected.code), "input_bytes": sum(a.nbytes for a in expected.inputs)}
    work.mkdir(parents=True, exist_ok=True)
    for old in work.iterdir():
        old.unlink()
    (work / "module.mlirbc").write_bytes(expected.code)
    (work / "module.mlir").write_text(expected.text)
    if expected.inputs:
        ours.store(work / "inputs.npz", "arg", expected.inputs)
    ours.store(work / "expected.npz", "out", expected.expected)
    kinds = {"inputs": [str(a.dtype) for a in expected.inputs], "outputs": [str(a.dtype) for a in expected.expected]}
    (work / "dtypes.json").write_text(json.dumps(kinds))
    try:
        record["ours"] = round(side.run(work), 3)
        outputs = ours.load(work / "out.npz", [a.dtype for a in expected.expected])
        ratio, message = compare.compare(expected, outputs)
        record |= {"ratio": min(ratio, 1e30), "message": message, "result": "agree" if ratio <= 1 else "differ"}
        if record["ours"] > max(SLOW_SECONDS, SLOW_FACTOR * expected.compile_time):
            record["slow"] = True
    except ours.Failure as failure:
        record |= {"result": failure.kind, "message": str(failure)}
    if record["result"] != "agree" or record.get("slow"):
        shutil.rmtree(keep, ignore_errors=True)
        shutil.copytree(work, keep)
    return record


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("module")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--command")
    parser.add_argument("--library")
    parser.add_argument("--timeout", type=float, default=120)
    options = parser.parse_args()
    programs = programs_of(options.module)
    if options.list:
        for program in programs.values():
            print(json.dumps({"name": program.name, "kind": program.kind, "batch": program.batch}))
        return
    import ours

    side = ours.Plugin(options.library, options.timeout) if options.library else ours.Command(options.command, options.timeout)
    for name in options.names:
        started = time.perf_counter()
        print(f"begin {name}", flush=True)
        record = one(programs[name], side, options.out / "work" / options.module, options.out / "kept" / name)
        record["seconds"] = round(time.perf_counter() - started, 2)
        (options.out / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
        print(f"end {json.dumps(record)}", flush=True)
    side.close()


if __name__ == "__main__":
    main()
