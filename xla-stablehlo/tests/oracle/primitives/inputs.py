"""Inputs of programs, and JAX's primitives by their names."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jax._src.interpreters import mlir

jax.config.update("jax_enable_x64", True)
# Names of source files without their folders.
jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")

FLOATS = ["float32", "float64", "bfloat16", "float16"]
INTEGERS = ["int32", "uint8", "int64"]
COMPLEX = ["complex64", "complex128"]
SHORT = {
    "float32": "f32",
    "float64": "f64",
    "bfloat16": "bf16",
    "float16": "f16",
    "int32": "s32",
    "uint8": "u8",
    "int64": "s64",
    "uint32": "u32",
    "complex64": "c64",
    "complex128": "c128",
    "bool": "pred",
}


def primitive(name):
    """The primitive of that name."""
    tables = itertools.chain(mlir._lowerings, mlir._platform_specific_lowerings["cpu"])
    return next(found for found in tables if found.name == name)


def numbers(dtype, *shape, low=0.1, high=0.9):
    """Elements that grow from `low` to `high`, or count where they are integers."""
    count = int(np.prod(shape))
    dtype = jnp.dtype(dtype)
    if dtype == bool:
        values = np.arange(count) % 3 == 0
    elif jnp.issubdtype(dtype, jnp.integer):
        values = np.arange(count) % 7 + 1
    elif jnp.issubdtype(dtype, jnp.complexfloating):
        values = np.linspace(low, high, count) + 1j * np.linspace(high, low, count)
    else:
        values = np.linspace(low, high, count)
    return jnp.asarray(values.reshape(shape), dtype)


def matrix(dtype, n):
    """A symmetric, positive definite matrix."""
    a = numbers(dtype, n, n)
    return a @ a.T.conj() + n * jnp.eye(n, dtype=dtype)
