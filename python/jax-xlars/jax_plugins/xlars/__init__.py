"""JAX plugin: registers the PJRT plugin beside this file under the name `xlars`."""

import dataclasses
import logging
import os
import pathlib

from jax._src import xla_bridge
from jax._src.lib import xla_client

from jax_plugins.xlars import c_api as c_api_calls
from jax_plugins.xlars import callbacks, custom_calls, dlpack, forks, guard

logger = logging.getLogger(__name__)

NAME = "xlars"
# Below the priority of vendors' plugins for their own devices.
PRIORITY = 350


def library_path() -> pathlib.Path:
    """The shared library: that of `XLARS_LIBRARY`, else the one that the package brings."""
    chosen = os.environ.get("XLARS_LIBRARY")
    return pathlib.Path(chosen) if chosen else pathlib.Path(__file__).parent / "libpjrt_plugin_xlars.so"


def create_options() -> dict[str, str | int]:
    """Options of the client, read when it is made: the platform, the name it goes by, the number of devices."""
    options = {"platform": os.environ.get("XLARS_PLATFORM", "cpu"), "platform_name": "cpu"}
    count = xla_bridge.num_cpu_devices.value
    return options | ({"device_count": count} if count > 0 else {})


def stand_in_for_cpu() -> None:
    """Whoever asks for the backend "cpu" means these devices, where XLA's own CPU was not asked for."""
    registration = xla_bridge._backend_factories[NAME]

    def factory():
        client = registration.factory()
        if client.platform == "cpu":
            xla_bridge._backends.setdefault("cpu", client)
        return client

    xla_bridge._backend_factories[NAME] = dataclasses.replace(registration, factory=factory)


@guard.explained(NAME, PRIORITY)
def initialize() -> None:
    """Called by JAX when it looks for plugins."""
    path = library_path()
    if NAME in xla_bridge._backend_factories:
        return  # PJRT_NAMES_AND_LIBRARY_PATHS names it as well.
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: `cargo xtask wheel` makes a package that has it")
    xla_bridge._nonexperimental_plugins.add(NAME)
    c_api = xla_bridge.register_plugin(NAME, priority=PRIORITY, library_path=str(path), options=create_options)
    if c_api is not None:
        # Targets and types of `jax.ffi` for the CPU are for these devices, too.
        api = c_api_calls.Api(c_api)
        forks.watch()
        dlpack.watch(NAME)
        try:
            callback_handler = callbacks.CallbackHandler(api)
            xla_client.register_custom_type_handler("cpu", custom_calls.type_handler(api))
            xla_client.register_custom_call_handler("cpu", custom_calls.handler(api, callback_handler))
        except (RuntimeError, LookupError) as error:
            # Other programs run all the same; those that call a target without a handler are refused by its name.
            logger.warning("this jaxlib's handlers of custom calls cannot be used: %s", error)
    stand_in_for_cpu()
