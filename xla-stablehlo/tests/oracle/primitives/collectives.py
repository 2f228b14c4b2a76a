"""Programs for four devices."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec

from .inputs import numbers


def collectives():
    mesh = jax.make_mesh((4,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
    x = numbers("float32", 8, 4)
    spec = PartitionSpec("d")

    def mapped(function, out=spec, **options):
        return jax.shard_map(function, mesh=mesh, in_specs=spec, out_specs=out, **options)

    yield "psum", mapped(lambda x: lax.psum(x, "d"), PartitionSpec()), [x]
    yield "pmax", mapped(lambda x: lax.pmax(x, "d"), PartitionSpec()), [x]
    yield "pmin", mapped(lambda x: lax.pmin(x, "d"), PartitionSpec()), [x]
    yield "pmean", mapped(lambda x: lax.pmean(x, "d"), PartitionSpec()), [x]
    yield "all_gather", mapped(lambda x: lax.all_gather(x, "d")), [x]
    yield "all_gather_tiled", mapped(lambda x: lax.all_gather(x, "d", tiled=True)), [x]
    yield "all_to_all", mapped(lambda x: lax.all_to_all(x, "d", 1, 0)), [x]
    yield "ppermute", mapped(lambda x: lax.ppermute(x, "d", [(0, 1), (1, 2)])), [x]
    yield "psum_scatter", mapped(lambda x: lax.psum_scatter(x, "d", scatter_dimension=1)), [x]
    yield "axis_index", mapped(lambda x: x * lax.axis_index("d")), [x]
    yield "psum_replicated", mapped(lambda x: lax.psum(x, "d"), PartitionSpec(), check_vma=False), [x]
    yield "all_gather_unchecked", mapped(lambda x: lax.all_gather(x, "d"), check_vma=False), [x]
    yield "all_gather_invariant", mapped(
        lambda x: jax._src.lax.parallel.all_gather_invariant(x, "d"), PartitionSpec()
    ), [x]
    yield "psum_gradient", jax.grad(lambda x: jnp.sum(mapped(lambda x: lax.psum(x * x, "d"), PartitionSpec())(x))), [x]
    yield "ragged_all_to_all", mapped(
        lambda x: lax.ragged_all_to_all(
            x, jnp.zeros_like(x), *[jnp.zeros(4, jnp.int32) + lax.axis_index("d") * 0] * 4, axis_name="d"
        )
    ), [x]
    yield "pvary", mapped(lambda x: lax.pcast(jnp.float32(1), "d", to="varying") * x), [x]
    sharding = jax.sharding.NamedSharding(mesh, spec)
    yield "sharding_constraint", lambda x: lax.with_sharding_constraint(x * 2, sharding) + 1, [x]
