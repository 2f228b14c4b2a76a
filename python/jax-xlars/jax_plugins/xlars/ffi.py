"""Structures and functions of the XLA FFI C API from 0.3 on, as a handler that is written in Python meets them."""

import ctypes
import math
from ctypes import POINTER, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_void_p

import ml_dtypes
import numpy as np

MAJOR, MINOR = 0, 3
CANCELLED, NOT_FOUND, INTERNAL = 1, 5, 13
# Offsets of functions in the table, whose first word is its size.
ERROR_CREATE, ERROR_MESSAGE, ERROR_DESTROY, HANDLER_REGISTER, CONTEXT_GET = 48, 56, 64, 72, 96
STATE_SET, STATE_GET = 104, 112
METADATA, SCALAR, INSTANTIATE, EXECUTE = 1, 3, 0, 3
UNSIGNED_64, TOKEN = 9, 17
# A trait of handlers that store their error, or null, as the frame's `future`: the return value of a callback of ctypes
# that an exception leaves, such as `KeyboardInterrupt`, is not defined.
OUTCOME_IN_FRAME = 1 << 31

# NumPy's types by the numbers of element types.
DTYPES = {
    number: np.dtype(type)
    for number, type in {
        1: np.bool_,
        2: np.int8, 3: np.int16, 4: np.int32, 5: np.int64,
        6: np.uint8, 7: np.uint16, 8: np.uint32, 9: np.uint64,
        10: np.float16, 11: np.float32, 12: np.float64, 15: np.complex64, 16: ml_dtypes.bfloat16, 18: np.complex128,
        19: ml_dtypes.float8_e5m2, 20: ml_dtypes.float8_e4m3fn, 21: ml_dtypes.int4, 22: ml_dtypes.uint4,
        23: ml_dtypes.float8_e4m3b11fnuz, 24: ml_dtypes.float8_e5m2fnuz, 25: ml_dtypes.float8_e4m3fnuz,
        26: ml_dtypes.int2, 27: ml_dtypes.uint2, 28: ml_dtypes.float8_e4m3, 29: ml_dtypes.float8_e3m4,
        32: ml_dtypes.float4_e2m1fn, 33: ml_dtypes.float8_e8m0fnu,
    }.items()
}  # fmt: skip
# Bits of the elements that lie packed, the first one lowest.
PACKED_BITS = {21: 4, 22: 4, 26: 2, 27: 2, 32: 4}


def _structure(name: str, doc: str, *fields) -> type[ctypes.Structure]:
    return type(name, (ctypes.Structure,), {"__doc__": doc, "_fields_": list(fields)})


_HEAD = (("struct_size", c_size_t), ("extension", c_void_p))


class Buffer(ctypes.Structure):
    """`XLA_FFI_Buffer`: an array in memory, row major; or a token."""

    _fields_ = [*_HEAD, ("dtype", c_int), ("data", c_void_p), ("rank", c_int64), ("dims", POINTER(c_int64))]

    def read(self) -> np.ndarray | None:
        """A copy of the array that cannot be written to; `None` for a token."""
        if self.dtype == TOKEN:
            return None
        shape, dtype = self._shape(), DTYPES[self.dtype]
        count = math.prod(shape)
        if not (bits := PACKED_BITS.get(self.dtype)):
            return np.ndarray(shape, dtype, buffer=ctypes.string_at(self.data, count * dtype.itemsize))
        packed = np.frombuffer(ctypes.string_at(self.data, (count * bits + 7) // 8), np.uint8)
        shifts = np.arange(0, 8, bits, dtype=np.uint8)
        elements = ((packed[:, None] >> shifts) & ((1 << bits) - 1)).reshape(-1)[:count]
        if np.dtype(dtype) in (ml_dtypes.int4, ml_dtypes.int2):
            # As the type has it in a byte of its own: the sign fills the rest.
            elements = (elements.astype(np.int8) << (8 - bits)).view(np.int8) >> (8 - bits)
        array = elements.astype(np.uint8).view(dtype).reshape(shape)
        array.flags.writeable = False
        return array

    def view(self) -> np.ndarray:
        """The memory itself, of elements of whole bytes."""
        if self.dtype in PACKED_BITS or self.dtype == TOKEN:
            raise TypeError(f"no view of elements of type {self.dtype}, which have no place of their own in memory")
        shape, dtype = self._shape(), DTYPES[self.dtype]
        size = math.prod(shape) * dtype.itemsize
        return np.ndarray(shape, dtype, buffer=(ctypes.c_char * size).from_address(self.data))

    def write(self, value) -> None:
        """Copies an array here, whatever its strides; what is written to a token is not looked at."""
        if self.dtype == TOKEN:
            return
        shape, dtype = self._shape(), DTYPES[self.dtype]
        array = np.asarray(value)
        if array.shape != shape or array.dtype != dtype:
            raise ValueError(f"expected a result of {dtype}{list(shape)}, got {array.dtype}{list(array.shape)}")
        if array.size == 0:
            return
        if not (bits := PACKED_BITS.get(self.dtype)):
            place = (ctypes.c_char * array.nbytes).from_address(self.data)
            np.ndarray(shape, dtype, buffer=place)[...] = array
            return
        elements = np.ascontiguousarray(array).reshape(-1).view(np.uint8) & ((1 << bits) - 1)
        elements = np.pad(elements, (0, -elements.size % (8 // bits))).reshape(-1, 8 // bits)
        packed = np.bitwise_or.reduce(elements << np.arange(0, 8, bits, dtype=np.uint8), axis=1).astype(np.uint8)
        ctypes.memmove(self.data, packed.tobytes(), packed.size)

    def _shape(self) -> tuple[int, ...]:
        return tuple(self.dims[: self.rank])


class ByteSpan(ctypes.Structure):
    """`XLA_FFI_ByteSpan`: a text."""

    _fields_ = [("start", c_void_p), ("len", c_size_t)]

    @classmethod
    def of(cls, text: bytes) -> "ByteSpan":
        """The text, which must outlive the result."""
        return cls(ctypes.cast(c_char_p(text), c_void_p), len(text))

    def bytes(self) -> bytes:
        return ctypes.string_at(self.start, self.len)


Scalar = _structure("Scalar", "`XLA_FFI_Scalar`.", ("dtype", c_int), ("value", c_void_p))
Buffers = _structure(
    "Buffers", "`XLA_FFI_Args` and `XLA_FFI_Rets`.",
    *_HEAD, ("size", c_int64), ("types", POINTER(c_int)), ("values", POINTER(POINTER(Buffer))),
)  # fmt: skip
Attrs = _structure(
    "Attrs", "`XLA_FFI_Attrs`: sorted by name.",
    *_HEAD, ("size", c_int64), ("types", POINTER(c_int)), ("names", POINTER(POINTER(ByteSpan))),
    ("values", POINTER(c_void_p)),
)  # fmt: skip
CallFrame = _structure(
    "CallFrame", "`XLA_FFI_CallFrame`.",
    *_HEAD, ("api", c_void_p), ("context", c_void_p), ("stage", c_int), ("args", Buffers), ("rets", Buffers),
    ("attrs", Attrs), ("future", c_void_p),
)  # fmt: skip
Metadata = _structure(
    "Metadata", "`XLA_FFI_Metadata`.",
    ("struct_size", c_size_t), ("version_size", c_size_t), ("version_extension", c_void_p), ("major", c_int),
    ("minor", c_int), ("traits", c_uint32), ("state_type", c_int64),
)  # fmt: skip
MetadataExtension = _structure(
    "MetadataExtension", "`XLA_FFI_Metadata_Extension`.",
    ("struct_size", c_size_t), ("type", c_int), ("next", c_void_p), ("metadata", POINTER(Metadata)),
)  # fmt: skip
ErrorCreate = _structure("ErrorCreate", "", *_HEAD, ("message", c_char_p), ("code", c_int))
ErrorMessage = _structure("ErrorMessage", "", *_HEAD, ("error", c_void_p), ("message", c_char_p))
ErrorDestroy = _structure("ErrorDestroy", "", *_HEAD, ("error", c_void_p))
ContextGet = _structure(
    "ContextGet", "", *_HEAD, ("context", c_void_p), ("type_id", POINTER(c_int64)), ("data", c_void_p)
)
State = _structure(
    "State", "`XLA_FFI_State_Set_Args` and `XLA_FFI_State_Get_Args`.",
    *_HEAD, ("context", c_void_p), ("stage", c_int), ("type_id", POINTER(c_int64)), ("state", c_void_p),
)  # fmt: skip
HandlerRegister = _structure(
    "HandlerRegister", "",
    *_HEAD, ("name", ByteSpan), ("platform", ByteSpan), ("stages", c_void_p * 4), ("traits", c_uint32),
)  # fmt: skip

# The type of handlers. Called from any thread, it takes the GIL.
HANDLER = ctypes.CFUNCTYPE(c_void_p, POINTER(CallFrame))
_RETURNING = ctypes.CFUNCTYPE(c_void_p, c_void_p)


class Api:
    """The table of functions, at the address that each call frame has."""

    def __init__(self, address: int):
        self.address = address
        function = lambda offset: _RETURNING(c_void_p.from_address(address + offset).value)
        self._error_create, self._context_get = function(ERROR_CREATE), function(CONTEXT_GET)
        self._error_message, self._error_destroy = function(ERROR_MESSAGE), function(ERROR_DESTROY)
        self._handler_register = function(HANDLER_REGISTER)
        self._state_set, self._state_get = function(STATE_SET), function(STATE_GET)

    def error(self, code: int, message: str) -> int:
        """An error for a handler to return."""
        text = message.replace("\0", " ").encode("utf-8", "backslashreplace")
        args = ErrorCreate(ErrorCreate.code.offset + 4, None, text, code)
        return self._error_create(ctypes.addressof(args))

    def user_data(self, context: int, type_id: c_int64) -> int:
        """The address of data that came along with the run."""
        # The words of `ContextGet`, its size first: this is done in each call.
        args = (c_size_t * 5)(40, 0, context, ctypes.addressof(type_id))
        self.check(self._context_get(ctypes.addressof(args)))
        return args[4]

    def set_state(self, context: int, type_id: int, state: int) -> None:
        """Gives the call a state, a number other than 0, in the stage `instantiate`."""
        args = State(ctypes.sizeof(State), None, context, INSTANTIATE, ctypes.pointer(c_int64(type_id)), state)
        self.check(self._state_set(ctypes.addressof(args)))

    def state(self, context: int, type_id: int) -> int:
        """The state that the call was given."""
        args = State(ctypes.sizeof(State), None, context, INSTANTIATE, ctypes.pointer(c_int64(type_id)), None)
        self.check(self._state_get(ctypes.addressof(args)))
        return args.state

    def register_handler(self, name: str, platform: str, stages: list[int | None], traits: int) -> None:
        """Registers the functions of a handler: instantiate, prepare, initialize, execute."""
        target, of = name.encode(), platform.encode()
        size = HandlerRegister.traits.offset + 4
        functions = (c_void_p * 4)(*stages)
        args = HandlerRegister(size, None, ByteSpan.of(target), ByteSpan.of(of), functions, traits)
        self.check(self._handler_register(ctypes.addressof(args)))

    def check(self, error: int | None) -> None:
        """Ends an error, and raises it."""
        if error:
            args = ErrorMessage(ctypes.sizeof(ErrorMessage), None, error, None)
            self._error_message(ctypes.addressof(args))
            message = args.message.decode("utf-8", "replace")
            args = ErrorDestroy(ctypes.sizeof(ErrorDestroy), None, error)
            self._error_destroy(ctypes.addressof(args))
            raise RuntimeError(message)


def answer_metadata(frame: ctypes.Structure, traits: int = 0) -> bool:
    """Answers the question for the handler's version, if the frame asks it."""
    extension = frame.extension
    while extension:
        asked = MetadataExtension.from_address(extension)
        if asked.type == METADATA:
            metadata = asked.metadata.contents
            metadata.major, metadata.minor, metadata.traits = MAJOR, MINOR, traits
            return True
        extension = asked.next
    return False


def unsigned_attribute(attrs: ctypes.Structure, name: bytes) -> int:
    """The value of a scalar attribute of 64 bits without sign."""
    names, values = attrs.names, attrs.values
    for i in range(attrs.size):
        if names[i].contents.bytes() == name:
            return ctypes.c_uint64.from_address(Scalar.from_address(values[i]).value).value
    raise KeyError(f"the call has no attribute {name.decode()!r}")


def type_asked_for(api: Api, handler: int, attribute: bytes) -> int:
    """The number of the type of data that a handler asks its context for, which has one attribute of 64 bits.

    Numbers of types are the caller's own; who does not share its memory of them can only be told.
    """
    asked = []

    def context_get(args):
        asked.append(ContextGet.from_address(args).type_id[0])
        return api.error(NOT_FOUND, "the handler was only asked for its type")

    answer = _RETURNING(context_get)
    size = c_size_t.from_address(api.address).value
    table = ctypes.create_string_buffer(ctypes.string_at(api.address, size), size)
    c_void_p.from_buffer(table, CONTEXT_GET).value = ctypes.cast(answer, c_void_p).value
    index = ctypes.c_uint64(0)
    name, value = ByteSpan.of(attribute), Scalar(UNSIGNED_64, ctypes.addressof(index))
    attrs = Attrs(
        ctypes.sizeof(Attrs), None, 1, (c_int * 1)(SCALAR), (POINTER(ByteSpan) * 1)(ctypes.pointer(name)),
        (c_void_p * 1)(ctypes.addressof(value)),
    )  # fmt: skip
    none = Buffers(ctypes.sizeof(Buffers))
    frame = CallFrame(CallFrame.future.offset, None, ctypes.addressof(table), None, EXECUTE, none, none, attrs)
    try:
        api.check(HANDLER(handler)(ctypes.pointer(frame)))
    except RuntimeError as error:
        if len(asked) == 1:
            return asked[0]
        raise RuntimeError(f"jaxlib's handler asks for other data than expected: {error}") from None
    raise RuntimeError("jaxlib's handler asks for no data")
