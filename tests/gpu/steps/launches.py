"""Measures what a launch costs the device and the host: a program of one thunk, each thunk more, in graphs and without."""
from . import toolbox

TITLE = "launch costs"
LIMIT, LEAST = 600, 30


def run(opt, results):
    short, long = (4, 12) if opt.small else (10, 210)
    paths = {n: toolbox.write_program(opt, "chain%d" % n, chain(n)) for n in (1, short, long)}

    def time(length, *options):
        times = toolbox.timed(opt, paths[length], options)
        return {"device_us": toolbox.device_us(times), "run_us": times["run_us"],
                "queued_us": times.get("device_time", {}).get("queued_us", times["run_us"])}

    def more(*options):
        least, most = time(short, *options), time(long, *options)
        return {name: (most[name] - least[name]) / (long - short) for name in least}

    measures = [("a program of one thunk", lambda: time(1)), ("one thunk more, in a graph", more),
                ("one thunk more, without graphs", lambda: more("--no-graphs"))]
    for name, measure in measures:
        try:
            results.add(name, **measure())
        except toolbox.Failure as error:
            results.add(name, ok=False, message=str(error))


def chain(length):
    """So many thunks that wait for each other: nothing fuses over a product of matrices."""
    lines = ["HloModule chain", "", "ENTRY main {", "  x0 = f32[16,16] parameter(0)"]
    for i in range(1, length + 1):
        root = "ROOT " if i == length else ""
        operands = "x%d, x%d" % (i - 1, i - 1)
        lines.append("  %sx%d = f32[16,16] dot(%s), lhs_contracting_dims={1}, rhs_contracting_dims={0}" % (root, i, operands))
    return "\n".join(lines + ["}", ""])
