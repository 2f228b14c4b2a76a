"""Process with the PJRT plugin: reads folders of programs from standard input, runs each, answers with a line of JSON."""

import json
import pathlib
import sys
import time

import jax
import numpy as np
from jax._src.lib import _jax

import ours


def argument(array, kind):
    """An input with its element type; raw bytes are named in `dtypes.json`."""
    dtype = ours.ml_dtypes.bfloat16 if kind == "bfloat16" else np.dtype(kind) if kind in np.sctypeDict else getattr(ours.ml_dtypes, kind)
    return np.ascontiguousarray(array).reshape(-1).view(dtype).reshape(array.shape) if array.dtype.kind == "V" else array


def run(folder, device):
    kinds = json.loads((folder / "dtypes.json").read_text())
    code = (folder / "module.mlirbc").read_bytes()
    started = time.perf_counter()
    executable = device.client.compile_and_load(code, [device], _jax.CompileOptions())
    compiled = time.perf_counter()
    arrays = []
    if kinds["inputs"]:
        with np.load(folder / "inputs.npz") as stored:
            arrays = [argument(stored[f"arg{i}"], kind) for i, kind in enumerate(kinds["inputs"])]
    results = executable.execute_sharded([jax.device_put(array, device) for array in arrays])
    outputs = [np.asarray(shards[0]) for shards in results.disassemble_into_single_device_arrays()]
    ended = time.perf_counter()
    ours.store(folder / "out.npz", "out", outputs)
    return {"compile": compiled - started, "run": ended - compiled}


def main():
    device = jax.devices()[0]
    with jax.enable_x64(True):
        for line in sys.stdin:
            try:
                answer = run(pathlib.Path(line.strip()), device)
            except Exception as error:
                answer = {"error": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"}
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
