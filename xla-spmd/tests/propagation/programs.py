"""Programs whose propagated shardings `capture.py` records, over meshes of eight devices."""

import collections
import random

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental.shard_alike import shard_alike
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

Program = collections.namedtuple("Program", "function shapes arguments mesh results edits")
PROGRAMS = {}

DEVICES = np.array(jax.devices())
mesh = Mesh(DEVICES.reshape(2, 4), ("x", "y"))
mesh3 = Mesh(DEVICES.reshape(2, 2, 2), ("x", "y", "z"))
mesh1 = Mesh(DEVICES, ("x",))
N = None
U = P.UNCONSTRAINED


def case(name, function, shapes, arguments, mesh=mesh, results=None, edits=()):
    PROGRAMS[name] = Program(function, shapes, arguments, mesh, results, edits)


def wsc(x, *spec, m=mesh):
    return lax.with_sharding_constraint(x, NamedSharding(m, P(*spec)))


# contractions
case("mlp", lambda x, a, b: jnp.maximum(x @ a, 0) @ b, [(8, 16), (16, 32), (32, 16)], [P("x", N), P(N, "y"), P("y", N)])
case(
    "mlp_grad",
    jax.grad(lambda a, b, x: (jnp.maximum(x @ a, 0) @ b).sum(), argnums=(0, 1)),
    [(16, 32), (32, 16), (8, 16)],
    [P(N, "y"), P("y", N), P("x", N)],
)
case(
    "fsdp",
    jax.grad(lambda a, b, x: (jnp.tanh(x @ a) @ b).sum(), argnums=(0, 1)),
    [(16, 32), (32, 16), (8, 16)],
    [P("x", N), P("x", N), P("x", N)],
)


def attn(x, wq, wk, wv, wo):
    b, s, d = x.shape
    h = 4
    q, k, v = [(x @ w).reshape(b, s, h, -1).transpose(0, 2, 1, 3) for w in (wq, wk, wv)]
    p = jax.nn.softmax(q @ k.swapaxes(-1, -2) / 4.0, axis=-1)
    return x + (p @ v).transpose(0, 2, 1, 3).reshape(b, s, -1) @ wo


case("attention_megatron", attn, [(4, 8, 16)] + [(16, 16)] * 4, [P("x", N, N)] + [P(N, "y")] * 3 + [P("y", N)])
case(
    "attention_grad",
    jax.grad(lambda *a: attn(*a).sum(), argnums=(0, 1, 2, 3, 4)),
    [(4, 8, 16)] + [(16, 16)] * 4,
    [P("x", N, N)] + [P(N, "y")] * 3 + [P("y", N)],
)
case(
    "attention_2d",
    attn,
    [(4, 8, 16)] + [(16, 16)] * 4,
    [P("x", N, "y")] + [P("x", "y")] * 4,
)
case("dot_conflict", lambda a, b: a @ b, [(8, 16), (16, 8)], [P("x", N), P(N, "x")])
case("dot_contracting", lambda a, b: a @ b, [(8, 16), (16, 8)], [P(N, "x"), P("x", N)])
case("dot_conflict_2", lambda a, b, c: a @ b + c, [(8, 16), (16, 8), (8, 8)], [P("x", "y"), P(N, "x"), P("y", "x")])
case("batch_dot", lambda a, b: jnp.einsum("bij,bjk->bik", a, b), [(4, 8, 16), (4, 16, 8)], [P("x", N, N), P(N, N, "y")])
# elementwise and conflicts
case("add_conflict", lambda a, b: a + b, [(8, 8), (8, 8)], [P("x", N), P("y", N)])
case("add_conflict_2", lambda a, b: jnp.sin(a) + jnp.cos(b), [(8, 8), (8, 8)], [P("x", N), P(N, "x")])
case("add_three", lambda a, b, c: (a + b) * c, [(8, 8)] * 3, [P("x", N), P(N, "y"), P("y", "x")])
case("add_uneven", lambda a, b: a * 2 + b, [(8, 8), (8, 8)], [P("x", N), P("y", "x")])
case("multi_use", lambda a, b: (jnp.sin(a) @ b, jnp.sin(a) + 1, a.sum()), [(8, 8), (8, 8)], [N, P("x", "y")])
case(
    "constants",
    lambda a, b: (a + jnp.zeros((8, 8)), b * jnp.zeros((8, 8)), jnp.zeros((8, 8))),
    [(8, 8), (8, 8)],
    [P("x", N), P(N, "y")],
)
case(
    "iota",
    lambda a, b: (a + jnp.arange(8.0)[:, N], b + jnp.arange(8.0)[N, :]),
    [(8, 8), (8, 8)],
    [P("x", "y"), P("y", N)],
)
case("scalar_expansion", lambda a, b, c: (a + c * 2, b * (c * 2)), [(8, 8), (8, 4), ()], [P("x", N), P("y", "x"), P()])
# constraints
case("constraint", lambda a, b: wsc(a @ b, "y", N) + 1, [(8, 16), (16, 8)], [P("x", N), N])
case("constraint_chain", lambda a: (wsc(wsc(a * 2, "x", N), N, "y") + 1, a + 2), [(8, 8)], [N])
case("constraint_chain_use", lambda a: (lambda t: (wsc(wsc(t, "x", N), N, "y") + 1, jnp.sin(t)))(a * 2), [(8, 8)], [N])
case("constraint_two", lambda a: (lambda t: wsc(t, "x", N) + wsc(t, N, "y"))(a * 2), [(8, 8)], [N])
case("constraint_same", lambda a: (lambda t: wsc(t, "x", N) + jnp.sin(wsc(t, "x", N)))(a * 2), [(8, 8)], [N])
case("constraint_open", lambda a, b: wsc(a * 2, "x", U) + b, [(8, 8), (8, 8)], [N, P(N, "y")])
case("constraint_constant", lambda a: a + wsc(jnp.zeros((8, 8)), "x", N), [(8, 8)], [P(N, "y")])
case("replicated_closed", lambda a, b: wsc(a + b, N, N) * 2, [(8, 8), (8, 8)], [P("x", N), P("x", N)])
# shapes
case("reshape_merge", lambda a: jnp.sin(a.reshape(8 * 4, 8)) + 1, [(8, 4, 8)], [P("x", N, "y")], mesh)
case("reshape_merge_2", lambda a: jnp.sin(a.reshape(8 * 4, 6)) + 1, [(8, 4, 6)], [P("x", "y", N)])
case("reshape_split", lambda a: jnp.sin(a.reshape(4, 8, 4)) + 1, [(32, 4)], [P(("x", "y"), N)])
case("reshape_split_sub", lambda a: jnp.sin(a.reshape(2, 16, 4)) + 1, [(32, 4)], [P("y", N)])
case("reshape_back", lambda a, b: a.reshape(32, 4) + b, [(2, 16, 4), (32, 4)], [N, P("y", "x")])
case(
    "reshape_uneven",
    lambda a: jnp.sin(a.reshape(6, 4)),
    [(24,)],
    [
        P(
            ("y", "x"),
        )
    ],
)
case("transpose", lambda a, b: a.transpose(2, 0, 1) * b, [(8, 4, 6), (6, 8, 4)], [P("x", "y", N), N])
case("slice_pad", lambda a: jnp.pad(a[:, 2:6] * 2, ((0, 0), (1, 3))) + 1, [(8, 8)], [P("x", "y")])
case("concat", lambda a, b: jnp.concatenate([a, b], 1) * 2, [(8, 4), (8, 12)], [P("x", "y"), N])
case("roll", lambda a: jnp.roll(a, 3, 1) * 2, [(8, 8)], [P("x", "y")])
case("reverse", lambda a: a[:, ::-1] * 2, [(8, 8)], [P("x", "y")])
case("broadcast", lambda a, b: jnp.broadcast_to(a[:, N], (8, 16)) + b, [(8,), (8, 16)], [N, P("x", "y")])
case("broadcast_forward", lambda a: jnp.broadcast_to(a[:, N], (8, 16)) * 2, [(8,)], [P("x")])
case("expand", lambda a, b: a + b, [(8, 1), (8, 16)], [P("x", N), P(N, "y")])
# reductions, windows
case("reduce", lambda a: (a.sum(0), a.max(1), a.mean()), [(8, 16)], [P("x", "y")])
case("argmax", lambda a: jnp.argmax(a, 1), [(8, 16)], [P("x", "y")])
case("softmax", lambda a: jax.nn.softmax(a, -1), [(8, 16)], [P("x", "y")])
case(
    "layer_norm",
    lambda a, g: (a - a.mean(-1, keepdims=True)) / jnp.sqrt(a.var(-1, keepdims=True) + 1e-5) * g,
    [(8, 16), (16,)],
    [P("x", N), P("y")],
)
case("cumsum", lambda a: jnp.cumsum(a, 1) * 2, [(8, 16)], [P("x", "y")])
case(
    "conv",
    lambda a, k: lax.conv_general_dilated(a, k, (1, 1), "SAME") * 2,
    [(4, 8, 8, 8), (16, 8, 3, 3)],
    [P("x", N, N, N), P("y", N, N, N)],
)
case(
    "conv_spatial",
    lambda a, k: lax.conv_general_dilated(a, k, (1, 1), "SAME") * 2,
    [(4, 8, 8, 8), (16, 8, 3, 3)],
    [P(N, N, "x", "y"), N],
)
case(
    "conv_grad",
    jax.grad(lambda a, k: lax.conv_general_dilated(a, k, (1, 1), "SAME").sum(), argnums=(0, 1)),
    [(4, 8, 8, 8), (16, 8, 3, 3)],
    [P("x", "y", N, N), P(N, "y", N, N)],
)
case(
    "conv_groups",
    lambda a, k: lax.conv_general_dilated(a, k, (1, 1), "SAME", feature_group_count=4) * 2,
    [(4, 8, 8, 8), (16, 2, 3, 3)],
    [P("x", "y", N, N), N],
)
case(
    "max_pool",
    lambda a: lax.reduce_window(a, -jnp.inf, lax.max, (1, 2, 2), (1, 2, 2), "VALID") * 2,
    [(4, 8, 8)],
    [P("x", "y", N)],
)
# indexing
case("gather_rows", lambda a, i: a[i.astype(jnp.int32)] * 2, [(16, 8), (6,)], [P("x", "y"), N])
case("gather_rows_split", lambda a, i: a[i.astype(jnp.int32)] * 2, [(16, 8), (8,)], [P(N, "y"), P("x")])
case("take_along", lambda a, i: jnp.take_along_axis(a, i.astype(jnp.int32), 1) * 2, [(8, 16), (8, 4)], [P("x", N), N])
case(
    "scatter_add", lambda a, i, u: a.at[i.astype(jnp.int32)].add(u) * 2, [(16, 8), (8,), (8, 8)], [P(N, "y"), P("x"), N]
)
case(
    "embedding_grad",
    jax.grad(lambda a, i: (a[i.astype(jnp.int32)] ** 2).sum()),
    [(16, 8), (4, 8)],
    [P("x", "y"), P("x", N)],
)
case(
    "dynamic_slice",
    lambda a, i: lax.dynamic_slice(a, (i.astype(jnp.int32), 0), (4, 16)) * 2,
    [(8, 16), ()],
    [P("x", "y"), P()],
)
case(
    "dynamic_update",
    lambda a, u, i: lax.dynamic_update_slice(a, u, (i.astype(jnp.int32), 0)) * 2,
    [(8, 16), (2, 16), ()],
    [P("x", "y"), N, P()],
)
case("sort", lambda a: jnp.sort(a, 1) * 2, [(8, 16)], [P("x", "y")])
case("top_k", lambda a: lax.top_k(a * 2, 4), [(8, 16)], [P("x", "y")])
case("fft", lambda a: jnp.abs(jnp.fft.fft(a)), [(8, 16)], [P("x", "y")])
case("one_hot", lambda i, w: jax.nn.one_hot(i.astype(jnp.int32), 16) @ w, [(8,), (16, 8)], [P("x"), P("y", N)])


# control flow
def scan(a, w1, w2):
    def body(c, _):
        h = wsc(jnp.tanh(c @ w1), "x", N)
        return h @ w2 + 1.0, h.sum()

    return lax.scan(body, a, N, length=3)


case("scan_capture", scan, [(8, 16), (16, 32), (32, 16)], [P("x", N), P(N, "y"), N])
case(
    "scan_layers",
    lambda x, ws: lax.scan(lambda c, w: (jnp.tanh(c @ w), c.sum(1)), x, ws),
    [(8, 16), (3, 16, 16)],
    [P("x", N), P(N, N, "y")],
)
case(
    "scan_grad",
    jax.grad(lambda ws, x: lax.scan(lambda c, w: (jnp.tanh(c @ w), N), x, ws)[0].sum()),
    [(3, 16, 16), (8, 16)],
    [P(N, "y", N), P("x", N)],
)
case(
    "while",
    lambda a, b: lax.while_loop(lambda c: c[0].sum() < 9, lambda c: (c[0] + c[1].T, c[1] * 2), (a, b)),
    [(8, 8), (8, 8)],
    [P("x", N), N],
)
case("fori", lambda a, b: lax.fori_loop(0, 4, lambda i, c: c @ b + a, a), [(8, 8), (8, 8)], [P("x", N), P(N, "y")])
case(
    "nested_loops",
    lambda a, b: lax.fori_loop(0, 2, lambda i, c: lax.fori_loop(0, 3, lambda j, d: d @ b, c) + 1, a),
    [(8, 8), (8, 8)],
    [P("x", N), P(N, "y")],
)
case(
    "cond",
    lambda a, b, p: lax.cond(p[()] > 0, lambda a, b: a @ b, lambda a, b: a - b, a, b) * 2,
    [(8, 8), (8, 8), ()],
    [P("x", N), P(N, "y"), P()],
)
case(
    "cond_constraint",
    lambda a, p: lax.cond(p > 0, lambda a: wsc(a * 2, "x", "y"), lambda a: a - 1, a) * 2,
    [(8, 8), ()],
    [N, P()],
)
case("barrier", lambda a, b: lax.optimization_barrier((a * 2, b + 1)), [(8, 8), (8, 8)], [P("x", N), P(N, "y")])
case("call", lambda a, b: jax.jit(lambda t: jnp.sin(t) @ b)(a * 2) + 1, [(8, 8), (8, 8)], [P("x", N), P(N, "y")])
case("remat", jax.grad(jax.checkpoint(lambda a, x: jnp.sin(x @ a).sum())), [(16, 16), (8, 16)], [P(N, "y"), P("x", N)])
# results, groups, manual
case("out_sharding", lambda a, b: (a @ b, a + 1), [(8, 16), (16, 8)], [N, N], mesh, (P("x", "y"), N))
case("out_sharding_2", lambda a, b: (a @ b) * 2, [(8, 16), (16, 8)], [P("x", N), N], mesh, P("y", "x"))
case(
    "shard_alike",
    lambda a, b: (lambda t: (t[0] * 2, t[1] + 1))(shard_alike(jnp.sin(a), jnp.cos(b))),
    [(8, 8), (8, 8)],
    [P("x", "y"), N],
)
case(
    "shard_map",
    lambda a, b: jax.shard_map(
        lambda u, v: u @ lax.all_gather(v, "x", tiled=True),
        mesh=mesh,
        in_specs=(P("x", N), P("x", "y")),
        out_specs=P("x", "y"),
    )(a * 2, jnp.sin(b))
    + 1,
    [(8, 8), (8, 8)],
    [N, N],
)
case(
    "random",
    lambda k, a: jax.random.normal(jax.random.wrap_key_data(k.astype(jnp.uint32)), (8, 8)) + a,
    [(2,), (8, 8)],
    [N, P("x", "y")],
)
# three axes
case(
    "three_axes",
    lambda a, b, c: jnp.tanh(a @ b) @ c,
    [(16, 16), (16, 16), (16, 16)],
    [P("x", "y"), P("y", "z"), P("z", "x")],
    mesh3,
)
case(
    "three_axes_compound",
    lambda a, b, c: jnp.tanh(a @ b) + c,
    [(16, 16), (16, 16), (16, 16)],
    [P(("x", "y"), N), P(N, "z"), P(("x",), ("z", "y"))],
    mesh3,
)
case(
    "moe",
    lambda x, g, w: jnp.einsum(
        "bse,becd->bsd", jax.nn.softmax(jnp.einsum("bsd,de->bse", x, g)), jnp.einsum("bsd,edc->becd", x, w)
    ),
    [(4, 8, 16), (16, 4), (4, 16, 8)],
    [P("x", N, N), N, P("y", N, "z")],
    mesh3,
)
case(
    "conv_net",
    jax.grad(
        lambda k, w, x: (jax.nn.relu(lax.conv_general_dilated(x, k, (1, 1), "SAME")).reshape(4, -1) @ w).sum(),
        argnums=(0, 1),
    ),
    [(8, 4, 3, 3), (512, 8), (4, 4, 8, 8)],
    [N, P(N, "y"), P("x", N, N, N)],
)
case("fft_batch", lambda a: jnp.fft.rfft(a).real * 2, [(8, 16)], [P(("x", "y"), N)], mesh3)
case("uneven", lambda a, b: jnp.sin(wsc(a, "x", N, m=mesh1)) @ b, [(6, 8), (8, 8)], [N, P(N, N)], mesh1)
case("eight", lambda a: jnp.sin(a.reshape(4, 6, 5).transpose(1, 0, 2)) * 2, [(24, 5)], [P("x", N)], mesh1)
case("eight_merge", lambda a, b: a.reshape(24, 5) * b, [(2, 12, 5), (24, 5)], [N, P("x", N)], mesh1)

# linear algebra and custom calls
SYMMETRIC = lambda a: a @ a.swapaxes(-1, -2) + 9 * jnp.eye(a.shape[-1])
case("cholesky", lambda a: jnp.linalg.cholesky(SYMMETRIC(a)) * 2, [(4, 8, 8)], [P("x", N, "y")])
case(
    "triangular_solve",
    lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True) * 2,
    [(4, 8, 8)] * 2,
    [P("x", N, N), P(N, N, "y")],
)
case("qr", lambda a: [x * 2 for x in jnp.linalg.qr(a)], [(4, 8, 8)], [P("x", "y", N)])
case("eigh", lambda a: [x * 2 for x in jnp.linalg.eigh(SYMMETRIC(a))], [(4, 8, 8)], [P("x", N, N)])
case("svd", lambda a: jnp.linalg.svd(a)[1] * 2, [(4, 8, 8)], [P("x", N, N)])
case("solve", lambda a, b: jnp.linalg.solve(a, b), [(4, 8, 8)] * 2, [P("x", N, N), P("x", N, "y")])
case("approx_max_k", lambda a: [x * 2 for x in lax.approx_max_k(a, 4)], [(8, 64)], [P("x", "y")])
case("erf", lambda a: lax.erf(a) * lax.lgamma(a), [(8, 16)], [P("x", "y")])
case("associative_scan", lambda a: lax.associative_scan(jnp.add, a, axis=1), [(8, 16)], [P("x", "y")])
case(
    "vmap_dot",
    jax.vmap(lambda a, b: jnp.dot(a, b) + b.sum(), in_axes=(0, None)),
    [(8, 16), (16, 4)],
    [P("x", N), P("y", N)],
)
case(
    "switch",
    lambda a, i: lax.switch(i.astype(jnp.int32), [jnp.sin, jnp.cos, lambda x: x * 2], a) + 1,
    [(8, 16), ()],
    [P("x", "y"), P()],
)
case(
    "cross_entropy",
    jax.grad(lambda w, x, t: -(jax.nn.log_softmax(x @ w) * jax.nn.one_hot(t.astype(jnp.int32), 16)).sum()),
    [(8, 16), (8, 8), (8,)],
    [P(N, "y"), P("x", N), P("x")],
)
case(
    "adam",
    lambda w, m, v, g: (
        w - 0.1 * (0.9 * m + 0.1 * g) / (jnp.sqrt(0.99 * v + 0.01 * g * g) + 1e-8),
        0.9 * m + 0.1 * g,
        0.99 * v + 0.01 * g * g,
    ),
    [(8, 16)] * 4,
    [P("x", "y"), N, N, P(N, "y")],
)

# user priorities, which JAX has no API for
XY = '[{"x"}, {"y"}]'
case("priority", lambda a, b: a + b, [(8, 8), (8, 8)], [P("x", "y"), P("y", "x")], edits=[(XY, '[{"x"}p1, {"y"}p2]')])
case(
    "priority_dot",
    lambda a, b: jnp.tanh(a @ b) @ b,
    [(8, 8), (8, 8)],
    [P("x", "y"), P("y", "x")],
    edits=[(XY, '[{"x"}p1, {"y"}]'), ('[{"y"}, {"x"}]', '[{"y", ?}p2, {"x"}p1]')],
)
case(
    "priority_constraint",
    lambda a, b: wsc(a * 2, "x", N) @ b + a,
    [(8, 8), (8, 8)],
    [P("y", N), P(N, "x")],
    edits=[('[{"x"}, {}]', '[{"x"}p1, {}]')],
)


def random_spec(r, mesh, shape):
    axes = list(mesh.axis_names)
    r.shuffle(axes)
    spec = []
    for size in shape:
        taken = []
        for _ in range(r.choice([0, 0, 1, 1, 2])):
            if not axes or size % mesh.shape[axes[-1]]:
                break
            size //= mesh.shape[axes[-1]]
            taken.append(axes.pop())
        spec.append(None if not taken else taken[0] if len(taken) == 1 else tuple(taken))
    return P(*spec)


def random_shape(a, x):
    """Chooses another shape for the elements of `x`."""
    n = x.size
    shapes = [(n,)] + [(p, n // p) for p in (2, 4, 8, 6, 12) if n % p == 0]
    shapes += [(p, q, n // p // q) for p in (2, 4) for q in (4, 3) if n % (p * q) == 0]
    return shapes[int(a * len(shapes))]


def random_dot(a, x, pool):
    fits = lambda y: y.ndim and y.shape[0] == x.shape[-1] and x.ndim + y.ndim - 2 <= 3
    others = [y for y in pool if fits(y)]
    return jnp.tensordot(x, others[int(a * len(others))], 1) if others else jnp.sin(x)


def random_operation(kind, a, b, x, pool, mesh):
    same = [y for y in pool if y.shape == x.shape]
    y = same[int(a * len(same))]
    if x.ndim == 0:
        return x + y
    d = int(b * x.ndim)
    constraint = lambda: wsc(x, *random_spec(random.Random(int(b * 1e9)), mesh, x.shape), m=mesh)
    operations = [
        (15, lambda: x + y),
        (7, lambda: x * y),
        (5, lambda: jnp.tanh(x)),
        (15, lambda: random_dot(a, x, pool)),
        (8, lambda: jnp.transpose(x, tuple(np.roll(np.arange(x.ndim), 1 + int(b * 2))))),
        (10, lambda: x.reshape(random_shape(a, x))),
        (6, lambda: x.sum(d)),
        (4, lambda: jnp.broadcast_to(x[..., None], x.shape + (8,)) if x.ndim < 3 else x + 1),
        (4, lambda: jax.nn.softmax(x, -1)),
        (4, lambda: lax.slice_in_dim(x, 0, max(x.shape[d] // 2, 1), axis=d)),
        (4, lambda: jnp.concatenate([x, y], d)),
        (3, lambda: jnp.cumsum(x, d)),
        (9, constraint),
        (3, lambda: lax.fori_loop(0, 3, lambda i, t: jnp.tanh(t) + y, x)),
        (3, lambda: lax.cond(x.sum() > 0, lambda u, v: u + v, lambda u, v: u * v, x, y)),
    ]
    rest = kind * sum(weight for weight, _ in operations)
    for weight, operation in operations:
        rest -= weight
        if rest < 0:
            return operation()
    return operations[-1][1]()


def random_program(seed):
    r = random.Random(seed)
    m = r.choice([mesh, mesh3, Mesh(DEVICES.reshape(4, 2), ("x", "y"))])
    shapes = [tuple(r.choice([4, 8, 12, 16]) for _ in range(r.choice([1, 2, 2, 2, 3]))) for _ in range(r.randint(2, 4))]
    shapes[1] = shapes[0]
    arguments = [None if r.random() < 0.35 else random_spec(r, m, shape) for shape in shapes]
    plan = [[r.random() for _ in range(4)] for _ in range(r.randint(6, 16))]

    def function(*inputs):
        pool = list(inputs)
        for kind, which, a, b in plan:
            pool.append(random_operation(kind, a, b, pool[int(which * len(pool))], pool, m))
        return tuple(pool[len(inputs) :][-3:])

    case(f"random_{seed}", function, shapes, arguments, m)


for seed in range(100):
    random_program(seed)
