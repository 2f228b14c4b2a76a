"""Writes the tables of expected values beside this file.

    pip install jax==0.10.2 jaxlib==0.10.2 ml_dtypes==0.6.0 numpy==2.4.6 mpmath==1.4.1
    python generate_tables.py

Floats stand as the hexadecimal digits of their patterns. Every table says above itself what a line is.
"""
import os
import struct

import jax
import jax.numpy as jnp
import jaxlib._jax as jx
import ml_dtypes
import mpmath as mp
import numpy as np
from jaxlib import xla_client as xc

jax.config.update("jax_enable_x64", True)
mp.mp.prec = 300
HERE = os.path.dirname(os.path.abspath(__file__))
FORMATS = {
    "f4e2m1fn": ml_dtypes.float4_e2m1fn, "f6e3m2fn": ml_dtypes.float6_e3m2fn, "f6e2m3fn": ml_dtypes.float6_e2m3fn,
    "f8e5m2": ml_dtypes.float8_e5m2, "f8e4m3": ml_dtypes.float8_e4m3, "f8e3m4": ml_dtypes.float8_e3m4,
    "f8e4m3fn": ml_dtypes.float8_e4m3fn, "f8e4m3b11fnuz": ml_dtypes.float8_e4m3b11fnuz,
    "f8e4m3fnuz": ml_dtypes.float8_e4m3fnuz, "f8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "f8e8m0fnu": ml_dtypes.float8_e8m0fnu, "bf16": ml_dtypes.bfloat16, "f16": np.float16,
}
BITS = {"f4e2m1fn": 4, "f6e3m2fn": 6, "f6e2m3fn": 6, "bf16": 16, "f16": 16}


def h64(x):
    return struct.pack(">d", float(x)).hex()


def h32(x):
    return struct.pack(">f", float(x)).hex()


def table(name, heading, lines):
    with open(os.path.join(HERE, name), "w") as f:
        f.write("# " + heading + "\n")
        f.write("\n".join(lines) + "\n")


def random_reals(rng, low, high, n, negative=True):
    x = np.exp(rng.uniform(np.log(low), np.log(high), n))
    return x * rng.choice([-1, 1], n) if negative else x


def float_formats():
    rng = np.random.default_rng(1)
    lines = []
    for name, ty in FORMATS.items():
        bits = BITS.get(name, 8)
        step = 1 if bits <= 8 else 97
        unsigned = np.uint16 if bits == 16 else np.uint8
        patterns = np.arange(0, 1 << bits, step).astype(unsigned)
        values = patterns.view(ty).astype(np.float32)
        lines.append(f"widen {name} {step} " + " ".join("nan" if np.isnan(v) else h32(v) for v in values))
    special = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e30, -1e30, 1e-30, -1e-30, 1e38, 65504, 65519, 65520, 57344, 61440,
               464, 465, 448, 240, 248, 7, -7, 6, 5, 3.5, 28, 30, 7.5, 7.75, 2.0**-10, 2.0**-9, 1.5 * 2.0**-17,
               2.0**-126, 2.0**-127, 2.0**-149, 1.25 * 2.0**-127]
    inputs = np.concatenate([special, random_reals(rng, 1e-7, 1e6, 60), random_reals(rng, 0.01, 100, 60),
                             random_reals(rng, 1e-44, 3e38, 30)]).astype(np.float32)
    lines.append("inputs " + " ".join(h32(v) for v in inputs))
    for name, ty in FORMATS.items():
        unsigned = np.uint16 if BITS.get(name) == 16 else np.uint8
        with np.errstate(all="ignore"):
            codes = inputs.astype(ty).view(unsigned)
        lines.append(f"narrow {name} " + " ".join(f"{c:x}" for c in codes))
    table("float_formats.txt",
          "widen TYPE STEP: the f32 values of patterns 0, STEP, ...; narrow TYPE: the patterns of the f32 inputs (ml_dtypes)",
          lines)


def real_functions(n=40):
    rng = np.random.default_rng(2)
    uniform = rng.uniform
    near_zero = lambda: random_reals(rng, 1e-12, 3, n)
    huge = lambda: random_reals(rng, 1e-10, 1e200, n)
    cbrt = lambda x: mp.sign(x) * mp.cbrt(abs(x))
    unary = {
        "acos": (mp.acos, [uniform(-1, 1, n)]), "acosh": (mp.acosh, [uniform(1, 20, n), 1 + random_reals(rng, 1e-10, 1e300, n, False)]),
        "asin": (mp.asin, [uniform(-1, 1, n)]), "asinh": (mp.asinh, [uniform(-5, 5, n), huge()]),
        "atan": (mp.atan, [uniform(-5, 5, n), huge()]), "atanh": (mp.atanh, [uniform(-1, 1, n), random_reals(rng, 1e-10, .99, n)]),
        "cbrt": (cbrt, [huge()]), "cosh": (mp.cosh, [uniform(-709, 709, n), near_zero()]),
        "cosine": (mp.cos, [near_zero(), huge()]), "erf": (mp.erf, [uniform(-6, 6, n), near_zero()]),
        "exponential": (mp.exp, [uniform(-708, 709, n), near_zero()]),
        "exponential-minus-one": (mp.expm1, [uniform(-40, 709, n), near_zero()]),
        "log": (mp.log, [random_reals(rng, 1e-308, 1e308, n, False), uniform(.5, 2, n)]),
        "log-plus-one": (mp.log1p, [random_reals(rng, 1e-20, 1e30, n, False), uniform(-.99, 1, n)]),
        "logistic": (lambda x: 1 / (1 + mp.exp(-x)), [uniform(-708, 40, n), near_zero()]),
        "rsqrt": (lambda x: 1 / mp.sqrt(x), [random_reals(rng, 1e-300, 1e300, n, False)]),
        "sine": (mp.sin, [near_zero(), huge()]), "sinh": (mp.sinh, [uniform(-709, 709, n), near_zero()]),
        "sqrt": (mp.sqrt, [random_reals(rng, 1e-300, 1e300, n, False)]), "tan": (mp.tan, [near_zero(), huge()]),
        "tanh": (mp.tanh, [uniform(-20, 20, n), near_zero()]),
    }
    lines = []
    for name, (f, inputs) in unary.items():
        lines += [f"{name} {h64(x)} {h64(f(mp.mpf(float(x))))}" for x in np.concatenate(inputs)]
    for x, y in zip(random_reals(rng, 1e-3, 1e3, 2 * n, False), uniform(-80, 80, 2 * n)):
        lines.append(f"power {h64(x)} {h64(y)} {h64(mp.mpf(float(x)) ** mp.mpf(float(y)))}")
    for y, x in zip(random_reals(rng, 1e-5, 1e5, 2 * n), random_reals(rng, 1e-5, 1e5, 2 * n)):
        lines.append(f"atan2 {h64(y)} {h64(x)} {h64(mp.atan2(mp.mpf(float(y)), mp.mpf(float(x))))}")
    table("real_functions.txt", "OP X RESULT or OP X Y RESULT in f64, correctly rounded (mpmath)", lines)


def complex_functions(n=16):
    rng = np.random.default_rng(3)
    functions = {
        "acos": (np.arccos, mp.acos), "acosh": (np.arccosh, mp.acosh), "asin": (np.arcsin, mp.asin),
        "asinh": (np.arcsinh, mp.asinh), "atan": (np.arctan, mp.atan), "atanh": (np.arctanh, mp.atanh),
        "cosh": (np.cosh, mp.cosh), "cosine": (np.cos, mp.cos), "exponential": (np.exp, mp.exp),
        "exponential-minus-one": (None, mp.expm1), "log": (np.log, mp.log), "log-plus-one": (None, lambda z: mp.log(1 + z)),
        "logistic": (None, lambda z: 1 / (1 + mp.exp(-z))), "rsqrt": (None, lambda z: 1 / mp.sqrt(z)),
        "sign": (None, lambda z: z / abs(z)), "sine": (np.sin, mp.sin), "sinh": (np.sinh, mp.sinh), "sqrt": (np.sqrt, mp.sqrt),
        "tan": (np.tan, mp.tan), "tanh": (np.tanh, mp.tanh),
    }
    parts = [0.0, -0.0, 0.5, -2.0, 1e300, np.inf, -np.inf, np.nan]
    grid = np.array([complex(re, im) for re in parts for im in parts])
    lines = ["grid " + " ".join(f"{h64(z.real)},{h64(z.imag)}" for z in grid)]
    show = lambda v: "nan" if np.isnan(v) else h64(v)
    points = rng.uniform(-3, 3, n) + 1j * rng.uniform(-3, 3, n)
    points = np.concatenate([points, random_reals(rng, 1e-6, 1e6, n) + 1j * random_reals(rng, 1e-6, 1e6, n),
                             np.exp(1j * rng.uniform(-3, 3, n // 2)) * (1 + random_reals(rng, 1e-9, 1e-2, n // 2))])
    for name, (special, exact) in functions.items():
        if special:
            with np.errstate(all="ignore"):
                lines.append(f"special {name} " + " ".join(f"{show(w.real)},{show(w.imag)}" for w in special(grid)))
        for z in points:
            w = exact(mp.mpc(z.real, z.imag))
            if 1e-300 < abs(w) < 1e300:
                lines.append(f"point {name} {h64(z.real)},{h64(z.imag)} {h64(w.real)},{h64(w.imag)}")
    table("complex_functions.txt",
          "special OP: values at the grid (numpy on glibc); point OP Z W: correctly rounded (mpmath); parts in f64", lines)


def reduce_precision():
    rng = np.random.default_rng(4)
    types = {"f64": (np.float64, np.uint64), "f32": (np.float32, np.uint32), "bf16": (ml_dtypes.bfloat16, np.uint16),
             "f16": (np.float16, np.uint16)}
    special = np.array([0.0, -0.0, np.inf, -np.inf, 1, -1, 65504, 65520, 7e4, 1e-7, 6.1e-5, -6.1e-5, 1.0009765625,
                        1.00048828125, 1.00146484375, 3.3e38, -3.4e38, 448, 449, 480, 1.5, 1.75, 0.3, 2.0, 3.0, 0.99, 1e-38])
    values = np.concatenate([special, random_reals(rng, 1e-9, 1e9, 24)])
    lines = []
    for name, (ty, unsigned) in types.items():
        with np.errstate(all="ignore"):
            x = values.astype(ty)
        lines.append(f"inputs {name} " + " ".join(f"{v:x}" for v in x.view(unsigned)))
        for e, m in [(5, 10), (8, 7), (4, 3), (5, 2), (8, 0), (2, 1), (1, 5), (8, 23), (11, 52), (6, 30), (11, 3)]:
            y = np.asarray(jax.lax.reduce_precision(jnp.asarray(x), e, m))
            lines.append(f"{e} {m} {name} " + " ".join(f"{v:x}" for v in y.view(unsigned)))
    table("reduce_precision.txt", "inputs TYPE, then EXPONENT_BITS MANTISSA_BITS TYPE and the results' patterns (XLA:CPU)", lines)


def run_hlo(text, argument):
    module = xc.hlo.hlo_module_from_text(text)
    code = jx.mlir.hlo_to_stablehlo(module.as_serialized_hlo_module_proto())
    client = xc.make_cpu_client(asynchronous=False)
    device = client.local_devices()[0]
    executable = client.compile_and_load(code, jx.DeviceList((device,)), xc.CompileOptions())
    sharding = jx.SingleDeviceSharding(device)
    aval = jax.core.ShapedArray(argument.shape, argument.dtype)
    argument = xc.batched_device_put(aval, sharding, [argument], [device], True)
    results = executable.execute_sharded([argument]).disassemble_into_single_device_arrays()
    return [np.asarray(r[0]) for r in results]


def random_bits():
    raw = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
    narrow = [("u8", "10"), ("s8", "3,3"), ("u16", "7"), ("s16", "5"), ("f8e5m2", "6"), ("bf16", "6"), ("f16", "2,3")]
    cases = [("u32", ""), ("u32", "0"), ("u32", "6"), ("u32", "7"), ("u32", "3,4"), ("u32", "4,3"), ("u32", "3,5"),
             ("u32", "5,3"), ("u32", "3,3,2"), ("u32", "3,5,5"), ("s32", "5"), ("f32", "6"), ("u64", ""), ("u64", "5"),
             ("s64", "2,2"), ("f64", "3")] + narrow
    states = [("rng_philox", [1, 2, 3]), ("rng_philox", [0xDEADBEEFCAFEF00D, 2**64 - 1, 2**64 - 1]),
              ("rng_philox", [1, 2**64 - 1]), ("rng_default", [5, 6]), ("rng_three_fry", [1, 2]),
              ("rng_three_fry", [0xDEADBEEFCAFEF00D, 2**64 - 2])]
    lines = []
    for algorithm, state in states:
        for ty, dims in cases if state[0] < 5 else cases[2:6] + cases[12:14]:
            words = len(state)
            text = (f"HloModule m\nENTRY e {{ p = u64[{words}] parameter(0) "
                    f"ROOT r = (u64[{words}], {ty}[{dims}]) rng-bit-generator(p), algorithm={algorithm} }}")
            new_state, bits = run_hlo(text, np.array(state, np.uint64))
            bits = bits.reshape(-1).view(raw[bits.dtype.itemsize])
            lines.append(f"{algorithm} {','.join(map(str, state))} {ty}[{dims}] {','.join(map(str, new_state))} "
                         + ",".join(f"{b:x}" for b in bits))
    table("random_bits.txt", "ALGORITHM STATE SHAPE NEW_STATE PATTERNS (XLA:CPU)", lines)


if __name__ == "__main__":
    float_formats()
    real_functions()
    complex_functions()
    reduce_precision()
    random_bits()
