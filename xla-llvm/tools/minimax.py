"""Minimax polynomials for xla-llvm/src/math: Remez exchange in high precision, coefficients rounded one by one.

Usage: minimax.py            prints every table that the Rust files quote
       minimax.py NAME...    only those

Needs mpmath. Each table below states the function approximated, the interval, the weight (so that the *relative* error
of the finished formula is what is minimised), the exponents present and the precision in which the coefficients are
stored. Rounding is done from the lowest exponent up: after a coefficient is rounded to storage precision the rest is
fitted again with it held fixed, so that later coefficients make up for it.
"""

import struct
import sys

import mpmath as mp

mp.mp.prec = 140


def round_to(x, bits):
    """x rounded to `bits` of significand, nearest even."""
    if x == 0:
        return mp.mpf(0)
    old = mp.mp.prec
    mp.mp.prec = bits
    y = +x
    mp.mp.prec = old
    return y


def remez(f, exponents, a, b, weight, iterations=30):
    """Coefficients c minimising max |weight(x) (sum c_i x^e_i - f(x))| on [a, b], and that maximum."""
    n = len(exponents)
    points = [(a + b) / 2 + (b - a) / 2 * mp.cos(mp.pi * (2 * i + 1) / (2 * n + 2)) for i in range(n + 1)]
    points = sorted(points)
    best = None
    for _ in range(iterations):
        rows = mp.matrix(n + 1, n + 1)
        rhs = mp.matrix(n + 1, 1)
        for i, x in enumerate(points):
            w = weight(x)
            for j, e in enumerate(exponents):
                rows[i, j] = w * x**e
            rows[i, n] = (-1) ** i
            rhs[i] = w * f(x)
        solution = mp.lu_solve(rows, rhs)
        c = [solution[j] for j in range(n)]

        def error(x):
            return weight(x) * (sum(cj * x**e for cj, e in zip(c, exponents)) - f(x))

        # The extrema of the error: one in each gap between sign changes, found on a Chebyshev grid and refined.
        m = 60 * (n + 1)
        grid = [(a + b) / 2 - (b - a) / 2 * mp.cos(mp.pi * i / m) for i in range(m + 1)]
        values = [error(x) for x in grid]
        runs, start = [], 0
        for i in range(1, m + 2):
            if i == m + 1 or (values[i] > 0) != (values[start] > 0):
                k = max(range(start, i), key=lambda t: abs(values[t]))
                runs.append(k)
                start = i
        extrema = []
        for k in runs:
            lo, hi = grid[max(k - 1, 0)], grid[min(k + 1, m)]
            for _ in range(30):
                p, q = lo + (hi - lo) * mp.mpf("0.382"), lo + (hi - lo) * mp.mpf("0.618")
                if abs(error(p)) < abs(error(q)):
                    lo = p
                else:
                    hi = q
            x = (lo + hi) / 2
            extrema.append(x if abs(error(x)) > abs(values[k]) else grid[k])
        peak = max(abs(error(x)) for x in extrema)
        if best is None or peak < best[1]:
            best = (c, peak)
        while len(extrema) > n + 1:
            if abs(error(extrema[0])) < abs(error(extrema[-1])):
                extrema.pop(0)
            else:
                extrema.pop()
        if len(extrema) < n + 1:
            break
        low = min(abs(error(x)) for x in extrema)
        points = extrema
        if peak - low < peak / 1000:
            break
    return best


def fit(f, exponents, a, b, weight, bits, fixed=None):
    """Coefficients rounded to `bits` (or per exponent), lowest exponent first; `fixed` holds some at given values."""
    a, b = mp.mpf(a), mp.mpf(b)
    held = dict(fixed or {})
    free = [e for e in exponents if e not in held]
    while free:
        def rest(x):
            return f(x) - sum(v * x**e for e, v in held.items())

        c, _ = remez(rest, free, a, b, weight)
        e = free.pop(0)
        width = bits(e) if callable(bits) else bits
        held[e] = round_to(c[0], width)
    grid = [a + (b - a) * i / 4000 for i in range(4001)]
    peak = max(abs(weight(x) * (sum(held[e] * x**e for e in held) - f(x))) for x in grid if weight(x) != 0)
    return [held[e] for e in sorted(held)], peak


def literal(x, bits):
    """The shortest decimal that reads back exactly."""
    if bits > 24:
        return repr(float(x))
    digits = next(n for n in range(1, 18) if struct.unpack("f", struct.pack("f", float(f"{float(x):.{n}g}")))[0] == x)
    return repr(float(f"{float(x):.{digits}g}"))


def show(name, coefficients, bits, peak):
    print(f"// {name}: error {mp.nstr(peak, 3)} = 2^{mp.nstr(mp.log(peak, 2), 4)}" if peak else f"// {name}")
    print("[" + ", ".join(literal(c, bits) for c in coefficients) + "]")
    print()


TABLES = {}


def table(function):
    TABLES[function.__name__] = function
    return function


def one(x):
    return mp.mpf(1)


@table
def exp():
    # exp(r) = 1 + r + r^2 q(r), |r| <= ln2/2 (a little more for the rounding of k)
    half = mp.log(2) / 2 * mp.mpf("1.0001")

    def q(r):
        return mp.nsum(lambda n: r**n / mp.factorial(n + 2), [0, 30]) if abs(r) < 0.01 else (mp.exp(r) - 1 - r) / r**2

    for bits, degree in ((24, 4), (53, 9)):
        weight = lambda r: r**2 / mp.exp(r)
        c, peak = fit(q, list(range(degree + 1)), -half, half, weight, bits)
        show(f"exp f{32 if bits == 24 else 64}: (e^r - 1 - r) / r^2", c, bits, peak)


if __name__ == "__main__":
    for name in sys.argv[1:] or TABLES:
        TABLES[name]()
