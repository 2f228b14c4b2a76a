"""Fills fuzz/corpus with inputs to begin with: what the archives of tests/corpus/suites have.

    python3 fuzz/seeds.py

Texts of modules go to the targets that read text, protobufs to `proto`, archives of arrays to `npz`; only small ones, since a
fuzzer that starts from small inputs tries more of them.
"""

import hashlib
import pathlib
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Which members of the archives go to which targets.
TARGETS = {"module.hlo": ["text", "passes"], "module.hlo.pb": ["proto"], "inputs.npz": ["npz"], "expected.npz": ["npz"]}
LARGEST = 8192


def main():
    count = 0
    for archive in sorted((ROOT / "tests/corpus/suites").glob("*.zip")):
        with zipfile.ZipFile(archive) as suite:
            for member in suite.infolist():
                targets = TARGETS.get(pathlib.PurePosixPath(member.filename).name, [])
                if not targets or member.file_size > LARGEST:
                    continue
                content = suite.read(member)
                for target in targets:
                    folder = ROOT / "fuzz/corpus" / target
                    folder.mkdir(parents=True, exist_ok=True)
                    (folder / hashlib.sha1(content).hexdigest()).write_bytes(content)
                    count += 1
    print(f"{count} inputs in fuzz/corpus")


if __name__ == "__main__":
    main()
