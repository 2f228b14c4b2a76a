"""Functions that jaxlib converts to HLO: the reader must accept them."""

import concurrent.futures
import pathlib
import re
import tempfile

import command
import source
from reference import Failure, Reference


def functions(tests: pathlib.Path) -> dict:
    """Modules of one function each, by a name of file, part and function; the first of equal ones."""
    found, known = {}, set()
    for path in sorted(tests.rglob("*.mlir")):
        for number, part in enumerate(source.parts(path.read_text(errors="replace"))):
            all_functions = source.functions(part)
            for function in all_functions:
                text = source.alone(part, all_functions, function)
                words = " ".join(text.split())
                if words in known:
                    continue
                known.add(words)
                name = f"{path.relative_to(tests)}:{number}:{function.name}"
                found[name if name not in found else f"{name}.{len(found)}"] = text
    return found


def run(tests, options, records, progress) -> None:
    """Adds a record for each function: `not converted`, or one of `report.CONVERTED`."""
    chosen = {name: text for name, text in functions(tests).items() if options.filter in name}
    waiting = {name: text for name, text in chosen.items() if records.find(name, text) is None}
    reference = Reference()
    pool = concurrent.futures.ThreadPoolExecutor(options.workers)
    try:
        runs = {}
        for name, text in waiting.items():
            try:
                reference.ask(action="converts", text=text)
                runs[pool.submit(accept, text, options)] = name
            except Failure as failure:
                records.add(name, text, result="not converted", message=str(failure)[:200])
        for number, done in enumerate(concurrent.futures.as_completed(runs), 1):
            name = runs[done]
            result, message = done.result()
            records.add(name, waiting[name], result=result, message=message)
            if result != "accepted":
                keep(options.out / "accepted", name, waiting[name])
            progress(f"[{number}/{len(runs)}] {result:<10} {name}")
    finally:
        # After Ctrl-C, only the runs that have begun end.
        pool.shutdown(cancel_futures=True)
        reference.close()


def keep(folder: pathlib.Path, name: str, text: str) -> None:
    """Stores a program that did not pass."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / (re.sub(r"[^\w.-]+", "-", name) + ".mlir")).write_text(text)


def accept(text: str, options) -> tuple:
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "function.mlir")
        file.write_text(text)
        words = [options.command, "convert", str(file), "--to", "hlo", "--output", f"{folder}/module.hlo"]
        result, message = command.run(words, options.timeout)
    if result == "refused" and "--shapes" in message:
        return "sizes", message
    return ("accepted" if result == "passed" else result), message
