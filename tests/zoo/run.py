#!/usr/bin/env python3
"""Runs the zoo: programs written with libraries, on XLA:CPU (PyTorch: its CPU backend) and on ours, compared output by output.

    run.py --command target/release/xla                  each program by `xla run`
    run.py --library target/release/libpjrt_plugin_xlars.so   each program on the JAX plugin
    run.py ... --filter keras_layers --batch 3           only those programs
    run.py --suite tensorflow --command target/release/xla    programs of TensorFlow, as text and as bytecode
    run.py --suite torch --library ...                   modules of PyTorch, by torch_xla
    run.py --list                                        names of the programs

A record for each program is in OUT/NAME.json; programs that have one are not run again unless `--again` is given, or `--misses` for
those that did not agree. Modules, inputs and expected outputs of programs that do not agree are in OUT/kept/NAME.
"""

import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
# Process that runs the programs of a suite: `worker.py` takes a module of `programs/`, the others have one of their own.
WORKERS = {"jax": "worker.py", "tensorflow": "tensorflow_worker.py", "torch": "torch_worker.py"}
RESULTS = ("agree", "differ", "refused", "crash", "timeout", "no reference")


def modules(suite):
    if suite != "jax":
        return [suite]
    return sorted(path.stem for path in (HERE / "programs").glob("*.py") if not path.stem.startswith("_"))


def environment():
    return dict(os.environ, JAX_PLATFORMS="cpu", KERAS_BACKEND="jax", TF_CPP_MIN_LOG_LEVEL="2", PYTHONDONTWRITEBYTECODE="1")


def worker(suite):
    return [sys.executable, str(HERE / WORKERS[suite])]


def listing(module, suite):
    """Programs of a module; a module whose library cannot be imported has none, and a line names the reason."""
    done = subprocess.run([*worker(suite), module, "--list"], env=environment(), capture_output=True, text=True)
    if done.returncode:
        print(f"{module}: left out: {(done.stderr.strip().splitlines() or ['no message'])[-1]}", flush=True)
        return []
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def record_of(out, name):
    path = out / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def run_module(module, names, options, progress):
    """Runs programs in worker processes; one that ends a worker has a record, and the others go on in a new one."""
    waiting = list(names)
    while waiting:
        words = [*worker(options.suite), module, *waiting, "--out", str(options.out), "--timeout", str(options.timeout)]
        words += ["--library", options.library] if options.library else ["--command", options.command]
        log = (options.out / f"{module}.log").open("a")
        cache = dict(environment(), JAX_COMPILATION_CACHE_DIR=str(options.out / "cache"))
        process = subprocess.Popen(words, env=cache, stdout=subprocess.PIPE, stderr=log, text=True)
        current = None
        for line in process.stdout:
            if line.startswith("begin "):
                current = line.split()[1]
            elif line.startswith("end "):
                waiting.remove(current)
                progress(json.loads(line[4:]))
                current = None
        process.wait()
        if current is None:
            if waiting and process.returncode:
                print(f"{module}: the worker ended with {process.returncode}; see {log.name}", flush=True)
            return
        # torch_xla runs our side in the worker itself.
        result = "crash" if options.suite == "torch" else "no reference"
        record = {"name": current, "result": result, "message": f"the process ended with {process.returncode}"}
        (options.out / f"{current}.json").write_text(json.dumps(record) + "\n")
        progress(record)
        waiting.remove(current)


def table(records):
    """Counts of results by module of `programs/`."""
    rows = collections.defaultdict(collections.Counter)
    for record in records:
        for key in (record["name"].split(".")[0], "total"):
            rows[key][record["result"]] += 1
            rows[key]["slow"] += bool(record.get("slow"))
    total = rows.pop("total", collections.Counter())
    columns = [*RESULTS, "slow"]
    lines = [f"{'library':<22}{'programs':>9}" + "".join(f"{name:>14}" for name in columns)]
    for name, counts in [*sorted(rows.items()), ("total", total)]:
        lines.append(f"{name:<22}{sum(counts[r] for r in RESULTS):>9}" + "".join(f"{counts[c]:>14}" for c in columns))
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", choices=sorted(WORKERS), default="jax", help="library family of the programs")
    parser.add_argument("--out", type=pathlib.Path, default=HERE.parent.parent / "target/zoo")
    parser.add_argument("--command", help="the command `xla`")
    parser.add_argument("--library", help="the PJRT plugin; takes the place of --command")
    parser.add_argument("--filter", action="append", default=[], help="only programs whose name contains this (may be repeated)")
    parser.add_argument("--batch", type=int, action="append", default=[], help="only programs of this batch size (may be repeated)")
    parser.add_argument("--timeout", type=float, default=120, help="seconds for one program on our side")
    parser.add_argument("--again", action="store_true", help="run programs that have a record, too")
    parser.add_argument("--misses", action="store_true", help="run programs again whose record is not `agree`")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--report", action="store_true", help="run nothing: the table of the records")
    options = parser.parse_args()
    options.out = options.out.resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.report:
        records = [json.loads(path.read_text()) for path in sorted(options.out.glob("*.json"))]
        return report(records)
    if not (options.list or options.command or options.library):
        parser.error("--command or --library is needed")
    if options.suite == "tensorflow" and options.library:
        parser.error("programs of TensorFlow run by --command")
    if options.suite == "torch" and options.command:
        parser.error("modules of PyTorch run by --library")
    matching = lambda program: (not options.filter or any(text in program["name"] for text in options.filter)) and (
        not options.batch or program["batch"] in options.batch)
    # A filter that begins with the name of a module spares the others.
    heads = [text.split(".")[0] for text in options.filter]
    known = modules(options.suite)
    chosen = [m for m in known if not heads or not all(h in known for h in heads) or m in heads]
    work, records = [], []
    for module in chosen:
        programs = [program for program in listing(module, options.suite) if matching(program)]
        if options.list:
            for program in programs:
                print(f"{program['name']:<70}{program['kind']:<10}batch {program['batch'] or '-'}", flush=True)
            continue
        names = []
        for program in programs:
            old = record_of(options.out, program["name"])
            if old is None or options.again or (options.misses and old["result"] != "agree"):
                names.append(program["name"])
            else:
                records.append(old)
        work.append((module, names))
    if options.list:
        return 0
    count = sum(len(names) for _, names in work)
    done = 0

    def progress(record):
        nonlocal done
        done += 1
        records.append(record)
        times = f"XLA {record.get('xla_compile', 0):.2f} s, ours {record.get('ours', 0):.2f} s, worst {record.get('ratio', 0):.2g}"
        print(f"[{done}/{count}] {record['name']:<66} {record['result']}{' SLOW' if record.get('slow') else ''}  {times}", flush=True)

    for module, names in work:
        if names:
            run_module(module, names, options, progress)
    return report(records)


def report(records):
    """Prints what does not agree, and the table; the exit status is 1 unless all agree."""
    misses = [record for record in records if record["result"] != "agree" or record.get("slow")]
    for record in misses:
        print(f"{record['result']}{' (slow)' if record.get('slow') else ''}: {record['name']}: {record.get('message', '')[:300]}")
    print("\n" + table(records))
    return 1 if any(record["result"] != "agree" for record in records) else 0


if __name__ == "__main__":
    sys.exit(main())
