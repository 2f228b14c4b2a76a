"""Control flow, calls, callbacks."""

import jax
import jax.ad_checkpoint
import jax.experimental.custom_partitioning
import jax.experimental.layout
import jax.numpy as jnp
import numpy as np
from jax import lax

from .inputs import numbers, primitive


def control_flow():
    x = numbers("float32", 4)
    yield "while", lambda x: lax.while_loop(lambda s: jnp.sum(s) < 9, lambda s: s * 1.5, x), [x]
    yield "while_captures", lambda x, y: lax.while_loop(
        lambda s: s[0] < y[0], lambda s: (s[0] + x[1], s[1] * y), (x[0], x)
    ), [x, 9 * x]
    yield "while_batched", jax.vmap(lambda x: lax.while_loop(lambda s: s < 3, lambda s: s * 2, x)), [x]
    yield "while_nested", lambda x: lax.fori_loop(
        0, 3, lambda i, s: lax.fori_loop(0, i, lambda j, t: t + x * j, s), x
    ), [x]
    yield "fori_loop_dynamic", lambda n, x: lax.fori_loop(0, n, lambda i, s: s + x[i % 4], x), [jnp.int32(3), x]
    yield "scan", lambda x: lax.scan(lambda c, y: (c + y, c * y), jnp.float32(0), x), [x]
    yield "scan_reverse", lambda x: lax.scan(lambda c, y: (c + y, (c, y)), jnp.float32(0), x, reverse=True), [x]
    yield "scan_unrolled", lambda x: lax.scan(lambda c, y: (jnp.sin(c) + y, c), jnp.float32(0), x, unroll=2), [x]
    yield "scan_gradient", jax.grad(lambda x: lax.scan(lambda c, y: (jnp.sin(c) * y, c), jnp.float32(1), x)[0]), [x]
    yield "cond", lambda p, x: lax.cond(p, lambda x: x + 1, lambda x: x * 2, x), [jnp.array(True), x]
    yield "cond_captures", lambda p, x, y: lax.cond(p, lambda: (x, y * x), lambda: (y, x - y)), [
        jnp.array(True),
        x,
        2 * x,
    ]
    yield "switch", lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, lambda x: x], x), [jnp.int32(1), x]
    yield "cond_in_loop", lambda x: lax.fori_loop(
        0, 4, lambda i, s: lax.cond(i % 2 == 0, lambda: s + x, lambda: s * 2), x
    ), [x]
    yield "associative_scan", lambda x: lax.associative_scan(jnp.add, x), [x]
    yield "map", lambda x: lax.map(lambda y: jnp.sin(y) + x, x), [x]
    yield "jit", lambda x: jax.jit(jnp.sinc)(x) + jax.jit(jnp.sinc)(2 * x), [x]
    yield "remat", jax.grad(lambda x: jnp.sum(jax.checkpoint(lambda y: jnp.sin(jnp.sin(y)))(x))), [x]
    custom = jax.custom_jvp(lambda x: jnp.sin(x))
    custom.defjvp(lambda p, t: (jnp.sin(p[0]), t[0] * 2))
    yield "custom_jvp", custom, [x]
    custom_vjp = jax.custom_vjp(lambda x: jnp.sin(x))
    custom_vjp.defvjp(lambda x: (jnp.sin(x), x), lambda r, g: (g * r,))
    yield "custom_vjp", custom_vjp, [x]
    yield "custom_vjp_gradient", jax.grad(lambda x: jnp.sum(custom_vjp(x))), [x]
    custom_vmap = jax.custom_batching.custom_vmap(lambda x: jnp.sin(x))
    custom_vmap.def_vmap(lambda size, batched, x: (jnp.sin(x), batched[0]))
    yield "custom_vmap", custom_vmap, [x]
    yield "custom_linear_solve", lambda x: lax.custom_linear_solve(
        lambda v: 2 * v, x, lambda f, b: b / 2, symmetric=True
    ), [x]
    yield "linear_call", lambda x: jax.custom_derivatives.linear_call(lambda r, y: 2 * y, lambda r, y: 2 * y, (), x), [
        x
    ]
    yield "composite", lax.composite(lambda x: jnp.sin(x) + 1, "my.function"), [x]
    yield "composite_attributes", lambda x: lax.composite(lambda x, *, scale: x * scale, "my.scale", version=2)(
        x, scale=np.float32(3)
    ), [x]
    yield "optimization_barrier", lambda x: lax.optimization_barrier((x, 2 * x)), [x]
    yield "stop_gradient", lambda x: lax.stop_gradient(x) + x, [x]
    yield "name", lambda x: jax.ad_checkpoint.checkpoint_name(jnp.sin(x), "sine"), [x]
    yield "named_scope", lambda x: jax.named_scope("outer")(lambda x: jax.named_scope("inner")(jnp.sin)(x) + 1)(x), [x]
    yield "dce_sink", lambda x: (jax._src.lax.lax.dce_sink(x), x)[1], [x]
    yield "tie", lambda x: jax._src.lax.lax.tie_p.bind(x, x), [x]
    yield "add_any", lambda x: jax._src.ad_util.add_jaxvals_p.bind(x, x), [x]
    yield "create_token", lambda x: (lax.create_token(), x)[1], [x]
    yield "after_all", lambda x: (lax.after_all(lax.create_token(), lax.create_token()), x)[1], [x]
    yield "platform_index", lambda x: lax.platform_dependent(x, cpu=jnp.sin, default=jnp.cos), [x]
    yield "pure_callback", lambda x: jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x), [x]
    yield "io_callback", lambda x: jax.experimental.io_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x), [x]
    yield "debug_callback", lambda x: (jax.debug.callback(lambda v: None, x), x)[1], [x]
    yield "debug_print", lambda x: (jax.debug.print("{}", x), x)[1], [x]
    yield "ffi_call", lambda x: jax.ffi.ffi_call("some_target", jax.ShapeDtypeStruct(x.shape, x.dtype))(
        x, factor=np.float32(2), count=np.int64(3), label="x"
    ), [x]
    yield "exported", lambda x: jax.export.export(jax.jit(jnp.sin))(jax.ShapeDtypeStruct(x.shape, x.dtype)).call(x), [x]
    yield "layout_constraint", lambda x: jax.experimental.layout.with_layout_constraint(
        x, jax.experimental.layout.Layout((0, 1))
    ), [x.reshape(2, 2)]
    yield "device_put", lambda x: jax.device_put(x) + 1, [x]
    partitioned = jax.experimental.custom_partitioning.custom_partitioning(jnp.sin)
    partitioned.def_partition(
        partition=lambda mesh, shapes, result: (mesh, jnp.sin, result.sharding, (shapes[0].sharding,)),
        infer_sharding_from_operands=lambda mesh, shapes, result: shapes[0].sharding,
        sharding_rule="i -> i",
    )
    yield "custom_partitioning", partitioned, [x]
