#!/usr/bin/env python3
"""Packs a corpus into suites/NAME.zip, the form in which the repository keeps it.

    pack.py CORPUS [--suite NAME ...]        CORPUS/SUITE/CASE/..., as generate.py writes it
    pack.py CORPUS --bench BENCH             also BENCH/programs/*.hlo, as make_programs.py writes them, with the
                                             outputs that XLA gave for them: BENCH/baseline-example.json
    pack.py CORPUS --bench-gpu PROGRAMS      also PROGRAMS/*.hlo, as make_gpu_programs.py writes them

Packing the same files twice gives the same bytes. Needs only the standard library.
"""

import argparse
import json
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
CASE_FILES = ("case.json", "module.hlo", "inputs.npz", "expected.npz")
LONG_AGO = (1980, 1, 1, 0, 0, 0)


def write_archive(name, members):
    """Writes suites/NAME.zip from (member name, bytes) pairs."""
    path = HERE / "suites" / f"{name}.zip"
    path.parent.mkdir(exist_ok=True)
    count = 0
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for member, data in members:
            entry = zipfile.ZipInfo(member, LONG_AGO)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data, compresslevel=9)
            count += 1
    print(f"{path.name:<22}{count:>6} files {path.stat().st_size:>9} bytes")


def suite_members(suite):
    for case in sorted(path.parent for path in suite.glob("*/case.json")):
        for file in CASE_FILES:
            yield f"{case.name}/{file}", (case / file).read_bytes()


def bench_members(bench):
    """The benchmark programs, their manifest, and the sums over XLA's outputs for input seed 0."""
    programs = bench / "programs"
    yield "manifest.json", (programs / "manifest.json").read_bytes()
    baseline = json.loads((bench / "baseline-example.json").read_text())
    if baseline["seed"] != 0:
        raise SystemExit("the baseline was taken with another input seed than 0")
    outputs = {p["name"]: p["xla"]["outputs"] for p in baseline["programs"]}
    yield "outputs.json", (json.dumps(outputs, indent=1) + "\n").encode()
    for path in sorted(programs.glob("*.hlo")):
        yield path.name, path.read_bytes()


def gpu_bench_members(programs):
    """The benchmark programs of a GPU's size, and their manifest."""
    yield "manifest.json", (programs / "manifest.json").read_bytes()
    for path in sorted(programs.glob("*.hlo")):
        yield path.name, path.read_bytes()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--suite", nargs="*", help="only these suites")
    parser.add_argument("--bench", type=Path)
    parser.add_argument("--bench-gpu", type=Path)
    options = parser.parse_args()
    suites = sorted({path.parent.parent for path in options.corpus.glob("*/*/case.json")})
    for suite in suites:
        if not options.suite or suite.name in options.suite:
            write_archive(suite.name, suite_members(suite))
    if options.bench:
        write_archive("bench", bench_members(options.bench))
    if options.bench_gpu:
        write_archive("bench_gpu", gpu_bench_members(options.bench_gpu))


if __name__ == "__main__":
    main()
