"""Failures at the start, told where they are seen: JAX only logs what `initialize` raises, and goes on without us."""

import functools
import re

import jax
import jaxlib.version
from jax._src import xla_bridge

# Versions of JAX and jaxlib: from the first one, to below the second one.
OLDEST, TOO_NEW = "0.10.2", "0.13"


def explained(name: str, priority: int):
    """Makes a platform that was asked for by its name, and cannot start, fail with the reason when it is first used."""

    def of(initialize):
        @functools.wraps(initialize)
        def guarded() -> None:
            try:
                check_version("jax", jax.__version__)
                check_version("jaxlib", jaxlib.version.__version__)
                initialize()
            except Exception as error:
                if name not in (jax.config.jax_platforms or "").split(","):
                    raise
                reason = RuntimeError(f"the platform {name} cannot start: {error}{_advice(str(error))}")
                reason.__cause__ = error
                xla_bridge._backend_factories.pop(name, None)
                xla_bridge.register_backend_factory(name, functools.partial(_fail, reason), priority=priority)

        return guarded

    return of


def check_version(package: str, version: str) -> None:
    """Raises for a version that this package was not made for."""
    if not _numbers(OLDEST) <= _numbers(version) < _numbers(TOO_NEW):
        raise RuntimeError(
            f"this is {package} {version}; jax-xlars runs on JAX from {OLDEST} to below {TOO_NEW}: "
            f"`pip install 'jax>={OLDEST},<{TOO_NEW}'`, or look for another version of jax-xlars"
        )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])


def _advice(message: str) -> str:
    # A library that was built from source is linked with the LLVM of its machine.
    if "libLLVM" in message:
        return (
            "; install LLVM 22 (`apt-get install libllvm22`), or the wheel of `cargo xtask wheel`, which has it inside"
        )
    return ""


def _fail(reason: Exception):
    raise reason
