"""Runs one program in each way that it can be brought to the device: as text, as an executable, with machine code."""
import os

from . import toolbox
from .toolbox import Failure

TITLE = "signs of life"
LIMIT, LEAST = 900, 20

ADD = "HloModule life\n\nENTRY main {\n  x = f32[1000] parameter(0)\n  y = f32[1000] negate(x)\n  ROOT r = f32[1000] add(y, x)\n}\n"


def run(opt, results):
    program, env = toolbox.write_program(opt, "life", ADD), opt.environment()
    ways = {"text": [opt.xla, "run", program], "text, unoptimised": [opt.xla, "-O0", "run", program]}
    built = opt.scratch("life")
    try:
        toolbox.run([opt.xla, "compile", program, "--platform", opt.platform, "--ptxas", "none", "-o", built], timeout=120, env=env)
        ways["executable with PTX"] = [opt.xla, "run", "--executable", os.path.join(built, "life.xlax")]
    except Failure as error:
        results.add("compile", ok=False, message=str(error))
    for suite, name in executables(opt)[:3]:
        words = [opt.xla, "-v", "run", "--executable", opt.executable(suite, name)]
        ways["machine code: %s/%s" % (suite, name)] = words
    for way, words in ways.items():
        if "--executable" not in words:
            words = words + ["--platform", opt.platform]
        try:
            # What the command warns of, machine code that is not taken for instance, is on its standard error.
            said = toolbox.run(words + ["--inputs-seed", "0"], timeout=60, env=env, stderr=True)
            warnings = [line.strip() for line in said.splitlines() if "WARN" in line]
            results.add(way, warnings=warnings)
        except Failure as error:
            results.add(way, ok=False, message=str(error))


def executables(opt):
    """Suite and name of executables that came along, without those of large programs."""
    found = []
    for folder, _, files in sorted(os.walk(opt.executables or os.devnull)):
        suite = os.path.basename(folder)
        found += [(suite, name[:-5]) for name in sorted(files) if name.endswith(".xlax") and not suite.startswith("bench")]
    return found
