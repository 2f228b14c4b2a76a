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
PRECISIONS = (24, 53)


def table(function):
    TABLES[function.__name__] = function
    return function


def series(terms):
    """A power series in x, as a function that sums it until nothing changes: for quotients that cancel near 0."""

    def total(x):
        s, n = mp.mpf(0), 0
        while True:
            t = terms(n, x)
            s += t
            n += 1
            if n > 8 and abs(t) < mp.mpf(2) ** -130 * max(abs(s), mp.mpf(2) ** -60):
                return s

    return total


def polynomial(name, f, exponents, a, b, weight, degrees):
    for bits, degree in zip(PRECISIONS, degrees):
        if degree is not None:
            c, peak = fit(f, exponents(degree), a, b, weight, bits)
            show(f"{name} f{32 if bits == 24 else 64}", c, bits, peak)


def all_up_to(degree):
    return list(range(degree + 1))


@table
def exp():
    # e^r = 1 + r + r^2 q(r), |r| <= ln2 / 2 and a little more for the rounding of k.
    half = mp.log(2) / 2 * mp.mpf("1.0001")
    q = series(lambda n, r: r**n / mp.factorial(n + 2))
    polynomial("exp: (e^r - 1 - r) / r^2", q, all_up_to, -half, half, lambda r: r**2 / mp.exp(r), (4, 9))


@table
def log():
    # log(1 + f) = f - f^2 / 2 + f^3 p(f), -1/3 <= f <= 1/3
    third = mp.mpf(1) / 3
    p = series(lambda n, f: (-f) ** n / (n + 3))
    polynomial("log: (log(1+f) - f + f^2/2) / f^3", p, all_up_to, -third, third, lambda f: f**3 / mp.log1p(f) if f else f, (7, None))
    # log((1+s)/(1-s)) = 2 s + s z g(z), z = s^2 <= 1/25
    g = series(lambda n, z: 2 * z**n / (2 * n + 3))
    polynomial("log: (2 atanh s - 2 s) / s^3, z = s^2", g, all_up_to, 0, mp.mpf(1) / 25, lambda z: z, (None, 7))


@table
def log_tail():
    # atanh s = s (1 + z / 3 + z^2 t(z)), for the logarithm in two words
    t = series(lambda n, z: z**n / (2 * n + 5))
    polynomial("two-word log: (atanh s - s - s^3/3) / s^5, z = s^2", t, all_up_to, 0, mp.mpf(1) / 25, lambda z: z**2, (2, 7))


@table
def sincos():
    top = (mp.pi / 4 * mp.mpf("1.005")) ** 2
    s = series(lambda n, z: (-1) ** (n + 1) * z**n / mp.factorial(2 * n + 3))
    polynomial("sin: (sin r - r) / r^3, z = r^2", s, all_up_to, 0, top, lambda z: z / mp.sinc(mp.sqrt(z)), (2, 5))
    c = series(lambda n, z: (-1) ** n * z**n / mp.factorial(2 * n + 4))
    polynomial("cos: (cos r - 1 + r^2/2) / r^4, z = r^2", c, all_up_to, 0, top, lambda z: z**2 / mp.cos(mp.sqrt(z)), (2, 5))


@table
def hyperbolic():
    top = (mp.log(2) / 2 * mp.mpf("1.0001")) ** 2
    s = series(lambda n, z: z**n / mp.factorial(2 * n + 3))
    polynomial("sinh: (sinh r - r) / r^3, z = r^2", s, all_up_to, 0, top, lambda z: z, (2, 4))
    c = series(lambda n, z: z**n / mp.factorial(2 * n + 2))
    polynomial("cosh: (cosh r - 1) / r^2, z = r^2", c, all_up_to, 0, top, lambda z: z, (2, 4))


@table
def asin():
    a = series(lambda n, z: mp.binomial(2 * n + 2, n + 1) / mp.mpf(4) ** (n + 1) * z**n / (2 * n + 3))
    polynomial("asin: (asin x - x) / x^3, z = x^2", a, all_up_to, 0, mp.mpf("0.25"), lambda z: z, (4, 11))


@table
def atan():
    a = series(lambda n, z: (-1) ** (n + 1) * z**n / (2 * n + 3))
    polynomial("atan: (atan t - t) / t^3, z = t^2", a, all_up_to, 0, mp.mpf("0.25"), lambda z: z, (5, 12))


@table
def exp2():
    # 2^f on |f| <= 1/2, for use where an absolute error counts
    half = mp.mpf("0.5001")
    f = lambda f: mp.mpf(2) ** f
    polynomial("2^f", f, all_up_to, -half, half, lambda x: 1 / f(x), (6, None))


@table
def tanh():
    # tanh x = x + x z t(z), z = x^2, up to 0.55
    t = lambda z: (mp.tanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z
    polynomial("tanh: (tanh x - x) / x^3, z = x^2", t, all_up_to, mp.mpf(10) ** -9, mp.mpf("0.55") ** 2, lambda z: z, (4, None))


@table
def gpu_tanh():
    # the same up to 1.12, so that the error of a GPU's 2^x hardly counts beyond
    t = lambda z: (mp.tanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z
    polynomial("tanh: (tanh x - x) / x^3, z = x^2", t, all_up_to, mp.mpf(10) ** -9, mp.mpf("1.12") ** 2, lambda z: z, (6, None))


@table
def erf():
    f = lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z)
    for bits, name, degree, low in ((24, "f32", 5, mp.mpf("0.8")), (53, "f64", 11, mp.mpf("0.88"))):
        c, peak = fit(f, all_up_to(degree), mp.mpf(10) ** -15, low**2, lambda z: 1 / f(z), bits, {0: 2 / mp.sqrt(mp.pi)})
        show(f"erf {name}: erf x / x in x^2 up to {low}, after 2 / sqrt(pi)", c[1:], bits, peak)
    g = lambda x: mp.log(mp.erfc(x), 2)
    c, peak = fit(g, all_up_to(6), mp.mpf("0.8"), mp.mpf("3.93"), lambda x: mp.log(2) * mp.erfc(x) / mp.erf(x), 24)
    show("erf f32: log2 erfc x from 0.8 up to 3.93", c, 24, peak)
    low, high, middle = mp.mpf("0.88"), mp.mpf("5.93"), mp.mpf(3)
    at = lambda t: middle * (1 + t) / (1 - t)
    g = lambda t: mp.erfc(at(t)) * mp.exp(at(t) ** 2)
    ends = [(x - middle) / (x + middle) for x in (low, high)]
    c, peak = fit(g, all_up_to(12), *ends, lambda t: mp.exp(-at(t) ** 2) / mp.erf(at(t)), 53)
    show("erf f64: erfc x e^(x^2) in (x - 3) / (x + 3) from 0.88 up to 5.93", c, 53, peak)


if __name__ == "__main__":
    for name in sys.argv[1:] or TABLES:
        TABLES[name]()
