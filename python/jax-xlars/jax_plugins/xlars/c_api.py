"""Calls of the PJRT C API that jaxlib does not make: extensions, and their errors."""

import ctypes

ERROR_DESTROY, ERROR_MESSAGE = 40, 48
# The number of the FFI extension; offsets of its functions.
FFI = 5
FFI_TYPE_REGISTER, FFI_REGISTER_HANDLER = 24, 40


def word(address: int, size: int = 8) -> int:
    """The integer at an address."""
    return int.from_bytes(ctypes.string_at(address, size), "little")


def name(capsule) -> bytes:
    """The name of a capsule."""
    get_name = ctypes.pythonapi.PyCapsule_GetName
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    return get_name(capsule)


def pointer(capsule) -> int:
    """The address that a capsule holds."""
    address = ctypes.pythonapi.PyCapsule_GetPointer
    address.restype, address.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return address(capsule, name(capsule))


class RegisterHandler(ctypes.Structure):
    """`PJRT_FFI_Register_Handler_Args`: 52 bytes."""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("target", ctypes.c_char_p),
        ("target_size", ctypes.c_size_t),
        ("handler", ctypes.c_void_p),
        ("platform", ctypes.c_char_p),
        ("platform_size", ctypes.c_size_t),
        ("traits", ctypes.c_int),
    ]


class RegisterType(ctypes.Structure):
    """`PJRT_FFI_Type_Register_Args`: 48 bytes."""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("extension", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("name_size", ctypes.c_size_t),
        ("type_id", ctypes.c_int64),
        ("type_info", ctypes.c_void_p),
    ]


class Api:
    """The table of the PJRT C API that a capsule holds."""

    def __init__(self, capsule):
        self._api = pointer(capsule)
        extension = word(self._api + 8)
        while extension and word(extension + 8, 4) != FFI:
            extension = word(extension + 16)
        if not extension:
            raise RuntimeError("the plugin has no FFI extension")
        self._ffi = extension

    def register_handler(self, target: str, platform: str, function: int, traits: int = 0) -> None:
        """Registers a typed handler of one function for the targets of a platform."""
        name, of = target.encode(), platform.encode()
        self._call(FFI_REGISTER_HANDLER, RegisterHandler(52, name, len(name), function, of, len(of), traits))

    def register_type(self, name: str, type_id: int = 0, deleter: int = 0) -> int:
        """The number of a type of data, which is `type_id` unless that is 0; `deleter` ends its objects."""
        text = name.encode()
        # Here the functions follow one another: deleter, serialize, deserialize.
        functions = (ctypes.c_uint64 * 3)(deleter, 0, 0)
        args = RegisterType(48, None, text, len(text), type_id, ctypes.addressof(functions))
        self._call(FFI_TYPE_REGISTER, args)
        return args.type_id

    def _call(self, offset: int, args: ctypes.Structure) -> None:
        function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(word(self._ffi + offset))
        if error := function(ctypes.addressof(args)):
            self._raise(error)

    def _raise(self, error: int) -> None:
        args = (ctypes.c_size_t * 5)(40, 0, error, 0, 0)
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(word(self._api + ERROR_MESSAGE))(ctypes.addressof(args))
        message = ctypes.string_at(args[3], args[4]).decode()
        args = (ctypes.c_size_t * 3)(24, 0, error)
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(word(self._api + ERROR_DESTROY))(ctypes.addressof(args))
        raise RuntimeError(message)
