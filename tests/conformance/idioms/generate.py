"""Idioms of machine learning as templates of HLO: generate.py writes NAME.hlo beside it. Needs jax 0.10.2.

Each function is traced with JAX for ROWS x COLS elements. The sizes become @rows, @cols, @last (COLS - 1), @next
(COLS + 1), @after (COLS + 2), @double (2 COLS) and @half (COLS / 2, rounded up), the element type becomes @type. Templates NAME.narrow.hlo are traced in
bfloat16, where JAX sums in float32, templates NAME.integer.hlo in int16.
"""

import pathlib
import re

import jax
import jax.numpy as jnp
import numpy as np

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
    second = 0.75 * jnp.abs(second) + 0.25 * gradient * gradient
    return weights - 0.0625 * first / (jnp.sqrt(second) + 0.125), first, second


def group_norm(x, scale):
    groups = x.reshape(ROWS, 2, COLS)
    mean = jnp.mean(groups, axis=-1, keepdims=True)
    variance = jnp.mean(jnp.square(groups - mean), axis=-1, keepdims=True)
    return ((groups - mean) * jax.lax.rsqrt(variance + 0.125)).reshape(x.shape) * scale


def padded_attention(query, key, value, keep):
    scores = jnp.where(keep > 0, (query * 0.03125) @ key.T, -1e4)
    weights = jax.nn.softmax(scores)
    return weights @ value, weights, jnp.max(weights, axis=-1)


def pooled(function, initial, window, stride):
    return lambda x: jax.lax.reduce_window(x, np.array(initial, x.dtype), function, (1, window), (1, stride), "SAME")


max_pool = pooled(jax.lax.max, -jnp.inf, 2, 2)
wide_max_pool = pooled(jax.lax.max, -jnp.inf, 3, 1)
average_pool = pooled(jax.lax.add, 0, 3, 1)


def smoothed_cross_entropy(logits, labels):
    targets = 0.875 * jax.nn.one_hot(labels % COLS, COLS, dtype=logits.dtype) + 0.125 / 8
    losses = -jnp.sum(targets * jax.nn.log_softmax(logits), axis=-1)
    return jnp.mean(losses), losses, jnp.mean(jnp.argmax(logits, axis=-1) == labels % COLS)


def convolution_softmax(x, kernel):
    dims = jax.lax.conv_dimension_numbers((ROWS, 1, COLS), (1, 1, 3), ("NCH", "OIH", "NCH"))
    y = jax.lax.conv_general_dilated(x[:, None, :], kernel, (1,), "SAME", dimension_numbers=dims)
    return jax.nn.softmax(y[:, 0, :])


def adam_of_gradient(weights, first, second, x, step):
    """A step for the gradient of a loss, with decay and correction of the bias."""
    gradient = jax.grad(lambda w: jnp.mean(jnp.square(jax.nn.log_softmax(w * x)).astype(jnp.float32)))(weights)
    first = 0.875 * first + 0.125 * gradient
    second = 0.75 * jnp.abs(second) + 0.25 * gradient * gradient
    count = (jnp.abs(step) + 1).astype(weights.dtype)
    corrected = first / (1 - jnp.array(0.875, weights.dtype) ** count)
    return weights - 0.0625 * (corrected / (jnp.sqrt(second) + 0.125) + 0.125 * weights), first, second


def clipped(weights, gradient):
    norm = jnp.sqrt(jnp.sum(jnp.square(gradient).astype(jnp.float32)))
    return weights - (gradient * jnp.minimum(1, 1 / norm)).astype(weights.dtype), norm


def scan_over_rows(x, scale):
    """A recurrence of which each step normalises."""

    def step(state, row):
        state = jnp.tanh(state * 0.25 + row)
        return state * jax.lax.rsqrt(jnp.mean(state * state) + 0.125) * scale, jnp.max(state)

    return jax.lax.scan(step, jnp.zeros(COLS, x.dtype), x)


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
    yield "scan_over_rows", scan_over_rows, [x(dtype), row(dtype)]
    yield "logsumexp_gradient", jax.grad(lambda x: jnp.sum(jax.nn.logsumexp(x, axis=-1).astype(jnp.float32))), [x(dtype)]
    yield "batch_norm_gradient", squared(lambda x, s: batch_norm(x, s)[0]), [x(dtype), row(dtype)]
    double = jax.ShapeDtypeStruct((ROWS, 2 * COLS), dtype), jax.ShapeDtypeStruct((2 * COLS,), dtype)
    yield "group_norm", group_norm, list(double)
    yield "group_norm_gradient", squared(group_norm), list(double)
    yield "padded_attention", padded_attention, [*heads, jax.ShapeDtypeStruct((COLS,), jnp.int32)]
    yield "max_pool", max_pool, [x(dtype)]
    yield "max_pool_gradient", jax.grad(lambda x, y: jnp.sum((max_pool(x) * y).astype(jnp.float32))), [x(dtype), jax.ShapeDtypeStruct((ROWS, -(-COLS // 2)), dtype)]
    yield "max_pool_softmax", lambda x: jax.nn.softmax(wide_max_pool(x)), [x(dtype)]
    yield "average_pool", lambda x: average_pool(x) / 3 + x, [x(dtype)]
    yield "average_pool_gradient", squared(average_pool), [x(dtype)]
    yield "smoothed_cross_entropy", smoothed_cross_entropy, [x(dtype), labels]
    yield "smoothed_cross_entropy_gradient", jax.grad(lambda x, l: smoothed_cross_entropy(x, l)[0]), [x(dtype), labels]
    yield "convolution_softmax", convolution_softmax, [x(dtype), jax.ShapeDtypeStruct((1, 1, 3), dtype)]
    yield "sort_softmax", lambda x: (jax.nn.softmax(jnp.sort(x)), x[:, :1] + 1), [x(dtype)]
    yield "argsort", lambda x: (jnp.argsort(x), jnp.sum(x, axis=-1)), [x(dtype)]
    yield "top_k_softmax", lambda x: jax.nn.softmax(jax.lax.top_k(x, COLS)[0]), [x(dtype)]
    yield "cumulative_sum_gradient", squared(lambda x: jnp.cumsum(x, axis=-1)), [x(dtype)]
    yield "cumulative_maximum", lambda x: (jax.lax.cummax(x, axis=1), jnp.exp(x)), [x(dtype)]
    yield "gather_rows", lambda table, l: (jax.nn.softmax(table[l % ROWS]), jnp.sum(table, axis=-1)), [x(dtype), labels]
    yield "gather_rows_gradient", squared(lambda table, l: jax.nn.softmax(table[l % ROWS])), [x(dtype), labels]
    yield "scatter_add_rows", lambda x, l: (x.at[l % ROWS].add(x * 0.5), jnp.max(x, axis=-1)), [x(dtype), labels]
    yield "gelu", lambda x: (jax.nn.gelu(x), jax.nn.silu(x), jnp.mean(x, axis=-1)), [x(dtype)]
    yield "gelu_gradient", jax.grad(lambda x: jnp.sum((jax.nn.gelu(x, approximate=False) * jax.nn.sigmoid(x)).astype(jnp.float32))), [x(dtype)]
    yield "adam_of_gradient", adam_of_gradient, [x(dtype)] * 4 + [jax.ShapeDtypeStruct((), jnp.int32)]
    yield "clipped", clipped, [x(dtype)] * 2
    yield "residual_layer_norm", lambda x, y, s, b: (layer_norm(x + y, s, b), x + y), [x(dtype), x(dtype), row(dtype), row(dtype)]
    yield "column_softmax", lambda x: (jax.nn.softmax(x, axis=0), jnp.sum(x, axis=0)), [x(dtype)]


def integer_idioms(dtype):
    labels = jax.ShapeDtypeStruct((ROWS,), jnp.int32)
    yield "sums", lambda x: (x * 3, jnp.sum(x * 3, axis=-1, dtype=dtype), jnp.max(x)), [x(dtype)]
    yield "cumulative_sum", lambda x: (jnp.cumsum(x, axis=-1, dtype=dtype), x + 1), [x(dtype)]
    yield "one_hot", lambda x, l: (x * jax.nn.one_hot(l % COLS, COLS, dtype=dtype), x - 1), [x(dtype), labels]
    yield "sort", lambda x: (jnp.sort(x), jnp.sum(x, axis=0, dtype=dtype)), [x(dtype)]
    yield "scatter_add_rows", lambda x, l: x.at[l % ROWS].add(x), [x(dtype), labels]
    yield "top_k", lambda x: (*jax.lax.top_k(x, 1), x * 2), [x(dtype)]


def write(name, function, arguments, spelling):
    module = jax.jit(function).lower(*arguments).compiler_ir("hlo")
    text = module.as_hlo_text(print_large_constants=True)
    header, body = text.split("\n", 1)
    sizes = {ROWS: "@rows", COLS: "@cols", 2 * COLS: "@double", -(-COLS // 2): "@half"}
    sizes |= {COLS - 1: "@last", COLS + 1: "@next", COLS + 2: "@after"}
    for size, token in sizes.items():
        body = re.sub(rf"(?<![\d.]){size}(?![\d.])", token, body)
    body = body.replace(spelling, "@type")
    pathlib.Path(__file__).with_name(f"{name}.hlo").write_text(f"HloModule {name.replace('.', '_')}\n{body.rstrip()}\n")


for name, function, arguments in idioms(jnp.float32):
    write(name, function, arguments, "f32")
for name, function, arguments in idioms(jnp.bfloat16):
    write(f"{name}.narrow", function, arguments, "bf16")
for name, function, arguments in integer_idioms(jnp.int16):
    write(f"{name}.integer", function, arguments, "s16")
