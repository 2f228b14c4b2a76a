"""Keras 3 layers on JAX, each alone: forward and gradient by `stateless_call`."""

import keras
import numpy as np
from keras import layers


def layer(build, *inputs, training=False):
    """`make` of a layer or model: all variables, with noise, are parameters."""

    def make(random):
        values = [value(random) for value in inputs]
        keras.utils.set_random_seed(5)
        model = build()
        model(*values)
        trainable = random.weights([np.asarray(v.value) for v in model.trainable_variables])
        other = [np.asarray(v.value) for v in model.non_trainable_variables]

        mode = {"training": True} if training else {}

        def apply(parameters, *values):
            outputs, changed = model.stateless_call(*parameters, *values, **mode)
            return (outputs, changed) if training else outputs

        return apply, (trainable, other), values

    return make


def rows(*shape):
    return lambda random: random.normal(*shape)


def tokens(count, *shape):
    return lambda random: random.integers(count, *shape)


DENSE = [(1, 7, "softmax"), (2, 10, "softmax"), (1, 31, "softmax"), (1, 97, "softmax"), (1, 100, "softmax"), (3, 127, "softmax"),
         (1, 1000, "softmax"), (3, 1001, "softmax"), (1, 17, "gelu"), (2, 31, "silu"), (3, 97, "softplus"), (1, 127, "mish"),
         (2, 100, "selu"), (1, 1001, "log_softmax"), (3, 17, "hard_swish"), (1, 33, "elu"), (2, 5, "glu"), (1, 29, "sparsemax")]

IMAGES = {
    "conv2d": lambda: layers.Conv2D(7, 3, padding="same", activation="relu"),
    "conv2d_stride": lambda: layers.Conv2D(5, 3, strides=2),
    "conv2d_dilated": lambda: layers.Conv2D(5, 3, dilation_rate=2, padding="same"),
    "conv2d_grouped": lambda: layers.Conv2D(9, 3, groups=3),
    "conv2d_transpose": lambda: layers.Conv2DTranspose(5, 3, strides=2, padding="same"),
    "depthwise": lambda: layers.DepthwiseConv2D(3, depth_multiplier=2),
    "separable": lambda: layers.SeparableConv2D(7, 3, padding="same"),
    "max_pool": lambda: layers.MaxPooling2D(3, 2, padding="same"),
    "average_pool": lambda: layers.AveragePooling2D(3, 2, padding="same"),
    "global_max_pool": lambda: layers.GlobalMaxPooling2D(),
    "global_average_pool": lambda: layers.GlobalAveragePooling2D(),
    "batch_norm": lambda: layers.BatchNormalization(),
    "layer_norm": lambda: layers.LayerNormalization(),
    "group_norm": lambda: layers.GroupNormalization(3),
    "rms_norm": lambda: layers.RMSNormalization(),
    "unit_norm": lambda: layers.UnitNormalization(),
    "up_sampling": lambda: layers.UpSampling2D(2, interpolation="bilinear"),
    "resizing": lambda: layers.Resizing(11, 13),
    "resizing_cubic": lambda: layers.Resizing(10, 17, interpolation="bicubic"),
    "padding": lambda: layers.ZeroPadding2D(((1, 2), (0, 3))),
    "cropping": lambda: layers.Cropping2D(((1, 2), (0, 3))),
    "prelu": lambda: layers.PReLU(),
    "softmax_of_columns": lambda: layers.Softmax(axis=1),
    "adaptive_pool": lambda: layers.AdaptiveAveragePooling2D(3),
}

SEQUENCES = {
    "lstm": lambda: layers.LSTM(11, return_sequences=True),
    "gru": lambda: layers.GRU(11, return_sequences=True),
    "simple_rnn": lambda: layers.SimpleRNN(11),
    "bidirectional": lambda: layers.Bidirectional(layers.LSTM(7)),
    "conv1d": lambda: layers.Conv1D(7, 3, padding="causal"),
    "conv1d_transpose": lambda: layers.Conv1DTranspose(7, 3, strides=2),
    "separable_conv1d": lambda: layers.SeparableConv1D(7, 3, padding="same"),
    "einsum_dense": lambda: layers.EinsumDense("btd,de->bte", output_shape=(None, 17)),
    "time_distributed": lambda: layers.TimeDistributed(layers.Dense(7, activation="softmax")),
    "max_pool1d": lambda: layers.MaxPooling1D(2, 1, padding="same"),
}


def register(zoo):
    for batch, classes, activation in DENSE:
        build = lambda classes=classes, activation=activation: layers.Dense(
            classes * (2 if activation == "glu" else 1), activation=activation)
        zoo.model(f"dense_{activation}.b{batch}_c{classes}", layer(build, rows(batch, 19)), batch)
    for i, (name, build) in enumerate(IMAGES.items()):
        for batch in ((1, 3) if i % 2 else (1, 2)):
            zoo.model(f"{name}.b{batch}", layer(build, rows(batch, 9, 11, 9)), batch)
    for name, build in SEQUENCES.items():
        for batch, length in [(1, 5), (3, 7)]:
            zoo.model(f"{name}.b{batch}_t{length}", layer(build, rows(batch, length, 6)), batch)
    for batch in (2, 3):
        build = lambda: keras.Sequential([layers.Conv2D(7, 3), layers.BatchNormalization(), layers.ReLU()])
        zoo.model(f"batch_norm_train.b{batch}", layer(build, rows(batch, 7, 9, 3), training=True), batch, kinds=("gradient",))
    for batch, length in [(1, 1), (1, 5), (3, 33)]:
        attend = lambda: layers.MultiHeadAttention(3, 5)
        zoo.model(f"attention.b{batch}_t{length}", layer(attend, rows(batch, length, 10), rows(batch, length + 2, 10)), batch)
        grouped = lambda: layers.GroupQueryAttention(5, 4, 2)
        zoo.model(f"group_query.b{batch}_t{length}", layer(grouped, rows(batch, length, 10), rows(batch, length, 10)), batch)
    for batch, length in [(1, 5), (3, 33)]:
        build = lambda: keras.Sequential([layers.Embedding(100, 9), layers.GlobalAveragePooling1D(), layers.Dense(7, activation="softmax")])
        zoo.model(f"embedding.b{batch}_t{length}", layer(build, tokens(100, batch, length)), batch)
    for batch in (1, 3):
        zoo.model(f"conv3d.b{batch}", layer(lambda: layers.Conv3D(4, 3, padding="same"), rows(batch, 5, 6, 7, 3)), batch)
        zoo.model(f"max_pool3d.b{batch}", layer(lambda: layers.MaxPooling3D(2), rows(batch, 5, 6, 7, 3)), batch)
        zoo.model(f"conv_lstm.b{batch}", layer(lambda: layers.ConvLSTM2D(3, 3, padding="same"), rows(batch, 3, 5, 7, 2)), batch)
        zoo.model(f"bilinear_dot.b{batch}", layer(lambda: Pair(), rows(batch, 7, 5), rows(batch, 9, 5)), batch)


@keras.saving.register_keras_serializable()
class Pair(keras.layers.Layer):
    """Cosine similarity of all pairs of rows, and their softmax."""

    def call(self, a, b):
        return keras.activations.softmax(keras.layers.Dot(axes=2, normalize=True)([a, b]) * 3.0)
