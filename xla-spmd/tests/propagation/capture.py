"""Writes the programs in the folder `oracle`: HLO before propagation, and the shardings of jaxlib after it.

Usage: capture.py [NAME ...], with jax and jaxlib 0.10.2. Each operation gets a name of its own as its location, which
connects the HLO before with the HLO after propagation. A comment at the end of a file lists the shardings: of values
by name, of arguments (`param0`), and of the result (`root`). Values whose name is not unique are left out.
"""

import collections
import glob
import os
import re
import shutil
import sys
import tempfile

DUMP = tempfile.mkdtemp()
os.environ["XLA_FLAGS"] = (
    f"--xla_dump_to={DUMP} --xla_dump_hlo_pass_re=shardy --xla_force_host_platform_device_count=8"
    " --xla_backend_optimization_level=0"
)

import jax
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from jaxlib import xla_client
from jaxlib.mlir import ir

import programs

OUTPUT = os.path.join(os.path.dirname(__file__), "oracle")
NAMED = re.compile(r'^\s*(?:ROOT )?%?[\w.\-]+ = .*?op_name="(v\d+)"', re.M)


def lowered(program):
    """Lowers a program of `programs.py`; returns its module and which arguments and results have no sharding."""
    sharding = lambda spec: None if spec is None else NamedSharding(program.mesh, spec)
    is_spec = lambda x: x is None or isinstance(x, P)
    options = {}
    if program.results is not None:
        options["out_shardings"] = jax.tree.map(sharding, program.results, is_leaf=is_spec)
    function = jax.jit(program.function, in_shardings=tuple(map(sharding, program.arguments)), **options)
    result = function.lower(*[jax.ShapeDtypeStruct(shape, np.float32) for shape in program.shapes])
    count = len(jax.tree.leaves(result.out_info))
    results = [None] * count if program.results is None else jax.tree.leaves(program.results, is_leaf=is_spec)
    free = lambda specs: [spec is None for spec in specs]
    return result.compiler_ir("stablehlo"), free(program.arguments), free(results)


def name_operations(module):
    """Replaces the location of each operation by a name that no other has."""
    count = 0
    stack = [module.operation]
    with module.context:
        while stack:
            for region in stack.pop().regions:
                for block in region.blocks:
                    for operation in block.operations:
                        operation.operation.location = ir.Location.name(f"v{count}")
                        count += 1
                        stack.append(operation.operation)


def compile_module(module, edits, free_arguments, free_results):
    options = xla_client.CompileOptions()
    options.num_partitions = 8
    options.num_replicas = 1
    build = options.executable_build_options
    build.num_partitions = 8
    build.num_replicas = 1
    build.use_spmd_partitioning = True
    build.use_shardy_partitioner = True
    build.allow_spmd_sharding_propagation_to_parameters = free_arguments
    build.allow_spmd_sharding_propagation_to_output = free_results
    build.device_assignment = xla_client.DeviceAssignment.create(np.arange(8, dtype=np.int32)[None, :])
    text = module.operation.get_asm(enable_debug_info=True)
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    jax.devices()[0].client.compile_and_load(text, xla_client.DeviceList(tuple(jax.devices())), options)


def sharding_of(line):
    """Returns the text of the sharding of an instruction, or `-`."""
    start = line.find("sharding={")
    if start < 0:
        return "-"
    start = line.index("{", start)
    depth = 0
    for end in range(start, len(line)):
        depth += (line[end] == "{") - (line[end] == "}")
        if depth == 0:
            return line[start : end + 1]
    raise ValueError(line)


def shardings(before, after):
    counts = [collections.Counter(NAMED.findall(text)) for text in (before, after)]
    found = []
    for line in after.splitlines():
        match = NAMED.match(line)
        if match and all(count[match.group(1)] == 1 for count in counts):
            found.append((match.group(1), sharding_of(line)))
    for line in after[after.index("ENTRY") :].splitlines():
        if match := re.match(r"^\s*(?:ROOT )?%?[\w.\-]+ = .* parameter\((\d+)\)", line):
            found.append((f"param{match.group(1)}", sharding_of(line)))
        if "ROOT" in line:
            found.append(("root", sharding_of(line)))
    return found


def without_locations(text):
    """Leaves only the names of operations in the metadata."""
    text = re.sub(r"\n(FileNames|FunctionNames|FileLocations|StackFrames)\n(.+\n)*", "\n", text)
    text = re.sub(r'metadata=\{[^}]*?op_name="(v\d+)"[^}]*\}', r'metadata={op_name="\1"}', text)
    text = re.sub(r', metadata=\{(?!op_name="v\d+"\})[^}]*\}', "", text)
    return re.sub(r"\n\n+", "\n\n", text).strip() + "\n"


def main():
    os.makedirs(OUTPUT, exist_ok=True)
    for name, program in programs.PROGRAMS.items():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        module, free_arguments, free_results = lowered(program)
        name_operations(module)
        shutil.rmtree(DUMP, ignore_errors=True)
        compile_module(module, program.edits, free_arguments, free_results)
        (before,), (after,) = (
            [open(path).read() for path in glob.glob(f"{DUMP}/*{stage}_shardy*")] for stage in ("before", "after")
        )
        found = shardings(before, after)
        with open(os.path.join(OUTPUT, f"{name}.hlo"), "w") as file:
            file.write(without_locations(before) + "\n" + "".join(f"// {value} {text}\n" for value, text in found))
        print(name, len(found), flush=True)


if __name__ == "__main__":
    main()
