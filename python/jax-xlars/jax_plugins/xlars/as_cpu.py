"""Devices whose client calls itself `cpu`: JAX takes all its rules of the CPU for them."""

import dataclasses
import functools
import os
import re

from jax._src import config, stages, xla_bridge

from jax_plugins.xlars import callbacks, libraries

# Below the priority of vendors' plugins for their own devices.
PRIORITY = 350


def create_options(platform: str) -> dict[str, str | int | bool]:
    """Options of the client, read when it is made: the platform, the name it goes by, the number of devices, whether
    calls return before their programs have run, the transport between processes."""
    options = {"platform": platform, "platform_name": "cpu"}
    if not xla_bridge._CPU_ENABLE_ASYNC_DISPATCH.value:
        options["asynchronous"] = False
    if config.cpu_collectives_implementation.value == "mpi":
        options["collectives"] = "mpi"
    count = xla_bridge.num_cpu_devices.value
    if count < 0:
        flags = re.findall(r"--xla_force_host_platform_device_count=(\d+)", os.environ.get("XLA_FLAGS", ""))
        count = int(flags[-1]) if flags else 0
    return options | ({"device_count": count} if count > 0 else {})


def register(name: str, library_path, platform: str) -> None:
    """Registers a platform of a library under a name. Whoever asks for the backend "cpu" means these devices, where
    XLA's own CPU was not asked for."""
    api = libraries.load(name, library_path, lambda: create_options(platform), PRIORITY)
    libraries.hand_over(api, "cpu", callbacks.RunCallbacks)
    registration = xla_bridge._backend_factories[name]

    def factory():
        client = registration.factory()
        if client.platform == "cpu":
            xla_bridge._backends.setdefault("cpu", client)
        return client

    xla_bridge._backend_factories[name] = dataclasses.replace(registration, factory=factory)
    _name_in_errors()


# How the versions of our clients begin.
_VERSION = "PJRT C API\nxlars "


@functools.cache
def _name_in_errors() -> None:
    """Has the error about arrays on devices of two clients tell ours from XLA's, whose platform has the same name."""
    mismatch = getattr(stages, "DeviceAssignmentMismatch", None)
    platform = getattr(mismatch, "platform", None)
    if not isinstance(platform, property):
        return

    def told_apart(self) -> str:
        name, device = platform.fget(self), self.da[0]
        is_ours = device.platform == "cpu" and device.client.platform_version.startswith(_VERSION)
        return f"{name} ({device!r}, of jax-xlars)" if is_ours else f"{name} ({device!r})"

    mismatch.platform = property(told_apart)


def replace_cpu(name: str) -> None:
    """Puts a registered platform in the place of `cpu`: both names mean one client."""
    registration = xla_bridge._backend_factories[name]

    def factory():
        # Within one initialisation of JAX; the next one makes a new client.
        return xla_bridge._backends.get("cpu") or xla_bridge._backends.get(name) or registration.factory()

    xla_bridge._backend_factories[name] = dataclasses.replace(registration, factory=factory)
    topology = xla_bridge._topology_factories.get(name)
    xla_bridge.register_backend_factory(
        "cpu", factory, priority=0, fail_quietly=False, make_topology=topology, c_api=registration.c_api
    )
