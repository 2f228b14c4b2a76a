"""Elementwise operations."""

import functools
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .inputs import COMPLEX, FLOATS, INTEGERS, SHORT, numbers


def elementwise():
    unary = {
        "abs": (FLOATS + INTEGERS[::2] + COMPLEX, lax.abs),
        "neg": (FLOATS + INTEGERS + COMPLEX, lax.neg),
        "sign": (FLOATS + INTEGERS + COMPLEX, lax.sign),
        "not": (INTEGERS + ["bool"], lax.bitwise_not),
        "integer_pow": (FLOATS + INTEGERS + COMPLEX, lambda x: lax.integer_pow(x, 5)),
        "integer_pow_negative": (FLOATS, lambda x: lax.integer_pow(x, -3)),
        "population_count": (INTEGERS, lax.population_count),
        "clz": (INTEGERS, lax.clz),
        "square": (FLOATS + INTEGERS + COMPLEX, lax.square),
        "is_finite": (FLOATS, lax.is_finite),
        "round_away": (FLOATS, lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO)),
        "round_even": (FLOATS, lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)),
        "real": (COMPLEX, lax.real),
        "imag": (COMPLEX, lax.imag),
        "conj": (COMPLEX, lax.conj),
        "reduce_precision": (FLOATS, lambda x: lax.reduce_precision(x, 5, 3)),
        "reciprocal": (FLOATS, lax.reciprocal),
    }
    for name in [
        "acos",
        "acosh",
        "asin",
        "asinh",
        "atan",
        "atanh",
        "cbrt",
        "ceil",
        "cos",
        "cosh",
        "exp",
        "exp2",
        "expm1",
        "floor",
        "log",
        "log1p",
        "logistic",
        "rsqrt",
        "sin",
        "sinh",
        "sqrt",
        "tan",
        "tanh",
    ]:
        types = FLOATS if name in ("cbrt", "ceil", "floor") else FLOATS + COMPLEX
        unary[name] = (types, getattr(lax, name))
    for name in ["bessel_i0e", "bessel_i1e", "digamma", "erf", "erf_inv", "erfc", "lgamma"]:
        unary[name] = (FLOATS, getattr(lax, name))
    unary["copy"] = (["float32", "int32"], jnp.copy)
    for accuracy in ["highest", "tolerance"]:
        mode = lax.AccuracyMode.HIGHEST if accuracy == "highest" else lax.Tolerance(atol=1e-3, rtol=0, ulps=2)
        unary[f"exp_{accuracy}"] = (["float32"], functools.partial(lax.exp, accuracy=mode))
    for name, (types, function) in unary.items():
        for dtype in types:
            yield f"{name}_{SHORT[dtype]}", function, [numbers(dtype, 3, 5)]
    binary = {name: FLOATS + INTEGERS + COMPLEX for name in ["add", "sub", "mul", "div", "eq", "ne"]}
    binary |= {name: FLOATS + INTEGERS for name in ["max", "min", "rem", "ge", "gt", "le", "lt"]}
    binary |= {name: INTEGERS + ["bool"] for name in ["bitwise_and", "bitwise_or", "bitwise_xor"]}
    binary |= {name: INTEGERS for name in ["shift_left", "shift_right_arithmetic", "shift_right_logical"]}
    binary |= {
        "pow": FLOATS + COMPLEX,
        "atan2": FLOATS,
        "nextafter": FLOATS,
        "complex": FLOATS[:2],
        "igamma": FLOATS,
        "igammac": FLOATS,
        "zeta": FLOATS[:2],
        "polygamma": FLOATS[:2],
        "mulhi": ["int32", "uint32"],
    }
    for name, types in binary.items():
        for dtype in types:
            yield f"{name}_{SHORT[dtype]}", getattr(lax, name), [
                numbers(dtype, 4),
                numbers(dtype, 4, low=0.2, high=2.5),
            ]
    x, y = numbers("float32", 4), numbers("int32", 4)
    yield "pow_integer_exponent", lax.pow, [x, y]
    for comparison in ["eq_to", "le_to", "lt_to"]:
        yield comparison, getattr(lax, f"_{comparison}", None) or getattr(jax._src.lax.lax, f"{comparison}_p").bind, [
            x,
            x,
        ]
    yield "clamp", lambda x: lax.clamp(np.float32(0.2), x, np.float32(0.7)), [x]
    yield "clamp_arrays", lax.clamp, [x * 0.1, x, x * 2]
    yield "select_n", lax.select_n, [x > 0.4, x, -x]
    yield "select_n_of_three", lax.select_n, [y % 3, x, -x, 2 * x]
    yield "regularized_incomplete_beta", jax.lax.betainc, [x, x + 1, x]
    yield "igamma_grad_a", lax.igamma_grad_a, [x, x + 1]
    yield "random_gamma_grad", lax.random_gamma_grad, [x, x + 1]
    for old, new in [
        ("float32", "int8"),
        ("float32", "bool"),
        ("int32", "bfloat16"),
        ("bool", "float32"),
        ("float32", "complex64"),
        ("float32", "float8_e4m3fn"),
        ("float32", "int4"),
        ("uint8", "float16"),
    ]:
        yield f"convert_{old}_{new}", functools.partial(lax.convert_element_type, new_dtype=jnp.dtype(new)), [
            numbers(old, 6)
        ]
    yield "bitcast", lambda x: lax.bitcast_convert_type(x, jnp.uint32), [x]
    yield "bitcast_narrow", lambda x: lax.bitcast_convert_type(x, jnp.uint8), [x]
    yield "chain_on_transpose", lambda x: jnp.tanh(x.T) * x.T + lax.select(x.T > 0.3, x.T, -x.T), [
        numbers("float32", 3, 5)
    ]
