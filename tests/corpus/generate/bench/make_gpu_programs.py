"""Writes gpu_programs/*.hlo and gpu_programs/manifest.json: benchmark programs of a GPU's size, in f32 and bf16.

Usage: python make_gpu_programs.py [--small] [--out FOLDER]
Needs jax 0.10.2. --small makes the same programs of small arrays, to compare their results with another platform's.
"""
import argparse
import os

import jax
import jax.numpy as jnp
from jax import lax

from benchlib import C, I, N, P, U, W, export, write_manifest
from make_programs import attention, block_params, cbn, causal_block, ln, resnet18_params

HERE = os.path.dirname(os.path.abspath(__file__))
# Values of larger arrays repeat after so many, a prime: gigabytes of them are copies then.
PERIOD = 4194301

# Sizes of both forms: whole, and small.
MATMUL = {False: 8192, True: 96}
# Batch, heads, length, width of a head.
ATTENTION = {False: {"2048": (4, 16, 2048, 128), "8192": (1, 16, 8192, 128)},
             True: {"2048": (2, 3, 40, 16), "8192": (1, 2, 72, 16)}}
# Width, heads, sequence.
LAYER = {False: (4096, 32, 2048), True: (32, 4, 24)}
# Batch, side of the image, channels of the first stage.
CONV = {False: (64, 224, 64), True: (2, 64, 8)}
SORTED = {False: 1 << 26, True: 3000}
BINNED = {False: 1 << 24, True: 5000}
# Rows and columns of f32, of which bf16 has twice as many rows.
MATRIX = {False: (16384, 16384), True: (48, 80)}


def tiled(p):
    """A parameter whose values repeat if it is large."""
    size = 1
    for extent in p.shape:
        size *= extent
    gen = {"kind": "tiled", "period": PERIOD, "of": p.gen} if size > PERIOD else p.gen
    return P(p.shape, gen, p.dtype)


def of_type(tree, dtype):
    """Parameters with their floats of that type."""
    change = lambda p: tiled(P(p.shape, p.gen, dtype if p.dtype == "f32" else p.dtype))
    return jax.tree_util.tree_map(change, tree, is_leaf=lambda x: isinstance(x, P))


def masked_attention(q, k, v):
    """Causal attention with logits and softmax in f32, as models in bf16 have it."""
    logits = jnp.einsum("bhqd,bhkd->bhqk", q, k, preferred_element_type=jnp.float32) * q.shape[-1] ** -0.5
    length = q.shape[2]
    mask = lax.broadcasted_iota(jnp.int32, (length, length), 0) >= lax.broadcasted_iota(jnp.int32, (length, length), 1)
    weights = jax.nn.softmax(jnp.where(mask, logits, -1e9), axis=-1).astype(q.dtype)
    return jnp.einsum("bhqk,bhkd->bhqd", weights, v)


def attention_backward(q, k, v, gradient):
    return jax.vjp(masked_attention, q, k, v)[1](gradient)


def layer_forward(heads):
    return lambda p, x: causal_block(p, x, heads)


def layer_backward(heads):
    return lambda p, x, gradient: jax.vjp(lambda p, x: causal_block(p, x, heads), p, x)[1](gradient)


def layer_decode(heads):
    """One token more, whose keys and values go into the cache."""

    def decode(p, cache, x, position):
        width = x.shape[-1] // heads
        qkv = (ln(x, **p["ln1"]) @ p["qkv"] + p["qkvb"]).reshape(3, heads, 1, width)
        k = lax.dynamic_update_slice(cache["k"], qkv[1], (0, position, 0))
        v = lax.dynamic_update_slice(cache["v"], qkv[2], (0, position, 0))
        logits = jnp.einsum("hqd,hkd->hqk", qkv[0], k, preferred_element_type=jnp.float32) * width ** -0.5
        logits = jnp.where(jnp.arange(k.shape[1]) <= position, logits, -1e9)
        weights = jax.nn.softmax(logits, axis=-1).astype(x.dtype)
        x = x + jnp.einsum("hqk,hkd->hqd", weights, v).reshape(x.shape) @ p["out"] + p["outb"]
        h = jax.nn.gelu(ln(x, **p["ln2"]) @ p["up"] + p["upb"], approximate=True)
        return x + h @ p["down"] + p["downb"], {"k": k, "v": v}

    return decode


def resnet18(p, x):
    x = jax.nn.relu(cbn(p["stem"], x, 2))
    lowest = jnp.array(-jnp.inf, x.dtype)
    x = lax.reduce_window(x, lowest, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
    for block in p["blocks"]:
        stride = 2 if "proj" in block else 1
        y = jax.nn.relu(cbn(block["c1"], x, stride))
        y = cbn(block["c2"], y)
        skip = cbn(block["proj"], x, stride) if "proj" in block else x
        x = jax.nn.relu(y * 0.5 + skip)
    return jnp.mean(x, axis=(1, 2)) @ p["fc"] + p["fcb"]


def narrow(params, channels):
    """Parameters of the network with fewer channels: 64 become that many."""
    shrink = lambda extent: extent * channels // 64 if extent % 64 == 0 else extent
    change = lambda p: P(tuple(map(shrink, p.shape)), p.gen, p.dtype)
    return jax.tree_util.tree_map(change, params, is_leaf=lambda x: isinstance(x, P))


def matmuls(dtype, small):
    n = MATMUL[small]
    yield "matmul_8192", "matmul", "[8192,8192] x [8192,8192]", jnp.matmul, [W(n, n, n), U(n, n)], {}


def attentions(dtype, small):
    for length, shape in ATTENTION[small].items():
        text = "causal attention of length %s, batch %d, %d heads of %d" % (length, *shape[:2], shape[3])
        yield "attention_" + length, "attention", text, masked_attention, [N(*shape) for _ in range(3)], {}
        if length == "2048":
            args = [N(*shape) for _ in range(4)]
            yield "attention_backward_2048", "attention", "gradients of " + text, attention_backward, args, {}


def layers(dtype, small):
    d, heads, length = LAYER[small]
    params, x = block_params(d, 4 * d), N(1, length, d)
    text = "pre-norm causal transformer layer, width %d, %d heads, " % (d, heads)
    yield "layer_forward", "model", text + "sequence %d" % length, layer_forward(heads), [params, x], {}
    yield ("layer_backward", "model", text + "gradients, sequence %d" % length, layer_backward(heads),
           [params, x, N(1, length, d)], {})
    cache = {name: N(heads, length, d // heads) for name in ("k", "v")}
    yield ("layer_decode", "model", text + "one token after up to %d" % length, layer_decode(heads),
           [params, cache, N(1, d), C(value=length * 3 // 4, dtype="s32")], {})


def convolutions(dtype, small):
    batch, side, channels = CONV[small]
    args = [narrow(resnet18_params(), channels), N(batch, side, side, 3)]
    yield "resnet18_b64", "model", "ResNet-18 shaped forward pass, batch 64, 224x224", resnet18, args, {}


def arrays(dtype, small):
    """Reductions and transposes of a gigabyte, a sort, running totals, and sums in bins."""
    rows, columns = MATRIX[small]
    rows *= 2 if dtype == "bf16" else 1
    size, matrix = "%dx%d" % (rows, columns), [U(rows, columns)]
    wide = lambda x, axis: jnp.sum(x, axis=axis, dtype=jnp.float32).astype(x.dtype)
    yield "reduce_rows_1g", "reduce", "sums of rows of " + size, lambda x: wide(x, 1), matrix, {}
    yield "reduce_cols_1g", "reduce", "sums of columns of " + size, lambda x: wide(x, 0), matrix, {}
    yield "reduce_full_1g", "reduce", "sum of all of " + size, lambda x: wide(x, None), matrix, {}
    # With an addend in the other order, no layout of the result makes a copy of the transpose needless.
    yield ("transpose_1g", "layout", "transpose of %s, and an addend" % size, lambda x, y: x.T + y,
           [U(rows, columns), U(columns, rows)], {"flops": rows * columns})
    yield "sort_64m", "sort", "sort of 64M", lax.sort, [U(SORTED[small])], {"flops": None}
    # Totals of many have few digits left in bf16.
    if dtype == "f32":
        yield "cumsum_64m", "reduce", "running totals of 64M", jnp.cumsum, [U(SORTED[small])], {"flops": SORTED[small]}
        yield ("bincount_16m", "index", "sums of 16M weights in 256 bins",
               lambda bins, weights: jnp.bincount(bins, weights=weights, length=256),
               [I(BINNED[small], lo=0, hi=256), U(BINNED[small])], {"flops": BINNED[small]})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--out", default=os.path.join(HERE, "gpu_programs"))
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    entries = []
    for family in (matmuls, attentions, layers, convolutions, arrays):
        for dtype in ("f32", "bf16"):
            for name, category, text, function, args, more in family(dtype, options.small):
                tolerance = 1e-3 if dtype == "f32" else 3e-2
                entry = export("%s_%s" % (name, dtype), function, of_type(args, dtype), category, "%s, %s" % (text, dtype),
                               options.out, flop_dtype=dtype, tol=tolerance, **more)
                entries.append(entry)
                print("%-28s %5d instr  flops %s  bytes %d" % (
                    entry["name"], entry["hlo_instructions"], entry["flops"], entry["min_bytes"]), flush=True)
    write_manifest(os.path.join(options.out, "manifest.json"), "benchmark programs of a GPU's size", entries)


if __name__ == "__main__":
    main()
