"""The jaxpr of a program evaluated in double precision: the reference from which tolerances are derived.

Every float narrower than 64 bits becomes f64. Operations on the bits of floats (`bitcast_convert_type`, `nextafter`,
`reduce_precision`) run in the original type, so that random numbers stay the same.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core

NARROW = {np.dtype("float32"), np.dtype("float16"), np.dtype(jnp.bfloat16)}
ON_BITS = {"bitcast_convert_type", "nextafter", "reduce_precision", "random_bits", "clz", "population_count"}
TYPES = ("new_dtype", "dtype", "preferred_element_type", "out_dtype", "accum_dtype")
SCATTERS = {
    "scatter": lax.scatter, "scatter-add": lax.scatter_add, "scatter_add": lax.scatter_add, "scatter-mul": lax.scatter_mul,
    "scatter_mul": lax.scatter_mul, "scatter_min": lax.scatter_min, "scatter_max": lax.scatter_max,
}


class Unsupported(Exception):
    """An operation that has no counterpart in double precision."""


def widen(value):
    """Converts narrow floats to f64 and c64 to c128."""
    if not hasattr(value, "dtype"):
        return value
    if jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        return value
    dtype = np.dtype(value.dtype)
    if dtype in NARROW:
        return value.astype(np.float64)
    return value.astype(np.complex128) if dtype == np.complex64 else value


def wide_type(dtype):
    if dtype is None:
        return None
    try:
        dtype = np.dtype(dtype)
    except TypeError:
        return dtype
    if dtype in NARROW:
        return np.dtype("float64")
    return np.dtype("complex128") if dtype == np.complex64 else dtype


def function_of(closed):
    """A function of wide values from a closed jaxpr."""
    return lambda *args: evaluate(closed.jaxpr, closed.consts, args)


def evaluate(jaxpr, consts, args):
    """Evaluates a jaxpr with every narrow float widened."""
    values = {}

    def read(var):
        return widen(np.asarray(var.val)) if isinstance(var, core.Literal) else values[var]

    for var, value in zip(jaxpr.constvars, consts):
        values[var] = widen(value if hasattr(value, "dtype") else np.asarray(value))
    for var, value in zip(jaxpr.invars, args):
        values[var] = value
    for eqn in jaxpr.eqns:
        results = apply(eqn, [read(var) for var in eqn.invars])
        values.update(zip(eqn.outvars, results))
    return [read(var) for var in jaxpr.outvars]


def apply(eqn, args):
    """Results of one equation, as a list."""
    name, params = eqn.primitive.name, dict(eqn.params)
    if name in CONTROL:
        return list(CONTROL[name](params, args))
    inner = next((params[key] for key in ("call_jaxpr", "fun_jaxpr", "jaxpr") if key in params), None)
    if name in ("jit", "pjit", "closed_call", "core_call", "remat", "remat2", "checkpoint", "custom_jvp_call",
                "custom_vjp_call", "custom_vjp_call_jaxpr", "custom_lin"):
        if hasattr(inner, "consts"):
            return evaluate(inner.jaxpr, inner.consts, args)
        return evaluate(inner, [], args)
    if name in ON_BITS:
        args = [narrow(value, var.aval.dtype) for value, var in zip(args, eqn.invars)]
        results = eqn.primitive.bind(*args, **params)
        return [widen(value) for value in (results if eqn.primitive.multiple_results else [results])]
    if name in SCATTERS:
        keep = ("dimension_numbers", "indices_are_sorted", "unique_indices", "mode")
        return [SCATTERS[name](*args, **{key: params[key] for key in keep})]
    if name in ("reduce_window", "reduce", "custom_linear_solve", "custom_root", "pure_callback", "select_and_gather_add"):
        raise Unsupported(name)
    for key in TYPES:
        if key in params:
            params[key] = wide_type(params[key])
    results = eqn.primitive.bind(*args, **params)
    return list(results) if eqn.primitive.multiple_results else [results]


def narrow(value, dtype):
    return value.astype(dtype) if wide_type(dtype) != dtype else value


def _scan(params, args):
    consts, carry = params["num_consts"], params["num_carry"]
    body = params["jaxpr"]
    fixed, start, rows = args[:consts], args[consts:consts + carry], args[consts + carry:]

    def step(state, row):
        results = evaluate(body.jaxpr, body.consts, [*fixed, *state, *row])
        return results[:carry], results[carry:]

    end, stacked = lax.scan(step, list(start), list(rows), length=params["length"], reverse=params["reverse"])
    return [*end, *stacked]


def _while(params, args):
    tests, bodies = params["cond_nconsts"], params["body_nconsts"]
    for_test, for_body, start = args[:tests], args[tests:tests + bodies], args[tests + bodies:]
    test, body = params["cond_jaxpr"], params["body_jaxpr"]
    return lax.while_loop(
        lambda state: evaluate(test.jaxpr, test.consts, [*for_test, *state])[0],
        lambda state: evaluate(body.jaxpr, body.consts, [*for_body, *state]),
        list(start),
    )


def _cond(params, args):
    return lax.switch(args[0], [function_of(branch) for branch in params["branches"]], *args[1:])


CONTROL = {"scan": _scan, "while": _while, "cond": _cond}
