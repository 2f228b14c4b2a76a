"""Imports of arrays by DLPack: whether memory is taken as it is, or copied.

XLA's client of the PJRT C API cannot say that memory must be copied, and a plugin cannot say that it copied what must not be.
So both are seen to here, in front of jaxlib's function.
"""

import functools

import jax
import jax.numpy as jnp
from jaxlib import _jax

from jax_plugins.xlars import c_api

# Alignment in bytes of memory that devices use as it is.
ALIGNMENT = 64
# What the platform version of our clients begins with, after the lines of jaxlib.
OURS = "\nxlars "
# Offsets in `DLTensor`, with which a managed one begins: address, dimensions, their sizes, offset of the first byte. A
# versioned one has its version, context, deleter and flags in front.
DATA, RANK, SIZES, OFFSET = 0, 16, 24, 40
VERSIONED, VERSIONED_START = b"dltensor_versioned", 32


def _address(capsule) -> int | None:
    """Where the elements begin; `None` where there are none."""
    tensor = c_api.pointer(capsule) + (VERSIONED_START if c_api.name(capsule) == VERSIONED else 0)
    sizes = c_api.word(tensor + SIZES)
    if any(c_api.word(sizes + 8 * i) == 0 for i in range(c_api.word(tensor + RANK, 4))):
        return None
    return c_api.word(tensor + DATA) + c_api.word(tensor + OFFSET)


@functools.cache
def watch() -> None:
    """Has imports to our devices looked after."""
    imported = _jax.dlpack_managed_tensor_to_buffer

    @functools.wraps(imported)
    def imports(dlpack, device, stream, copy=None, *rest, **options):
        if OURS not in f"\n{device.client.platform_version}":
            return imported(dlpack, device, stream, copy, *rest, **options)
        if copy is False and (address := _address(dlpack)) and address % ALIGNMENT:
            message = f"INVALID_ARGUMENT: the memory of the array is not aligned to {ALIGNMENT} bytes."
            raise jax.errors.JaxRuntimeError(message)
        array = imported(dlpack, device, stream, None, *rest, **options)
        return jnp.array(array, copy=True) if copy else array

    _jax.dlpack_managed_tensor_to_buffer = imports
