"""XLA:CPU's side of a program: StableHLO, inputs, expected outputs, and the tolerance of each output."""

import re
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax._src.lib import _jax
from jaxlib.mlir.dialects import stablehlo

import double_precision
from tolerance import Expected, shake, wide

# No double-precision reference where XLA takes longer than this to compile the program, in seconds.
SLOW = 6.0


def make(program, random):
    """Traces a program once, runs it on XLA:CPU and derives its tolerances."""
    function, arguments = program.make(random)
    arguments = jax.tree_util.tree_map(lambda a: a if isinstance(a, jax.Array) else np.asarray(a), arguments)
    arguments = jax.tree_util.tree_map(lambda a: a.astype(jnp.float32) if a.dtype == np.float64 else a, arguments)
    arguments = jax.tree_util.tree_map(lambda a: a.astype(np.int32) if a.dtype == np.int64 else a, arguments)
    leaves = [np.asarray(leaf) for leaf in jax.tree_util.tree_leaves(arguments)]
    structure = jax.tree_util.tree_structure(arguments)

    def main(*leaves):
        return jax.tree_util.tree_leaves(function(*jax.tree_util.tree_unflatten(structure, leaves)))

    main.__name__ = re.sub(r"\W", "_", program.name)
    traced = jax.jit(main, keep_unused=True).trace(*leaves)
    # Calls into LAPACK exist only on XLA:CPU; lowered for a TPU they are operations, which XLA:CPU runs as well.
    for platform in ("cpu", "tpu"):
        lowered = traced.lower(lowering_platforms=(platform,))
        module = lowered.compiler_ir("stablehlo")
        text = str(module)
        if "lapack" not in text:
            break
    # The form in which JAX hands programs to a plugin.
    code = _jax.mlir.serialize_portable_artifact(module, stablehlo.get_current_version(), use_mixed_serialization=True)
    device = jax.devices("cpu")[0]
    started = time.perf_counter()
    executable = device.client.compile_and_load(code, [device], _jax.CompileOptions())
    compile_time = time.perf_counter() - started
    expected = run(executable, leaves, device)
    if not any(np.isfinite(wide(y)).any() for y in expected if y.size):
        raise ValueError("no output has a finite element: such a program compares nothing")
    shaken = [run(executable, shake(leaves, seed), device) for seed in (1, 2)]
    exact = None
    source = "xla"
    if compile_time < SLOW:
        try:
            exact = in_double_precision(traced.jaxpr, leaves)
            source = "float64"
        except Exception as error:
            source = f"xla ({type(error).__name__}: {str(error).splitlines()[0][:80] if str(error) else ''})"
    return Expected(code, text, leaves, expected, exact, shaken, compile_time, source)


def run(executable, leaves, device):
    results = executable.execute_sharded([jax.device_put(leaf, device) for leaf in leaves])
    return [np.asarray(shards[0]) for shards in results.disassemble_into_single_device_arrays()]


def in_double_precision(closed, leaves):
    with jax.enable_x64(True):
        wide = [double_precision.widen(leaf) for leaf in leaves]
        # Little optimization: the reference is compiled in less time, and with other rounding than the program.
        options = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
        function = jax.jit(lambda *wide: double_precision.evaluate(closed.jaxpr, closed.consts, wide), compiler_options=options)
        return [np.asarray(result) for result in function(*wide)]
