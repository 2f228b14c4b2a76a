"""Refuses to compile in processes that were forked off one with a backend: jaxlib's own threads, for which it waits
there, are not in them. The plugin itself refuses to run programs."""

import functools
import os

from jax._src import compiler, xla_bridge

COMPILERS = ("backend_compile_and_load", "backend_compile")


def _refuse(*_, **__):
    raise RuntimeError(
        "this process was forked from one that used JAX, whose threads it does not have: spawn processes "
        '(multiprocessing.set_start_method("spawn")), or fork before JAX is used'
    )


def _in_child() -> None:
    if xla_bridge.backends_are_initialized():
        for name in COMPILERS:
            if hasattr(compiler, name):
                setattr(compiler, name, _refuse)


@functools.cache
def watch() -> None:
    """Has every fork of this process looked after."""
    os.register_at_fork(after_in_child=_in_child)
