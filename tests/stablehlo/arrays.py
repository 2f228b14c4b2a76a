"""Arrays in .npz files of `xla run`, and their comparison by the rules of StableHLO's `check` operations."""

import ml_dtypes
import numpy as np


def dtype(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, name))


def store(path, prefix: str, values: list) -> None:
    """Writes arrays as PREFIX0, PREFIX1, ...; types that numpy lacks are raw bytes."""
    flat = {}
    for number, value in enumerate(values):
        value = np.asarray(value)
        if value.dtype.kind not in "biufc" or hasattr(ml_dtypes, value.dtype.name):
            value = np.frombuffer(value.tobytes(), f"V{value.dtype.itemsize}").reshape(value.shape)
        flat[f"{prefix}{number}"] = value
    np.savez(path, **flat)


def load(path, prefix: str, types: list) -> list:
    """Reads PREFIX0, PREFIX1, ... with these element types."""
    with np.load(path) as stored:
        values = [stored[f"{prefix}{number}"] for number in range(len(stored.files))]
    if len(values) != len(types):
        raise ValueError(f"{len(values)} arrays instead of {len(types)}")
    return [typed(value, dtype(name)) for value, name in zip(values, types)]


def load_outputs(path, checks: list, expected: list) -> list:
    """Reads out0, out1, ... with the element types of the expected constants; results without one are as stored."""
    types = {check["actual"]: expected[check["constant"]].dtype for check in checks if "constant" in check}
    with np.load(path) as stored:
        values = [stored[f"out{number}"] for number in range(len(stored.files))]
    return [typed(value, types.get(number, value.dtype)) for number, value in enumerate(values)]


def typed(value, kind: np.dtype):
    if value.dtype.kind == "V":
        return np.frombuffer(value.tobytes(), kind).reshape(value.shape)
    if value.dtype != kind:
        raise ValueError(f"an array of {value.dtype} instead of {kind}")
    return value


def difference(check: dict, actual, expected) -> str:
    """First element that a check rejects; empty if there is none."""
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return f"{actual.dtype}{list(actual.shape)} instead of {expected.dtype}{list(expected.shape)}"
    passes = PASSES[check["kind"]](check, actual, expected)
    if passes.all():
        return ""
    index = tuple(int(part) for part in np.argwhere(~passes)[0])
    return f"element {list(index)} is {actual[index]} instead of {expected[index]}"


def components(value) -> list:
    """Real and imaginary part of a complex array; otherwise the array."""
    return [value.real, value.imag] if value.dtype.kind == "c" else [value]


def equal(check: dict, actual, expected):
    return np.asarray(actual == expected)


def almost_equal(check: dict, actual, expected):
    """Equal, both NaN, or both finite and not farther apart than the tolerance."""
    passes = np.ones(actual.shape, bool)
    for left, right in zip(components(actual), components(expected)):
        left, right = left.astype(np.float64), right.astype(np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            near = np.isfinite(left) & np.isfinite(right) & (np.abs(left - right) <= check["tolerance"])
        passes &= near | (left == right) | (np.isnan(left) & np.isnan(right))
    return passes


def close(check: dict, actual, expected):
    """At most (and at least) so many floats apart, where infinities and NaN are equal only to themselves."""
    passes = np.ones(actual.shape, bool)
    for left, right in zip(components(actual), components(expected)):
        apart = distance(left, right)
        same = (left == right) | (np.isnan(left) & np.isnan(right))
        finite = np.isfinite(left) & np.isfinite(right)
        within = (apart >= check["least"]) & (apart <= check["most"])
        passes &= np.where(finite, within, same & (check["least"] == 0))
    return passes


def distance(left, right):
    """Number of floats between two finite floats, as floats of 64 bits: distances up to 2^53 are exact."""
    width = left.dtype.itemsize
    def order(value):
        bits = np.frombuffer(value.tobytes(), f"u{width}").reshape(value.shape).astype(object)
        half = 1 << (8 * width - 1)
        return np.where(bits >= half, half - bits, bits) if value.size else bits
    return np.abs(order(left) - order(right)).astype(np.float64)


PASSES = {"eq": equal, "almost_eq": almost_equal, "close": close}
