"""Trains a small convolutional network on scikit-learn's handwritten digits, and writes it as digits.hlo: weights inside,
a picture of 8 by 8 pixels in, ten scores out. Also writes a few pictures that it was not trained on, as PGM files.

    pip install jax scikit-learn
    python train.py
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.datasets import load_digits

PICTURES = [1700, 1701, 1703, 1705, 1709]
HEADER = "// A classifier of handwritten digits with its weights, made by train.py.\n"


def scores(weights, pixels):
    """Ten scores of one picture of unsigned bytes: 0 is paper, 16 is ink."""
    c1, b1, c2, b2, d, b3 = weights
    x = pixels.astype(jnp.float32).reshape(1, 8, 8, 1) / 16

    def layer(x, kernel, bias):
        x = jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return jax.nn.relu(x + bias)

    x = layer(x, c1, b1)
    x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    x = layer(x, c2, b2)
    return x.reshape(-1) @ d + b3


def train(pixels, digits):
    shapes = [(3, 3, 1, 8), (8,), (3, 3, 8, 16), (16,), (256, 10), (10,)]
    random = np.random.default_rng(0)
    weights = [jnp.asarray(random.normal(0, 0.1, shape), jnp.float32) for shape in shapes]

    @jax.jit
    def step(weights, moments, pixels, digits):
        def loss(weights):
            logits = jax.nn.log_softmax(jax.vmap(lambda picture: scores(weights, picture))(pixels))
            return -jnp.mean(jnp.take_along_axis(logits, digits[:, None], 1))

        gradients = jax.grad(loss)(weights)
        moments = [0.9 * m + g for m, g in zip(moments, gradients)]
        return [w - 0.1 * m for w, m in zip(weights, moments)], moments

    moments = [jnp.zeros_like(w) for w in weights]
    for _ in range(400):
        batch = random.integers(0, len(pixels), 128)
        weights, moments = step(weights, moments, pixels[batch], digits[batch])
    # Three decimals are enough, and make a short file.
    return [np.round(np.asarray(w), 3) for w in weights]


def main():
    pixels, digits = load_digits(return_X_y=True)
    pixels = pixels.reshape(-1, 8, 8).astype(np.uint8)
    weights = train(pixels[:1500], digits[:1500])
    found = jax.vmap(lambda picture: scores(weights, picture))(pixels[1500:]).argmax(1)
    print(f"{np.mean(found == digits[1500:]):.1%} of the pictures that it was not trained on are right")
    model = jax.jit(functools.partial(scores, weights)).lower(pixels[0])
    text = model.compiler_ir("hlo").as_hlo_text(print_large_constants=True)
    with open("digits.hlo", "w") as file:
        file.write(HEADER + text)
    for number in PICTURES:
        rows = "\n".join(" ".join(f"{16 - p:2}" for p in row) for row in pixels[number])
        with open(f"pictures/{digits[number]}.pgm", "w") as file:
            file.write(f"P2\n# from the digits of scikit-learn\n8 8\n16\n{rows}\n")


main()
