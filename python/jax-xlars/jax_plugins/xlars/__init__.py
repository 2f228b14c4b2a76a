"""JAX plugin: registers the PJRT plugin beside this file under the name `xlars`."""

import os
import pathlib

from jax._src import xla_bridge
from jax._src.lib import xla_client

from jax_plugins.xlars import custom_calls

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


def initialize() -> None:
    """Called by JAX when it looks for plugins."""
    path = library_path()
    if NAME in xla_bridge._backend_factories:
        return  # PJRT_NAMES_AND_LIBRARY_PATHS names it as well.
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: build it with `cargo build --release -p xla-pjrt-plugin`")
    xla_bridge._nonexperimental_plugins.add(NAME)
    c_api = xla_bridge.register_plugin(NAME, priority=PRIORITY, library_path=str(path), options=create_options)
    if c_api is not None:
        # Targets of `jax.ffi` for the CPU are for these devices, too.
        xla_client.register_custom_call_handler("cpu", custom_calls.handler(c_api))
    # Whoever asks for the backend "cpu" means these devices, where XLA's own CPU was not asked for.
    xla_bridge.register_backend_initialization_hook(
        lambda client: xla_bridge._backends.setdefault("cpu", client) if client.platform == "cpu" else None
    )
