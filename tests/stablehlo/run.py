"""Counts on a checkout of StableHLO; `cargo xtask stablehlo-tests --help` describes it."""

import argparse
import os
import pathlib
import sys

import accepted
import interpret
import records
import report

ROOT = pathlib.Path(__file__).resolve().parents[2]
PARTS = {"accepted": accepted, "interpret": interpret}


def tests_of(checkout: pathlib.Path) -> pathlib.Path:
    tests = checkout / "stablehlo/tests"
    if not (tests / "interpret").is_dir():
        raise SystemExit(f"error: {checkout} is no checkout of StableHLO: it has no folder stablehlo/tests/interpret")
    return tests


def positive(text: str) -> int:
    if int(text) < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return int(text)


def parse(words: list | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="cargo xtask stablehlo-tests", add_help=False, allow_abbrev=False)
    parser.add_argument("checkout", metavar="CHECKOUT", type=pathlib.Path)
    parser.add_argument("--command", default="target/release/xla")
    parser.add_argument("--part", choices=sorted(PARTS))
    parser.add_argument("--filter", default="")
    parser.add_argument("--least", type=float)
    parser.add_argument("--workers", type=positive, default=2)
    parser.add_argument("--timeout", type=positive, default=60)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "target/stablehlo-tests")
    kept = parser.add_mutually_exclusive_group()
    kept.add_argument("--again", action="store_true")
    kept.add_argument("--report", action="store_true")
    options = parser.parse_args(words)
    options.command = os.path.abspath(options.command)
    options.out = options.out.absolute()
    return options


def main() -> int:
    options = parse()
    tests = tests_of(options.checkout)
    parts = [options.part] if options.part else list(PARTS)
    options.out.mkdir(parents=True, exist_ok=True)
    passes, matches = True, 0
    for part in parts:
        path = options.out / f"{part}.jsonl"
        if not options.report:
            if not os.access(options.command, os.X_OK):
                raise SystemExit(f"error: there is no command {options.command}")
            subject = records.digest(pathlib.Path(options.command).read_bytes())
            kept = records.Records(path, subject, keep=not options.again)
            PARTS[part].run(tests, options, kept, lambda line: print(line, flush=True))
        least = report.LEAST[part] if options.least is None else options.least
        found = [record for record in records.read(path) if options.filter in record["name"]]
        rows = len(report.rows_of(part, found))
        matches += rows
        if rows or not options.filter:
            passes &= report.show(part, found, least)
    if not matches:
        raise SystemExit(f"error: there is no record of a case whose name contains '{options.filter}'")
    return 0 if passes else 1


if __name__ == "__main__":
    sys.exit(main())
