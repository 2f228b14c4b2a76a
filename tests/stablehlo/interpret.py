"""Programs of `tests/interpret` on the command: constants in place, and constants as arguments."""

import concurrent.futures
import pathlib
import tempfile

import accepted
import arrays
import command
import programs
from reference import Failure, Reference
from report import FORMS, PLATFORMS


def run(tests: pathlib.Path, options, records, progress) -> None:
    """Adds a record for each program, form and platform."""
    reference = Reference()
    pool = concurrent.futures.ThreadPoolExecutor(options.workers)
    try:
        runs = []
        for path in sorted((tests / "interpret").rglob("*.mlir")):
            name = str(path.relative_to(tests / "interpret"))
            for program in programs.programs(path.read_text(), name):
                if options.filter in program.name:
                    runs += start(program, reference, options, records, pool)
        for number, done in enumerate(concurrent.futures.as_completed(runs), 1):
            record = done.result()
            progress(f"[{number}/{len(runs)}] {record['result']:<10} {record['name']}")
    finally:
        # After Ctrl-C, only the runs that have begun end.
        pool.shutdown(cancel_futures=True)
        reference.close()


def start(program: programs.Program, reference: Reference, options, records, pool) -> list:
    """Starts those runs of a program that have no record; a program without expected values has a record at once."""
    waiting = []
    for form, text in zip(FORMS, (program.text, program.text_of_arguments)):
        if text:
            cases = [(f"{program.name} {form} {platform}", form, text, platform) for platform in PLATFORMS]
            waiting += [case for case in cases if records.find(case[0], case[2]) is None]
    if program.left_out:
        records.add(program.name, "", result="left out", message=program.left_out)
    if not waiting:
        return []
    try:
        values = expected_values(program, reference)
    except Failure as failure:
        records.add(program.name, program.text, result="no reference", message=str(failure)[:200])
        return []
    return [pool.submit(run_case, program, case, values, options, records) for case in waiting]


def expected_values(program: programs.Program, reference: Reference) -> tuple:
    """Constants of the checks, and constants that are arguments; without checks, the results on XLA:CPU instead."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/values.npz"
        both = program.constants + program.arguments
        found = []
        if both:
            answer = reference.ask(action="values", text=programs.constants_module(both), prefix="value", path=path)
            found = arrays.load(path, "value", answer["types"])
        expected, arguments = found[:len(program.constants)], found[len(program.constants):]
        if not program.checks:
            answer = reference.ask(action="values", text=program.text, prefix="value", path=path)
            expected = arrays.load(path, "value", answer["types"])
    return expected, arguments


def run_case(program: programs.Program, case: tuple, values: tuple, options, records) -> dict:
    name, form, text, platform = case
    expected, arguments = values
    with tempfile.TemporaryDirectory() as folder:
        module, output, inputs = (pathlib.Path(folder, file) for file in ("main.mlir", "out.npz", "inputs.npz"))
        module.write_text(text)
        words = [options.command, "run", str(module), "--platform", platform, "--output", str(output)]
        words += ["--cache-dir", "none"]
        if form == "arguments":
            arrays.store(inputs, "arg", arguments)
            words += ["--inputs", str(inputs)]
        result, message = command.run(words, options.timeout)
        if result == "passed":
            try:
                message = differences(program, output, expected)
            except (ValueError, OSError, KeyError) as error:
                message = str(error)
            result = "differs" if message else "passed"
        if result != "passed":
            accepted.keep(options.out / "interpret", name, text)
    return records.add(name, text, form=form, platform=platform, result=result, message=message)


def differences(program: programs.Program, output: pathlib.Path, expected: list) -> str:
    """First check that the outputs fail; empty if they pass all."""
    checks = program.checks
    if not checks:
        checks = [{"kind": "eq", "actual": number, "constant": number} for number in range(len(expected))]
    outputs = arrays.load_outputs(output, checks, expected)
    for check in checks:
        wanted = expected[check["constant"]] if "constant" in check else outputs[check["expected"]]
        message = arrays.difference(check, outputs[check["actual"]], wanted)
        if message:
            return f"result {check['actual']}: {message}"
    return ""
