"""Times the benchmark programs of a GPU's size, which take gigabytes, beside JAX's compiler on the same GPU."""
import json
import os

from . import bench
from .jax_server import JaxServer

TITLE = "benchmark programs of a GPU's size beside JAX"
LIMIT, LEAST = 3600, 180
SUITE = "bench_gpu"


def run(opt, results):
    if not opt.data:
        return results.leave_out("no --data")
    if opt.small:
        return results.leave_out("only for a GPU")
    folder = opt.suite(SUITE)
    manifest = os.path.join(folder, "manifest.json")
    with open(manifest) as file:
        entries = json.load(file)["programs"]
    with JaxServer(opt, manifest) as jax:
        results.fact("jax", jax.device)
        for entry in entries:
            # Products of bf16 are the same in all forms.
            forms = ["exact"] if entry["flop_dtype"] == "bf16" else list(bench.PRODUCTS)
            results.add(entry["name"], **bench.row(opt, jax, folder, entry, SUITE, forms))
