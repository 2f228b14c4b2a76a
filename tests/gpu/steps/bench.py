"""Times the benchmark programs, beside JAX's compiler on the same GPU: f32 multiplied exactly, and with TF32, on both sides."""
import json
import os

from . import toolbox
from .jax_server import JaxServer
from .toolbox import Failure

TITLE = "benchmark programs beside JAX"
LIMIT, LEAST = 4800, 120

# How f32 is multiplied, and what our command says for it.
PRODUCTS = {"exact": [], "tf32": ["--allow-tf32"]}
# What there is of the programs where the step itself is tried.
SMALL = ["dispatch_floor", "elementwise_4k"]


def run(opt, results):
    if not opt.data:
        return results.leave_out("no --data")
    folder = opt.suite("bench")
    manifest = os.path.join(folder, "manifest.json")
    with open(manifest) as file:
        entries = json.load(file)["programs"]
    with JaxServer(opt, manifest) as jax:
        results.fact("jax", jax.device)
        for entry in entries:
            if not opt.small or entry["name"] in SMALL:
                results.add(entry["name"], **row(opt, jax, folder, entry))


def row(opt, jax, folder, entry, suite="bench", forms=PRODUCTS):
    path, ok, found = os.path.join(folder, entry["file"]), True, {}
    for products, options in PRODUCTS.items():
        if products not in forms:
            continue
        times = found[products] = {}
        try:
            found_times = toolbox.timed(opt, path, options)
            times.update(run_us=found_times["run_us"], device_us=toolbox.device_us(found_times))
            times["recorded"] = found_times.get("device_time", {}).get("recorded")
        except Failure as error:
            ok, times["message"] = False, str(error)
        times.update(jax.time(path, products))
        if "run_us" in times and "jax_us" in times:
            times["ratio"] = times["run_us"] / times["jax_us"]
    executable = opt.executable(suite, entry["name"])
    if executable and opt.platform == "gpu":
        try:
            found["machine_code_us"] = toolbox.device_us(toolbox.timed(opt, executable, executable=True))
        except Failure as error:
            ok, found["message"] = False, "machine code: %s" % error
    return dict(found, ok=ok)
