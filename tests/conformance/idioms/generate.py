"""Idioms of machine learning as templates of HLO: generate.py writes NAME.hlo beside it. Needs jax 0.10.2.

Each function is traced with JAX for ROWS x COLS elements. The sizes become @rows, @cols and @last (COLS - 1), the
element type becomes @type. Templates NAME.narrow.hlo are traced in bfloat16, where JAX sums in float32.
"""

import pathlib

import jax
import jax.numpy as jnp

ROWS, COLS, DEPTH = 1013, 1019, 6


def x(dtype):
    return jax.ShapeDtypeStruct((ROWS, COLS), dtype)


def row(dtype):
    return jax.ShapeDtypeStruct((COLS,), dtype)


def layer_norm(x, scale, bias):
    mean = jnp.mean(x, axis=-1, keepdims=True)
    centered = x - mean
    variance = jnp.mean(centered * centered, axis=-1, keepdims=True)
    return centered * jax.lax.rsqrt(variance + 0.125) * scale + bias


def rms_norm(x, scale):
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 0.125) * scale


def batch_norm(x, scale):
    mean = jnp.mean(x, axis=0)
    variance = jnp.mean((x - mean) ** 2, axis=0)
    return (x - mean) * jax.lax.rsqrt(variance + 0.125) * scale, mean, variance


def dense_softmax(features, weights):
    return jax.nn.softmax(features @ weights)


def cross_entropy(logits, labels):
    picked = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None] % 3, axis=-1)
    return -jnp.mean(picked)


def attention(query, key, value):
    scores = (query * 0.03125) @ key.T
    mask = jax.lax.broadcasted_iota(jnp.int32, scores.shape, 0) + 1 >= jax.lax.broadcasted_iota(jnp.int32, scores.shape, 1)
    return jax.nn.softmax(jnp.where(mask, scores, -1e4)) @ value


def adam(weights, first, second, gradient):
    first = 0.875 * first + 0.125 * gradient
    second = 0.75 * second + 0.25 * gradient * gradient
    return weights - 0.0625 * first / (jnp.sqrt(second) + 0.125), first, second


def scan_of_softmax(x):
    return jax.lax.scan(lambda carry, _: (jax.nn.softmax(carry + x), jnp.max(carry, axis=-1)), x, None, length=3)


def squared(function):
    """The gradient of the sum of squares of all results."""

    def loss(*arguments):
        return sum(jnp.sum(jnp.square(leaf).astype(jnp.float32)) for leaf in jax.tree.leaves(function(*arguments)))

    return jax.grad(loss)


def idioms(dtype):
    features = [jax.ShapeDtypeStruct((ROWS, DEPTH), dtype), jax.ShapeDtypeStruct((DEPTH, COLS), dtype)]
    labels = jax.ShapeDtypeStruct((ROWS,), jnp.int32)
    heads = [features[0], jax.ShapeDtypeStruct((COLS, DEPTH), dtype), jax.ShapeDtypeStruct((COLS, DEPTH), dtype)]
    yield "softmax", jax.nn.softmax, [x(dtype)]
    yield "softmax_and_sum", lambda x: (jnp.exp(x), jnp.sum(jnp.exp(x), axis=-1)), [x(dtype)]
    yield "softmax_gradient", squared(jax.nn.softmax), [x(dtype)]
    yield "log_softmax", jax.nn.log_softmax, [x(dtype)]
    yield "log_softmax_gradient", squared(jax.nn.log_softmax), [x(dtype)]
    yield "logsumexp", lambda x: (jax.nn.logsumexp(x, axis=-1), x * 2), [x(dtype)]
    yield "layer_norm", layer_norm, [x(dtype), row(dtype), row(dtype)]
    yield "layer_norm_gradient", squared(layer_norm), [x(dtype), row(dtype), row(dtype)]
    yield "rms_norm", rms_norm, [x(dtype), row(dtype)]
    yield "rms_norm_gradient", squared(rms_norm), [x(dtype), row(dtype)]
    yield "batch_norm", batch_norm, [x(dtype), row(dtype)]
    yield "dense_softmax", dense_softmax, features
    yield "dense_softmax_gradient", squared(dense_softmax), features
    yield "cross_entropy", cross_entropy, [x(dtype), labels]
    yield "cross_entropy_gradient", jax.grad(cross_entropy), [x(dtype), labels]
    yield "attention", attention, heads
    yield "attention_gradient", squared(attention), heads
    yield "argmax", lambda x: (jnp.argmax(x, axis=-1), jnp.max(x, axis=-1)), [x(dtype)]
    yield "one_hot", lambda x, l: x * jax.nn.one_hot(l % 3, COLS, dtype=x.dtype), [x(dtype), labels]
    yield "dropout", lambda x, keep: jnp.where(keep > 0, x / 0.75, 0) + jnp.mean(x, axis=-1, keepdims=True), [x(dtype), x(dtype)]
    yield "cumulative_sum", lambda x: jnp.cumsum(x, axis=-1), [x(dtype)]
    yield "top_k", lambda x: jax.lax.top_k(x, 1), [x(dtype)]
    yield "embedding", lambda table, l: jax.nn.softmax(table[l % 1]), [x(dtype), labels]
    yield "scatter_add", lambda x, l: x.at[l % 1].add(x), [x(dtype), labels]
    yield "adam", adam, [x(dtype)] * 4
    yield "momentum", lambda w, m, g: (w - 0.125 * (0.875 * m + g), 0.875 * m + g), [x(dtype)] * 3
    yield "scan_of_softmax", scan_of_softmax, [x(dtype)]


def write(name, function, arguments, spelling):
    module = jax.jit(function).lower(*arguments).compiler_ir("hlo")
    text = module.as_hlo_text(print_large_constants=True)
    header, body = text.split("\n", 1)
    body = body.replace(str(COLS - 1), "@last").replace(str(ROWS), "@rows").replace(str(COLS), "@cols")
    body = body.replace(spelling, "@type")
    pathlib.Path(__file__).with_name(f"{name}.hlo").write_text(f"HloModule {name.replace('.', '_')}\n{body.rstrip()}\n")


for name, function, arguments in idioms(jnp.float32):
    write(name, function, arguments, "f32")
for name, function, arguments in idioms(jnp.bfloat16):
    write(f"{name}.narrow", function, arguments, "bf16")
