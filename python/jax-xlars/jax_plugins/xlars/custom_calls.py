"""Hands handlers of custom calls over to libraries, and the types of data that they exchange."""

import ctypes

from jax._src.lib import xla_client
from jaxlib.xla_client import _xla

from jax_plugins.xlars import c_api
from jax_plugins.xlars.callbacks import CallbackHandler

STAGES = ("instantiate", "prepare", "initialize", "execute")
TYPED = 1


class Place:
    """A platform of a library, by the name that its clients go by, with handlers of calls to Python."""

    def __init__(self, api: c_api.Api, callbacks: CallbackHandler, platform: str):
        self.api, self._callbacks, self._platform = api, callbacks, platform

    def take(self, name, function, _=None, api_version=0, traits=0) -> None:
        """Takes the handler of a target, if it is of the typed kind."""
        if api_version != TYPED:
            return  # Programs that call it are refused, with the name of the target.
        name = _text(name)
        stages = function if isinstance(function, dict) else {"execute": function}
        if unknown := stages.keys() - set(STAGES):
            raise ValueError(f"handler {name!r} has stages {sorted(unknown)}; there are {', '.join(STAGES)}")
        functions = [c_api.pointer(stages[stage]) if stages.get(stage) is not None else None for stage in STAGES]
        if functions[:-1] == [None] * 3:
            self.api.register_handler(name, self._platform, functions[-1], int(traits))
        else:
            # The C API takes one function; the table that handlers get takes all of them.
            self._callbacks.ffi.register_handler(name, self._platform, functions, int(traits))


class HostTargets:
    """All that is registered for the CPU: it goes to every platform of this package, since the host runs custom calls.
    XLA's own CPU gets it as well, since JAX gives it none that somebody else takes."""

    def __init__(self):
        self._places: list[Place] = []
        self._targets, self._types = [], []

    def add(self, place: Place) -> None:
        """Has a platform take what was registered, and what will be."""
        if not self._places:
            xla_client.register_custom_type_handler("cpu", self.register_type)
            xla_client.register_custom_call_handler("cpu", self._register_target)
        self._places.append(place)
        for declared in self._types:
            place.api.register_type(*declared)
        for target in self._targets:
            place.take(*target)

    def register_type(self, name, registration) -> None:
        """Registers a type of data: its number is written where its library keeps it. XLA's own CPU chooses the number,
        so that it is the same everywhere."""
        _xla.register_custom_type(name, registration)
        given = registration if isinstance(registration, dict) else {"type_id": registration}
        number = ctypes.c_int64.from_address(c_api.pointer(given["type_id"]))
        info = given.get("type_info")
        # `XLA_FFI_TypeInfo`: size, extensions, deleter.
        deleter = c_api.word(c_api.pointer(info) + 16) if info is not None else 0
        self._types.append((_text(name), number.value, deleter))
        for place in self._places:
            place.api.register_type(*self._types[-1])

    def _register_target(self, name, function, platform, api_version=0, traits=0) -> None:
        _xla.register_custom_call_target(name, function, platform, api_version, traits)
        self._targets.append((name, function, platform, api_version, traits))
        for place in self._places:
            place.take(*self._targets[-1])


HOST = HostTargets()


def _text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else name
