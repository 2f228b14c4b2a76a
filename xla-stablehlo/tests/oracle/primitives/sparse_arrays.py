"""Sparse arrays."""

import functools
import jax.experimental.sparse as sparse
import jax.experimental.sparse.linalg
import jax.numpy as jnp
import numpy as np

from .inputs import numbers


def sparse_arrays():
    dense = np.zeros((4, 5), np.float32)
    dense[[0, 1, 3], [1, 4, 0]] = [1, 2, 3]
    m, v = numbers("float32", 5, 3), numbers("float32", 5)
    coordinates, rows = sparse.BCOO.fromdense(dense), sparse.BCSR.fromdense(dense)
    yield "bcoo_todense", lambda a: a.todense(), [coordinates]
    yield "bcoo_fromdense", lambda x: sparse.BCOO.fromdense(x, nse=3), [jnp.asarray(dense)]
    yield "bcoo_dot_general", lambda a, m: a @ m, [coordinates, m]
    yield "bcoo_dot_general_sampled", lambda a, b, i: sparse.bcoo_dot_general_sampled(
        a, b, i, dimension_numbers=(((1,), (0,)), ((), ()))
    ), [jnp.asarray(dense), m, jnp.array([[0, 1], [2, 2]])]
    yield "bcoo_spdot_general", lambda a: a @ a.T, [coordinates]
    yield "bcoo_extract", lambda a, x: sparse.bcoo_extract(a, x), [coordinates, jnp.asarray(dense)]
    yield "bcoo_sort_indices", lambda a: a.sort_indices(), [coordinates]
    yield "bcoo_sum_duplicates", lambda a: a.sum_duplicates(nse=4), [coordinates]
    yield "bcoo_transpose", lambda a: a.T, [coordinates]
    yield "bcsr_todense", lambda a: a.todense(), [rows]
    yield "bcsr_fromdense", lambda x: sparse.BCSR.fromdense(x, nse=3), [jnp.asarray(dense)]
    yield "bcsr_extract", lambda a, x: sparse.bcsr_extract(a.indices, a.indptr, x), [rows, jnp.asarray(dense)]
    yield "bcsr_dot_general", lambda a, m: a @ m, [rows, m]
    for name in ["COO", "CSR"]:
        a = getattr(sparse, name).fromdense(dense)
        yield f"{name.lower()}_todense", lambda a: a.todense(), [a]
        yield f"{name.lower()}_matvec", lambda a, v: a @ v, [a, v]
        yield f"{name.lower()}_matmat", lambda a, m: a @ m, [a, m]
        yield f"{name.lower()}_fromdense", functools.partial(
            lambda x, f: f(x, nse=3), f=getattr(sparse, name).fromdense
        ), [jnp.asarray(dense)]
    yield "todense", sparse.todense, [coordinates]
    yield "spsolve", lambda d, i, p, b: sparse.linalg.spsolve(d, i, p, b), [
        jnp.ones(3, jnp.float32),
        jnp.arange(3, dtype=jnp.int32),
        jnp.arange(4, dtype=jnp.int32),
        v[:3],
    ]
