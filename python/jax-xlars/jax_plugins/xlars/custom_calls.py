"""Hands handlers of custom calls over to the plugin, and the types of data that they exchange."""

import ctypes

from jaxlib.xla_client import _xla

from jax_plugins.xlars import c_api
from jax_plugins.xlars.callbacks import CallbackHandler

STAGES = ("instantiate", "prepare", "initialize", "execute")
TYPED = 1


def handler(api: c_api.Api, callbacks: CallbackHandler):
    """The function that JAX calls for each target: handlers of the typed kind are handed over. XLA's own CPU gets all of
    them as well, since JAX gives it none that somebody else takes."""

    def hand_over(name, function, platform, api_version=0, traits=0):
        _xla.register_custom_call_target(name, function, platform, api_version, traits)
        if isinstance(name, bytes):
            name = name.decode()
        if api_version != TYPED:
            return  # Programs that call it are refused, with the name of the target.
        stages = function if isinstance(function, dict) else {"execute": function}
        if unknown := stages.keys() - set(STAGES):
            raise ValueError(f"handler {name!r} has stages {sorted(unknown)}; there are {', '.join(STAGES)}")
        functions = [c_api.pointer(stages[stage]) if stages.get(stage) is not None else None for stage in STAGES]
        if functions[:-1] == [None] * 3:
            api.register_handler(name, platform, functions[-1], int(traits))
        else:
            # The C API takes one function; the table that handlers get takes all of them.
            callbacks.ffi.register_handler(name, platform, functions, int(traits))

    return hand_over


def type_handler(api: c_api.Api):
    """The function that JAX calls for each type of data: its number is written where the library keeps it. XLA's own CPU
    chooses it, so that a library has one number for both."""

    def register(name, registration):
        _xla.register_custom_type(name, registration)
        if isinstance(name, bytes):
            name = name.decode()
        given = registration if isinstance(registration, dict) else {"type_id": registration}
        number = ctypes.c_int64.from_address(c_api.pointer(given["type_id"]))
        info = given.get("type_info")
        # `XLA_FFI_TypeInfo`: size, extensions, deleter.
        deleter = c_api.word(c_api.pointer(info) + 16) if info is not None else 0
        number.value = api.register_type(name, number.value, deleter)

    return register
