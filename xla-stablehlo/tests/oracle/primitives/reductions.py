"""Reductions, windows, sorts, scatters."""

import functools
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .inputs import FLOATS, INTEGERS, SHORT, numbers


def reductions():
    for dtype in FLOATS[:3] + INTEGERS[:2] + ["complex64"]:
        m = numbers(dtype, 4, 6)
        yield f"reduce_sum_{SHORT[dtype]}", lambda x: jnp.sum(x, axis=0), [m]
        yield f"reduce_prod_{SHORT[dtype]}", lambda x: jnp.prod(x), [m]
        yield f"cumsum_{SHORT[dtype]}", lambda x: lax.cumsum(x, 1), [m]
        yield f"cumprod_{SHORT[dtype]}", lambda x: lax.cumprod(x, 0, reverse=True), [m]
        if dtype != "complex64":
            yield f"reduce_max_{SHORT[dtype]}", lambda x: jnp.max(x, axis=1), [m]
            yield f"reduce_min_{SHORT[dtype]}", lambda x: jnp.min(x, axis=1), [m]
            yield f"argmax_{SHORT[dtype]}", lambda x: jnp.argmax(x, axis=1), [m]
            yield f"argmin_{SHORT[dtype]}", lambda x: lax.argmin(x, 0, jnp.int32), [m]
            yield f"cummax_{SHORT[dtype]}", lambda x: lax.cummax(x, 1), [m]
            yield f"cummin_{SHORT[dtype]}", lambda x: lax.cummin(x, 1), [m]
            yield f"sort_{SHORT[dtype]}", lambda x: lax.sort(x, dimension=0), [m]
            yield f"top_k_{SHORT[dtype]}", lambda x: lax.top_k(x, 3), [m]
    m, b, i = numbers("float32", 4, 6), numbers("bool", 4, 6), numbers("int32", 4, 6)
    yield "cumlogsumexp", lambda x: lax.cumlogsumexp(x, 1), [m]
    yield "reduce_and", lambda x: jnp.all(x, axis=0), [b]
    yield "reduce_or", lambda x: jnp.any(x), [b]
    yield "reduce_and_int", lambda x: lax.reduce_and_p.bind(x, axes=(0,)), [i]
    yield "reduce_xor", lambda x: lax.reduce_xor_p.bind(x, axes=(0,)), [i]
    yield "reduce_own", lambda x: lax.reduce(x, jnp.float32(0), lambda a, b: a * b + 1, (0,)), [m]
    yield "reduce_of_two", lambda x, i: lax.reduce(
        (x, i), (jnp.float32(0), jnp.int32(0)), lambda a, b: (a[0] + b[0], jnp.maximum(a[1], b[1])), (1,)
    ), [m, i]
    for name in ["max", "min", "sum"]:
        function = getattr(jax._src.lax.windowed_reductions, f"_reduce_window_{name}")
        yield f"reduce_window_{name}", functools.partial(
            lambda x, f: f(
                x,
                window_dimensions=(2, 2),
                window_strides=(1, 2),
                padding=((0, 1), (1, 0)),
                base_dilation=(1, 1),
                window_dilation=(1, 2),
            ),
            f=function,
        ), [m]
    yield "reduce_window", lambda x: lax.reduce_window(
        x, np.float32(1), lambda a, b: a * b + a, (2, 3), (1, 1), "VALID"
    ), [m]
    yield "max_pool_gradient", jax.grad(
        lambda x: jnp.sum(lax.reduce_window(x, -np.inf, lax.max, (2, 2), (2, 2), "VALID"))
    ), [m]
    yield "select_and_gather_add", lambda x: jax.jvp(
        lambda x: lax.reduce_window(x, -np.inf, lax.max, (2, 2), (2, 2), "VALID"), (x,), (x,)
    ), [m]
    yield "select_and_scatter", lambda x, s: jax._src.lax.windowed_reductions._select_and_scatter(
        x, lax.ge, (2, 2), (2, 2), ((0, 0), (0, 0)), s, np.float32(0), lambda a, b: a * b
    ), [m, numbers("float32", 2, 3)]
    yield "sort_two_keys", lambda x, i: lax.sort((i, x), dimension=1, num_keys=2), [m, i]
    yield "sort_unstable", lambda x: lax.sort(x, is_stable=False), [m]
    yield "argsort", lambda x: jnp.argsort(x, axis=0), [m]
    yield "approx_max_k", lambda x: lax.approx_max_k(x, 2), [m]
    yield "logsumexp", lambda x: jax.nn.logsumexp(x, axis=1), [m]
    yield "softmax_gradient", jax.grad(lambda x: jnp.sum(jax.nn.softmax(x) ** 2)), [m]
    yield "variance", lambda x: jnp.var(x, axis=0), [m]


def scatters():
    m, i = numbers("float32", 6, 4), jnp.array([4, 1, 9])
    for mode in ["clip", "drop", "promise_in_bounds"]:
        for name in ["set", "add", "mul", "min", "max", "subtract"]:
            yield f"scatter_{name}_{mode}", functools.partial(
                lambda x, i, name, mode: getattr(x.at[i], name)(x[:3] * 2, mode=mode), name=name, mode=mode
            ), [m, i]
    yield "scatter_apply", lambda x, i: x.at[i].apply(jnp.tanh), [m, i]
    yield "scatter_int", lambda x, i: x.at[i].add(1), [numbers("int32", 6), i]
    yield "scatter_batched", jax.vmap(lambda x, i: x.at[i].add(2.0)), [m, jnp.array([[0, 2]] * 6)]
    yield "gather_gradient", jax.grad(lambda x, i: jnp.sum(x[i] ** 2)), [m, i]
    yield "segment_sum", lambda x, i: jax.ops.segment_sum(x, i, 3), [m, jnp.array([0, 0, 1, 2, 2, 2])]
