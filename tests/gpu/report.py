"""Everything that is to be known about the compiler on this machine's GPU, in one command: a note and a JSON file.

  python3 report.py --xla XLA [--tests XLA-TESTS] [--bench DIR] [--corpus DIR] [--programs DIR] [--out DIR] [--quick]

XLA and XLA-TESTS are the commands `xla` and `xla-tests`, built anywhere. What is not given is left out; what fails is
written down, and the rest goes on. Needs Python 3.9 and nothing else; with jax (and numpy) that sees the GPU, each
benchmark program is timed with it, too: f32 multiplied exactly, and with TF32, on both sides. NVIDIA's libraries
that Python packages brought are found. Without a GPU that the compiler can use: one sentence, exit code 1.

DIRs: --bench has manifest.json and the programs of it, --corpus folders with case.json, --programs .hlo files for
compute-sanitizer. `cargo xtask gpu-report` gives all of them.
"""
import argparse
import datetime
import glob
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
# A copy of so many floats takes long enough that starting it does not count.
ELEMENTS = 1 << 28


def main():
    opt = arguments()
    provide_libraries(opt.python)
    device = find_device(opt.xla, opt.platform)
    report = {"device": device, "date": datetime.date.today().isoformat(), "driver": driver()}
    with tempfile.TemporaryDirectory() as scratch:
        opt.scratch = scratch
        for name, part in PARTS:
            print("gpu-report: %s" % name, flush=True)
            try:
                report[name] = part(opt)
            except Exception as error:  # One part that fails is a finding, and no reason to lose the others.
                report[name] = {"error": "%s: %s" % (type(error).__name__, error)}
    os.makedirs(opt.out, exist_ok=True)
    words = device["model"] if opt.platform == "gpu" else opt.platform
    words = "".join(c if c.isalnum() else " " for c in words.lower()).split()
    stem = os.path.join(opt.out, "gpu-%s-%s" % ("-".join(words), report["date"]))
    with open(stem + ".json", "w") as file:
        json.dump(report, file, indent=1)
        file.write("\n")
    with open(stem + ".md", "w") as file:
        file.write(note(report))
    print("%s.md\n%s.json" % (stem, stem))
    return 0 if passed(report) else 1


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--xla", required=True, help="the command `xla`")
    parser.add_argument("--tests", help="the command `xla-tests`; else there is no conformance run")
    parser.add_argument("--bench", help="a folder with manifest.json and benchmark programs")
    parser.add_argument("--corpus", help="a folder with cases: module.hlo, inputs.npz, expected.npz, case.json")
    parser.add_argument("--programs", help="a folder of .hlo files to run under compute-sanitizer")
    parser.add_argument("--out", default=".", help="where the note goes")
    parser.add_argument("--python", default=sys.executable, help="a Python that may have jax")
    parser.add_argument("--platform", default="gpu", help="another platform, to try the report itself: gpu-emulated")
    parser.add_argument("--quick", action="store_true", help="smaller sizes, fewer repetitions")
    return parser.parse_args()


def provide_libraries(python):
    """Lets all commands find the libraries of NVIDIA's Python packages, such as nvidia-cublas-cu12."""
    code = "import site; print('\\n'.join(site.getsitepackages() + [site.getusersitepackages()]))"
    try:
        places = run([python, "-c", code]).splitlines()
    except (OSError, RuntimeError, subprocess.TimeoutExpired):
        return
    folders = [folder for place in places for folder in sorted(glob.glob(os.path.join(place, "nvidia", "*", "lib")))]
    known = [folder for folder in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if folder]
    os.environ["LD_LIBRARY_PATH"] = os.pathsep.join(known + folders)


def run(words, timeout=600, **more):
    """Standard output of a command; its first line of complaint as an error."""
    done = subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=timeout, **more)
    if done.returncode:
        said = [line for line in done.stderr.decode(errors="replace").splitlines() if line.strip()]
        raise RuntimeError(said[0] if said else "exit code %d" % done.returncode)
    return done.stdout.decode(errors="replace")


def find_device(xla, platform):
    """Model and attributes of the first GPU that `xla platforms` lists; ends the program if there is none."""
    try:
        lines = run([xla, "platforms"]).splitlines()
    except (OSError, RuntimeError, subprocess.TimeoutExpired) as error:
        sys.exit("gpu-report: %s platforms cannot be run: %s" % (xla, error))
    at = next((i for i, line in enumerate(lines) if line.startswith(platform + ": ")), None)
    if at is None:
        sys.exit("gpu-report: this build of xla has no platform %s" % platform)
    if at + 1 >= len(lines) or not lines[at + 1].startswith("  device 0: "):
        sys.exit("gpu-report: no GPU to report on: %s" % lines[at].split(": ", 1)[1])
    device = {"model": lines[at + 1].split(": ", 1)[1].split(",")[0], "summary": lines[at + 1].strip()}
    for line in lines[at + 2:]:
        if not line.startswith("    "):
            break
        name, _, value = line.strip().partition(": ")
        device[name] = value
    return device


def driver():
    """What nvidia-smi says; nothing where it is not installed."""
    fields = ["driver_version", "clocks.max.sm", "clocks.max.mem", "power.limit"]
    try:
        text = run(["nvidia-smi", "--query-gpu=" + ",".join(fields), "--format=csv,noheader"], timeout=60)
    except (OSError, RuntimeError, subprocess.TimeoutExpired):
        return {}
    values = (text.splitlines() or [""])[0].split(",")
    return dict(zip(fields, (value.strip() for value in values)))


def conformance(opt):
    if not opt.tests:
        return {"left out": "no --tests"}
    path = os.path.join(opt.scratch, "conformance.json")
    words = [opt.tests, "conformance", opt.platform, "--report", "json", "--output", path] + ["--quick"] * opt.quick
    try:
        run(words, timeout=7200)
    except RuntimeError:
        # It fails when a case does; the report tells which.
        if not os.path.exists(path):
            raise
    with open(path) as file:
        results = json.load(file)["results"]
    kinds, failures = {}, {}
    for result in results:
        kind = result["outcome"] if isinstance(result["outcome"], str) else next(iter(result["outcome"]))
        kinds[kind] = kinds.get(kind, 0) + 1
        if kind in ("Failed", "BeginsToPass"):
            failures[result["id"]] = str(result["outcome"][kind])[:300]
    return {"cases": len(results), "outcomes": kinds, "failures": failures}


def corpus(opt):
    if not opt.corpus:
        return {"left out": "no --corpus"}
    cases, failures = 0, {}
    for folder, _, files in sorted(os.walk(opt.corpus)):
        if "case.json" not in files or "module.hlo" not in files:
            continue
        with open(os.path.join(folder, "case.json")) as file:
            case = json.load(file)
        path = lambda name: os.path.join(folder, name)
        cases += 1
        try:
            run([opt.xla, "run", path("module.hlo"), "--platform", opt.platform, "--inputs", path("inputs.npz"), "--expect",
                 path("expected.npz"), "--rtol", case["rtol"], "--atol", case["atol"]], timeout=120)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            failures["%s/%s" % (case["suite"], case["name"])] = str(error)[:300]
    return {"cases": cases, "failures": failures}


# How f32 is multiplied, and what our command says for it.
PRODUCTS = {"exact": [], "tf32": ["--allow-tf32"]}


def bench(opt):
    if not opt.bench:
        return {"left out": "no --bench"}
    with open(os.path.join(opt.bench, "manifest.json")) as file:
        entries = json.load(file)["programs"]
    jax = jax_device(opt)
    rows = {}
    for entry in entries:
        path = os.path.join(opt.bench, entry["file"])
        row = rows[entry["name"]] = {}
        for products, options in PRODUCTS.items():
            times = row[products] = {}
            try:
                times["run_us"] = timed(opt, path, options)["run_us"]
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                row["error"] = str(error)[:300]
            if "version" in jax:
                times.update(jax_time(opt, path, opt.bench, products))
            if "run_us" in times and "jax_us" in times:
                times["ratio"] = times["run_us"] / times["jax_us"]
    means = {products: mean([row[products]["ratio"] for row in rows.values() if "ratio" in row[products]])
             for products in PRODUCTS}
    return {"jax": jax, "programs": rows, "geomean": means}


def mean(ratios):
    """The geometric mean, and of how many."""
    value = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None
    return {"value": value, "compared": len(ratios)}


def timed(opt, path, options=()):
    words = [opt.xla, "bench", path, "--platform", opt.platform, "--json", "--compiles", "1", "--min-seconds", seconds(opt)]
    return json.loads(run(words + list(options)))


def seconds(opt):
    return "0.1" if opt.quick else "1"


def jax_device(opt):
    code = "import jax; d = jax.devices('gpu')[0]; print(jax.__version__ + '\\n' + d.device_kind)"
    try:
        version, kind = run([opt.python, "-c", code]).splitlines()[-2:]
        return {"version": version, "device": kind}
    except (OSError, RuntimeError, ValueError, subprocess.TimeoutExpired) as error:
        return {"left out": str(error)[:200]}


def jax_time(opt, path, folder, products):
    """The time of the same program with JAX's compiler on the same GPU, in a process of its own."""
    words = [opt.python, os.path.join(HERE, "jax_time.py"), path, os.path.join(folder, "manifest.json")]
    try:
        return {"jax_us": float(run(words + [seconds(opt), products]).splitlines()[-1])}
    except (OSError, RuntimeError, ValueError, IndexError, subprocess.TimeoutExpired) as error:
        return {"jax_error": str(error)[:200]}


def write_program(opt, name, text):
    path = os.path.join(opt.scratch, name + ".hlo")
    with open(path, "w") as file:
        file.write(text)
    return path


SUM = "sum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}\n\n"


def bandwidth(opt):
    """Bytes read and written per second, beside those of a copy by the driver."""
    n = ELEMENTS >> 4 if opt.quick else ELEMENTS
    side = 1 << (n.bit_length() - 1) // 2
    other = n // side
    flat, square = "f32[%d]" % n, "f32[%d,%d]" % (side, other)
    zero = "  zero = f32[] constant(0)\n"
    # Name, declarations before the entry, the parameter, the body, and how many bytes it moves.
    moves = [
        ("copy by the driver", "", flat, "  ROOT r = %s copy(x)\n" % flat, 8 * n),
        ("elementwise", "", flat, "  ROOT r = %s negate(x)\n" % flat, 8 * n),
        ("reduce of rows", SUM, square,
         zero + "  ROOT r = f32[%d] reduce(x, zero), dimensions={1}, to_apply=sum\n" % side, 4 * n),
        ("reduce of columns", SUM, square,
         zero + "  ROOT r = f32[%d] reduce(x, zero), dimensions={0}, to_apply=sum\n" % other, 4 * n),
        ("reduce of all", SUM, flat, zero + "  ROOT r = f32[] reduce(x, zero), dimensions={0}, to_apply=sum\n", 4 * n),
        ("transpose", "", square,
         "  ROOT r = f32[%d,%d] transpose(x), dimensions={1,0}\n" % (other, side), 8 * n),
    ]
    rows = {}
    for name, before, shape, body, moved in moves:
        text = "HloModule m\n\n%sENTRY main {\n  x = %s parameter(0)\n%s}\n" % (before, shape, body)
        try:
            us = timed(opt, write_program(opt, name.replace(" ", "_"), text))["run_us"]
            rows[name] = {"run_us": us, "bytes": moved, "gb_per_s": moved / us / 1e3}
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            rows[name] = {"error": str(error)[:300]}
    copied = rows.get("copy by the driver", {}).get("gb_per_s")
    for row in rows.values():
        if copied and "gb_per_s" in row:
            row["of_copy"] = row["gb_per_s"] / copied
    return {"elements": n, "programs": rows}


def products(opt):
    """Products of matrices, beside cuBLAS."""
    side = 512 if opt.quick else 8192
    rows = {}
    for kind, (m, k, n) in [("f32", (side // 2,) * 3), ("tf32", (side,) * 3), ("f16", (side,) * 3), ("bf16", (side,) * 3),
                            ("bf16", (16, side, side)), ("bf16", (128, side, side)), ("f64", (side // 2,) * 3)]:
        name = "%s %dx%dx%d" % (kind, m, k, n)
        row = rows[name] = {}
        try:
            path = write_program(opt, name.replace(" ", "_"), product(kind, m, k, n))
            row["run_us"] = timed(opt, path)["run_us"]
            row["tera_per_s"] = 2 * m * k * n / row["run_us"] / 1e6
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            row["error"] = str(error)[:300]
        row.update(cublas_time(opt, kind, m, k, n))
        if "run_us" in row and "cublas_us" in row:
            row["of_cublas"] = row["cublas_us"] / row["run_us"]
    return {"programs": rows}


def product(kind, m, k, n):
    element, algorithm = ("f32", ", algorithm=dot_tf32_tf32_f32") if kind == "tf32" else (kind, "")
    lines = ["HloModule m", "", "ENTRY main {", "  x = %s[%d,%d] parameter(0)" % (element, m, k),
             "  y = %s[%d,%d] parameter(1)" % (element, k, n),
             "  ROOT r = %s[%d,%d] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}%s" % (element, m, n, algorithm)]
    return "\n".join(lines + ["}", ""])


def cublas_time(opt, *what):
    """The time of the same product by cuBLAS, in a process of its own."""
    words = [opt.python, os.path.join(HERE, "cublas_time.py")] + list(what) + [seconds(opt)]
    try:
        return {"cublas_us": float(run(words).splitlines()[-1])}
    except (OSError, RuntimeError, ValueError, IndexError, subprocess.TimeoutExpired) as error:
        return {"cublas_error": str(error)[:200]}


def chain(length):
    """So many thunks that wait for each other: nothing fuses over a product of matrices."""
    lines = ["HloModule chain", "", "ENTRY main {", "  x0 = f32[16,16] parameter(0)"]
    for i in range(1, length + 1):
        root = "ROOT " if i == length else ""
        operands = "x%d, x%d" % (i - 1, i - 1)
        lines.append("  %sx%d = f32[16,16] dot(%s), lhs_contracting_dims={1}, rhs_contracting_dims={0}" % (root, i, operands))
    return "\n".join(lines + ["}", ""])


def overhead(opt):
    """Microseconds that one thunk more costs a program of small thunks, with graphs and without, and a program of one."""
    short, long = 10, 210
    paths = {n: write_program(opt, "chain%d" % n, chain(n)) for n in (1, short, long)}
    more = lambda *options: (timed(opt, paths[long], options)["run_us"] - timed(opt, paths[short], options)["run_us"]) / (long - short)
    return {"program_us": timed(opt, paths[1])["run_us"], "thunk_us": more(), "thunk_us_without_graphs": more("-O0")}


def sanitizer(opt):
    tool = shutil.which("compute-sanitizer")
    if not tool or not opt.programs:
        return {"left out": "no --programs" if tool else "there is no compute-sanitizer on the search path"}
    names = sorted(name for name in os.listdir(opt.programs) if name.endswith(".hlo"))
    failures = {}
    for name in names[:5] if opt.quick else names:
        path = os.path.join(opt.programs, name)
        for check in ("memcheck", "racecheck"):
            try:
                run([tool, "--tool", check, "--error-exitcode", "9", opt.xla, "run", path, "--platform", opt.platform,
                     "--inputs-seed", "0", "--output", os.path.join(opt.scratch, "out.npz")])
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                failures["%s %s" % (check, name)] = str(error)[:300]
    return {"programs": len(names), "failures": failures}


PARTS = [("conformance", conformance), ("corpus", corpus), ("bandwidth", bandwidth), ("products", products), ("overhead", overhead),
         ("bench", bench), ("sanitizer", sanitizer)]


def passed(report):
    parts = [report[name] for name, _ in PARTS]
    rows = [row for name in ("bandwidth", "products", "bench") for row in programs(report[name]).values()]
    return not any("error" in part or part.get("failures") for part in parts) and not any("error" in row for row in rows)


def programs(part):
    return part.get("programs", {})


def note(report):
    device, lines = report["device"], []
    lines += ["# %s, %s" % (device["model"], report["date"]), "", device["summary"]]
    lines += ["", ", ".join("%s %s" % pair for pair in report["driver"].items()) or "nvidia-smi was not found.", ""]
    for name in ("conformance", "corpus", "sanitizer"):
        part = report[name]
        lines += ["## " + name.capitalize(), ""]
        facts = ["%s: %s" % (key, value) for key, value in part.items() if key != "failures"]
        lines += ["; ".join(facts), ""]
        lines += ["- `%s`: %s" % pair for pair in sorted(part.get("failures", {}).items())]
    lines += ["", "## Bandwidth", ""] + table(
        ["program", "us", "GB/s", "of a copy"], report["bandwidth"],
        lambda row: ["%.1f" % row["run_us"], "%.0f" % row["gb_per_s"], percent(row.get("of_copy"))])
    lines += ["", "## Products of matrices", ""] + table(
        ["program", "us", "10^12 operations/s", "cuBLAS us", "of cuBLAS"], report["products"],
        lambda row: ["%.1f" % row["run_us"], "%.1f" % row["tera_per_s"], number(row.get("cublas_us"), "%.1f"),
                     percent(row.get("of_cublas"))])
    lines += ["", "## Launches", "", "; ".join("%s: %s" % pair for pair in report["overhead"].items())]
    part = report["bench"]
    lines += ["", "## Benchmark programs", "", "Products of f32 exactly, then with TF32, on both sides.", ""] + table(
        ["program", "exact us", "JAX us", "ratio", "TF32 us", "JAX us", "ratio"], part,
        lambda row: [cell for products in PRODUCTS for cell in (
            number(row[products].get("run_us"), "%.1f"), number(row[products].get("jax_us"), "%.1f"),
            number(row[products].get("ratio"), "%.2f"))])
    for products, found in part.get("geomean", {}).items():
        if found["value"]:
            lines += ["", "Geometric mean of %d ratios, %s beside %s: %.3f (JAX %s)" % (
                found["compared"], products, products, found["value"], part["jax"]["version"])]
    return "\n".join(lines) + "\n"


def table(head, part, cells):
    if not programs(part):
        return ["; ".join("%s: %s" % pair for pair in part.items())]
    lines = ["| %s |" % " | ".join(head), "| --- |" + " ---: |" * (len(head) - 1)]
    for name, row in programs(part).items():
        values = [row["error"]] + [""] * (len(head) - 2) if "error" in row else cells(row)
        lines.append("| %s |" % " | ".join([name] + values))
    return lines


def number(value, form):
    return "" if value is None else form % value


def percent(value):
    return "" if value is None else "%.0f%%" % (100 * value)


if __name__ == "__main__":
    sys.exit(main())
