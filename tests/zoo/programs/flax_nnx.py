"""Flax nnx: modules, normalizations, recurrent networks, training steps with dropout and batch statistics."""

import jax
import jax.numpy as jnp
from flax import nnx


def module(build, *inputs, training=False):
    """`make` of an nnx module: its whole state is the parameter. In training, the changed state is a result."""

    def make(random):
        graph, state = nnx.split(nnx.eval_shape(lambda: build(nnx.Rngs(3))))
        leaves, structure = jax.tree_util.tree_flatten_with_path(state)
        shapes = {jax.tree_util.keystr(path): leaf for path, leaf in leaves}
        keys = {path for path, leaf in shapes.items() if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)}
        plain = random.like({path: leaf for path, leaf in shapes.items() if path not in keys})
        order = [jax.tree_util.keystr(path) for path, _ in leaves]

        def apply(plain, *values):
            filled = [jax.random.key(5) if path in keys else plain[path] for path in order]
            model = nnx.merge(graph, jax.tree_util.tree_unflatten(structure, filled))
            (model.train if training else model.eval)()
            outputs = model(*values)
            if not training:
                return outputs
            return outputs, [a for a in jax.tree_util.tree_leaves(nnx.state(model, nnx.BatchStat))]

        return apply, plain, [value(random) for value in inputs]

    return make


def rows(*shape):
    return lambda random: random.normal(*shape)


def tokens(count, *shape):
    return lambda random: random.integers(count, *shape)


class MLP(nnx.Module):
    def __init__(self, rngs, classes, dropout=0.0):
        self.a, self.b = nnx.Linear(10, 33, rngs=rngs), nnx.Linear(33, classes, rngs=rngs)
        self.norm, self.dropout = nnx.LayerNorm(33, rngs=rngs), nnx.Dropout(dropout, rngs=rngs)

    def __call__(self, x):
        return nnx.softmax(self.b(self.dropout(nnx.gelu(self.norm(self.a(x))))))


class CNN(nnx.Module):
    def __init__(self, rngs, classes):
        self.c1, self.c2 = nnx.Conv(3, 7, (3, 3), rngs=rngs), nnx.Conv(7, 9, (3, 3), (2, 2), rngs=rngs)
        self.n1 = nnx.BatchNorm(7, rngs=rngs)
        self.head = nnx.Linear(9, classes, rngs=rngs)

    def __call__(self, x):
        x = nnx.avg_pool(nnx.relu(self.n1(self.c1(x))), (2, 2), (2, 2))
        return nnx.log_softmax(self.head(nnx.relu(self.c2(x)).mean((1, 2))))


class LowRank(nnx.Module):
    def __init__(self, rngs):
        self.layer = nnx.LoRALinear(17, 31, lora_rank=3, rngs=rngs)

    def __call__(self, x):
        return self.layer(x)


def register(zoo):
    for batch, classes in [(1, 7), (1, 97), (1, 100), (2, 31), (3, 1000), (1, 1001)]:
        zoo.model(f"mlp.b{batch}_c{classes}", module(lambda rngs, c=classes: MLP(rngs, c), rows(batch, 10)), batch)
    for batch, classes in [(1, 10), (2, 17), (3, 127)]:
        build = lambda rngs, c=classes: CNN(rngs, c)
        zoo.model(f"cnn.b{batch}_c{classes}", module(build, rows(batch, 9, 13, 3)), batch)
        zoo.model(f"cnn_train.b{batch}_c{classes}", module(build, rows(batch, 9, 13, 3), training=True), batch, kinds=("gradient",))
        drop = lambda rngs, c=classes: MLP(rngs, c, 0.4)
        zoo.model(f"dropout_train.b{batch}_c{classes}", module(drop, rows(batch, 10), training=True), batch)
    for batch, length in [(1, 5), (2, 33)]:
        for cell in (nnx.LSTMCell, nnx.GRUCell, nnx.SimpleCell):
            build = lambda rngs, cell=cell: nnx.RNN(cell(6, 9, rngs=rngs))
            zoo.model(f"{cell.__name__.lower()}.b{batch}_t{length}", module(build, rows(batch, length, 6)), batch)
    for batch in (1, 3):
        zoo.model(f"lora.b{batch}", module(LowRank, rows(batch, 17)), batch)
        zoo.model(f"einsum.b{batch}", module(lambda rngs: nnx.Einsum("nta,hab->nthb", (3, 7, 5), (3, 1, 5), rngs=rngs), rows(batch, 9, 7)), batch,
                  kinds=("forward",))
        zoo.model(f"group_norm.b{batch}", module(lambda rngs: nnx.GroupNorm(9, 3, rngs=rngs), rows(batch, 5, 7, 9)), batch)
        zoo.model(f"general.b{batch}", module(lambda rngs: nnx.LinearGeneral((5, 7), (3, 11), axis=(-2, -1), rngs=rngs), rows(batch, 5, 7)), batch)
