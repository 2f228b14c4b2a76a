"""Our side of a program: through the command `xla run`, or through the JAX plugin in a process of its own."""

import json
import os
import pathlib
import subprocess
import sys
import time

import ml_dtypes
import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
# Element types that numpy's files do not name are stored as raw bytes.
RAW = {np.dtype(getattr(ml_dtypes, name)) for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "uint4")}


class Failure(Exception):
    """A program that did not run: `kind` is `refused`, `crash` or `timeout`."""

    def __init__(self, kind, message):
        super().__init__(message)
        self.kind = kind


def store(path, prefix, arrays):
    """Writes arrays as PREFIX0, PREFIX1, ... of an .npz file."""
    flat = {}
    for i, array in enumerate(arrays):
        array = np.ascontiguousarray(array).reshape(np.shape(array))
        if array.dtype in RAW:
            array = array.reshape(-1).view(f"V{array.dtype.itemsize}").reshape(array.shape)
        flat[f"{prefix}{i}"] = array
    np.savez(path, **flat)


def load(path, dtypes):
    """Reads out0, out1, ... with the element types of `dtypes`."""
    with np.load(path) as stored:
        arrays = [stored[f"out{i}"] for i in range(len(stored.files))]
    typed = []
    for array, dtype in zip(arrays, dtypes):
        if array.dtype.kind == "V":
            array = np.ascontiguousarray(array).reshape(-1).view(dtype).reshape(array.shape)
        typed.append(array)
    return typed + arrays[len(typed):]


class Command:
    """Runs each program in a process of `xla run`."""

    name = "command"

    def __init__(self, path, timeout, platform="cpu", module="module.mlirbc"):
        self.path, self.timeout, self.platform, self.module = str(path), timeout, platform, module

    def run(self, folder):
        """Runs the program of a folder; returns the time from start to end, in seconds. Outputs are in `out.npz`."""
        output = folder / "out.npz"
        output.unlink(missing_ok=True)
        words = [self.path, "run", str(folder / self.module), "--platform", self.platform]
        words += ["--output", str(output), "--cache-dir", "none"]
        if (folder / "inputs.npz").exists():
            words += ["--inputs", str(folder / "inputs.npz")]
        started = time.perf_counter()
        try:
            done = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=self.timeout, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            raise Failure("timeout", f"more than {self.timeout} s") from None
        elapsed = time.perf_counter() - started
        if done.returncode:
            first = next((line for line in done.stderr.splitlines() if line.strip()), "no message")
            is_crash = done.returncode < 0 or done.returncode >= 100 or "panicked" in done.stderr
            raise Failure("crash" if is_crash else "refused", f"exit {done.returncode}: {first[:600]}")
        return elapsed

    def close(self):
        """Nothing stays open between programs."""


class Plugin:
    """Runs programs in one process with the PJRT plugin, started again after a crash."""

    name = "plugin"

    def __init__(self, library, timeout):
        self.library, self.timeout, self.process = str(library), timeout, None

    def run(self, folder):
        if self.process is None:
            self.process = self._start()
        try:
            self.process.stdin.write(f"{folder}\n")
            self.process.stdin.flush()
            answer = self._answer()
        except BrokenPipeError:
            answer = None
        if answer is None:
            code = self.process.wait()
            self.process = None
            raise Failure("crash", f"the process of the plugin ended with {code}")
        if "error" in answer:
            raise Failure("refused", answer["error"][:600])
        return answer["compile"] + answer["run"]

    def _start(self):
        root = HERE.parent.parent / "python/jax-xlars"
        paths = [str(root), os.environ.get("PYTHONPATH", "")]
        environment = dict(os.environ, JAX_PLATFORMS="xlars", XLARS_LIBRARY=self.library, PYTHONPATH=os.pathsep.join(filter(None, paths)))
        return subprocess.Popen([sys.executable, str(HERE / "plugin_process.py")], env=environment, text=True,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def _answer(self):
        """The next line that is an answer; `None` at the end of the process, which is ended after the time limit."""
        import threading

        watch = threading.Timer(self.timeout, self.process.kill)
        watch.start()
        try:
            for line in self.process.stdout:
                if line.startswith("{"):
                    return json.loads(line)
            return None
        finally:
            watch.cancel()

    def close(self):
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()
            self.process = None
