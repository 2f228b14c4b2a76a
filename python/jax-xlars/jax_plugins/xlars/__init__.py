"""JAX plugin: registers the plugin beside this file under the name `xlars`, its platforms under their own names."""

import functools
import os
import pathlib

import jax
from jax._src import xla_bridge

from jax_plugins.xlars import as_cpu, guard, libraries
from jax_plugins.xlars.own_name import register_platform

__all__ = ["initialize", "register", "register_platform", "replace_cpu"]

NAME = "xlars"
# What names of platforms begin with that stand beside XLA's CPU: `xlars_template`.
PREFIX = f"{NAME}_"
# They are nobody's default.
PRIORITY = as_cpu.PRIORITY - 1


def library_path() -> pathlib.Path:
    """The shared library: that of `XLARS_LIBRARY`, else the one that the package brings."""
    chosen = os.environ.get("XLARS_LIBRARY")
    path = pathlib.Path(chosen) if chosen else pathlib.Path(__file__).parent / "libpjrt_plugin_xlars.so"
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: `cargo xtask wheel` makes a package that has it")
    return path


def register(platform: str) -> None:
    """Registers a platform of the library beside XLA's CPU, under the name `xlars_PLATFORM`. `JAX_PLATFORMS` that has
    the name does so by itself."""
    register_platform(PREFIX + platform, library_path(), options={"platform": platform}, priority=PRIORITY)


def replace_cpu() -> None:
    """Puts our devices in the place of `cpu` altogether, before JAX is used: XLA's own CPU is then out of reach."""
    libraries.not_too_late("replace_cpu()")
    initialize()
    as_cpu.replace_cpu(NAME)


def initialize() -> None:
    """Called by JAX when it looks for plugins."""
    for name in (jax.config.jax_platforms or "").split(","):
        if name.startswith(PREFIX):
            start = functools.partial(register, name.removeprefix(PREFIX))
            guard.explained(name, PRIORITY)(start)()
    _register_as_cpu()


@guard.explained(NAME, as_cpu.PRIORITY)
def _register_as_cpu() -> None:
    if NAME not in xla_bridge._backend_factories:  # PJRT_NAMES_AND_LIBRARY_PATHS names it as well.
        as_cpu.register(NAME, library_path(), os.environ.get("XLARS_PLATFORM", "cpu"))
