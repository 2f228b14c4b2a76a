"""Results of a step: lines of JSON, appended as they come.

The first line says when the step began, the last one that it ended; between them each line is an item: `ok`, and whole messages.
"""
import json
import os
import time
import traceback


class Results:
    """The file of a step that is running. A failure of the step itself is an item as well."""

    def __init__(self, out, name, title):
        path = file_of(out, name)
        # A process of an earlier run that still writes has the old file.
        if os.path.exists(path):
            os.remove(path)
        self.file, self.ok, self.begun = open(path, "a"), True, time.time()
        self.line(step=name, title=title, begun=time.strftime("%Y-%m-%d %H:%M:%S"))

    def line(self, **facts):
        self.file.write(json.dumps(facts) + "\n")
        self.file.flush()
        os.fsync(self.file.fileno())

    def add(self, item, ok=True, **facts):
        self.ok = self.ok and ok
        self.line(item=item, ok=ok, **facts)

    def fact(self, name, value):
        """Something that is neither well nor ill."""
        self.line(fact=name, value=value)

    def leave_out(self, why):
        self.fact("left out", why)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if isinstance(error, Exception):
            self.add("the step", ok=False, message="".join(traceback.format_exception(kind, error, trace)))
        self.line(ended=True, ok=self.ok, seconds=round(time.time() - self.begun, 1))
        self.file.close()
        return isinstance(error, Exception)


def file_of(out, name):
    return os.path.join(out, name + ".jsonl")


def read(out, name):
    """The lines of a step that are whole."""
    try:
        with open(file_of(out, name), errors="replace") as file:
            lines = file.read().split("\n")
    except OSError:
        return []
    found = []
    for line in lines:
        try:
            found.append(json.loads(line))
        except ValueError:
            pass  # The process was ended while it wrote.
    return [line for line in found if isinstance(line, dict)]


def is_finished(out, name):
    """Whether a step has ended, by itself or at its limit, and whether all was well. `--steps NAME` runs one again."""
    lines = read(out, name)
    ended = lines[-1] if lines and lines[-1].get("ended") else None
    return ended is not None, ended is not None and ended["ok"]


def stop(out, name, why, seconds):
    """Says of a step that did not end by itself why it is over; what it has found stays."""
    with open(file_of(out, name), "a") as file:
        file.write("\n" + json.dumps({"item": "the step", "ok": False, "message": why}) + "\n")
        file.write(json.dumps({"ended": True, "ok": False, "seconds": round(seconds, 1)}) + "\n")
