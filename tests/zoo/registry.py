"""Programs of the zoo: registration, random weights, and the scalar loss whose gradient is taken."""

import jax
import jax.numpy as jnp
import numpy as np

import arrays


class Program:
    """A function of arrays and the generator of its arguments.

    `make(random)` returns `(function, arguments)`; it runs only when the program is run. `kind` is `forward`, `gradient`
    or `step`; `batch` is 0 where the program has no batch dimension.
    """

    def __init__(self, name, make, kind, batch):
        self.name, self.make, self.kind, self.batch = name, make, kind, batch


class Registry:
    """Collects the programs of one module of `programs/`."""

    def __init__(self, library):
        self.library = library
        self.programs = {}

    def model(self, name, make, batch=0, kinds=("forward", "gradient")):
        """Registers a model. `make(random)` returns `(apply, parameters, inputs)` with `apply(parameters, *inputs)`.

        The gradient is taken with respect to the floating-point leaves of parameters and inputs.
        """
        make = _remembering(make)
        if "forward" in kinds:
            self._add(f"{name}.forward", lambda random: _forward(*make(random)), "forward", batch)
        if "gradient" in kinds:
            self._add(f"{name}.gradient", lambda random: _gradient(*make(random)), "gradient", batch)

    def function(self, name, make, batch=0):
        """Registers a program that has no gradient, such as a training step: `make(random)` is `(function, arguments)`."""
        self._add(name, make, "step", batch)

    def _add(self, name, make, kind, batch):
        name = f"{self.library}.{name}"
        if name in self.programs:
            raise ValueError(f"two programs named {name}")
        self.programs[name] = Program(name, make, kind, batch)


class Random(arrays.Random):
    """Arrays and trees of weights from a generator seeded by the name of a program."""

    def like(self, tree):
        """Values for a tree of shapes, as `jax.eval_shape` returns it: no initializer runs.

        Matrices and kernels have a deviation of one by the root of their fan-in, vectors are small, and what is called a scale or
        a variance is near one and positive.
        """

        def leaf(path, shape):
            name = jax.tree_util.keystr(path).lower()
            if not jnp.issubdtype(shape.dtype, jnp.inexact):
                return np.zeros(shape.shape, shape.dtype)
            noise = self.generator.standard_normal(shape.shape)
            if any(word in name for word in ("scale", "var", "gamma", "decay", "temperature")):
                return np.asarray(np.exp(0.1 * noise)).astype(shape.dtype)
            fan_in = int(np.prod(shape.shape[:-1])) if len(shape.shape) > 1 else 100
            return np.asarray(noise / np.sqrt(max(fan_in, 1))).astype(shape.dtype)

        return jax.tree_util.tree_map_with_path(leaf, tree)

    def weights(self, tree, spread=0.1):
        """Adds noise to the initial values of floating-point leaves: initial biases of zero and scales of one hide faults.

        Values that are all positive, as variances are, stay positive.
        """

        def leaf(value):
            if not hasattr(value, "dtype") or not jnp.issubdtype(value.dtype, jnp.floating):
                return np.asarray(value)
            value = np.asarray(value)
            noise = self.generator.standard_normal(value.shape) * spread
            exact = value.astype(np.float64)
            if value.size and np.all(exact > 0):
                return np.asarray(exact * np.exp(noise)).astype(value.dtype)
            deviation = exact.std() if value.size > 1 and exact.std() > 0 else 1.0
            return np.asarray(exact + noise * deviation).astype(value.dtype)

        return jax.tree_util.tree_map(leaf, tree)


def _remembering(make):
    """`make` that runs once for a program and its gradient, whose generators have the same seed."""
    made = []

    def remembered(random):
        if made:
            return made.pop()
        made.append(make(random))
        return made[0]

    return remembered


def is_float(leaf):
    return jnp.issubdtype(jnp.asarray(leaf).dtype, jnp.inexact) if hasattr(leaf, "dtype") else isinstance(leaf, float)


def _forward(apply, parameters, inputs):
    return apply, (parameters, *inputs)


def loss_of(tree):
    """Weighted sum of all floating-point leaves; the weights differ from element to element."""
    total = 0.0
    for leaf in jax.tree_util.tree_leaves(tree):
        if not is_float(leaf):
            continue
        leaf = jnp.asarray(leaf)
        if jnp.issubdtype(leaf.dtype, jnp.complexfloating):
            leaf = jnp.real(leaf) + jnp.imag(leaf)
        index = jax.lax.iota(leaf.dtype, max(leaf.size, 1))[: leaf.size]
        total = total + jnp.sum(leaf.reshape(-1) * jnp.cos(index * np.asarray(0.7, leaf.dtype)).astype(leaf.dtype))
    return jnp.asarray(total, jnp.float32) if not jnp.issubdtype(jnp.asarray(total).dtype, jnp.float64) else total


def _gradient(apply, parameters, inputs):
    arguments = (parameters, *inputs)
    leaves, structure = jax.tree_util.tree_flatten(arguments)
    chosen = [i for i, leaf in enumerate(leaves) if is_float(leaf)]

    def loss(floats, arguments):
        leaves = jax.tree_util.tree_leaves(arguments)
        for i, value in zip(chosen, floats):
            leaves[i] = value
        return loss_of(apply(*jax.tree_util.tree_unflatten(structure, leaves)))

    def gradient(*arguments):
        leaves = jax.tree_util.tree_leaves(arguments)
        return jax.value_and_grad(loss)([leaves[i] for i in chosen], arguments)

    return gradient, arguments
