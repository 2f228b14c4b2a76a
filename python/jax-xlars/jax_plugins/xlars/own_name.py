"""Platforms under names of their own, beside XLA's CPU: those of this package's library, and vendors' own.

JAX chooses rules by the client's name. A platform of a new name shares those of the CPU, and is put into the lists of
names that JAX has here and there.
"""

import collections
import dataclasses
import functools

from jax._src import compilation_cache, xla_bridge
from jax._src.interpreters import mlir
from jax._src.lax.control_flow import conditionals
from jax._src.lib import xla_client

from jax_plugins.xlars import callback_table, libraries

# That of plugins unless they say something else.
PRIORITY = 400
_names = set()


def register_platform(name: str, library_path, *, options=None, priority: int = PRIORITY) -> None:
    """Registers a platform under a name of its own: `jax.devices(name)`, `JAX_PLATFORMS=name,cpu`.

    For the `initialize` of a vendor's package `jax_plugins.VENDOR`. The library is a PJRT plugin of this compiler;
    `options` are create options of its client, or a function that returns them: `platform` is the platform's name
    within the library.

    Lowering rules, donation, the persistent cache, `jax.ffi` targets and callbacks are those of the CPU; rules that are
    registered for the name itself come first. Where the platform cannot start and was not asked for by name, JAX goes
    on without it.
    """
    if name in xla_bridge._backend_factories:
        return
    libraries.not_too_late("register_platform()")

    def all_options() -> dict:
        own = options() if callable(options) else options or {}
        return {"platform_name": name, **own}

    api = libraries.load(name, library_path, all_options, priority)
    registration = xla_bridge._backend_factories[name]
    xla_bridge._backend_factories[name] = dataclasses.replace(registration, fail_quietly=True)
    _share_lists(name)
    callback_table.use_for(name)
    place = libraries.hand_over(api, name, functools.partial(callback_table.TableCallbacks, platform=name))
    if place is not None:
        # What is registered for this name alone.
        xla_client.register_custom_call_handler(name, place.take)
        xla_client.register_custom_type_handler(name, libraries.HOST.register_type)


def _share_lists(name: str) -> None:
    # Rules of its own may come later.
    rules = mlir._platform_specific_lowerings
    rules[name] = collections.ChainMap(rules[name], rules["cpu"])
    branching = (conditionals.platform_index_p, "platforms"), (conditionals.cond_p, "branches_platforms")
    for primitive, parameter in branching:
        rule = _with_branches_of_cpu(name, mlir._lowerings[primitive].rule, parameter)
        mlir.register_lowering(primitive, rule, platform=name)
    mlir._platforms_with_donation.append(name)
    if not _names:
        is_used = compilation_cache.is_cache_used

        @functools.wraps(is_used)
        def is_cache_used(backend):
            return is_used(callback_table.AsCpu(backend) if backend.platform in _names else backend)

        compilation_cache.is_cache_used = is_cache_used
    _names.add(name)


def _with_branches_of_cpu(name: str, rule, parameter: str):
    """Takes the CPU's branch where `jax.lax.platform_dependent` has none for a name, and none for other platforms."""

    def lower(ctx, *args, **params):
        platforms = params.get(parameter)
        if platforms is not None and not any(of is None or name in of for of in platforms):
            params[parameter] = tuple((*of, name) if "cpu" in of else of for of in platforms)
        return rule(ctx, *args, **params)

    return lower
