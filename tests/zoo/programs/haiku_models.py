"""Haiku: transformed functions."""

import haiku as hk
import jax
import jax.numpy as jnp


def transformed(function, *inputs):
    """`make` of a Haiku function: parameters and state are arguments."""

    def make(random):
        values = [value(random) for value in inputs]
        model = hk.transform_with_state(function)
        parameters, state = random.like(jax.eval_shape(model.init, jax.random.PRNGKey(7), *values))
        return lambda ps, *values: model.apply(ps[0], ps[1], jax.random.PRNGKey(9), *values), (parameters, state), values

    return make


def rows(*shape):
    return lambda random: random.normal(*shape)


def residual(classes, x, training):
    training = training or hk.running_init()
    x = jax.nn.relu(hk.BatchNorm(True, True, 0.9)(hk.Conv2D(7, 3, 2)(x), training))
    y = hk.BatchNorm(True, True, 0.9)(hk.Conv2D(7, 3)(x), training)
    return jax.nn.softmax(hk.Linear(classes)(jnp.mean(jax.nn.relu(x + y), (1, 2))))


def register(zoo):
    for batch, classes in [(1, 7), (1, 100), (2, 31), (3, 1000), (1, 1001)]:
        mlp = lambda x, c=classes: jax.nn.log_softmax(hk.nets.MLP([17, c])(x))
        zoo.model(f"mlp.b{batch}_c{classes}", transformed(mlp, rows(batch, 10)), batch)
    for batch, classes, training in [(1, 10, False), (2, 17, True), (3, 97, True)]:
        build = lambda x, c=classes, t=training: residual(c, x, t)
        zoo.model(f"resnet.b{batch}_c{classes}", transformed(build, rows(batch, 11, 13, 3)), batch)
    for cell in (hk.LSTM, hk.GRU, hk.VanillaRNN):
        for batch, length in [(1, 5), (3, 33)]:
            def unrolled(x, cell=cell, batch=batch):
                core = cell(9)
                return hk.dynamic_unroll(core, x, core.initial_state(batch))[0]
            zoo.model(f"{cell.__name__.lower()}.b{batch}_t{length}", transformed(unrolled, rows(length, batch, 6)), batch)
    for batch, length in [(1, 1), (2, 5), (3, 33)]:
        def attend(x):
            x = hk.LayerNorm(-1, True, True)(x)
            return hk.MultiHeadAttention(2, 5, w_init=hk.initializers.VarianceScaling(1.0))(x, x, x)
        zoo.model(f"attention.b{batch}_t{length}", transformed(attend, rows(batch, length, 10)), batch)
    for batch in (1, 3):
        quantized = lambda x: {k: v for k, v in hk.nets.VectorQuantizer(6, 31, 0.25)(x, True).items() if k in ("quantize", "loss")}
        zoo.model(f"vector_quantizer.b{batch}", transformed(quantized, rows(batch, 5, 6)), batch)
        dropout = lambda x: hk.dropout(hk.next_rng_key(), 0.3, hk.Linear(33)(x))
        zoo.model(f"dropout.b{batch}", transformed(dropout, rows(batch, 17)), batch)
        zoo.model(f"mobilenet_block.b{batch}", transformed(
            lambda x: hk.SeparableDepthwiseConv2D(1, 3)(hk.DepthwiseConv2D(2, 3)(x)), rows(batch, 7, 7, 5)), batch)
        zoo.model(f"spectral_norm.b{batch}", transformed(
            lambda x: x @ hk.SpectralNorm()(hk.get_parameter("w", (9, 13), init=hk.initializers.RandomNormal())), rows(batch, 9)), batch)
