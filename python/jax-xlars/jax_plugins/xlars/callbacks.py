"""Handlers of calls to Python: `pure_callback`, `io_callback`, `debug.callback`, `buffer_callback`.

jaxlib's handler has a first stage that jaxlib does not export, and that of `buffer_callback` takes the runtime's errors
for its own. These stand in their place. Where the client calls itself `cpu`, the functions come along with each run, as
data of the type `FfiLoadedHostCallbacks`, and the call's attribute `index` says which one is meant; `callback_table` is
for other names.
"""

import atexit
import ctypes
import threading
import time

from jax._src import dispatch
from jaxlib.xla_client import _xla

from jax_plugins.xlars import c_api, ffi
from jax_plugins.xlars.buffers import Buffer, Context

# Targets whose function gets arrays and returns arrays, and how errors of such calls begin.
OF_VALUES = ("xla_ffi_python_cpu_callback", "xla_ffi_partitioned_python_cpu_callback")
VALUES_FAILED = "CpuCallback error calling callback: "
# The target whose function gets the memory of operands and results.
OF_BUFFERS = "xla_buffer_python_cpu_callback"
BUFFERS_FAILED = "Error when calling buffer callback: "
# A target of jaxlib that only keeps its operands.
SINK = "dce_sink"


class _HostCallbacks(ctypes.Structure):
    """`FfiLoadedHostCallbacks`: addresses of the functions of a program, which jaxlib keeps alive."""

    _fields_ = [("callbacks", ctypes.POINTER(ctypes.py_object)), ("size", ctypes.c_size_t)]


class CallbackHandler:
    """Handlers of the targets for a platform of a library. They learn the FFI's table when asked for their version."""

    def __init__(self, api: c_api.Api, platform: str):
        self.ffi: ffi.Api | None = None
        self._calls = _Calls()
        self._handlers = []
        of_values = self._handler(lambda frame: _call_on_values(self._function(frame), frame), VALUES_FAILED)
        of_buffers = self._handler(lambda frame: _call_on_buffers(self._function(frame), frame), BUFFERS_FAILED)
        self._targets = {target: of_values for target in OF_VALUES} | {OF_BUFFERS: of_buffers}
        for target, function in self._targets.items():
            api.register_handler(target, platform, function)
        api.register_handler(SINK, platform, _jaxlibs(SINK))
        atexit.register(self._calls.close)

    def _function(self, frame):
        """The function that a call means."""
        raise NotImplementedError

    def _handler(self, work, failed: str) -> int:
        """The address of a handler that does `work` with frames, whose errors begin with `failed`."""
        handler = ffi.HANDLER(lambda frame: self._handle(frame.contents, work, failed))
        # The runtime has its address as long as the process lives.
        self._handlers.append(handler)
        return ctypes.cast(handler, ctypes.c_void_p).value

    def _handle(self, frame, work, failed: str) -> int | None:
        """Handles a frame: the last step stores the outcome. The runtime takes a call without one for an error, since
        `KeyboardInterrupt` may be raised anywhere in here on the main thread."""
        if self.ffi is None:
            self.ffi = ffi.Api(frame.api)
        if ffi.answer_metadata(frame, ffi.OUTCOME_IN_FRAME):
            return None
        try:
            outcome = self._guarded(work, frame, failed)
        except BaseException as error:  # Nobody above could catch it.
            outcome = self.ffi.error(ffi.INTERNAL, failed + _described(error))
        frame.future = outcome
        return outcome

    def _guarded(self, work, frame, failed: str) -> int | None:
        """Does the work unless Python ends; returns the error."""
        if not self._calls.enter():
            return self.ffi.error(ffi.CANCELLED, "Python exits: no callback is called any more")
        try:
            return self._outcome(work, frame, failed)
        finally:
            self._calls.leave()

    def _outcome(self, work, frame, failed: str) -> int | None:
        """Does the work; returns the error that it raised, described while Python cannot end."""
        try:
            work(frame)
            return None
        except BaseException as error:
            return self.ffi.error(ffi.INTERNAL, failed + _described(error))


class RunCallbacks(CallbackHandler):
    """Handlers for clients that call themselves `cpu`."""

    def __init__(self, api: c_api.Api):
        super().__init__(api, "cpu")
        # jaxlib's handler of buffers asks for the same data, and has no state.
        self._type_id = ctypes.c_int64(ffi.type_asked_for(self.ffi, _jaxlibs(OF_BUFFERS), b"index"))

    def _function(self, frame):
        index = ffi.unsigned_attribute(frame.attrs, b"index")
        loaded = _HostCallbacks.from_address(self.ffi.user_data(frame.context, self._type_id))
        if index >= loaded.size:
            raise IndexError(f"callback {index} of {loaded.size}")
        return loaded.callbacks[index]


def _jaxlibs(target: str) -> int:
    """The address of jaxlib's own handler of a target."""
    return c_api.pointer(_xla.custom_call_targets("Host")[target]["execute"])


class _Calls:
    """Calls that threads are inside of. None may be when Python ends: it would unwind the runtime's frames by force."""

    # Seconds that the end of Python waits for calls.
    PATIENCE = 30
    # Seconds in which a thread that has left gets the interpreter's lock once more, and returns to the runtime.
    RETURN = 0.05

    def __init__(self):
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._closing = False
        self._inside: dict[int, int] = {}
        self._main = threading.main_thread().ident
        # The time at which a thread other than the main one left last.
        self._left = float("-inf")

    def enter(self) -> bool:
        """Whether this thread may call: once Python ends, only from inside of another call."""
        thread = threading.get_ident()
        with self._lock:
            inside = self._inside.get(thread, 0)
            if self._closing and not inside:
                return False
            self._inside[thread] = inside + 1
            return True

    def leave(self) -> None:
        thread = threading.get_ident()
        with self._lock:
            inside = self._inside[thread] - 1
            if inside:
                self._inside[thread] = inside
                return
            del self._inside[thread]
            if thread != self._main:
                self._left = time.monotonic()
            if self._closing:
                self._changed.notify_all()

    def close(self) -> None:
        """Has the calls of this thread's programs made, then ends all."""
        try:
            dispatch.runtime_tokens.block_until_ready()
        except Exception:
            pass  # JAX waits for them once more, and tells of it.
        with self._changed:
            self._closing = True
            # A call of this thread is over, even if `KeyboardInterrupt` kept it from leaving.
            self._inside.pop(threading.get_ident(), None)
            self._changed.wait_for(lambda: not self._inside, self.PATIENCE)
            rest = self._left + self.RETURN - time.monotonic()
        # A thread that has left still needs the lock to return: it gets it while this one sleeps.
        if rest > 0:
            time.sleep(rest)


def _call_on_values(function, frame) -> None:
    args, rets = frame.args, frame.rets
    results = function(*[args.values[i].contents.read() for i in range(args.size)])
    if not isinstance(results, tuple) or len(results) != rets.size:
        raise TypeError(f"expected a tuple of {rets.size} results, got {results!r}")
    for i, result in enumerate(results):
        rets.values[i].contents.write(result)


def _call_on_buffers(function, frame) -> None:
    args, rets = frame.args, frame.rets
    buffers = [Buffer(args.values[i].contents.view(), writeable=False) for i in range(args.size)]
    buffers += [Buffer(rets.values[i].contents.view(), writeable=True) for i in range(rets.size)]
    function(Context(frame.stage), *buffers)


def _described(error: BaseException) -> str:
    """The traceback without lines of source, with the frames that led to the run on this thread, as XLA:CPU has it."""
    frames, trace = [], error.__traceback__
    outer = trace.tb_frame.f_back if trace else None
    while outer:
        frames.append((outer.f_code, outer.f_lineno))
        outer = outer.f_back
    frames.reverse()
    while trace:
        frames.append((trace.tb_frame.f_code, trace.tb_lineno))
        trace = trace.tb_next
    shown = [(code, line) for code, line in frames if code.co_filename != __file__]
    lines = [f'  File "{code.co_filename}", line {line}, in {code.co_name}' for code, line in shown]
    return "\n".join(["Traceback (most recent call last):", *lines, f"{type(error).__name__}: {error}"])
