"""Times products of matrices, beside cuBLAS, and those of our own kernels, for this GPU and for earlier ones, too."""
import os

from . import toolbox
from .toolbox import Failure

TITLE = "products of matrices beside cuBLAS"
LIMIT, LEAST = 1200, 60

CUBLAS = os.path.join(os.path.dirname(toolbox.HERE), "cublas_time.py")


def run(opt, results):
    side = 32 if opt.small else 512 if opt.quick else 8192
    half = side // 2
    for kind, (m, k, n) in [("f32", (half,) * 3), ("tf32", (side,) * 3), ("f16", (side,) * 3), ("bf16", (side,) * 3),
                            ("bf16", (16, side, side)), ("bf16", (128, side, side)), ("f64", (half,) * 3)]:
        name = "%s %dx%dx%d" % (kind, m, k, n)
        program = toolbox.write_program(opt, name, product(kind, m, k, n))
        try:
            times = toolbox.timed(opt, program)
        except Failure as error:
            results.add(name, ok=False, message=str(error))
            continue
        row = {"device_us": toolbox.device_us(times)}
        row["tera_per_s"] = 2 * m * k * n / row["device_us"] / 1e6
        row.update(cublas_time(opt, kind, m, k, n))
        row.update(own_times(opt, name, program))
        if "cublas_us" in row:
            row["of_cublas"] = row["cublas_us"] / row["device_us"]
            for own in ("own", "own_sm_90"):
                if own + "_us" in row:
                    row[own + "_of_cublas"] = row["cublas_us"] / row[own + "_us"]
        results.add(name, **row)


def own_times(opt, name, program):
    """The time without libraries: of kernels for this very GPU, and of those for sm_90, which have no warp groups."""
    row = {}
    try:
        row["own_us"] = toolbox.device_us(toolbox.timed(opt, program, libraries=False))
        if opt.platform == "gpu":
            built = opt.scratch("own " + name)
            words = [opt.xla, "compile", program, "--platform", "gpu", "--target", "sm_90", "--ptxas", "none", "-o", built]
            toolbox.run(words, timeout=120, env=opt.environment())
            executable = os.path.join(built, "m.xlax")
            row["own_sm_90_us"] = toolbox.device_us(toolbox.timed(opt, executable, executable=True, libraries=False))
    except Failure as error:
        row["own_error"] = str(error)
    return row


def product(kind, m, k, n):
    element, algorithm = ("f32", ", algorithm=dot_tf32_tf32_f32") if kind == "tf32" else (kind, "")
    lines = ["HloModule m", "", "ENTRY main {", "  x = %s[%d,%d] parameter(0)" % (element, m, k),
             "  y = %s[%d,%d] parameter(1)" % (element, k, n),
             "  ROOT r = %s[%d,%d] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}%s" % (element, m, n, algorithm)]
    return "\n".join(lines + ["}", ""])


def cublas_time(opt, *what):
    """The time of the same product by cuBLAS, in a process of its own; without it, why."""
    words = [opt.python, CUBLAS] + list(what) + [opt.seconds()]
    try:
        return {"cublas_us": float(toolbox.run(words, timeout=300, env=opt.environment()).splitlines()[-1])}
    except (Failure, ValueError, IndexError) as error:
        return {"cublas_error": str(error)}
