"""Equinox: networks as pytrees, mapped over the batch."""

import equinox as eqx
import jax
import jax.numpy as jnp


def module(build, *inputs, call=None):
    """`make` of an Equinox module; inputs have a batch dimension in front, and the module is mapped over it."""

    def make(random):
        shapes = eqx.filter_eval_shape(build, jax.random.key(11))
        arrays, static = eqx.partition(shapes, lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct))
        arrays = random.like(arrays)

        def apply(arrays, *values):
            model = eqx.combine(arrays, static)
            return jax.vmap(lambda *v: (call or (lambda m, *v: m(*v)))(model, *v))(*values)

        return apply, arrays, [value(random) for value in inputs]

    return make


def rows(*shape):
    return lambda random: random.normal(*shape)


class Classifier(eqx.Module):
    conv: eqx.nn.Conv2d
    pool: eqx.nn.MaxPool2d
    head: eqx.nn.Linear

    def __init__(self, classes, key):
        a, b = jax.random.split(key)
        self.conv = eqx.nn.Conv2d(3, 5, 3, key=a)
        self.pool = eqx.nn.MaxPool2d(3, 2)
        self.head = eqx.nn.Linear(5 * 4 * 4, classes, key=b)

    def __call__(self, x):
        return jax.nn.softmax(self.head(self.pool(jax.nn.relu(self.conv(x))).reshape(-1)))


class Sequence(eqx.Module):
    cell: eqx.Module
    head: eqx.nn.Linear

    def __init__(self, cell, key):
        self.cell = cell(6, 9, key=key)
        self.head = eqx.nn.Linear(9, 7, key=key)

    def __call__(self, xs):
        zero = jnp.zeros(9)
        start = (zero, zero) if isinstance(self.cell, eqx.nn.LSTMCell) else zero
        step = lambda state, x: (self.cell(x, state), 0.0)
        state, _ = jax.lax.scan(step, start, xs)
        return jax.nn.log_softmax(self.head(state[0] if isinstance(state, tuple) else state))


class Mixer(eqx.Module):
    """A block of the MLP-Mixer with layer norms."""

    patch: eqx.nn.MLP
    hidden: eqx.nn.MLP
    norm: eqx.nn.LayerNorm

    def __init__(self, key):
        a, b = jax.random.split(key)
        self.patch = eqx.nn.MLP(10, 10, 17, 1, key=a)
        self.hidden = eqx.nn.MLP(7, 7, 13, 1, key=b)
        self.norm = eqx.nn.LayerNorm((7, 10))

    def __call__(self, x):
        x = x + jax.vmap(self.patch)(self.norm(x))
        return x + jax.vmap(self.hidden)(self.norm(x).T).T


def register(zoo):
    for batch, classes in [(1, 7), (1, 100), (2, 17), (3, 97), (1, 1001)]:
        build = lambda key, c=classes: eqx.nn.MLP(13, c, 31, 2, key=key)
        call = lambda model, x: jax.nn.softmax(model(x))
        zoo.model(f"mlp.b{batch}_c{classes}", module(build, rows(batch, 13), call=call), batch)
        zoo.model(f"cnn.b{batch}_c{classes}", module(lambda key, c=classes: Classifier(c, key), rows(batch, 3, 11, 11)), batch)
    for cell in (eqx.nn.GRUCell, eqx.nn.LSTMCell):
        for batch, length in [(1, 1), (2, 5), (3, 33)]:
            build = lambda key, cell=cell: Sequence(cell, key)
            zoo.model(f"{cell.__name__.lower()}.b{batch}_t{length}", module(build, rows(batch, length, 6)), batch)
    for batch in (1, 3):
        zoo.model(f"mixer.b{batch}", module(Mixer, rows(batch, 7, 10)), batch)
        for length in (1, 33):
            build = lambda key: eqx.nn.MultiheadAttention(2, 10, key=key)
            call = lambda model, x: model(x, x, x, jnp.tril(jnp.ones((len(x), len(x)), bool)))
            zoo.model(f"attention.b{batch}_t{length}", module(build, rows(batch, length, 10), call=call), batch)
            build = lambda key: eqx.nn.RotaryPositionalEmbedding(10)
            zoo.model(f"rotary.b{batch}_t{length}", module(build, rows(batch, length, 10)), batch)
        zoo.model(f"group_norm.b{batch}", module(lambda key: eqx.nn.GroupNorm(3, 9), rows(batch, 9, 5, 7)), batch)
        zoo.model(f"conv_transpose.b{batch}", module(lambda key: eqx.nn.ConvTranspose2d(3, 4, 3, 2, key=key), rows(batch, 3, 5, 7)), batch)
        zoo.model(f"conv1d.b{batch}", module(lambda key: eqx.nn.Conv1d(3, 4, 5, padding="SAME", key=key), rows(batch, 3, 31)), batch)
        zoo.model(f"adaptive_pool.b{batch}", module(lambda key: eqx.nn.AdaptiveAvgPool2d(3), rows(batch, 3, 7, 10)), batch)
        spectral = lambda model, x: model.layers[0](x) / jnp.linalg.norm(model.layers[0].weight)
        zoo.model(f"norm_of_weights.b{batch}", module(lambda key: eqx.nn.MLP(9, 9, 9, 1, key=key), rows(batch, 9), call=spectral), batch)
