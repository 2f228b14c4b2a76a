"""Calls to Python under a platform's own name: jaxlib hands the functions of a program over to those platforms that it
knows, and to no others.

So programs name functions by their numbers in a table of this process. A program that is loaded holds its functions as
the states of its calls: they live as long as the runtime has it, which may be longer than JAX has.
"""

import ctypes
import functools
import itertools
import weakref

import jax
import jax.interpreters.mlir
import numpy as np
from jax._src import buffer_callback, callback
from jax._src import ffi as jax_ffi
from jax._src.interpreters import mlir

from jax_plugins.xlars import c_api, ffi
from jax_plugins.xlars.callbacks import OF_BUFFERS, OF_VALUES, CallbackHandler
from jax_plugins.xlars.custom_calls import HOST

STATE_TYPE = "xlars_callback"


class AsCpu:
    """A client that calls itself `cpu`, for code of JAX that has a list of platforms that it knows."""

    platform = "cpu"

    def __init__(self, client):
        self._client = client

    def __getattr__(self, name):
        return getattr(self._client, name)


class _Table:
    """Functions by their numbers, as long as somebody else has them, and those that loaded programs hold.

    A hold is a semaphore, which C's own function raises when the program ends: Python may be gone by then.
    """

    # Bytes of a semaphore, and more.
    SIZE = 64

    def __init__(self):
        self._numbers = itertools.count(1)
        self._functions = weakref.WeakValueDictionary()
        self._held = {}
        c = ctypes.CDLL(None)
        self.release = ctypes.cast(c.sem_post, ctypes.c_void_p).value
        self._allocate = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)(("calloc", c))
        self._free = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(("free", c))
        self._is_released = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(("sem_trywait", c))

    def add(self, function) -> int:
        number = next(self._numbers)
        self._functions[number] = function
        return number

    def hold(self, number: int) -> int:
        """Holds a function; returns the address of the hold."""
        self.held()
        function = self._functions.get(number)
        if function is None:
            raise LookupError(f"the program calls function {number} of a process, or of a program, that is no more")
        # All zeros is a semaphore at zero. It is not Python's memory, which may be gone as well.
        hold = self._allocate(1, self.SIZE)
        self._held[hold] = function
        return hold

    def function(self, hold: int):
        return self._held[hold]

    def held(self) -> list:
        """Lets go of functions whose programs have ended; returns the others."""
        for hold in list(self._held):
            if self._is_released(hold) == 0:
                del self._held[hold]
                self._free(hold)
        return list(self._held.values())


TABLE = _Table()


@functools.cache
def _state_type() -> int:
    """The number of the type of states, which are holds."""
    number, info = ctypes.c_int64(0), (ctypes.c_uint64 * 3)(24, 0, TABLE.release)
    places = {"type_id": ctypes.addressof(number), "type_info": ctypes.addressof(info)}
    HOST.register_type(STATE_TYPE, {name: jax.ffi.pycapsule(place) for name, place in places.items()})
    # XLA may keep their addresses.
    _state_type.places = number, info
    return number.value


class TableCallbacks(CallbackHandler):
    """Handlers for clients of another name than `cpu`."""

    def __init__(self, api: c_api.Api, platform: str):
        super().__init__(api, platform)
        self._type_id = _state_type()
        instantiate = self._handler(self._hold, "Error before calling a callback: ")
        for target, function in self._targets.items():
            self.ffi.register_handler(target, platform, [instantiate, None, None, function], 0)

    def _hold(self, frame) -> None:
        hold = TABLE.hold(ffi.unsigned_attribute(frame.attrs, b"index"))
        self.ffi.set_state(frame.context, self._type_id, hold)

    def _function(self, frame):
        return TABLE.function(self.ffi.state(frame.context, self._type_id))


# Platforms whose programs use the table.
_PLATFORMS = set()


def use_for(platform: str) -> None:
    """Has programs for a platform, which JAX knows by now, name functions by their numbers in the table."""
    if not _PLATFORMS:
        emit = _lowered_as_for_cpu(callback.emit_python_callback)
        # JAX's own name of it, and the one that libraries use.
        callback.emit_python_callback = jax.interpreters.mlir.emit_python_callback = emit
        jax_ffi.build_ffi_lowering_function = _numbered(jax_ffi.build_ffi_lowering_function)
    _PLATFORMS.add(platform)
    rule = mlir._lowerings[buffer_callback.buffer_callback_p].rule
    mlir.register_lowering(buffer_callback.buffer_callback_p, _lowered_as_for_cpu(rule), platform=platform)


def _lowered_as_for_cpu(lower):
    """Lowers calls of platforms that use the table under the name of one that JAX knows."""

    @functools.wraps(lower)
    def lower_under_name(ctx, *args, **options):
        module = ctx.module_context
        if len(module.platforms) == 1 and module.platforms[0] in _PLATFORMS:
            ctx = ctx.replace(module_context=module.replace(platforms=("cpu",), backend=AsCpu(module.backend)))
        return lower(ctx, *args, **options)

    return lower_under_name


def _numbered(build):
    """Replaces the indices of functions among those of their program by numbers in the table."""

    @functools.wraps(build)
    def build_numbered(target, **options):
        lower = build(target, **options)
        if target not in (*OF_VALUES, OF_BUFFERS):
            return lower

        def lower_numbered(ctx, *operands, index, **attributes):
            module = ctx.module_context
            if isinstance(module.backend, AsCpu):
                index = np.uint64(TABLE.add(module.host_callbacks[int(index)]))
            return lower(ctx, *operands, index=index, **attributes)

        return lower_numbered

    return build_numbered
