"""Times one operation at growing sizes: on the device, for who waits for each call, and for who queues calls."""
from . import toolbox
from .toolbox import Failure

TITLE = "time of the device, of a call and of queued calls"
LIMIT, LEAST = 900, 30


def run(opt, results):
    if opt.platform != "gpu":
        return results.leave_out("platform %s has no clock" % opt.platform)
    sizes = [1 << 8] if opt.small else [1 << bits for bits in range(10, 29, 6 if opt.quick else 3)]
    for size in sizes:
        name = "softmax of %d rows of 64" % (size // 64)
        path = toolbox.write_program(opt, name, softmax(size // 64))
        try:
            results.add(name, graphs=row(opt, path), without_graphs=row(opt, path, "--no-graphs"))
        except Failure as error:
            results.add(name, ok=False, message=str(error))


def row(opt, path, *options):
    times = toolbox.timed(opt, path, options)
    return dict(times["device_time"], latency_us=times["run_us"])


def softmax(rows):
    """One kernel, whose work grows with its rows."""
    fold = "%s {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] %s(a, b)\n}\n\n"
    shape, row_shape = "f32[%d,64]" % rows, "f32[%d]" % rows
    body = [
        "x = %s parameter(0)" % shape, "least = f32[] constant(-inf)", "zero = f32[] constant(0)",
        "m = %s reduce(x, least), dimensions={1}, to_apply=most" % row_shape, "ms = %s broadcast(m), dimensions={0}" % shape,
        "d = %s subtract(x, ms)" % shape, "e = %s exponential(d)" % shape,
        "s = %s reduce(e, zero), dimensions={1}, to_apply=sum" % row_shape, "ss = %s broadcast(s), dimensions={0}" % shape,
        "ROOT r = %s divide(e, ss)" % shape]
    entry = "ENTRY main {\n" + "".join("  %s\n" % line for line in body) + "}\n"
    return "HloModule m\n\n" + fold % ("most", "maximum") + fold % ("sum", "add") + entry
