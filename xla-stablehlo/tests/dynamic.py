"""Writes tests/data/dynamic.zip: programs of JAX with symbolic shapes, arguments for them, and their results.

Needs jax 0.10.2. NAME.mlirbc is what `jax.export` writes; NAME.arguments and NAME.results have an HLO literal a line.
"""

import pathlib
import zipfile

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

PATH = pathlib.Path(__file__).parent / "data" / "dynamic.zip"
TYPES = {"float32": "f32", "int32": "s32", "uint32": "u32", "bool": "pred"}
f32 = np.float32
r = np.random.RandomState(0)
x = r.randn(3, 4).astype(f32)
w = r.randn(4, 5).astype(f32)


def literal(array):
    """The array as an HLO literal in one line."""
    array = np.asarray(array)

    def text(part):
        if part.ndim:
            return "{" + ", ".join(text(row) for row in part) + "}"
        return str(part).lower().replace("-inf", "-inf")

    return f"{TYPES[array.dtype.name]}[{','.join(map(str, array.shape))}] {text(array)}"


def programs():
    """Name, function, symbolic shapes and arguments."""
    yield "mlp", lambda x,w: jax.nn.softmax(jnp.tanh(x@w)), ["b,4", "4,5"], [x,w]
    yield "reshape", lambda x: x.reshape(-1).sum()+jnp.arange(x.shape[0]).sum(), ["b,4"], [x]
    yield "concat", lambda x: jnp.concatenate([x,x*2],0)[1:,:], ["b,_"], [x]
    yield "slice", lambda x: x[x.shape[0]//2:, ::2], ["2*b,4"], [r.randn(6,4).astype(f32)]
    yield "pad", lambda x: jnp.pad(x,((1,2),(0,0))), ["b,4"], [x]
    yield "mean", lambda x: x.mean(0)+x.var(), ["b,4"], [x]
    yield "scan", lambda x: jax.lax.scan(lambda c,y:(c+y,c*y),jnp.zeros(4,f32),x), ["b,4"], [x]
    yield "while", lambda x: jax.lax.fori_loop(0,x.shape[0],lambda i,y:y+jnp.asarray(x)[i],jnp.zeros_like(x)), ["b,4"], [x]
    yield "cond", lambda x: jax.lax.cond(x.sum()>0,lambda y:y*2,lambda y:y-y.shape[0],x), ["b,4"], [x]
    yield "gather", lambda x,i: x[i], ["b,4", "n"], [x,np.array([2,0],np.int32)]
    yield "conv", lambda x,k: jax.lax.conv_general_dilated(x,k,(1,1),"SAME"), ["b,2,h,w", "3,2,3,3"], [r.randn(2,2,5,6).astype(f32),r.randn(3,2,3,3).astype(f32)]
    yield "pool", lambda x: jax.lax.reduce_window(x,-jnp.inf,jax.lax.max,(1,1,2,2),(1,1,2,2),"VALID"), ["b,2,2*h,w"], [r.randn(2,2,6,6).astype(f32)]
    yield "sort", lambda x: jnp.sort(x,0), ["b,4"], [x]
    yield "cumsum", lambda x: jnp.cumsum(x,0), ["b,4"], [x]
    yield "topk", lambda x: jax.lax.top_k(x,2), ["b,4"], [x]
    yield "attention", lambda q,k: jnp.einsum("bij,bkj->bik",q,k), ["b,t,8", "b,s,8"], [r.randn(2,3,8).astype(f32),r.randn(2,5,8).astype(f32)]
    yield "jitted", lambda x: jax.jit(lambda y: jnp.repeat(y,2,axis=0).sum(0)+jax.jit(lambda z: jnp.var(z,0))(y))(x), ["b,4"], [x]
    yield "erf", lambda x: jax.scipy.special.erf(x)+jax.scipy.special.gammaln(jnp.abs(x)), ["b,4"], [x]
    yield "random", lambda x: jax.random.normal(jax.random.key(0),x.shape)+x, ["b,4"], [x]
    yield "split", lambda x: jnp.split(x,2,axis=1), ["b,2*c"], [x]
    yield "broadcast", lambda x,y: x+y, ["b,1", "1,c"], [x[:,:1],x[:1]]
    yield "linalg", lambda x: jnp.linalg.cholesky(x@x.T+jnp.eye(x.shape[0])*5), ["b,4"], [x]
    yield "grad", lambda x,w: jax.grad(lambda w: jnp.tanh(x@w).sum())(w), ["b,4", "4,5"], [x,w]
    yield "dus", lambda x: jax.lax.dynamic_update_slice(jnp.zeros((x.shape[0]+2,4),f32),x,(1,0)), ["b,4"], [x]
    yield "dslice", lambda x,i: jax.lax.dynamic_slice(x,(i,0),(x.shape[0]-1,4)), ["b,4", ""], [x,np.int32(1)]
    yield "flip", lambda x: x[::-1].T, ["b,4"], [x]
    yield "onehot", lambda i: jax.nn.one_hot(i,5), ["n"], [np.array([1,3],np.int32)]
    yield "argmax", lambda x: jnp.argmax(x,0), ["b,4"], [x]
    yield "where", lambda x: jnp.where(x>0,x,jnp.float32(x.shape[0])), ["b,4"], [x]
    yield "fft", lambda x: jnp.abs(jnp.fft.fft(x,axis=1)), ["b,4"], [x]
    yield "scatter", lambda x,i: jnp.asarray(x).at[i].add(1.), ["b,4", "n"], [x,np.array([2,0],np.int32)]
    yield "bitcast", lambda x: jax.lax.bitcast_convert_type(x,jnp.int32), ["b,4"], [x]
    yield "two", lambda x,y: (jax.jit(jnp.flip)(x),jax.jit(jnp.flip)(y)), ["b,4", "c,4"], [x,x[:2]]
    yield "mod", lambda x: x.reshape(x.shape[0]//3, 3, 4).max(1), ["3*b,4"], [r.randn(6,4).astype(f32)]
    yield "rbg", lambda k,x: jax.lax.rng_bit_generator(k,(x.shape[0],4))[1], ["4", "b,4"], [np.array([1,2,3,4],np.uint32),x]
    yield "topk_k", lambda x: jax.lax.top_k(x,x.shape[1]//2), ["b,c"], [x]
    yield "nested", lambda x: jax.lax.fori_loop(0,3,lambda i,c: jax.lax.cond(i>1,lambda: c+jnp.arange(c.shape[0],dtype=f32)[:,None],lambda: c*2.),x), ["b,4"], [x]
    yield "dynupd", lambda x,i: x+jax.lax.dynamic_update_slice(jnp.zeros((x.shape[0]*2,4),f32),x,(i,0))[:x.shape[0]], ["b,4", ""], [x,np.int32(1)]
    yield "median", lambda x: jnp.median(x,axis=0), ["b,4"], [x]
    yield "norm", lambda x: (x-x.mean(0,keepdims=True))/jnp.sqrt(x.var(0,keepdims=True)+1e-5), ["b,4"], [x]
    yield "tri", lambda x: jnp.tril(x@x.T), ["b,4"], [x]
    yield "avgpool", lambda x: jax.lax.reduce_window(x,0.,jax.lax.add,(1,x.shape[1]),(1,1),"VALID"), ["b,c"], [x]


def main():
    with zipfile.ZipFile(PATH, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        def put(name, data):
            archive.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)

        for name, function, specs, arguments in programs():
            shapes = export.symbolic_args_specs(arguments, specs)
            exported = export.export(jax.jit(function))(*shapes)
            put(f"{name}.mlirbc", exported.mlir_module_serialized)
            put(f"{name}.arguments", "\n".join(map(literal, arguments)))
            put(f"{name}.results", "\n".join(map(literal, jax.tree.leaves(function(*arguments)))))


if __name__ == "__main__":
    main()
