"""Lists the device, its driver, libraries and tools. What the compiler found of NVIDIA's is told by `xla platforms`."""
import os
import platform
import shutil
import sys

from . import toolbox
from .toolbox import Failure

TITLE = "what is there"
LIMIT, LEAST = 600, 10

TOOLS = ["nvidia-smi", "ptxas", "cuobjdump", "nvdisasm", "compute-sanitizer", "ncu", "nsys"]
FIELDS = ["driver_version", "clocks.max.sm", "clocks.max.mem", "clocks.sm", "clocks.mem", "power.limit", "memory.total",
          "memory.used", "temperature.gpu", "mig.mode.current", "persistence_mode", "ecc.mode.current"]


def run(opt, results):
    results.fact("device", opt.device)
    if opt.misfit:
        results.fact("executables", opt.misfit)
    told(results, "platforms", [opt.xla, "platforms"], opt.environment())
    results.fact("machine", "%s, %d cores, Python %s" % (platform.platform(), os.cpu_count() or 0, sys.version.split()[0]))
    results.fact("tools", {name: shutil.which(name) for name in TOOLS})
    if shutil.which("nvidia-smi"):
        # One at a time: a driver that does not know one of them answers none.
        for field in FIELDS:
            told(results, field, ["nvidia-smi", "--query-gpu=" + field, "--format=csv,noheader"])
        told(results, "nvidia-smi", ["nvidia-smi"])
    told(results, "jax", [opt.python, "-c", "import jax; d = jax.devices('gpu')[0]; print(jax.__version__, 'on', d.device_kind)"],
         opt.environment())


def told(results, name, words, env=None):
    """What a command says; that it fails is no failure here."""
    try:
        results.fact(name, toolbox.run(words, timeout=200, env=env).strip())
    except Failure as error:
        results.fact(name, "not to be had: %s" % error)
