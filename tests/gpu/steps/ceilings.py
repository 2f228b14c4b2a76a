"""Measures bytes read and written per second, beside those of a copy by the driver."""
from . import toolbox
from .toolbox import Failure

TITLE = "ceilings: bandwidth of kernels beside a copy by the driver"
LIMIT, LEAST = 900, 60

# A copy of so many floats takes long enough that starting it does not count.
ELEMENTS = 1 << 28
SUM = "sum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}\n\n"


def run(opt, results):
    elements, copied = 1 << 10 if opt.small else ELEMENTS >> 4 if opt.quick else ELEMENTS, None
    results.fact("elements", elements)
    for name, before, shape, body, moved in programs(elements):
        text = "HloModule m\n\n%sENTRY main {\n  x = %s parameter(0)\n%s}\n" % (before, shape, body)
        try:
            us = toolbox.device_us(toolbox.timed(opt, toolbox.write_program(opt, name, text)))
        except Failure as error:
            results.add(name, ok=False, message=str(error))
            continue
        rate = moved / us / 1e3
        copied = rate if name == "copy by the driver" else copied
        results.add(name, device_us=us, bytes=moved, gb_per_s=rate, of_copy=rate / copied if copied else None)


def programs(n):
    """Name, declarations before the entry, the parameter, the body, and how many bytes it moves."""
    side = 1 << (n.bit_length() - 1) // 2
    other = n // side
    flat, square, half = "f32[%d]" % n, "f32[%d,%d]" % (side, other), "bf16[%d]" % n
    zero = "  zero = f32[] constant(0)\n"
    return [
        ("copy by the driver", "", flat, "  ROOT r = %s copy(x)\n" % flat, 8 * n),
        ("elementwise", "", flat, "  ROOT r = %s negate(x)\n" % flat, 8 * n),
        ("elementwise of bf16", "", half, "  ROOT r = %s negate(x)\n" % half, 4 * n),
        ("reduce of rows", SUM, square,
         zero + "  ROOT r = f32[%d] reduce(x, zero), dimensions={1}, to_apply=sum\n" % side, 4 * n),
        ("reduce of columns", SUM, square,
         zero + "  ROOT r = f32[%d] reduce(x, zero), dimensions={0}, to_apply=sum\n" % other, 4 * n),
        ("reduce of all", SUM, flat, zero + "  ROOT r = f32[] reduce(x, zero), dimensions={0}, to_apply=sum\n", 4 * n),
        ("transpose", "", square,
         "  ROOT r = f32[%d,%d] transpose(x), dimensions={1,0}\n" % (other, side), 8 * n),
    ]
