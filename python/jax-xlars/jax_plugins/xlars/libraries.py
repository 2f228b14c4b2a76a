"""Libraries of devices, as JAX gets to know them."""

import logging

from jax._src import xla_bridge

from jax_plugins.xlars import c_api, dlpack, forks
from jax_plugins.xlars.custom_calls import HOST, Place

logger = logging.getLogger(__name__)


def not_too_late(function: str) -> None:
    """Raises once JAX has its devices."""
    if xla_bridge.backends_are_initialized():
        raise RuntimeError(f"{function} comes too late: JAX has its devices by now; call it before JAX is used first")


def load(name: str, library_path, options, priority: int) -> c_api.Api:
    """Registers the library of a platform; returns its table."""
    xla_bridge._nonexperimental_plugins.add(name)
    capsule = xla_bridge.register_plugin(name, priority=priority, library_path=str(library_path), options=options)
    forks.watch()
    dlpack.watch()
    return c_api.Api(capsule)


def hand_over(api: c_api.Api, platform: str, make_callbacks) -> Place | None:
    """Gives a platform of a library JAX's handlers of custom calls, and ours of calls to Python."""
    try:
        place = Place(api, make_callbacks(api), platform)
        HOST.add(place)
        return place
    except (RuntimeError, LookupError) as error:
        # Other programs run all the same; those that call a target without a handler are refused by its name.
        logger.warning("this jaxlib's handlers of custom calls cannot be used: %s", error)
        return None
