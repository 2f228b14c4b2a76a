"""Programs that the runs compile: generated ones, files of tests/regressions, and models of the corpus."""

import pathlib
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def dense(size: int) -> str:
    """A dot, a decomposition and functions."""
    kind = f"f32[{size},{size}]"
    return f"""HloModule dense

ENTRY main {{
  x = {kind} parameter(0)
  d = {kind} dot(x, x), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  s = {kind} sine(d)
  c = {kind} cholesky(s), lower=true
  ROOT z = {kind} add(s, c)
}}
"""


def long_array(size: int) -> str:
    """Arrays of many megabytes, and little code."""
    kind = f"f32[{size}]"
    return f"""HloModule long_array

ENTRY main {{
  x = {kind} parameter(0)
  s = {kind} sine(x)
  r = {kind} reverse(s), dimensions={{0}}
  ROOT z = {kind} exponential(r)
}}
"""


def transform(size: int) -> str:
    """A library transform whose tables are as large as its array."""
    return f"""HloModule transform

ENTRY main {{
  x = c64[{size}] parameter(0)
  ROOT y = c64[{size}] fft(x), fft_type=FFT, fft_length={{{size}}}
}}
"""


def kernels(count: int) -> str:
    """Many kernels, all of them different."""
    kind = "f32[64,64]"
    lines = ["HloModule kernels", "", "ENTRY main {", f"  x0 = {kind} parameter(0)"]
    for number in range(1, count + 1):
        before = number - 1
        lines += [
            f"  c{number} = f32[] constant({number})",
            f"  b{number} = {kind} broadcast(c{number}), dimensions={{}}",
            f"  s{number} = {kind} power(x{before}, b{number})",
            f"  r{number} = {kind} reverse(s{number}), dimensions={{1}}",
            f"  x{number} = {kind} dot(r{number}, s{number}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}",
        ]
    return "\n".join([*lines, f"  ROOT y = {kind} tanh(x{count})", "}", ""])


def sort(size: int) -> str:
    return f"""HloModule sort

less {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT l = pred[] compare(a, b), direction=LT
}}

ENTRY main {{
  x = f32[{size}] parameter(0)
  ROOT y = f32[{size}] sort(x), dimensions={{0}}, to_apply=less
}}
"""


def constant(size: int) -> str:
    """A constant of many digits, which is in the object and in dumps."""
    values = ", ".join(str(number * 7 % 1009) for number in range(size))
    return f"""HloModule constant

ENTRY main {{
  x = f32[{size}] parameter(0)
  c = f32[{size}] constant({{{values}}})
  ROOT y = f32[{size}] multiply(x, c)
}}
"""


GENERATED = {
    "dense": lambda: dense(500),
    "long_array": lambda: long_array(20_000_000),
    "transform": lambda: transform(3_000_017),
    "few_kernels": lambda: kernels(4),
    "many_kernels": lambda: kernels(24),
    "sort": lambda: sort(500_000),
    "constant": lambda: constant(100_000),
}


def texts() -> dict:
    """Texts of all programs, by name."""
    found = {name: make() for name, make in GENERATED.items()}
    for path in sorted((ROOT / "tests/regressions").glob("*.hlo")):
        found[f"regressions-{path.stem}"] = path.read_text()
    with zipfile.ZipFile(ROOT / "tests/corpus/suites/models.zip") as archive:
        for name in sorted(archive.namelist()):
            if name.endswith("/module.hlo"):
                found[f"models-{name.split('/')[-2]}"] = archive.read(name).decode()
    return found
