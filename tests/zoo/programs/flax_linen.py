"""Flax linen: dense and convolutional networks, normalizations, attention, recurrent cells."""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp

WIDTHS = [(1, 7), (2, 10), (3, 17), (1, 97), (1, 100), (2, 127), (1, 1000), (3, 1001)]


def module(build, *inputs, **options):
    """`make` of a linen module: parameters are the module's variables with noise."""

    def make(random):
        values = [value(random) for value in inputs]
        model = build()
        variables = random.like(jax.eval_shape(functools.partial(model.init, jax.random.key(3), **options), *values))

        def apply(variables, *values):
            if options.get("train"):
                return model.apply(variables, *values, mutable=["batch_stats"], **options)
            return model.apply(variables, *values, **options)

        return apply, variables, values

    return make


class MLP(nn.Module):
    classes: int

    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Dense(33)(x))
        x = nn.LayerNorm()(x)
        return nn.softmax(nn.Dense(self.classes)(x))


class ResNet(nn.Module):
    classes: int

    @nn.compact
    def __call__(self, x, train=False):
        norm = lambda: nn.BatchNorm(use_running_average=not train)
        x = nn.relu(norm()(nn.Conv(9, (3, 3), (2, 2))(x)))
        y = nn.relu(norm()(nn.Conv(9, (3, 3))(x)))
        x = nn.relu(x + norm()(nn.Conv(9, (3, 3))(y)))
        x = nn.max_pool(x, (3, 3), (2, 2), "SAME")
        return nn.log_softmax(nn.Dense(self.classes)(x.mean((1, 2))))


class Encoder(nn.Module):
    heads: int = 2
    causal: bool = False

    @nn.compact
    def __call__(self, x):
        mask = nn.make_causal_mask(jnp.ones(x.shape[:2])) if self.causal else None
        x = x + nn.MultiHeadDotProductAttention(self.heads)(nn.LayerNorm()(x), mask=mask)
        return x + nn.Dense(x.shape[-1])(nn.gelu(nn.Dense(3 * x.shape[-1])(nn.RMSNorm()(x))))


class Recurrent(nn.Module):
    cell: type

    @nn.compact
    def __call__(self, x):
        return nn.RNN(self.cell(13))(x)


def rows(*shape):
    return lambda random: random.normal(*shape)


def register(zoo):
    for batch, classes in WIDTHS:
        zoo.model(f"mlp.b{batch}_c{classes}", module(lambda classes=classes: MLP(classes), rows(batch, 31)), batch)
    for batch, classes in [(1, 10), (2, 17), (3, 100)]:
        build = lambda classes=classes: ResNet(classes)
        zoo.model(f"resnet.b{batch}_c{classes}", module(build, rows(batch, 17, 17, 3)), batch)
        zoo.model(f"resnet_train.b{batch}_c{classes}", module(build, rows(batch, 17, 17, 3), train=True), batch, kinds=("gradient",))
    for batch, length in [(1, 1), (2, 5), (3, 33)]:
        zoo.model(f"encoder.b{batch}_t{length}", module(Encoder, rows(batch, length, 14)), batch)
        zoo.model(f"decoder.b{batch}_t{length}", module(lambda: Encoder(causal=True), rows(batch, length, 14)), batch)
    for cell in (nn.LSTMCell, nn.OptimizedLSTMCell, nn.GRUCell, nn.MGUCell, nn.SimpleCell):
        for batch, length in [(1, 5), (3, 7)]:
            name = f"{cell.__name__.lower()}.b{batch}_t{length}"
            zoo.model(name, module(lambda cell=cell: Recurrent(cell), rows(batch, length, 9)), batch)
    layers = {
        "group_norm": lambda: nn.GroupNorm(num_groups=3), "instance_norm": lambda: nn.InstanceNorm(), "layer_norm": lambda: nn.LayerNorm(),
        "rms_norm": lambda: nn.RMSNorm(), "weight_norm": lambda: nn.WeightNorm(nn.Dense(31)), "conv_local": lambda: nn.ConvLocal(5, (3, 3)),
        "conv_transpose": lambda: nn.ConvTranspose(5, (3, 3), (2, 2)), "dilated": lambda: nn.Conv(5, (3, 3), kernel_dilation=2),
        "depthwise": lambda: nn.Conv(9, (3, 3), feature_group_count=9), "circular": lambda: nn.Conv(5, (3, 3), padding="CIRCULAR"),
    }
    for name, build in layers.items():
        for batch in (1, 3):
            zoo.model(f"{name}.b{batch}", module(build, rows(batch, 7, 5, 9)), batch)
    embed = lambda: nn.Embed(97, 15)
    for batch, length in [(1, 1), (2, 33)]:
        tokens = lambda random, batch=batch, length=length: random.integers(97, batch, length)
        zoo.model(f"embed.b{batch}_t{length}", module(embed, tokens), batch)
