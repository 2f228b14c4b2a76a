"""Writes programs with the HLO that jaxlib 0.10.2 makes of them, for `examples/compare_with_xla.rs`.

    programs.py OUT [FOLDER...]

Programs are those of `primitives` and all `.mlirbc` below the folders. Each is written in three forms, with its HLO:

- `OUT/artifact/NAME.mlirbc`: the portable artifact;
- `OUT/text/NAME.mlir`: JAX's own module, which may have operations of CHLO; not for files of folders;
- `OUT/simple/NAME.mlir`: the program that XLA simplifies it to before it lowers it, by way of the HLO and back. XLA's
  simplifier has nothing to do on it, so its HLO shows the lowering alone.
"""

import collections
import pathlib
import re
import sys

import jax
from jaxlib import _hlo, _jax

import primitives

VERSION = "1.17.0"


def computation(module):
    return _jax.mlir.mlir_module_to_xla_computation(module, use_tuple_args=False, return_tuple=False)


def portable(module):
    return _jax.mlir.serialize_portable_artifact(module, VERSION)


def text(found):
    options = _hlo.HloPrintOptions()
    options.print_large_constants = True
    return found.get_hlo_module().to_string(options)


def outline(found):
    """The instructions without any name, counted."""
    nameless = re.sub(
        r"=%?[a-zA-Z_][\w.-]*|branch_computations=\{[^}]*\}",
        "",
        found.get_hlo_module().to_string(_hlo.HloPrintOptions.short_parsable()),
    )
    lines = [line.split(" = ", 1)[1] for line in nameless.splitlines() if " = " in line]
    return collections.Counter(re.sub(r"%?[\w.-]+(?=[,)])", "", line) for line in lines)


def simplified(found):
    """The program that XLA does not simplify any more, and its HLO."""
    for _ in range(5):
        module = _jax.mlir.xla_computation_to_mlir_module(found)
        before, found = found, computation(module)
        if outline(before) == outline(found):
            break
    return module, found


def write(folder, name, module, found):
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(module, bytes):
        (folder / f"{name}.mlirbc").write_bytes(module)
    else:
        (folder / f"{name}.mlir").write_text(module)
    (folder / f"{name}.hlo").write_text(text(found))


def lowered():
    """The programs of `primitives.py`: names with JAX's modules."""
    for name, (function, arguments) in primitives.programs().items():
        try:
            module = jax.jit(function).lower(*arguments).compiler_ir("stablehlo")
            yield name, module.operation.get_asm(enable_debug_info=True, large_elements_limit=None)
        except Exception as error:
            print(f"{name}: {primitives.describe(error)}")


def write_simplified(out, name, artifact):
    try:
        write(out / "simple", name, *simplified(computation(artifact)))
    except jax.errors.JaxRuntimeError as error:
        print(f"{name}, simplified: {primitives.describe(error)}")


def main():
    out = pathlib.Path(sys.argv[1])
    count = 0
    for name, module in lowered():
        artifact = portable(module)
        write(out / "text", f"jax_{name}", module, computation(module))
        write(out / "artifact", f"jax_{name}", artifact, computation(artifact))
        write_simplified(out, f"jax_{name}", artifact)
        count += 1
    for folder in map(pathlib.Path, sys.argv[2:]):
        for path in sorted(folder.rglob("*.mlirbc")):
            parts = path.relative_to(folder).with_suffix("").parts
            name = "_".join(part for part in parts if part != "module")
            artifact = path.read_bytes()
            write(out / "artifact", name, artifact, computation(artifact))
            write_simplified(out, name, artifact)
            count += 1
    print(f"{count} programs")


if __name__ == "__main__":
    main()
