"""Fills fuzz/corpus with inputs to begin with, made from the program corpus.

    python3 fuzz/seeds.py [--protos DIR] [--xla PATH]

Texts of modules go to the targets that read text, protobufs to `proto`, archives of arrays to `npz`, StableHLO programs to
`bytecode` and `mlir`; only small ones, since a fuzzer that starts from small inputs tries more of them. Texts and arrays are those of tests/corpus/suites. Those archives have no
protobufs: they come from every module.hlo.pb under DIR (`shared/corpus` beside the repository or further up, if there is one), and
from the texts by `xla convert` where the command is at PATH (target/release/xla). StableHLO programs come from every module.mlirbc and
module.mlir under DIR, and from xla-stablehlo/tests/data.
"""

import argparse
import hashlib
import pathlib
import subprocess
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Which members of the archives go to which targets.
TARGETS = {"module.hlo": ["text", "passes"], "inputs.npz": ["npz"], "expected.npz": ["npz"]}
LARGEST = 8192
# StableHLO programs by the ends of their names.
PROGRAMS = {".mlirbc": "bytecode", ".mlir": "mlir"}


def keep(target, content):
    """Writes an input of a target if it is small; gives how many were written."""
    if len(content) > LARGEST:
        return 0
    folder = ROOT / "fuzz/corpus" / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / hashlib.sha1(content).hexdigest()).write_bytes(content)
    return 1


def members():
    """Name and content of what the archives have."""
    for archive in sorted((ROOT / "tests/corpus/suites").glob("*.zip")):
        with zipfile.ZipFile(archive) as suite:
            for member in suite.infolist():
                yield pathlib.PurePosixPath(member.filename).name, suite.read(member)


def beside_the_repository():
    folders = (parent / "shared/corpus" for parent in ROOT.parents)
    return next((folder for folder in folders if folder.is_dir()), None)


def message(xla, text):
    """The text as a protobuf; nothing if it does not become one."""
    command = [xla, "convert", "-", "--to", "pb", "-o", "/dev/stdout"]
    done = subprocess.run(command, input=text, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return done.stdout if done.returncode == 0 else b""


def programs(folder):
    """Target and content of the StableHLO programs below a folder, archives of them included."""
    for path in sorted(folder.rglob("*")):
        if path.suffix in PROGRAMS:
            yield PROGRAMS[path.suffix], path.read_bytes()
        elif path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                for name in archive.namelist():
                    suffix = pathlib.PurePosixPath(name).suffix
                    if suffix in PROGRAMS:
                        yield PROGRAMS[suffix], archive.read(name)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--protos", type=pathlib.Path, default=beside_the_repository())
    parser.add_argument("--xla", type=pathlib.Path, default=ROOT / "target/release/xla")
    arguments = parser.parse_args()
    count = 0
    for name, content in members():
        count += sum(keep(target, content) for target in TARGETS.get(name, []))
        if name == "module.hlo" and len(content) <= LARGEST and arguments.xla.exists():
            count += keep("proto", message(arguments.xla, content))
    folders = [ROOT / "xla-stablehlo/tests"]
    if arguments.protos:
        folders.append(arguments.protos)
        count += sum(keep("proto", path.read_bytes()) for path in arguments.protos.rglob("module.hlo.pb"))
    for folder in folders:
        count += sum(keep(target, content) for target, content in programs(folder))
    print(f"{count} inputs in fuzz/corpus")


if __name__ == "__main__":
    main()
