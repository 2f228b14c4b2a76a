"""Programs for JAX's primitives, a few for each, in several element types: `programs()` maps names to functions with
arguments.

`python -m primitives` says which primitives with a rule for the CPU no program has. Some programs need four devices,
`XLA_FLAGS=--xla_force_host_platform_device_count=4`.
"""

import itertools

import jax
from jax._src.interpreters import mlir

from .collectives import collectives
from .contractions import contractions, linear_algebra
from .control_flow import control_flow
from .elementwise import elementwise
from .movement import movement
from .randomness import randomness
from .reductions import reductions, scatters
from .sparse_arrays import sparse_arrays

FAMILIES = [
    elementwise,
    movement,
    reductions,
    scatters,
    contractions,
    linear_algebra,
    control_flow,
    randomness,
    sparse_arrays,
    collectives,
]


def programs():
    """Names with functions and arguments; a family that this version of JAX cannot build ends early, and says so."""
    found = {}
    for family in FAMILIES:
        try:
            for name, function, arguments in family():
                found[name] = (function, arguments)
        except AttributeError as error:
            print(f"{family.__name__}: {error}")
    return found


def primitives_of(jaxpr):
    """Names of the primitives of a program, those of inner programs included."""
    found = set()
    for equation in jaxpr.eqns:
        found.add(equation.primitive.name)
        for value in jax.tree.leaves(equation.params, is_leaf=lambda v: isinstance(v, jax._src.core.Jaxpr)):
            inner = getattr(value, "jaxpr", value)
            if isinstance(inner, jax._src.core.Jaxpr):
                found |= primitives_of(inner)
    return found


def describe(error):
    """The first line of an error."""
    return f"{type(error).__name__}: {error}"[:200].splitlines()[0]


def with_rules():
    """Names of the primitives that have a lowering for the CPU or for every platform."""
    tables = itertools.chain(mlir._lowerings, mlir._platform_specific_lowerings["cpu"])
    return {primitive.name for primitive in tables}
