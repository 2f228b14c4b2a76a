"""Random bits and numbers."""

import functools
import jax
import jax.numpy as jnp
from jax import lax

from .inputs import numbers, primitive


def randomness():
    key = jax.random.key(3)
    yield "threefry", lambda k: jax.random.bits(jax.random.wrap_key_data(k), (5,)), [jnp.array([1, 2], jnp.uint32)]
    for name in ["uniform", "normal", "exponential", "gumbel", "laplace", "logistic", "cauchy"]:
        yield f"random_{name}", functools.partial(lambda k, f: f(k, (4,), jnp.float32), f=getattr(jax.random, name)), [
            key
        ]
    yield "random_gamma", lambda k, x: jax.random.gamma(k, x), [key, numbers("float32", 4, high=3)]
    yield "random_split", lambda k: jax.random.key_data(jax.random.split(k, 3)), [key]
    yield "random_fold_in", lambda k: jax.random.key_data(jax.random.fold_in(k, 7)), [key]
    yield "random_clone", lambda k: jax.random.key_data(jax.random.clone(k)), [key]
    yield "random_seed", lambda s: jax.random.key_data(jax.random.key(s)), [jnp.int32(5)]
    yield "random_permutation", lambda k: jax.random.permutation(k, 8), [key]
    yield "random_categorical", lambda k, x: jax.random.categorical(k, x), [key, numbers("float32", 3, 4)]
    yield "random_poisson", lambda k: jax.random.poisson(k, 3.0, (4,)), [key]
    yield "random_randint", lambda k: jax.random.randint(k, (4,), 0, 10), [key]
    for implementation in ["rbg", "unsafe_rbg"]:
        yield f"random_{implementation}", lambda k: jax.random.uniform(k, (4,), jnp.float32), [
            jax.random.key(3, impl=implementation)
        ]
        yield f"random_{implementation}_split", lambda k: jax.random.key_data(jax.random.split(k, 2)), [
            jax.random.key(3, impl=implementation)
        ]
    for algorithm in ["RNG_THREE_FRY", "RNG_PHILOX", "RNG_DEFAULT"]:
        generate = functools.partial(
            lax.rng_bit_generator, shape=(5,), dtype=jnp.uint32, algorithm=getattr(lax.RandomAlgorithm, algorithm)
        )
        yield algorithm.lower(), generate, [jnp.arange(4, dtype=jnp.uint32)]
    yield "rng_three_fry_of_64_bits", lambda k: lax.rng_bit_generator(k, (5,), jnp.uint64), [
        jnp.arange(2, dtype=jnp.uint64)
    ]
    yield "rng_uniform", lambda: lax.rng_uniform(jnp.float32(0), jnp.float32(1), (5,)), []
    words = [jnp.arange(4, dtype=jnp.uint32)] * 6
    for name, count in [("threefry2x32", 4), ("threefry4x32", 8), ("philox2x32", 3), ("philox4x32", 6)]:
        yield f"{name}_p", functools.partial(lambda *w, name: primitive(name).bind(*w), name=name), (words * 2)[:count]
    yield "iota_2x32", lambda: primitive("iota_2x32_shape").bind(shape=(3, 4)), []
