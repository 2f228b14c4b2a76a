"""XLA:CPU's side of a program: StableHLO, inputs, expected outputs, and the tolerance of each output."""

import re
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax._src.lib import _jax
from jaxlib.mlir.dialects import stablehlo

import double_precision

# Factor of the error that XLA:CPU itself makes against double precision, or by inputs that differ in the last bit.
FACTOR = 6.0
# Units in the last place of an element, and of the root mean square of its array, that are always accepted.
ULPS = 16.0
# No double-precision reference where XLA takes longer than this to compile the program, in seconds.
SLOW = 6.0


class Reference:
    """A program as StableHLO with flat inputs and outputs. Times are in seconds."""

    def __init__(self, code, inputs, expected, centre, tolerance, source, compile_time, run_time, text):
        self.code, self.inputs, self.expected = code, inputs, expected
        # `centre` is the most accurate result at hand; `tolerance` holds an array for each output.
        self.centre, self.tolerance, self.source = centre, tolerance, source
        self.compile_time, self.run_time, self.text = compile_time, run_time, text


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
    started = time.perf_counter()
    expected = run(executable, leaves, device)
    run_time = time.perf_counter() - started
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
    tolerance = [tolerance_of(y, exact and exact[i], [s[i] for s in shaken]) for i, y in enumerate(expected)]
    centre = [y if exact is None else exact[i] for i, y in enumerate(expected)]
    return Reference(code, leaves, expected, centre, tolerance, source, compile_time, run_time, text)


def run(executable, leaves, device):
    results = executable.execute_sharded([jax.device_put(leaf, device) for leaf in leaves])
    return [np.asarray(shards[0]) for shards in results.disassemble_into_single_device_arrays()]


def shake(leaves, seed):
    """Moves every floating-point input by one unit in the last place, up, down or not at all."""
    generator = np.random.default_rng(seed)
    moved = []
    for leaf in leaves:
        if is_float(leaf) and leaf.dtype.kind != "c":
            steps = generator.integers(-1, 2, leaf.shape)
            epsilon = float(jnp.finfo(leaf.dtype).eps)
            leaf = np.asarray(leaf.astype(np.float64) * (1 + steps * epsilon)).astype(leaf.dtype)
        moved.append(leaf)
    return moved


def in_double_precision(closed, leaves):
    with jax.enable_x64(True):
        wide = [double_precision.widen(leaf) for leaf in leaves]
        # Little optimization: the reference is compiled in less time, and with other rounding than the program.
        options = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
        function = jax.jit(lambda *wide: double_precision.evaluate(closed.jaxpr, closed.consts, wide), compiler_options=options)
        return [np.asarray(result) for result in function(*wide)]


def is_float(array):
    return jnp.issubdtype(array.dtype, jnp.inexact)


def tolerance_of(expected, exact, shaken):
    """Absolute tolerance of each element of an output; 0 where it must be equal."""
    if not is_float(expected):
        # A decision that flips when inputs move by a unit in the last place is not compared.
        others = shaken if exact is None or exact.shape != expected.shape else [*shaken, exact]
        unsure = np.zeros(expected.shape, bool)
        for other in others:
            unsure |= other != expected
        spread = 0.0 if not unsure.any() else np.inf
        return np.full(expected.shape, spread)
    size = np.abs(wide(expected))
    finite = size[np.isfinite(size)]
    mean = float(np.sqrt(np.mean(finite**2))) if finite.size else 0.0
    epsilon = float(jnp.finfo(expected.dtype).eps)
    errors = [np.abs(wide(other) - wide(expected)) for other in (shaken if exact is None else [*shaken, exact])]
    worst = max((float(np.max(error[np.isfinite(error)], initial=0.0)) for error in errors), default=0.0)
    tiny = float(jnp.finfo(expected.dtype).tiny)
    # Element by element, too: an output whose elements differ in size by orders of magnitude.
    return FACTOR * worst + ULPS * epsilon * (np.where(np.isfinite(size), size, 0.0) + mean) + tiny


def wide(array):
    return np.asarray(array).astype(np.complex128 if array.dtype.kind == "c" else np.float64)
