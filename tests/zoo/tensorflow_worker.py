"""Process that runs programs of TensorFlow: `tf.function(jit_compile=True)` on TensorFlow, its StableHLO by `xla run`.

    tensorflow_worker.py tensorflow --list
    tensorflow_worker.py tensorflow --out DIR --command XLA NAME ...

Each program exists twice: as text (`stablehlo`) and as bytecode of dialect `stablehlo` (`stablehlo_serialized`).
"""

import os
import pathlib
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import numpy as np

import arrays
import ours
import record
from tolerance import Expected, is_float, shake, wide

FORMS = {"text": "module.mlir", "bytecode": "module.mlirbc"}


def programs():
    """`(head, function, inputs)` by name; `inputs(random)` returns arrays."""
    import tensorflow_programs

    found = {}

    def add(name, function, batch, inputs):
        for form in FORMS:
            head = {"name": f"tensorflow.{name}.{form}", "kind": form, "batch": batch}
            found[head["name"]] = (head, function, inputs)

    tensorflow_programs.register(add)
    return found


def make(name, function, inputs):
    """Traces a program, runs it by TensorFlow's XLA and, in double precision, operation by operation."""
    import tensorflow as tf

    leaves = [np.asarray(leaf) for leaf in inputs(arrays.Random(name))]
    compiled = tf.function(function, jit_compile=True, autograph=False)
    on_xla = lambda values: [np.asarray(y) for y in tf.nest.flatten(compiled(*[tf.constant(value) for value in values]))]
    started = time.perf_counter()
    expected = on_xla(leaves)
    compile_time = time.perf_counter() - started
    if not any(np.isfinite(wide(y)).any() for y in expected if y.size):
        raise ValueError("no output has a finite element: such a program compares nothing")
    shaken = [on_xla(shake(leaves, seed)) for seed in (1, 2)]
    doubles = [tf.constant(leaf.astype(np.float64) if is_float(leaf) else leaf) for leaf in leaves]
    exact = [np.asarray(y) for y in tf.nest.flatten(function(*doubles))]
    forms = compiled.experimental_get_compiler_ir(*[tf.constant(leaf) for leaf in leaves])
    code, text = forms(stage="stablehlo_serialized"), forms(stage="stablehlo")
    return Expected(code, text, leaves, expected, exact, shaken, compile_time)


def main():
    options = record.arguments(__doc__)
    known = programs()
    if options.list:
        return record.list_all(head for head, _, _ in known.values())
    sides = {form: ours.Command(options.command, options.timeout, module=file) for form, file in FORMS.items()}

    def one(name):
        head, function, inputs = known[name]
        work, keep = options.out / "work" / "tensorflow", options.out / "kept" / name
        return record.record_of(head, lambda: make(name, function, inputs), sides[head["kind"]], work, keep)

    record.run_all(options.names, options.out, one)


if __name__ == "__main__":
    main()
