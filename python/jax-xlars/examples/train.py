"""Trains a small transformer to reverse sequences: plain JAX, on whichever platform JAX_PLATFORMS names."""

import math
from functools import partial

import jax
import jax.numpy as jnp

WORDS, LENGTH, WIDTH, HEADS, LAYERS = 16, 8, 64, 4, 2
STEPS, BATCH, RATE = 60, 64, 1e-3


def parameters(key):
    def dense(key, rows, columns):
        return jax.random.normal(key, (rows, columns)) / math.sqrt(rows)

    def layer(key):
        keys = jax.random.split(key, 4)
        sizes = [(WIDTH, 3 * WIDTH), (WIDTH, WIDTH), (WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH)]
        return dict(zip(["qkv", "out", "up", "down"], [dense(k, *size) for k, size in zip(keys, sizes)]))

    words, places, head, layers = jax.random.split(key, 4)
    return {
        "words": dense(words, WORDS, WIDTH),
        "places": dense(places, LENGTH, WIDTH),
        "head": dense(head, WIDTH, WORDS),
        "layers": jax.vmap(layer)(jax.random.split(layers, LAYERS)),
    }


def block(x, layer):
    q, k, v = jnp.split(jax.nn.standardize(x) @ layer["qkv"], 3, axis=-1)
    heads = x.shape[:-1] + (HEADS, WIDTH // HEADS)
    x += jax.nn.dot_product_attention(*(a.reshape(heads) for a in (q, k, v))).reshape(x.shape) @ layer["out"]
    return x + jax.nn.gelu(jax.nn.standardize(x) @ layer["up"]) @ layer["down"], None


def loss(params, tokens):
    x = params["words"][tokens] + params["places"]
    x, _ = jax.lax.scan(block, x, params["layers"])
    chances = jax.nn.log_softmax(x @ params["head"])
    return -jnp.take_along_axis(chances, tokens[:, ::-1, None], axis=-1).mean()


def adam(param, grad, mean, square, step):
    mean, square = 0.9 * mean + 0.1 * grad, 0.99 * square + 0.01 * grad**2
    change = (mean / (1 - 0.9**step)) / (jnp.sqrt(square / (1 - 0.99**step)) + 1e-8)
    return param - RATE * change, mean, square


@partial(jax.jit, donate_argnums=0)
def train_step(state, step, key):
    params, means, squares = state
    tokens = jax.random.randint(key, (BATCH, LENGTH), 0, WORDS)
    value, grads = jax.value_and_grad(loss)(params, tokens)
    new = jax.tree.map(partial(adam, step=step), params, grads, means, squares)
    return jax.tree.transpose(jax.tree.structure(params), jax.tree.structure((0, 0, 0)), new), value


def main():
    print(f"devices: {jax.devices()}, platform version: {jax.devices()[0].client.platform_version}")
    start, data = jax.random.split(jax.random.key(0))
    params = parameters(start)
    state = (params, jax.tree.map(jnp.zeros_like, params), jax.tree.map(jnp.zeros_like, params))
    for step in range(1, STEPS + 1):
        state, value = train_step(state, jnp.float32(step), jax.random.fold_in(data, step))
        if step % 10 == 0 or step == 1:
            print(f"step {step} loss {value:.6f}")


if __name__ == "__main__":
    main()
