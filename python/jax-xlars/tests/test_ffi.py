"""Handlers of `jax.ffi` as a library would bring them, written with ctypes: attributes, stages, states, packed elements.

With `JAX_PLATFORMS=xlars` and `XLARS_LIBRARY`, by pytest.
"""

import ctypes
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax_plugins.xlars import ffi

STATE_SET, STATE_GET, STREAM_GET, MEMORY_ALLOCATE, MEMORY_FREE = 7, 8, 4, 9, 10
F32 = np.float32
# What C would keep alive.
_kept = []


def _call(frame, function: int, *words) -> list[int]:
    """Calls a function of the table; returns its structure as words."""
    args = (ctypes.c_uint64 * (2 + len(words)))(8 * (2 + len(words)), 0, *words)
    address = ctypes.c_void_p.from_address(frame.api + 48 + 8 * function).value
    error = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(address)(ctypes.addressof(args))
    ffi.Api(frame.api).check(error)
    return list(args)


def _handler(work):
    """A capsule of a handler that does `work` with each frame; what that raises is its error."""

    def handle(pointer):
        frame = pointer.contents
        try:
            if not ffi.answer_metadata(frame):
                work(frame)
            return None
        except Exception as error:
            return ffi.Api(frame.api).error(3, str(error))

    function = ffi.HANDLER(handle)
    _kept.append(function)
    return jax.ffi.pycapsule(function)


def _apply(target: str, x, result=None, **attributes):
    call = jax.ffi.ffi_call(target, jax.ShapeDtypeStruct(x.shape, x.dtype) if result is None else result)
    return np.asarray(jax.jit(lambda x: call(x, **attributes))(x))


def _attributes(attrs) -> dict:
    told = {}
    for i in range(attrs.size):
        name, kind, value = attrs.names[i].contents.bytes().decode(), attrs.types[i], attrs.values[i]
        if kind == 1:
            dtype, size, data = (ctypes.c_uint64 * 3).from_address(value)
            dtype = ffi.DTYPES[dtype & 0xFFFFFFFF]
            told[name] = np.frombuffer(ctypes.string_at(data, size * dtype.itemsize), dtype).tolist()
        elif kind == 2:
            told[name] = _attributes(ffi.Attrs.from_address(value))
        elif kind == 3:
            scalar = ffi.Scalar.from_address(value)
            dtype = ffi.DTYPES[scalar.dtype]
            told[name] = np.frombuffer(ctypes.string_at(scalar.value, dtype.itemsize), dtype)[0]
        else:
            told[name] = ffi.ByteSpan.from_address(value).bytes().decode()
    return told


def test_attributes_of_every_kind():
    seen = []
    jax.ffi.register_ffi_target("tests_attributes", _handler(lambda frame: seen.append(_attributes(frame.attrs))))
    given = {
        "text": "some text",
        "empty": "",
        "flag": True,
        "small": np.int8(-3),
        "large": np.uint64(2**62),
        "real": 1.5,
        "f32": F32(2.5),
        "array": np.arange(3),
        "matrix": np.ones((2, 2), np.int16),
        "none": np.zeros(0, F32),
        "dictionary": {},
    }
    _apply("tests_attributes", jnp.ones(2), **given)
    (told,) = seen
    assert list(told) == sorted(given)
    for name, value in given.items():
        expected = value.reshape(-1).tolist() if isinstance(value, np.ndarray) else value
        assert told[name] == expected, (name, told[name])
    try:
        _apply("tests_attributes", jnp.ones(2), list=(1.0, 2.0))
    except Exception as error:
        assert "list" in str(error), error
    else:
        raise AssertionError("the FFI has no lists")


def test_handlers_of_several_stages_keep_a_state():
    ended = []
    deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(ended.append)
    info = (ctypes.c_uint64 * 3)(24, 0, ctypes.cast(deleter, ctypes.c_void_p).value)
    type_id = ctypes.c_int64(0)
    _kept.extend([deleter, info, type_id])
    id_place = ctypes.addressof(type_id)
    as_capsule = lambda place: jax.ffi.pycapsule(place)
    types = {"type_id": as_capsule(id_place), "type_info": as_capsule(ctypes.addressof(info))}
    jax.ffi.register_ffi_type("tests_state", types, platform="cpu")
    assert type_id.value != 0
    stages = []

    def instantiate(frame):
        stages.append("instantiate")
        assert frame.args.size == frame.rets.size == 0 and _attributes(frame.attrs) == {"n": 7}
        _call(frame, STATE_SET, frame.context, 0, id_place, 0x1230 + 7)

    def execute(frame):
        stages.append("execute")
        state = _call(frame, STATE_GET, frame.context, 0, id_place, 0)[-1]
        frame.rets.values[0].contents.write(frame.args.values[0].contents.read() + F32(state - 0x1230))

    target = {"instantiate": _handler(instantiate), "execute": _handler(execute)}
    jax.ffi.register_ffi_target("tests_stages", target, platform="cpu")
    call = jax.ffi.ffi_call("tests_stages", jax.ShapeDtypeStruct((2,), F32))
    program = jax.jit(lambda x: call(x, n=7))
    for _ in range(3):
        assert np.asarray(program(np.ones(2, F32))).tolist() == [8.0, 8.0]
    assert stages == ["instantiate"] + ["execute"] * 3
    del program
    jax.clear_caches()
    for _ in range(100):
        if ended:
            break
        time.sleep(0.05)
    assert ended == [0x1237]


def test_unknown_stages_are_named():
    try:
        jax.ffi.register_ffi_target("tests_unknown", {"execute": _handler(lambda _: None), "finish": None})
    except Exception as error:
        assert "finish" in str(error), error
    else:
        raise AssertionError("there is no stage of that name")


def test_small_elements_are_packed():
    def invert(frame):
        source, target = frame.args.values[0].contents, frame.rets.values[0].contents
        size = (source.dims[0] * ffi.PACKED_BITS[source.dtype] + 7) // 8
        data = ctypes.string_at(source.data, size)
        ctypes.memmove(target.data, bytes(0xFF ^ byte for byte in data), size)

    jax.ffi.register_ffi_target("tests_packed", _handler(invert))
    for dtype, values, expected in (
        (jnp.int4, [1, -2, 7], [-2, 1, -8]),
        (jnp.uint4, [0, 15, 3], [15, 0, 12]),
        (jnp.int2, [1, -2, 0, -1, 1], [-2, 1, -1, 0, -2]),
        (jnp.uint2, [0, 1, 2, 3], [3, 2, 1, 0]),
    ):
        result = _apply("tests_packed", jnp.asarray(np.array(values, dtype)))
        assert result.astype(int).tolist() == expected, (dtype, result)


def test_the_runtime_gives_memory_and_has_no_stream():
    def work(frame):
        place = _call(frame, MEMORY_ALLOCATE, frame.context, 100, 256, 0)[-1]
        assert place % 256 == 0
        ctypes.memset(place, 1, 100)
        _call(frame, MEMORY_FREE, frame.context, 100, place)
        try:
            _call(frame, STREAM_GET, frame.context, 0)
        except RuntimeError:
            return frame.rets.values[0].contents.write(np.full(2, 3, F32))
        raise ValueError("a stream on the host")

    jax.ffi.register_ffi_target("tests_runtime", _handler(work))
    assert _apply("tests_runtime", np.ones(2, F32)).tolist() == [3.0, 3.0]


def test_errors_are_told():
    def fail(frame):
        raise ValueError("not today")

    jax.ffi.register_ffi_target("tests_failing", _handler(fail))
    try:
        _apply("tests_failing", np.ones(2, F32))
    except Exception as error:
        assert str(error).startswith("INVALID_ARGUMENT: ") and "not today" in str(error), error
    else:
        raise AssertionError("no error")
