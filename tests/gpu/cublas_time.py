"""Times a product of matrices by cuBLAS on the first GPU: cublas_time.py TYPE M K N SECONDS prints microseconds.

TYPE is f32 (multiplied exactly), tf32, f16, bf16 or f64; matrices are row major. Calls the driver and the library by themselves: Python
alone is needed. A machine that lacks one of them gets a sentence and exit code 1.
"""
import ctypes
import os
import statistics
import sys
import time

LIBRARIES = ["libcublas.so.13", "libcublas.so.12", "libcublas.so.11", "libcublas.so"]
# The numbers of cuBLAS: element type and type of the sums; and the bits of 1, and those that make numbers from -2 to 2 of it.
TYPES = {
    "f32": (0, 68, 0x3F800000, 0x807FFFFF, 4),
    "tf32": (0, 77, 0x3F800000, 0x807FFFFF, 4),
    "f16": (2, 68, 0x3C00, 0x83FF, 2),
    "bf16": (14, 68, 0x3F80, 0x807F, 2),
    "f64": (1, 70, 0x3FF0000000000000, 0x800FFFFFFFFFFFFF, 8),
}
ANY_ALGORITHM = -1


def load(names):
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            pass
    sys.exit("cublas_time: %s cannot be loaded" % names[-1])


def check(status, what):
    if status:
        sys.exit("cublas_time: %s says %d" % (what, status))


class Device:
    """The first GPU, through its driver."""

    def __init__(self):
        self.driver = load(["libcuda.so.1"])
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)

    def call(self, name, *arguments):
        check(getattr(self.driver, name)(*arguments), name)

    def memory(self, size, block):
        """Memory with the block's bytes, over and over."""
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        for at in range(0, size, len(block)):
            part = ctypes.c_size_t(min(len(block), size - at))
            self.call("cuMemcpyHtoD_v2", ctypes.c_uint64(address.value + at), block, part)
        return ctypes.c_void_p(address.value)


def some_numbers(one, free, size):
    """The bytes of a million random numbers or fewer: of zeros, a product takes less power and less time."""
    count = (1 << 22) // size
    every = lambda bits: int.from_bytes(bits.to_bytes(size, "little") * count, "little")
    random = int.from_bytes(os.urandom(size * count), "little")
    return (random & every(free) | every(one)).to_bytes(size * count, "little")


def main(kind, m, k, n, seconds):
    element, sums, one, free, size = TYPES[kind]
    device, library, handle = Device(), load(LIBRARIES), ctypes.c_void_p()
    check(library.cublasCreate_v2(ctypes.byref(handle)), "cublasCreate")
    block = some_numbers(one, free, size)
    lhs, rhs, result = (device.memory(count * size, block) for count in (m * k, k * n, m * n))
    number = ctypes.c_double if kind == "f64" else ctypes.c_float
    one, zero = number(1), number(0)

    def once():
        start = time.perf_counter()
        # Columns follow each other in cuBLAS, so that the transposed result is asked for: rhs times lhs.
        status = library.cublasGemmEx(handle, 0, 0, n, m, k, ctypes.byref(one), rhs, element, n, lhs, element, k,
                                      ctypes.byref(zero), result, element, n, sums, ANY_ALGORITHM)
        check(status, "cublasGemmEx")
        device.call("cuCtxSynchronize")
        return time.perf_counter() - start

    warm = [once() for _ in range(5)][-1]
    repetitions = int(min(5000, max(7, seconds / max(warm, 1e-7))))
    print(statistics.median(once() for _ in range(repetitions)) * 1e6)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:5]), float(sys.argv[5]))
