"""Hands handlers of custom calls over to the plugin, by the FFI extension of the PJRT C API."""

import ctypes

FFI = 5
REGISTER_HANDLER = 40
ERROR_DESTROY, ERROR_MESSAGE = 40, 48


def _word(address: int, size: int = 8) -> int:
    return int.from_bytes(ctypes.string_at(address, size), "little")


def _pointer(capsule) -> int:
    name, pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return pointer(capsule, name(capsule))


class _Register(ctypes.Structure):
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


def _extension(api: int) -> int:
    extension = _word(api + 8)
    while extension and _word(extension + 8, 4) != FFI:
        extension = _word(extension + 16)
    if not extension:
        raise RuntimeError("the plugin has no FFI extension")
    return extension


def _raise(api: int, error: int) -> None:
    args = (ctypes.c_size_t * 5)(40, 0, error, 0, 0)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_word(api + ERROR_MESSAGE))(ctypes.addressof(args))
    message = ctypes.string_at(args[3], args[4]).decode()
    args = (ctypes.c_size_t * 3)(24, 0, error)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_word(api + ERROR_DESTROY))(ctypes.addressof(args))
    raise RuntimeError(message)


def handler(c_api):
    """The function that JAX calls for each target: typed handlers that have one stage are handed over."""
    api = _pointer(c_api)
    register = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(_word(_extension(api) + REGISTER_HANDLER))

    def hand_over(name, function, platform, api_version=0, traits=0):
        functions = function if isinstance(function, dict) else {"execute": function}
        stages = {stage for stage, given in functions.items() if given is not None}
        if api_version != 1 or stages != {"execute"}:
            return  # The C API takes one function alone, of the typed kind.
        target, of = name.encode(), platform.encode()
        address = _pointer(functions["execute"])
        args = _Register(52, target, len(target), address, of, len(of), int(traits))
        if error := register(ctypes.addressof(args)):
            _raise(api, error)

    return hand_over
