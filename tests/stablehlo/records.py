"""Records of cases: JSON lines, written at once, so that a run continues after an interruption."""

import hashlib
import json
import pathlib


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


class Records:
    """Records by the case's name. They belong to a subject: the command, and options that change results."""

    def __init__(self, path: pathlib.Path, subject: str, keep: bool):
        self.path = path
        self.by_name = {}
        lines = path.read_text().splitlines() if keep and path.exists() else []
        if lines and json.loads(lines[0]) == {"subject": subject}:
            # An interruption may have cut the last line.
            lines = [line for line in lines[1:] if line.endswith("}")]
            self.by_name = {record["name"]: record for record in map(json.loads, lines)}
        kept = [{"subject": subject}, *self.by_name.values()]
        path.write_text("".join(json.dumps(line) + "\n" for line in kept))

    def find(self, name: str, text: str) -> dict | None:
        """Record of a case, unless its program has changed."""
        record = self.by_name.get(name)
        return record if record and record["program"] == digest(text.encode()) else None

    def add(self, name: str, text: str, **fields) -> dict:
        record = {"name": name, "program": digest(text.encode()), **fields}
        self.by_name[name] = record
        with open(self.path, "a") as file:
            file.write(json.dumps(record) + "\n")
        return record


def read(path: pathlib.Path) -> list:
    """Records of an earlier run."""
    lines = path.read_text().splitlines() if path.exists() else []
    found = {record["name"]: record for record in map(json.loads, lines[1:])}
    return list(found.values())
