"""Programs of TensorFlow: functions of tensors without variables, written for any floating-point type."""

import math

import numpy as np
import tensorflow as tf


def cast(value, like):
    return tf.cast(value, like.dtype)


def weighted(*outputs):
    """Scalar whose gradient is taken; the weights differ from element to element."""
    total = 0.0
    for output in outputs:
        weights = tf.cos(0.7 * tf.range(tf.size(output), dtype=tf.float32))
        total = tf.reduce_sum(tf.reshape(output, [-1]) * cast(weights, output)) + cast(total, output)
    return total


def gradient_of(function):
    """`function` with the gradient of a weighted sum of its outputs with respect to its floating-point arguments."""

    def gradient(*arguments):
        chosen = [argument for argument in arguments if argument.dtype.is_floating]
        with tf.GradientTape() as tape:
            for argument in chosen:
                tape.watch(argument)
            loss = weighted(*tf.nest.flatten(function(*arguments)))
        # The gradient of a gather is a pair of indices and values unless it is made a tensor.
        return [loss, *[tf.convert_to_tensor(found) for found in tape.gradient(loss, chosen)]]

    return gradient


def dense_softmax(x, weights, bias):
    return tf.nn.softmax(x @ weights + bias)


def train_mlp(x, labels, w1, b1, w2, b2):
    """A step of gradient descent."""
    with tf.GradientTape() as tape:
        tape.watch([w1, b1, w2, b2])
        logits = tf.nn.relu(x @ w1 + b1) @ w2 + b2
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
    gradients = tape.gradient(loss, [w1, b1, w2, b2])
    return [loss] + [value - cast(0.1, x) * gradient for value, gradient in zip([w1, b1, w2, b2], gradients)]


def adam(x, target, weights, mean, variance, step):
    with tf.GradientTape() as tape:
        tape.watch(weights)
        loss = tf.reduce_mean(tf.square(tf.tanh(x @ weights) - target))
    gradient = tape.gradient(loss, weights)
    gradient = tf.clip_by_norm(gradient, cast(0.5, x))
    mean = cast(0.9, x) * mean + cast(0.1, x) * gradient
    variance = cast(0.999, x) * variance + cast(0.001, x) * tf.square(gradient)
    count = cast(step + 1, x)
    rate = cast(0.01, x) * tf.sqrt(1 - tf.pow(cast(0.999, x), count)) / (1 - tf.pow(cast(0.9, x), count))
    return weights - rate * mean / (tf.sqrt(variance) + cast(1e-7, x)), mean, variance, loss


def convolutional(x, kernel, depthwise, weights):
    x = tf.nn.relu(tf.nn.conv2d(x, kernel, strides=2, padding="SAME"))
    x = tf.nn.relu6(tf.nn.depthwise_conv2d(x, depthwise, [1, 1, 1, 1], "VALID"))
    x = tf.nn.max_pool2d(x, 2, 2, "VALID") + tf.nn.avg_pool2d(x, 2, 2, "VALID")
    return tf.nn.log_softmax(tf.reduce_mean(x, [1, 2]) @ weights)


def transposed(x, kernel, volume_kernel):
    x = tf.nn.conv2d_transpose(x, kernel, [x.shape[0], 11, 13, 3], 2, "VALID")
    volume = tf.nn.conv3d(tf.reshape(x, [x.shape[0], 11, 13, 3, 1]), volume_kernel, [1] * 5, "SAME")
    return tf.nn.leaky_relu(volume)


def batch_norm(x, scale, offset):
    if x.dtype == tf.float32:
        y, mean, variance = tf.compat.v1.nn.fused_batch_norm(x, scale, offset, epsilon=1e-3, is_training=True)[:3]
    else:
        # The fused form does not exist in double precision; it returns the variance of the population.
        mean, variance = tf.nn.moments(x, [0, 1, 2])
        y = tf.nn.batch_normalization(x, mean, variance, offset, scale, 1e-3)
        count = math.prod(x.shape[:-1])
        variance *= count / (count - 1)
    return tf.nn.swish(y), mean, variance


def norms(x, scale, offset):
    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    y = tf.nn.batch_normalization(x, mean, variance, offset, scale, cast(1e-5, x))
    return tf.nn.gelu(y, approximate=False), tf.nn.l2_normalize(x, -1)


def attention(x, qkv, out):
    """Causal attention of four heads with a residual."""
    batch, length, width = x.shape
    q, k, v = tf.split(tf.reshape(x @ qkv, [batch, length, 4, -1]), 3, axis=-1)
    scores = tf.einsum("bqhd,bkhd->bhqk", q, k) * cast(1 / math.sqrt(q.shape[-1]), x)
    mask = tf.linalg.band_part(tf.ones([length, length], tf.bool), -1, 0)
    weights = tf.nn.softmax(tf.where(mask, scores, cast(-1e9, x)))
    return x + tf.reshape(tf.einsum("bhqk,bkhd->bqhd", weights, v), [batch, length, -1]) @ out


def lstm(x, kernel, recurrent, bias):
    """A loop over time with stacks of states."""
    batch, length, _ = x.shape
    units = recurrent.shape[0]
    steps = tf.transpose(x, [1, 0, 2])
    outputs = tf.TensorArray(x.dtype, length, element_shape=[batch, units])

    def body(i, h, c, outputs):
        gates = tf.gather(steps, i) @ kernel + h @ recurrent + bias
        i_gate, f_gate, update, o_gate = tf.split(gates, 4, axis=-1)
        c = tf.sigmoid(f_gate) * c + tf.sigmoid(i_gate) * tf.tanh(update)
        h = tf.sigmoid(o_gate) * tf.tanh(c)
        return i + 1, h, c, outputs.write(i, h)

    zero = tf.zeros([batch, units], x.dtype)
    final = tf.while_loop(lambda i, *_: i < length, body, (0, zero, zero, outputs), maximum_iterations=length)
    return tf.transpose(final[3].stack(), [1, 0, 2]), final[2]


def gru(x, kernel, recurrent, bias):
    """Unrolled over time."""
    h = tf.zeros([x.shape[0], recurrent.shape[0]], x.dtype)
    for step in tf.unstack(x, axis=1):
        z, r, n = tf.split(step @ kernel + bias, 3, -1)
        hz, hr, hn = tf.split(h @ recurrent, 3, -1)
        z = tf.sigmoid(z + hz)
        h = z * h + (1 - z) * tf.tanh(n + tf.sigmoid(r + hr) * hn)
    return h


def branches(x, which):
    small = tf.cond(tf.reduce_sum(x) > 0, lambda: tf.sin(x) * 2, lambda: tf.exp(-tf.abs(x)))
    cases = [lambda: tf.sort(x), lambda: tf.cumsum(x, axis=1), lambda: x / (1 + tf.abs(x))]
    return small, tf.switch_case(which, cases)


def newton(x):
    """Square roots by Newton's method until all have converged; the number of iterations depends on the values."""
    far = lambda guess, count: tf.reduce_any(tf.abs(guess * guess - x) > cast(1e-3, x) * x)
    root, count = tf.while_loop(far, lambda guess, count: ((guess + x / guess) / 2, count + 1), (tf.ones_like(x), 0))
    return root, count


def images(x):
    """Changes of images with values in [0, 1]."""
    # Some of these exist in single precision alone.
    resized = tf.cast(tf.compat.v1.image.resize_bilinear(x, [17, 10], half_pixel_centers=True), x.dtype)
    grey = tf.image.rgb_to_grayscale(resized)
    mean = tf.reduce_mean(resized, [1, 2], keepdims=True)
    contrast = (resized - mean) * cast(1.5, x) + mean
    nearest = tf.compat.v1.image.resize_nearest_neighbor(x, [9, 21])
    turned = tf.transpose(nearest, [0, 2, 1, 3])[:, ::-1]
    edges = tf.cast(tf.image.sobel_edges(tf.cast(x, tf.float32)), x.dtype)
    return grey, tf.image.flip_left_right(contrast), turned, edges, tf.image.central_crop(x, 0.5)


def rotated(x):
    """A choice whose cases have different shapes: the size of the result is known when it runs."""
    return tf.image.rot90(x)


def colours(x):
    hsv = tf.image.rgb_to_hsv(x)
    patches = tf.image.extract_patches(x, [1, 3, 3, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID")
    return hsv, tf.image.hsv_to_rgb(hsv), patches, tf.image.psnr(x, x * cast(0.9, x), 1.0), tf.nn.space_to_depth(x, 2)


def embeddings(table, indices, segments):
    rows = tf.gather(table, indices)
    return tf.math.unsorted_segment_sum(rows, segments, 7), tf.math.unsorted_segment_max(tf.tanh(rows), segments, 5)


def scattered(x, indices, updates):
    added = tf.tensor_scatter_nd_add(x, indices, updates)
    return added, tf.tensor_scatter_nd_update(x, indices, updates), tf.gather_nd(added, indices), tf.scatter_nd(indices, updates, [9, 5])


def ordered(x):
    values, indices = tf.math.top_k(x, 5)
    edges = tf.sort(x[0])
    return values, indices, tf.argsort(x, direction="DESCENDING"), tf.argmax(x, 1), tf.searchsorted(edges, x[1])


def cumulative(x):
    half = cast(0.5, x)
    return (tf.cumsum(x, 1, exclusive=True, reverse=True), tf.math.cumprod(1 + half * x, 0), tf.math.cumulative_logsumexp(x, 1),
            tf.reduce_logsumexp(x, 0), tf.math.reduce_std(x, 1))


def spectrum(x):
    transformed = tf.signal.rfft2d(x)
    return tf.math.real(transformed), tf.abs(tf.signal.fft(tf.complex(x, x))), tf.signal.irfft2d(transformed)


def factors(matrix, right):
    symmetric = matrix @ tf.linalg.matrix_transpose(matrix) + 3 * tf.eye(matrix.shape[-1], dtype=matrix.dtype)
    lower = tf.linalg.cholesky(symmetric)
    solved = tf.linalg.triangular_solve(lower, right)
    return lower, solved, tf.linalg.diag_part(lower), tf.linalg.trace(symmetric), tf.linalg.cross(right[..., :3, 0], right[..., :3, 1])


def dropout(x, seed):
    """Random bits of Philox, whose values are part of its definition."""
    bits = tf.random.stateless_uniform(x.shape, seed, None, None, tf.uint32, alg="philox")
    keep = tf.bitwise.bitwise_and(bits, 3) > 0
    return tf.where(keep, x / cast(0.75, x), tf.zeros_like(x)), bits


def losses(x, y, labels):
    hot = tf.one_hot(labels, x.shape[-1], dtype=x.dtype)
    return (tf.nn.softmax_cross_entropy_with_logits(hot, x), tf.nn.sigmoid_cross_entropy_with_logits(hot, x), tf.nn.l2_loss(x - y),
            tf.nn.log_poisson_loss(tf.abs(y), x), tf.reduce_sum(tf.where(tf.abs(x - y) < 1, tf.square(x - y) / 2, tf.abs(x - y))))


def special(x):
    small = tf.nn.sigmoid(x)
    return (tf.math.erf(x), tf.math.lgamma(small + 1), tf.math.digamma(small + 1), tf.math.igamma(small + 1, small + cast(0.5, x)), tf.math.atan2(x, small),
            tf.math.expm1(x), tf.nn.softplus(x), tf.nn.elu(x), tf.nn.selu(x), tf.math.ndtri(small))


def bfloat16(x, weights):
    half = tf.cast(tf.cast(x, tf.bfloat16) @ tf.cast(weights, tf.bfloat16), tf.float32)
    return tf.nn.softmax(half)


def layouts(x):
    padded = tf.pad(x, [[0, 0], [1, 2], [3, 0]], "REFLECT")
    return padded, tf.roll(x, [2, -1], [1, 2]), tf.reverse(x, [1]), tf.tile(x, [1, 2, 1]), tf.strided_slice(x, [0, 6, 0], [2, 0, 5], [1, -2, 2])


def register(add):
    """Calls `add(name, function, batch, inputs)`; `inputs(random)` returns arrays."""
    for batch, classes in ((1, 100), (1, 1001), (3, 97)):
        inputs = lambda r, batch=batch, classes=classes: [r.normal(batch, 33), r.normal(33, classes, scale=0.2), r.normal(classes)]
        add(f"dense_softmax.b{batch}_c{classes}", dense_softmax, batch, inputs)
        add(f"dense_softmax_gradient.b{batch}_c{classes}", gradient_of(dense_softmax), batch, inputs)
    for batch in (1, 3):
        mlp = lambda r, b=batch: [r.normal(b, 17), r.integers(31, b), r.normal(17, 33), r.normal(33), r.normal(33, 31), r.normal(31)]
        add(f"train_mlp.b{batch}", train_mlp, batch, mlp)
        add(f"adam.b{batch}", adam, batch, lambda r, b=batch: [
            r.normal(b, 7), r.normal(b, 31), r.normal(7, 31), r.normal(7, 31, scale=0.1), r.uniform(7, 31), r.integers(9)])
        cnn = lambda r, b=batch: [r.normal(b, 17, 19, 3), r.normal(3, 3, 3, 5), r.normal(3, 3, 5, 2), r.normal(10, 100)]
        picture = lambda r, b=batch: [r.uniform(b, 12, 14, 3)]
        sequence = lambda r, gates, b=batch: [r.normal(b, 5, 7), r.normal(7, 11 * gates), r.normal(11, 11 * gates, scale=0.3), r.normal(11 * gates)]
        both = [
            ("convolutional", convolutional, cnn),
            ("transposed", transposed, lambda r, b=batch: [r.normal(b, 5, 6, 4), r.normal(3, 3, 3, 4), r.normal(3, 3, 2, 1, 2)]),
            ("batch_norm", batch_norm, lambda r, b=batch: [r.normal(b, 5, 7, 13), r.uniform(13, low=0.5), r.normal(13)]),
            ("norms", norms, lambda r, b=batch: [r.normal(b, 5, 31), r.normal(31), r.normal(31)]),
            ("attention", attention, lambda r, b=batch: [r.normal(b, 33, 20), r.normal(20, 60, scale=0.3), r.normal(20, 20)]),
            ("lstm", lstm, lambda r, s=sequence: s(r, 4)),
            ("gru", gru, lambda r, s=sequence: s(r, 3)),
            ("embeddings", embeddings, lambda r, b=batch: [r.normal(101, 13), r.integers(101, b * 10), np.arange(b * 10, dtype=np.int32) * 3 % 5]),
            ("losses", losses, lambda r, b=batch: [r.normal(b, 17), r.normal(b, 17), r.integers(17, b)]),
            ("cumulative", cumulative, lambda r, b=batch: [r.normal(b, 33)]),
            ("factors", factors, lambda r, b=batch: [r.normal(b, 5, 5), r.normal(b, 5, 3)]),
        ]
        for name, function, inputs in both:
            add(f"{name}.b{batch}", function, batch, inputs)
            add(f"{name}_gradient.b{batch}", gradient_of(function), batch, inputs)
        add(f"images.b{batch}", images, batch, picture)
        add(f"rotated.b{batch}", rotated, batch, picture)
        add(f"colours.b{batch}", colours, batch, picture)
        add(f"bfloat16.b{batch}", bfloat16, batch, lambda r, b=batch: [r.normal(b, 33), r.normal(33, 100, scale=0.2)])
        add(f"dropout.b{batch}", dropout, batch, lambda r, b=batch: [r.normal(b, 127), r.integers(1000, 2)])
        add(f"spectrum.b{batch}", spectrum, batch, lambda r, b=batch: [r.normal(b, 8, 16)])
        add(f"special.b{batch}", special, batch, lambda r, b=batch: [r.normal(b, 31)])
        add(f"newton.b{batch}", newton, batch, lambda r, b=batch: [r.uniform(b, 7, low=0.5, high=90)])
    add("branches.first", branches, 2, lambda r: [r.normal(2, 13) + 1, r.integers(1)])
    add("branches.other", branches, 2, lambda r: [r.normal(2, 13) - 1, r.integers(1) + 1])
    add("ordered", ordered, 3, lambda r: [r.normal(3, 31)])
    add("scattered", scattered, 0, lambda r: [r.normal(9, 5), r.generator.permutation(9)[:4, None].astype("int32"), r.normal(4, 5)])
    add("layouts", layouts, 2, lambda r: [r.normal(2, 7, 5)])
