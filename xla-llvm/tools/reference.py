"""True values of the f64 math functions, for xla-llvm/tests/suite/accuracy.rs.

Usage: reference.py [POINTS] > tests/data/f64_reference.txt

Needs gmpy2 (MPFR). A line is: function, argument bits (one or two), bits of the nearest double, and how far the true
value lies from that double in units of its last place, times 1000.
"""

import random
import struct
import sys

import gmpy2
from gmpy2 import mpfr

gmpy2.get_context().precision = 300
gmpy2.get_context().emax = 10**6
gmpy2.get_context().emin = -(10**6)


def bits(x):
    return struct.unpack("<Q", struct.pack("<d", x))[0]


def logistic(x):
    return 1 / (1 + gmpy2.exp(-x))


def magnitudes(low, high):
    """Either sign, exponents evenly."""
    return lambda r: r.choice((-1, 1)) * 2.0 ** r.uniform(low, high)


def positive(low, high):
    return lambda r: 2.0 ** r.uniform(low, high)


def between(low, high):
    return lambda r: r.uniform(low, high)


def any_of(*choices):
    return lambda r: r.choice(choices)(r)


def bit_patterns(r):
    return struct.unpack("<d", struct.pack("<Q", r.getrandbits(64)))[0]


def subnormals(r):
    return r.choice((-1, 1)) * struct.unpack("<d", struct.pack("<Q", r.getrandbits(r.randint(1, 54))))[0]


def near_half_turns(r):
    return float(gmpy2.const_pi() / 2 * r.randint(1, 10 ** r.randint(1, 9)))


small = any_of(magnitudes(-30, 3), subnormals)
UNARY = {
    "exp": (gmpy2.exp, any_of(between(-745.2, 709.8), magnitudes(-60, 6), between(-746, -707))),
    "expm1": (gmpy2.expm1, any_of(between(-40, 709.8), magnitudes(-60, 2), between(-1, 1), subnormals)),
    "log": (gmpy2.log, any_of(positive(-1074, 1024), between(0.5, 2), between(0.99, 1.01), lambda r: abs(subnormals(r)))),
    "log1p": (gmpy2.log1p, any_of(positive(-60, 1024), between(-1, 2), magnitudes(-60, -1), subnormals)),
    "logistic": (logistic, any_of(between(-745, 40), magnitudes(-60, 5), between(-2, 2))),
    "tanh": (gmpy2.tanh, any_of(between(-22, 22), magnitudes(-60, 4), between(-1, 1), subnormals)),
    "sin": (gmpy2.sin, any_of(magnitudes(-30, 1023), between(-10, 10), near_half_turns, magnitudes(0, 31), subnormals)),
    "cos": (gmpy2.cos, any_of(magnitudes(-30, 1023), between(-10, 10), near_half_turns, magnitudes(0, 31))),
    "tan": (gmpy2.tan, any_of(magnitudes(-30, 1023), between(-10, 10), near_half_turns, magnitudes(0, 31), subnormals)),
    "asin": (gmpy2.asin, any_of(between(-1, 1), magnitudes(-40, -1), between(0.45, 0.55), subnormals)),
    "acos": (gmpy2.acos, any_of(between(-1, 1), magnitudes(-60, -1), lambda r: 1 - 2.0 ** r.uniform(-52, -1))),
    "atan": (gmpy2.atan, any_of(magnitudes(-40, 60), between(-2, 2), magnitudes(0, 1023), subnormals)),
    "sinh": (gmpy2.sinh, any_of(between(-710.4, 710.4), magnitudes(-40, 3), between(-2, 2), subnormals)),
    "cosh": (gmpy2.cosh, any_of(between(-710.4, 710.4), magnitudes(-40, 3), between(-2, 2))),
    "asinh": (gmpy2.asinh, any_of(magnitudes(-40, 1023), magnitudes(-3, 3), between(-2, 2), subnormals)),
    "acosh": (gmpy2.acosh, any_of(lambda r: 1 + 2.0 ** r.uniform(-52, 3), positive(0, 1023), between(1, 3))),
    "atanh": (gmpy2.atanh, any_of(between(-1, 1), magnitudes(-40, -1), lambda r: 1 - 2.0 ** r.uniform(-52, -1), subnormals)),
    "erf": (gmpy2.erf, any_of(between(-6, 6), magnitudes(-40, 2), between(0.8, 1), subnormals)),
    "cbrt": (gmpy2.cbrt, any_of(bit_patterns, magnitudes(-10, 10), subnormals)),
    "rsqrt": (gmpy2.rec_sqrt, any_of(positive(-1074, 1024), positive(-2, 2))),
}
BINARY = {
    "pow": (
        lambda x, y: x**y,
        any_of(
            lambda r: (2.0 ** r.uniform(-1000, 1000), r.uniform(-2, 2)),
            lambda r: (r.uniform(0.5, 2), r.uniform(-700, 700)),
            lambda r: (1 + r.choice((-1, 1)) * 2.0 ** r.uniform(-50, -4), r.choice((-1, 1)) * 2.0 ** r.uniform(4, 55)),
            lambda r: (-r.uniform(0.1, 9), float(r.randint(-300, 300))),
            lambda r: (abs(subnormals(r)), r.uniform(-0.9, 0.9)),
        ),
    ),
    "atan2": (
        gmpy2.atan2,
        any_of(
            lambda r: (magnitudes(-3, 3)(r), magnitudes(-3, 3)(r)),
            lambda r: (magnitudes(-1000, 1000)(r), magnitudes(-1000, 1000)(r)),
            lambda r: (subnormals(r), subnormals(r)),
            lambda r: (magnitudes(1020, 1023.9)(r), magnitudes(1020, 1023.9)(r)),
        ),
    ),
}


def nearest(value):
    """The nearest double and the rest in thousandths of its last place; None beyond the finite range."""
    with gmpy2.context(gmpy2.get_context(), precision=53, emax=1024, emin=-1073, subnormalize=True):
        rounded = float(+value)
    if rounded in (float("inf"), float("-inf")) or rounded == 0 or rounded != rounded:
        return None
    exponent = max(gmpy2.get_exp(mpfr(rounded)) - 53, -1074)
    return rounded, int(gmpy2.rint((value - mpfr(rounded)) * mpfr(2) ** -exponent * 1000))


def main():
    points = int(sys.argv[1]) if len(sys.argv) > 1 else 150
    r = random.Random(20)
    for table in (UNARY, BINARY):
        for name, (function, draw) in table.items():
            count = 0
            while count < points:
                arguments = draw(r)
                arguments = arguments if isinstance(arguments, tuple) else (arguments,)
                value = function(*(mpfr(a) for a in arguments))
                if gmpy2.is_nan(value) or not gmpy2.is_finite(value):
                    continue
                found = nearest(value)
                if found is None:
                    continue
                count += 1
                inputs = " ".join(f"{bits(a):x}" for a in arguments)
                print(f"{name} {inputs} {bits(found[0]):x} {found[1]}")


main()
