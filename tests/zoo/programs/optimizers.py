"""Optax: one and several training steps of a small classifier with each optimizer, and losses."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

NAMES = {
    "sgd": lambda: optax.sgd(0.1, momentum=0.9, nesterov=True), "adam": lambda: optax.adam(1e-2), "adamw": lambda: optax.adamw(1e-2),
    "adamax": lambda: optax.adamax(1e-2), "adabelief": lambda: optax.adabelief(1e-2), "adadelta": lambda: optax.adadelta(0.5),
    "adafactor": lambda: optax.adafactor(1e-2, min_dim_size_to_factor=3), "adagrad": lambda: optax.adagrad(0.1),
    "amsgrad": lambda: optax.amsgrad(1e-2), "lamb": lambda: optax.lamb(1e-2), "lars": lambda: optax.lars(0.1),
    "lion": lambda: optax.lion(1e-3), "nadam": lambda: optax.nadam(1e-2), "novograd": lambda: optax.novograd(1e-2),
    "radam": lambda: optax.radam(1e-2), "rmsprop": lambda: optax.rmsprop(1e-2), "rprop": lambda: optax.rprop(1e-2),
    "sm3": lambda: optax.sm3(0.1), "yogi": lambda: optax.yogi(1e-2), "fromage": lambda: optax.fromage(1e-2),
    "clipped": lambda: optax.chain(optax.clip_by_global_norm(0.5), optax.adam(optax.cosine_decay_schedule(1e-2, 31))),
    "noisy": lambda: optax.noisy_sgd(0.1), "muon": lambda: optax.contrib.muon(1e-2), "prodigy": lambda: optax.contrib.prodigy(1.0),
    "schedule_free": lambda: optax.contrib.schedule_free_adamw(1e-2), "lookahead": None,
    "accumulated": lambda: optax.MultiSteps(optax.adam(1e-2), 2), "lbfgs": None,
}


def parameters(random, classes):
    scale = lambda n: 1 / np.sqrt(n)
    return {"w": random.normal(13, 17, scale=scale(13)), "b": random.normal(17, scale=0.1), "v": random.normal(17, classes, scale=scale(17))}


def loss(p, x, y):
    return optax.softmax_cross_entropy_with_integer_labels(jnp.tanh(x @ p["w"] + p["b"]) @ p["v"], y).mean()


def training(build, batch, classes, steps):
    def make(random):
        optimizer = build()
        def run(p, xs, ys):
            def step(carry, data):
                p, state = carry
                value, gradient = jax.value_and_grad(loss)(p, *data)
                updates, state = optimizer.update(gradient, state, p)
                return (optax.apply_updates(p, updates), state), value
            (p, _), values = jax.lax.scan(step, (p, optimizer.init(p)), (xs, ys))
            return p, values
        return run, (parameters(random, classes), random.normal(steps, batch, 13), random.integers(classes, steps, batch))
    return make


def lbfgs(batch, classes):
    def make(random):
        optimizer = optax.lbfgs(0.3, memory_size=3, linesearch=None)
        def run(p, x, y):
            f = lambda p: loss(p, x, y)
            state = optimizer.init(p)
            for _ in range(3):
                value, gradient = jax.value_and_grad(f)(p)
                updates, state = optimizer.update(gradient, state, p, value=value, grad=gradient, value_fn=f)
                p = optax.apply_updates(p, updates)
            return p
        return run, (parameters(random, classes), random.normal(batch, 13), random.integers(classes, batch))
    return make


def of_loss(function, batch, classes, integers=False):
    def make(random):
        target = random.integers(classes, batch) if integers else random.uniform(batch, classes)
        return lambda logits, target: function(logits, target), random.normal(batch, classes), [target]
    return make


LOSSES = {
    "cross_entropy": (optax.softmax_cross_entropy_with_integer_labels, True), "focal": (optax.sigmoid_focal_loss, False),
    "sigmoid_cross_entropy": (optax.sigmoid_binary_cross_entropy, False), "huber": (optax.huber_loss, False),
    "cosine": (optax.cosine_distance, False), "log_cosh": (optax.log_cosh, False),
    "kl": (lambda a, b: optax.kl_divergence(jax.nn.log_softmax(a), jax.nn.softmax(b)), False), "squared": (optax.squared_error, False),
    "l2": (optax.l2_loss, False),
    "hinge": (lambda a, b: optax.hinge_loss(a, jnp.sign(b - 0.5)), False),
}


def register(zoo):
    sizes = [(1, 10), (2, 97), (3, 100), (1, 127), (3, 17), (1, 7)]
    for i, (name, build) in enumerate(NAMES.items()):
        batch, classes = sizes[i % len(sizes)]
        if build is not None:
            zoo.function(f"{name}.b{batch}_c{classes}", training(build, batch, classes, 3), batch)
    zoo.function("lbfgs.b3_c10", lbfgs(3, 10), 3)
    zoo.function("lbfgs.b1_c7", lbfgs(1, 7), 1)
    for name, (function, integers) in LOSSES.items():
        for batch, classes in [(1, 100), (3, 17), (1, 1001)]:
            zoo.model(f"loss_{name}.b{batch}_c{classes}", of_loss(function, batch, classes, integers), batch, kinds=("gradient",))
    ctc = lambda batch, time: (lambda random: (
        lambda logits, labels: optax.ctc_loss(logits, jnp.zeros(logits.shape[:2]), labels, jnp.zeros(labels.shape)),
        random.normal(batch, time, 11), [1 + random.integers(10, batch, 4)]))
    for batch, time in [(1, 9), (3, 33)]:
        zoo.model(f"loss_ctc.b{batch}_t{time}", ctc(batch, time), batch)
