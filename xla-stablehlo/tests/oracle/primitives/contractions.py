"""Dots, convolutions, Fourier transforms, linear algebra."""

import functools
import jax
import jax.numpy as jnp
from jax import lax

from .inputs import FLOATS, SHORT, matrix, numbers


def contractions():
    for dtype in FLOATS + ["int32", "complex64"]:
        yield f"dot_general_{SHORT[dtype]}", lambda x, y: x @ y, [numbers(dtype, 3, 4), numbers(dtype, 4, 5)]
    a, b = numbers("float32", 2, 3, 4), numbers("float32", 2, 4, 5)
    yield "dot_general_batch", lambda x, y: lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,)))), [a, b]
    yield "dot_general_highest", functools.partial(jnp.matmul, precision="highest"), [a, b]
    yield "dot_general_mixed", functools.partial(jnp.matmul, precision=(lax.Precision.HIGH, lax.Precision.DEFAULT)), [
        a,
        b,
    ]
    yield "dot_general_preferred", lambda x, y: lax.dot_general(
        x, y, (((1,), (0,)), ((), ())), preferred_element_type=jnp.float32
    ), [numbers("bfloat16", 3, 4), numbers("bfloat16", 4, 5)]
    for algorithm in ["BF16_BF16_F32", "BF16_BF16_F32_X3", "F32_F32_F32"]:
        yield f"dot_general_{algorithm.lower()}", functools.partial(
            jnp.matmul, precision=lax.DotAlgorithmPreset[algorithm]
        ), [a[0], b[0]]
    yield "dot_general_int8", lambda x, y: lax.dot_general(
        x, y, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32
    ), [numbers("uint8", 3, 4).astype(jnp.int8), numbers("uint8", 4, 5).astype(jnp.int8)]
    yield "ragged_dot", lax.ragged_dot, [numbers("float32", 6, 4), numbers("float32", 3, 4, 5), jnp.array([1, 3, 2])]
    x, y = numbers("float32", 4, 64).astype(jnp.float8_e4m3fn), numbers("float32", 64, 4).astype(jnp.float8_e4m3fn)
    scales = [jnp.ones((4, 2), jnp.float8_e8m0fnu), jnp.ones((2, 4), jnp.float8_e8m0fnu)]
    yield "scaled_dot", lambda x, y, a, b: lax.scaled_dot(x, y, lhs_scale=a, rhs_scale=b), [x, y, *scales]
    yield "einsum", lambda x, y: jnp.einsum("abc,acd->bd", x, y), [a, b]
    x, k = numbers("float32", 2, 8, 8, 3), numbers("float32", 3, 3, 3, 4)
    conv = functools.partial(lax.conv_general_dilated, dimension_numbers=("NHWC", "HWIO", "NHWC"))
    yield "conv", functools.partial(conv, window_strides=(1, 1), padding="SAME"), [x, k]
    yield "conv_dilated", functools.partial(
        conv, window_strides=(2, 1), padding=((1, 0), (2, 1)), lhs_dilation=(1, 2), rhs_dilation=(2, 1)
    ), [x, k]
    yield "conv_grouped", functools.partial(conv, window_strides=(1, 1), padding="VALID", feature_group_count=3), [
        x,
        numbers("float32", 3, 3, 1, 6),
    ]
    yield "conv_batch_grouped", functools.partial(conv, window_strides=(1, 1), padding="VALID", batch_group_count=2), [
        x,
        k,
    ]
    yield "conv_highest", functools.partial(conv, window_strides=(1, 1), padding="SAME", precision="highest"), [x, k]
    yield "conv_gradient", jax.grad(
        lambda x, k: jnp.sum(conv(x, k, window_strides=(2, 2), padding="SAME") ** 2), argnums=(0, 1)
    ), [x, k]
    yield "conv_complex", functools.partial(conv, window_strides=(1, 1), padding="SAME"), [
        x.astype(jnp.complex64),
        k.astype(jnp.complex64),
    ]
    yield "conv_one_dimension", lambda x, k: lax.conv_general_dilated(x, k, (1,), "SAME"), [
        numbers("float32", 1, 2, 9),
        numbers("float32", 3, 2, 3),
    ]
    yield "convolve", jnp.convolve, [numbers("float32", 9), numbers("float32", 3)]
    for kind in ["fft", "ifft"]:
        yield kind, getattr(jnp.fft, kind), [numbers("complex64", 4, 6)]
    yield "rfft", jnp.fft.rfft2, [numbers("float32", 4, 6)]
    yield "irfft", lambda x: jnp.fft.irfft(x, 7), [numbers("complex128", 4, 4)]
    yield "attention", jax.nn.dot_product_attention, [numbers("float32", 1, 4, 2, 8)] * 3


def linear_algebra():
    for dtype in ["float32", "float64", "complex64"]:
        s, a, b = SHORT[dtype], matrix(dtype, 4), numbers(dtype, 4, 2)
        yield f"cholesky_{s}", lambda a: lax.linalg.cholesky(a), [a]
        yield f"triangular_solve_{s}", lambda a, b: lax.linalg.triangular_solve(
            a, b, left_side=True, lower=True, transpose_a=True
        ), [a, b]
        yield f"lu_{s}", lax.linalg.lu, [a]
        yield f"qr_{s}", lambda a: lax.linalg.qr(a, full_matrices=False), [a]
        yield f"svd_{s}", lambda a: lax.linalg.svd(a, full_matrices=False), [a]
        yield f"eigh_{s}", lambda a: lax.linalg.eigh(a), [a]
        yield f"eig_{s}", lambda a: lax.linalg.eig(a), [a]
        yield f"schur_{s}", lambda a: lax.linalg.schur(a), [a]
        yield f"hessenberg_{s}", lambda a: lax.linalg.hessenberg(a), [a]
        yield f"tridiagonal_{s}", lambda a: lax.linalg.tridiagonal(a), [a]
        yield f"solve_{s}", jnp.linalg.solve, [a, b]
        yield f"householder_{s}", lambda a, b: lax.linalg.householder_product(a, b), [a, numbers(dtype, 4)]
        yield f"tridiagonal_solve_{s}", lax.linalg.tridiagonal_solve, [numbers(dtype, 4)] * 3 + [b]
    a = matrix("float32", 4)
    yield "lu_pivots", lambda p: lax.linalg.lu_pivots_to_permutation(p, 4), [jnp.array([1, 2, 3, 3], jnp.int32)]
    yield "cholesky_update", lax.linalg.cholesky_update, [a, numbers("float32", 4)]
    yield "symmetric_product", lambda a: lax.linalg.symmetric_product(a, a), [a]
    yield "geqp3", lambda a: (
        lax.linalg.geqp3(a, jnp.zeros(4, jnp.int32))
        if hasattr(lax.linalg, "geqp3")
        else jax._src.lax.linalg.geqp3(a, jnp.zeros(4, jnp.int32))
    ), [a]
    yield "qr_pivoting", lambda a: lax.linalg.qr(a, pivoting=True), [a]
    yield "ormqr", lambda a, t: jax._src.lax.linalg.ormqr(a, t, a), [a, numbers("float32", 4)]
    yield "geqrf", lambda a: jax._src.lax.linalg.geqrf(a), [a]
    yield "cholesky_gradient", jax.grad(lambda a: jnp.sum(jnp.linalg.cholesky(a))), [a]
    yield "batched_solve", jnp.linalg.solve, [jnp.stack([a, a]), numbers("float32", 2, 4, 1)]
