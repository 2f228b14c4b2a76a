"""Arrays from other libraries by DLPack: taken as they are, or copied, as callers ask for it."""

import jax
import numpy as np
import pytest


def host_array(shape, dtype, distance):
    """An array whose first byte is that far behind a multiple of 64."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.zeros(size + 128, np.uint8)
    start = -memory.ctypes.data % 64 + distance
    array = memory[start : start + size].view(dtype).reshape(shape)
    array[...] = np.arange(array.size).reshape(shape)
    return array


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.float32, np.complex64])
@pytest.mark.parametrize("shape", [(), (3,), (4, 5)])
def test_memory_is_shared_only_where_it_is_aligned(shape, dtype):
    aligned, other = host_array(shape, dtype, 0), host_array(shape, dtype, 16)
    for copy in (None, True, False):
        np.testing.assert_array_equal(jax.dlpack.from_dlpack(aligned, copy=copy), aligned)
    for copy in (None, True):
        np.testing.assert_array_equal(jax.dlpack.from_dlpack(other, copy=copy), other)
    with pytest.raises(ValueError, match="not aligned to 64 bytes"):
        jax.dlpack.from_dlpack(other, copy=False)


def test_a_copy_does_not_follow_its_source():
    source = host_array((8,), np.float32, 0)
    shared, copied = jax.dlpack.from_dlpack(source, copy=False), jax.dlpack.from_dlpack(source, copy=True)
    assert shared.unsafe_buffer_pointer() == source.ctypes.data
    source[0] = 7
    assert copied[0] == 0


def test_arrays_without_elements_and_of_any_layout():
    empty = host_array((0, 3), np.float32, 4)
    rows = host_array((3, 4), np.float32, 0)
    for copy in (None, True, False):
        assert jax.dlpack.from_dlpack(empty, copy=copy).shape == (0, 3)
        np.testing.assert_array_equal(jax.dlpack.from_dlpack(rows.T, copy=copy), rows.T)
