"""jaxlib as the reference, in a process of its own: some of the modules under test end it.

As a program it reads a request on each line of standard input and answers with a line of JSON.
"""

import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


class Failure(Exception):
    """jaxlib refused a module, or its process ended."""


class Reference:
    """Process with jaxlib; another one takes its place when it ends."""

    def __init__(self):
        self.process = None

    def ask(self, **request) -> dict:
        """Sends a request; fails with jaxlib's message."""
        if self.process is None:
            words = [sys.executable, str(HERE / "reference.py")]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
            self.process = subprocess.Popen(words, text=True, **pipes)
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line.startswith("{"):
            self.close()
            raise Failure("jaxlib's process ended")
        answer = json.loads(line)
        if "error" in answer:
            raise Failure(answer["error"])
        return answer

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None


def serve() -> None:
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir

    actions = {"converts": converts, "values": values}
    for line in sys.stdin:
        request = json.loads(line)
        action = actions[request.pop("action")]
        try:
            with mlir.make_ir_context(), ir.Location.unknown():
                answer = action(ir.Module.parse(request.pop("text")), **request)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {str(error)[:400]}"}
        print(json.dumps(answer), flush=True)


def converts(module) -> dict:
    """Converts a module to HLO."""
    from jax._src.lib import _jax

    _jax.mlir.mlir_module_to_xla_computation(str(module), use_tuple_args=False, return_tuple=False)
    return {}


def values(module, prefix, path) -> dict:
    """Runs a module without arguments on XLA:CPU and writes its results PREFIX0, PREFIX1, ...; returns their types."""
    import jax
    import numpy as np
    from jax._src.lib import xla_client

    import arrays

    client = jax.devices("cpu")[0].client
    devices = xla_client.DeviceList(tuple(client.local_devices()[:1]))
    executable = client.compile_and_load(module, devices, xla_client.CompileOptions())
    results = [np.asarray(result) for result in executable.execute([])]
    arrays.store(path, prefix, results)
    return {"types": [result.dtype.name for result in results]}


if __name__ == "__main__":
    serve()
