"""Writes tests/data/targets/VERSION.mlirbc: one program, serialised by jaxlib for several versions of VHLO.

Needs jax 0.10.2. The program has what the encodings differ in: regions with and without captures, attributes of
operations, several results, constants that are splats and that are not.
"""

import pathlib

import jax
import jax.numpy as jnp
import numpy as np
from jaxlib.mlir.dialects import stablehlo

TARGETS = ["0.9.0", "0.10.0", "0.12.0", "0.14.0", "0.19.0", "1.0.0", "1.7.0", "1.13.7", "1.17.0"]


def program(x, n):
    weights = np.arange(6, dtype=np.float32).reshape(2, 3)
    mask = np.array([True, False, True])

    def body(state):
        i, value = state
        return i + 1, jnp.where(mask, value @ weights.T @ weights, value) + i.astype(jnp.float32)

    _, y = jax.lax.while_loop(lambda state: state[0] < n, body, (jnp.int32(0), x))
    order, keys = jax.lax.sort([jnp.sum(y, axis=0), jnp.arange(3, dtype=jnp.int8)], num_keys=1)
    return order, jnp.max(keys), jax.lax.cond(n > 3, lambda: y * 2, lambda: y)


def main():
    folder = pathlib.Path(__file__).parent / "data" / "targets"
    folder.mkdir(parents=True, exist_ok=True)
    arguments = jnp.zeros((4, 3), jnp.float32), jnp.int32(5)
    module = jax.jit(program).lower(*arguments).compiler_ir("stablehlo")
    for target in TARGETS:
        text = str(module)
        data = stablehlo.serialize_portable_artifact_str(text, target)
        (folder / f"{target}.mlirbc").write_bytes(data)


if __name__ == "__main__":
    main()
