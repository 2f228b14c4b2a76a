"""How long optimising takes as programs grow: a table, and a picture of time against instructions for each pass.

    python3 tests/corpus/scaling.py [--command target/release/xla] [--plot docs/src/internals/scaling.svg] [--most 100000]

Programs are made up: layers of a dot, elementwise operations, a reduction and a broadcast, with uses across layers. Times come from what
`xla opt -vv` says of each pass. Both axes of the picture are logarithmic: time in proportion is a line as steep as the dashed one.
"""

import argparse
import math
import pathlib
import random
import re
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SIZES = [1000, 3000, 10000, 30000, 100000]
CLOSED = re.compile(r"pass\{name=[\w.\-]*?([\w\-]+)\}: .*close time\.busy=([\d.]+)(µs|ms|s|ns)")
SECONDS = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
COLOURS = ["#1b6ca8", "#c0392b", "#27864a", "#8e44ad", "#b9770e", "#566573"]


def program(instructions):
    """A module with about so many instructions."""
    chance = random.Random(1)
    lines = ["HloModule scaling", "sum { a = f32[] parameter(0)", " b = f32[] parameter(1)", " ROOT c = f32[] add(a, b) }"]
    lines += ["ENTRY main {", " x0 = f32[8,16] parameter(0)", " w = f32[16,16] parameter(1)", " zero = f32[] constant(0)"]
    made = ["x0"]
    while len(lines) < instructions + 4:
        n, last, far, near = len(lines), made[-1], chance.choice(made[-6:]), chance.choice(made[-6:])
        lines += [
            f" d{n} = f32[8,16] dot({last}, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}",
            f" t{n} = f32[8,16] tanh(d{n})",
            f" m{n} = f32[8,16] multiply(t{n}, {last})",
            f" a{n} = f32[8,16] add(m{n}, {far})",
            f" r{n} = f32[8] reduce(a{n}, zero), dimensions={{1}}, to_apply=sum",
            f" b{n} = f32[8,16] broadcast(r{n}), dimensions={{0}}",
            f" s{n} = f32[8,16] subtract(a{n}, b{n})",
            f" e{n} = f32[8,16] exponential(s{n})",
            f" x{n} = f32[8,16] maximum(e{n}, {near})",
        ]
        made.append(f"x{n}")
    lines += [f" ROOT out = f32[8,16] negate({made[-1]})", "}"]
    return "\n".join(lines)


def seconds(command, text):
    """Seconds of each pass in all its runs."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "module.hlo"
        path.write_text(text)
        words = [command, "opt", str(path), "--platform", "cpu", "-vv", "-o", "/dev/null"]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
    found = {}
    for name, number, unit in CLOSED.findall(re.sub(r"\x1b\[[\d;]*m", "", done.stderr)):
        found[name] = found.get(name, 0.0) + float(number) * SECONDS[unit]
    return found


def plot(path, sizes, curves):
    """Writes the picture."""
    left, right, top, bottom = 60, 560, 20, 340
    values = [v for _, line in curves for v in line]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    first, last = math.log10(sizes[0]), math.log10(sizes[-1])
    at = lambda n, t: (left + (right - left) * (math.log10(n) - first) / (last - first),
                       bottom - (bottom - top) * (math.log10(t) - low) / (high - low))
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 390" font-family="sans-serif" font-size="12">',
           '<rect width="760" height="390" fill="#fff"/>']
    for power in range(low, high + 1):
        _, y = at(sizes[0], 10**power)
        label = f"{10**power:g} s" if power >= 0 else f"{10**(power + 3):g} ms"
        out.append(f'<path d="M{left} {y:.1f}H{right}" stroke="#ddd"/><text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{label}</text>')
    for n in sizes:
        x, _ = at(n, 10**low)
        out.append(f'<path d="M{x:.1f} {top}V{bottom}" stroke="#eee"/><text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{n:,}</text>')
    out.append(f'<text x="{(left + right) / 2}" y="{bottom + 38}" text-anchor="middle">instructions</text>')
    whole = curves[0][1][0]
    (x0, y0), (x1, y1) = at(sizes[0], whole), at(sizes[-1], min(whole * sizes[-1] / sizes[0], 10**high))
    out.append(f'<path d="M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}" stroke="#999" stroke-dasharray="5 4"/>')
    for i, (name, line) in enumerate(curves):
        colour = COLOURS[i % len(COLOURS)]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(n, t) for n, t in zip(sizes, line)))
        y = top + 20 + 18 * i
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out.append(f'<path d="M{right + 16} {y - 4}h18" stroke="{colour}" stroke-width="2"/><text x="{right + 40}" y="{y}">{name}</text>')
    y = top + 20 + 18 * len(curves)
    out.append(f'<path d="M{right + 16} {y - 4}h18" stroke="#999" stroke-dasharray="5 4"/><text x="{right + 40}" y="{y}">in proportion</text></svg>')
    pathlib.Path(path).write_text("\n".join(out) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--command", default=str(ROOT / "target/release/xla"))
    parser.add_argument("--plot", help="write a picture to this file")
    parser.add_argument("--most", type=int, default=SIZES[-1])
    options = parser.parse_args()
    sizes = [n for n in SIZES if n <= options.most]
    runs = [seconds(options.command, program(n)) for n in sizes]
    for run in runs:
        run["all passes"] = sum(run.values())
    names = sorted(runs[-1], key=runs[-1].get, reverse=True)
    print(f"{'pass':28}" + "".join(f"{n:>12,}" for n in sizes) + "   milliseconds")
    for name in names:
        print(f"{name:28}" + "".join(f"{1e3 * run.get(name, 0):12.2f}" for run in runs))
    if options.plot:
        plot(options.plot, sizes, [(name, [max(run.get(name, 0), 1e-6) for run in runs]) for name in names[:6]])


if __name__ == "__main__":
    main()
