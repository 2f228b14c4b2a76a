"""Kernels and temporary bytes of each program, ours beside those of XLA's CPU client.

    python3 tests/corpus/against_xla.py [--command target/release/xla] [--only NAME ...] [--json FILE] [DIR ...]

Needs jaxlib 0.10.2. Programs are files *.hlo and folders with a module.hlo, by default the benchmark programs and the suite `models` of
`shared` beside the repository. Kernels are the instructions of the optimised module outside of fusions that do something when
run: no parameters, constants, tuples and their elements, bitcasts, and no control flow. What a loop calls counts as often as it
runs, where the module says so, and of branches the longest counts. Both sides are counted by the same function. Temporary bytes are
what each side says of itself: `get_compiled_memory_stats`, and the first line of our buffer report.
"""

import argparse
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FREE = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "while", "conditional", "call", "partition-id", "replica-id"}
COMPUTATION = re.compile(r"^(?:ENTRY )?%?([\w.\-]+) \(.*\{$")
COMMENT = re.compile(r"/\*.*?\*/")
OPCODE = re.compile(r"^\s+(?:ROOT )?%?[\w.\-]+ = (?:\([^=]*?\)|\S+) ([\w\-]+)\(")
CONTROL = re.compile(r"(condition|body|to_apply|true_computation|false_computation)=%?([\w.\-]+)|(?:branch_computations)=\{([^}]*)\}")
TRIPS = re.compile(r"known_trip_count\W+n\W+(\d+)")


def computations(text):
    """Lines of each computation by its name, and the name of the entry."""
    found, entry, name = {}, None, None
    for line in COMMENT.sub("", text).splitlines():
        head = COMPUTATION.match(line)
        if head:
            name = head.group(1)
            found[name] = []
            entry = name if line.startswith("ENTRY") else entry
        elif name is not None:
            found[name].append(line)
    return found, entry


def launches(text):
    """How many instructions of a module do something in one run: what a loop calls as often as it runs, where that is known."""
    bodies, entry = computations(text)

    def of(name):
        found = 0
        for line in bodies.get(name, []):
            opcode = OPCODE.match(line)
            if not opcode:
                continue
            opcode = opcode.group(1)
            found += opcode not in FREE
            if opcode not in ("while", "conditional", "call"):
                continue
            trips = TRIPS.search(line)
            times = int(trips.group(1)) if trips and opcode == "while" else 1
            # A branch is one of several: the longest.
            branches = [0]
            for word, one, many in CONTROL.findall(line):
                if word in ("condition", "body"):
                    found += of(one) * (times + (word == "condition" and opcode == "while"))
                elif word == "to_apply":
                    found += of(one)
                else:
                    branches += [of(name.strip().lstrip("%")) for name in (one or many).split(",")]
            found += max(branches)
        return found

    return of(entry)


def xla_side(path):
    """What XLA makes of a program: kernels and temporary bytes."""
    import jax  # noqa: F401
    import jax.numpy  # noqa: F401  (registers the runtime's custom calls)
    import jaxlib._jax as jx
    from jaxlib import xla_client as xc

    module = xc.hlo.hlo_module_from_text(pathlib.Path(path).read_text())
    code = jx.mlir.hlo_to_stablehlo(module.as_serialized_hlo_module_proto())
    client = xc.make_cpu_client(asynchronous=True)
    program = client.compile_and_load(code, jx.DeviceList((client.local_devices()[0],)), xc.CompileOptions())
    return {"kernels": launches(program.hlo_modules()[0].to_string()), "temp": program.get_compiled_memory_stats().temp_size_in_bytes}


def our_side(path, command):
    """What we make of it: kernels and temporary bytes."""
    with tempfile.TemporaryDirectory() as folder:
        given = pathlib.Path(path).with_name("inputs.npz")
        inputs = ["--inputs", str(given)] if given.exists() else ["--inputs-seed", "0"]
        words = [command, "run", path, "--platform", "cpu", *inputs, "--dump-to", folder]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr.strip())
        (module,) = pathlib.Path(folder).glob("*.after-passes.hlo")
        (buffers,) = pathlib.Path(folder).glob("*.buffers.txt")
        kernels = launches(module.read_text())
        temp = int(re.search(r": (\d+) temporary bytes", buffers.read_text().splitlines()[0]).group(1))
        return {"kernels": kernels, "temp": temp}


def programs(folders):
    """Name and path of every program."""
    for folder in folders:
        for path in sorted(folder.glob("*.hlo")):
            yield path.stem, path
        for path in sorted(folder.glob("*/module.hlo")):
            yield f"{path.parent.parent.name}/{path.parent.name}", path


def isolated(path):
    """XLA's side in a process of its own, since XLA ends the process on what it does not like."""
    done = subprocess.run([sys.executable, __file__, "--xla-side", str(path)], capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if lines else {"error": done.stderr.strip()[-200:]}


def geomean(values):
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=pathlib.Path)
    parser.add_argument("--command", default=str(ROOT / "target/release/xla"))
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--json", help="keep XLA's side in this file, and take it from there when it exists")
    parser.add_argument("--xla-side", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.xla_side:
        print(json.dumps(xla_side(options.xla_side)))
        return
    shared = ROOT.parent / "shared"
    folders = options.folders or [shared / "bench/programs", shared / "corpus/models"]
    kept = {}
    if options.json and os.path.exists(options.json):
        kept = json.load(open(options.json))
    rows = []
    print(f"{'name':38}{'kernels':>9}{'XLA':>7}{'ratio':>7}{'temp bytes':>13}{'XLA':>12}{'ratio':>7}")
    for name, path in programs(folders):
        if options.only and name not in options.only:
            continue
        theirs = kept.get(name) or isolated(path)
        kept[name] = theirs
        if options.json:
            pathlib.Path(options.json).write_text(json.dumps(kept, indent=1))
        try:
            ours = our_side(str(path), options.command)
        except RuntimeError as error:
            print(f"{name:38}  ours: {error}")
            continue
        if "error" in theirs:
            print(f"{name:38}  XLA: {theirs['error']}")
            continue
        # One byte more on both sides: nothing is as good as nothing.
        kernels, temp = (ours["kernels"] + 1) / (theirs["kernels"] + 1), (ours["temp"] + 64) / (theirs["temp"] + 64)
        rows.append((kernels, temp))
        marks = ("*" if kernels > 1 else " ") + ("*" if temp > 1 else " ")
        print(f"{name:38}{ours['kernels']:9}{theirs['kernels']:7}{kernels:7.2f}{ours['temp']:13}{theirs['temp']:12}{temp:7.2f} {marks}")
    print(f"geomean of {len(rows)}: kernels {geomean(k for k, _ in rows):.2f}, temp bytes {geomean(t for _, t in rows):.2f};"
          f" more kernels than XLA in {sum(k > 1 for k, _ in rows)}, more temp bytes in {sum(t > 1 for _, t in rows)}")


if __name__ == "__main__":
    main()
