"""Tolerance of each element of a result, from the errors that the reference itself makes; no library but numpy."""

import ml_dtypes
import numpy as np

# Factor of the error that XLA:CPU itself makes against double precision, or by inputs that differ in the last bit.
FACTOR = 6.0
# Units in the last place of an element, and of the root mean square of its array, that are always accepted.
ULPS = 16.0


def is_float(array):
    """Whether elements are real or complex floating-point numbers, those of `ml_dtypes` included."""
    if array.dtype.kind in "fc":
        return True
    if array.dtype.kind != "V":
        return False
    try:
        ml_dtypes.finfo(array.dtype)
    except ValueError:
        return False
    return True


def wide(array):
    return np.asarray(array).astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def shake(leaves, seed):
    """Moves every floating-point input by one unit in the last place, up, down or not at all."""
    generator = np.random.default_rng(seed)
    moved = []
    for leaf in leaves:
        if is_float(leaf) and leaf.dtype.kind != "c":
            steps = generator.integers(-1, 2, leaf.shape)
            epsilon = float(ml_dtypes.finfo(leaf.dtype).eps)
            leaf = np.asarray(leaf.astype(np.float64) * (1 + steps * epsilon)).astype(leaf.dtype)
        moved.append(leaf)
    return moved


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
    limits = ml_dtypes.finfo(expected.dtype)
    epsilon, tiny = float(limits.eps), float(limits.tiny)
    errors = [np.abs(wide(other) - wide(expected)) for other in (shaken if exact is None else [*shaken, exact])]
    worst = max((float(np.max(error[np.isfinite(error)], initial=0.0)) for error in errors), default=0.0)
    # Element by element, too: an output whose elements differ in size by orders of magnitude.
    return FACTOR * worst + ULPS * epsilon * (np.where(np.isfinite(size), size, 0.0) + mean) + tiny


class Expected:
    """A program with flat inputs and outputs, and the tolerance of each element of an output.

    `exact` holds the results in double precision, or nothing; `shaken` results of inputs that differ in the last bit.
    `centre` is the most accurate result of both; `compile_time` is in seconds. Without `code`, our side has the program itself.
    """

    def __init__(self, code, text, inputs, expected, exact, shaken, compile_time=0.0, source=None):
        self.code, self.text, self.inputs, self.expected, self.compile_time = code, text, inputs, expected, compile_time
        self.tolerance = [tolerance_of(y, exact and exact[i], [s[i] for s in shaken]) for i, y in enumerate(expected)]
        self.centre = expected if exact is None else exact
        self.source = source or ("the reference" if exact is None else "float64")

