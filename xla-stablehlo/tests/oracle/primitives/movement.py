"""Movement of elements, gathers."""

import functools
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .inputs import SHORT, numbers, primitive


def movement():
    x, m = numbers("float32", 6), numbers("float32", 4, 6)
    i = jnp.int32(2)
    yield "broadcast_in_dim", lambda x: lax.broadcast_in_dim(x, (2, 6, 3), (1,)), [x]
    yield "broadcast_of_one", lambda x: lax.broadcast_in_dim(x, (2, 6, 3), (0, 1)), [x.reshape(1, 6)]
    yield "broadcast_to", lambda x: jnp.broadcast_to(x, (3, 6)), [x]
    yield "concatenate", lambda x, y: lax.concatenate([x, y, x], 1), [m, m]
    yield "concatenate_bool", lambda x: lax.concatenate([x, x], 0), [x > 0.3]
    yield "copy_p", lambda x: jax._src.lax.lax.copy_p.bind(x), [x]
    yield "dynamic_slice", lambda x, i: lax.dynamic_slice(x, (i, np.int32(1)), (2, 3)), [m, i]
    yield "dynamic_update_slice", lambda x, i: lax.dynamic_update_slice(x, x[:2, :2], (i, i)), [m, i]
    yield "gather", lambda x, i: x[i], [m, jnp.array([2, 0, -1])]
    yield "gather_two", lambda x, i: x[i, i + 1], [m, jnp.array([2, 0])]
    for mode in ["clip", "fill", "promise_in_bounds"]:
        yield f"gather_{mode}", functools.partial(lambda x, i, mode: x.at[:, i].get(mode=mode), mode=mode), [
            m,
            jnp.array([7, 1]),
        ]
    yield "gather_sorted", lambda x, i: x.at[i].get(indices_are_sorted=True, unique_indices=True), [
        m,
        jnp.array([0, 1]),
    ]
    yield "gather_batched", jax.vmap(lambda x, i: x[i]), [m, jnp.array([[1, 2]] * 4)]
    for dtype in ["float32", "int32", "bool", "complex64"]:
        yield f"iota_{SHORT.get(dtype)}", functools.partial(
            lambda dtype: lax.broadcasted_iota(jnp.dtype(dtype) if dtype != "bool" else jnp.uint8, (3, 4), 1), dtype
        ), []
    yield "iota_one_dimension", lambda: lax.iota(jnp.int64, 9), []
    yield "pad", lambda x: lax.pad(x, np.float32(1.5), [(1, 2, 1), (-1, 0, 0)]), [m]
    yield "reshape", lambda x: lax.reshape(x, (3, 8)), [m]
    yield "reshape_permuted", lambda x: lax.reshape(x, (3, 8), (1, 0)), [m]
    yield "rev", lambda x: lax.rev(x, (0, 1)), [m]
    yield "slice", lambda x: lax.slice(x, (1, 0), (4, 6), (2, 1)), [m]
    yield "squeeze", lambda x: lax.squeeze(x, (1,)), [m.reshape(4, 1, 6)]
    yield "split", lambda x: lax.split(x, (1, 2, 3), 1), [m]
    yield "tile", lambda x: jnp.tile(x, (2, 3)), [m]
    yield "tile_lax", lambda x: lax.tile(x, (2, 3)), [m]
    yield "transpose", lambda x: lax.transpose(x, (1, 0)), [m]
    yield "transpose_of_three", lambda x: lax.transpose(x, (2, 0, 1)) + 1, [numbers("float32", 2, 3, 4)]
    yield "stack", lambda x: jnp.stack([x, x]), [m]
    yield "stack_lax", lambda x: jax._src.lax.lax.stack([x, x], axis=0), [m]
    yield "unstack", lambda x: jnp.unstack(x), [m]
    yield "unstack_lax", lambda x: jax._src.lax.lax.unstack_p.bind(x, axis=0), [m]
    yield "empty", lambda: lax.empty((3,), jnp.float32), []
    yield "empty2", lambda: primitive("empty2").bind(
        dtype=jnp.dtype("float32"), memory_space=jax.memory.Space.Device
    ), []
