"""Times HLO programs with JAX's compiler on its first GPU: jax_time.py MANIFEST SECONDS [PLATFORM], then a line of JSON for each program.

A line is {"program": PATH, "products": "exact" or "tf32"}; the answer {"jax_us": MICROSECONDS} or {"jax_error": MESSAGE}. The first line of
output tells JAX's version and the device. That compiler multiplies f32 with TF32, on GPUs that have it, unless an operation's precision is
`highest`: what `jax_default_matmul_precision` sets. With `exact` all dots and convolutions of f32 get it, with `tf32` the program stays as it
is. Inputs come from inputs.py, which lies beside this file or in ../corpus/generate/bench.
"""
import json
import os
import statistics
import sys
import time

# What JAX takes is given back no more, and other processes use the GPU meanwhile.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "corpus", "generate", "bench")]


def exact(code):
    """StableHLO with all products of f32 of the highest precision, but for those that name an algorithm."""
    from jax.interpreters import mlir
    from jaxlib.mlir import ir

    with mlir.make_ir_context():
        module = ir.Module.parse(code)
        highest = ir.ArrayAttr.get([ir.Attribute.parse("#stablehlo<precision HIGHEST>")] * 2)
        f32 = ir.F32Type.get()

        def visit(op):
            of_products = op.name in ("stablehlo.dot", "stablehlo.dot_general", "stablehlo.convolution")
            if of_products and "algorithm" not in op.attributes:
                if all(ir.ShapedType(operand.type).element_type == f32 for operand in op.operands):
                    op.attributes["precision_config"] = highest
            return ir.WalkResult.ADVANCE

        module.operation.walk(visit)
        return str(module)


def timed(device, entry, path, seconds, products):
    import jax
    import jaxlib._jax as jx
    from jaxlib import xla_client

    from inputs import make_param

    with open(path) as file:
        module = xla_client.hlo.hlo_module_from_text(file.read())
    code = jx.mlir.hlo_to_stablehlo(module.as_serialized_hlo_module_proto())
    code = exact(code) if products == "exact" else code
    executable = device.client.compile_and_load(code, jx.DeviceList((device,)), xla_client.CompileOptions())
    arguments = [jax.device_put(make_param(p, i, 0), device) for i, p in enumerate(entry["params"])]
    for argument in arguments:
        argument.block_until_ready()

    def once():
        start = time.perf_counter()
        for outputs in executable.execute_sharded(arguments).disassemble_into_single_device_arrays():
            outputs[0].block_until_ready()
        return time.perf_counter() - start

    warm = [once() for _ in range(5)][-1]
    repetitions = int(min(5000, max(7, seconds / max(warm, 1e-7))))
    return statistics.median(once() for _ in range(repetitions)) * 1e6


def main(manifest, seconds, platform="gpu"):
    import jax

    from inputs import load_manifest

    entries = {entry["name"]: entry for entry in load_manifest(manifest)["programs"]}
    device = jax.devices(platform)[0]
    print(json.dumps({"version": jax.__version__, "device": device.device_kind}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        path = request["program"]
        try:
            entry = entries[os.path.splitext(os.path.basename(path))[0]]
            answer = {"jax_us": timed(device, entry, path, seconds, request["products"])}
        except Exception as error:  # The next program may well go.
            answer = {"jax_error": "%s: %s" % (type(error).__name__, error), "goes_on": True}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), *sys.argv[3:])
