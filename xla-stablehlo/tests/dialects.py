"""Writes tests/data/dialects.zip: programs as text, and as bytecode of the dialects that they are written in.

Needs jax 0.10.2. PROGRAM.mlir is the text and PROGRAM.N.mlirbc the bytecode of container version N, as MLIR's
`-emit-bytecode` and `operation.write_bytecode()` write it: dialects `stablehlo`, `chlo`, `sdy`, `func` and `arith`, not
`vhlo`. The programs of operations.py are among them in versions 0, 5 and 6, the others in all versions.
"""

import io
import pathlib
import zipfile

from jax.interpreters import mlir
from jaxlib.mlir import ir

import operations
from operations import F, I, M, S, generic, op

FLOATS = "f8E4M3FN f8E5M2 f8E4M3FNUZ f8E5M2FNUZ f8E4M3B11FNUZ f8E4M3 f8E3M4 f8E8M0FNU f6E2M3FN f6E3M2FN f4E2M1FN bf16 f16 f32 f64".split()
INTEGERS = "i2 i4 i8 i16 i32 i64 ui2 ui4 ui8 ui16 ui32 ui64".split()
CHLO_UNARY = """acos acosh asin asinh atan atanh bessel_i1e conj cosh digamma erf erf_inv erfc is_inf
is_neg_inf is_pos_inf lgamma sinh square tan""".split()
CHLO_BROADCASTING = "add atan2 divide maximum minimum multiply next_after polygamma power remainder subtract zeta".split()
CHLO_INTEGERS = "and or xor shift_left shift_right_arithmetic shift_right_logical".split()


def chlo(name, arguments, results, properties=""):
    return generic(name, arguments, results, properties).replace('"stablehlo.', '"chlo.', 1)


def of_chlo():
    for name in CHLO_UNARY:
        result = "tensor<4xi1>" if name.startswith("is_") else F
        yield f"chlo_{name}", chlo(name, [F], [result])
    for name in CHLO_BROADCASTING:
        yield f"chlo_broadcast_{name}", chlo(f"broadcast_{name}", [F, S], [F], "broadcast_dimensions = array<i64>")
    for name in CHLO_INTEGERS:
        yield f"chlo_broadcast_{name}", chlo(f"broadcast_{name}", [I, I], [I])
    yield "chlo_broadcast_select", chlo("broadcast_select", ["tensor<4xi1>", F, F], [F])
    yield "chlo_broadcast_complex", chlo("broadcast_complex", [F, F], ["tensor<4xcomplex<f32>>"])
    yield "chlo_broadcast_compare", chlo("broadcast_compare", [F, F], ["tensor<4xi1>"],
                                         "comparison_direction = #chlo<comparison_direction LT>, compare_type = #chlo<comparison_type TOTALORDER>")
    yield "chlo_constant_like", chlo("constant_like", [F], [F], "value = 2.5 : f32")
    yield "chlo_top_k", chlo("top_k", ["tensor<2x9xf32>"], ["tensor<2x3xf32>", "tensor<2x3xi32>"], "k = 3 : i64")
    yield "chlo_next_after", chlo("next_after", [F, F], [F])
    yield "chlo_polygamma", chlo("polygamma", [F, F], [F])
    yield "chlo_zeta", chlo("zeta", [F, F], [F])
    yield "chlo_scan", ("func.func @main(%0: tensor<5x3xf32>, %1: tensor<3xf32>) -> (tensor<5x3xf32>, tensor<3xf32>) {\n"
                        "%2:2 = chlo.scan(%0) inits(%1) dimension=0 {\n^bb0(%a: tensor<3xf32>, %b: tensor<3xf32>):\n%c = stablehlo.add %a, %b : tensor<3xf32>\n"
                        "stablehlo.return %c, %c : tensor<3xf32>, tensor<3xf32>\n} : (tensor<5x3xf32>, tensor<3xf32>) -> (tensor<5x3xf32>, tensor<3xf32>)\n"
                        "return %2#0, %2#1 : tensor<5x3xf32>, tensor<3xf32>\n}")
    yield "chlo_ragged_dot", chlo(
        "ragged_dot", ["tensor<11x5xf32>", "tensor<3x5x7xf32>", "tensor<3xi64>"], ["tensor<11x7xf32>"],
        "ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], "
        "lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>, precision_config = [#chlo<precision HIGH>, #chlo<precision DEFAULT>]")


def of_builtin():
    for ty in FLOATS:
        yield f"type_{ty}", op(f"stablehlo.constant dense<[1.0, 2.0]> : tensor<2x{ty}>", [], [f"tensor<2x{ty}>"])
        yield f"splat_{ty}", op(f"stablehlo.constant dense<2.0> : tensor<3x{ty}>", [], [f"tensor<3x{ty}>"])
    for ty in INTEGERS:
        least = "0" if ty.startswith("u") else "-2"
        yield f"type_{ty}", op(f"stablehlo.constant dense<[{least}, 1, 1]> : tensor<3x{ty}>", [], [f"tensor<3x{ty}>"])
        yield f"splat_{ty}", op(f"stablehlo.constant dense<{least}> : tensor<3x{ty}>", [], [f"tensor<3x{ty}>"])
    for count in [1, 7, 8, 9, 17]:
        values = ", ".join(["true", "false", "false", "true", "true"][i % 5] for i in range(count))
        yield f"preds_{count}", op(f"stablehlo.constant dense<[{values}]> : tensor<{count}xi1>", [], [f"tensor<{count}xi1>"])
        for value in ["true", "false"]:
            yield f"preds_{value}_{count}", op(f"stablehlo.constant dense<{value}> : tensor<{count}xi1>", [], [f"tensor<{count}xi1>"])
    for part in ["f32", "f64"]:
        ty = f"tensor<2xcomplex<{part}>>"
        yield f"complex_{part}", op(f"stablehlo.constant dense<[(1.0, -2.0), (0.5, 3.0)]> : {ty}", [], [ty])
    yield "bounded", generic("negate", ["tensor<?x3xf32, #stablehlo.bounds<5, ?>>"], ["tensor<?x3xf32, #stablehlo.bounds<5, ?>>"])
    yield "dynamic", generic("negate", ["tensor<?x3xf32>"], ["tensor<?x3xf32>"])
    yield "token", generic("after_all", [], ["!stablehlo.token"])
    attributes = ('a = true, b = false, c = 3 : i8, d = 2.5 : f64, e = "text", f = [1, 2.0 : f32, [unit]], g = {h = tensor<2xf32>, i = @main::@inner}, '
                  'j = dense<[1, 2]> : tensor<2xi64>, k = array<i32: 1, 2>, l = -3 : index, m, n = array<i1: true, false>, o = dense<["x", "y"]> : tensor<2x!stablehlo.token>, '
                  "p = (tensor<f32>) -> (), q = tuple<none, f80, f128, tf32>, r = 5 : ui16, s = affine_map<(d0) -> (d0)>, t = tensor<*xf32>, "
                  'u = complex<f64>, v = #stablehlo<precision HIGH>, w = 7 : i128, x = "typed" : i32, y = tensor<2xf8E5M2>, z = memref<2xf32>')
    yield "attributes", op("stablehlo.negate %0 : tensor<4xf32>", [F], [F]).replace("{\n", f"attributes {{test = {{{attributes}}}}} {{\n", 1)
    yield "arguments", ('func.func @main(%0: tensor<4xf32> {jax.buffer_donor = true, mhlo.sharding = "{replicated}"}, %1: tensor<4xf32> {tf.aliasing_output = 0 : i32}) '
                        '-> (tensor<4xf32> {jax.result_info = "r"}) attributes {no_inline} {\n%2 = stablehlo.add %0, %1 {mhlo.frontend_attributes = {a = "b"}} : tensor<4xf32>\nreturn %2 : tensor<4xf32>\n}')
    yield "module", ('module @named attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {\nfunc.func public @main(%0: tensor<4xf32>) -> tensor<4xf32> {\n'
                     'return %0 : tensor<4xf32>\n}\n}')
    yield "locations", ('#f = loc("file.py":3:7)\n#g = loc("file.py":3:7 to 5:9)\nmodule {\nfunc.func @main(%0: tensor<4xf32> loc("x"(#f))) -> tensor<4xf32> {\n'
                        '%1 = stablehlo.negate %0 : tensor<4xf32> loc(callsite(#f at #g))\n%2 = stablehlo.negate %1 : tensor<4xf32> loc(fused["a", "b"(#f)])\n'
                        '%3 = stablehlo.negate %2 : tensor<4xf32> loc(fused<"m">["a"])\nreturn %3 : tensor<4xf32> loc(unknown)\n} loc(#g)\n}')
    yield "arith", ("func.func @main() -> tensor<2xf32> {\n%0 = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>\nreturn %0 : tensor<2xf32>\n}")
    yield "captures", ("func.func @main(%0: tensor<i32>, %1: tensor<i1>) -> tensor<i32> {\n%2 = stablehlo.add %0, %0 : tensor<i32>\n"
                       '%3 = "stablehlo.if"(%1) ({\n%4 = stablehlo.multiply %2, %0 : tensor<i32>\nstablehlo.return %4 : tensor<i32>\n}, {\nstablehlo.return %2 : tensor<i32>\n}) '
                       ": (tensor<i1>) -> tensor<i32>\nreturn %3 : tensor<i32>\n}")
    yield "defaults", ('func.func @main(%0: tensor<1x4x4x2xf32>, %1: tensor<3x3x2x5xf32>) -> tensor<1x2x2x5xf32> {\n'
                       '%2 = "stablehlo.convolution"(%0, %1) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, '
                       'feature_group_count = 1 : i64}> : (tensor<1x4x4x2xf32>, tensor<3x3x2x5xf32>) -> tensor<1x2x2x5xf32>\nreturn %2 : tensor<1x2x2x5xf32>\n}')
    yield "custom_call_defaults", op("stablehlo.custom_call @t(%0) : (tensor<4xf32>) -> tensor<4xf32>", [F], [F])
    yield "sort_defaults", generic("sort", [F], [F], "", "({\n^bb0(%p: tensor<f32>, %q: tensor<f32>):\n%c = stablehlo.compare LT, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>\nstablehlo.return %c : tensor<i1>\n})")
    yield "cholesky_defaults", generic("cholesky", ["tensor<3x3xf32>"], ["tensor<3x3xf32>"])
    yield "scatter_defaults", generic("scatter", ["tensor<7x3xf32>", "tensor<5x1xi32>", "tensor<5x3xf32>"], ["tensor<7x3xf32>"],
                                      "scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>",
                                      operations.SUM)
    groups = "replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @m, axes = [#stablehlo.axis_ref<name = \"x\">, #stablehlo.axis_ref<name = \"y\", sub_axis_info = (1)2>]>"
    yield "mesh_groups", 'sdy.mesh @m = <["x"=2, "y"=4]>\n' + generic("all_reduce", [F], [F], groups, operations.SUM)
    mesh = "#stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = \"x\", size = 2>, #stablehlo.mesh_axis<name = \"y\", size = 4>], device_ids = dense<[7, 6, 5, 4, 3, 2, 1, 0]> : tensor<8xi64>>"
    yield "mesh_groups_inline", generic("all_reduce", [F], [F], groups.replace("@m", mesh), operations.SUM)


def of_shardy():
    mesh = 'sdy.mesh @mesh = <["x"=2, "y"=4]>\n'
    yield "sdy_mesh", mesh + 'sdy.mesh @other = <["x"=2], device_ids=[1, 0]>\n' + op("stablehlo.negate %0 : tensor<8x8xf32>", ["tensor<8x8xf32>"], ["tensor<8x8xf32>"]).replace(
        "%0: tensor<8x8xf32>", '%0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}p1, {"y":(1)2}], replicated={"y":(2)2}>}', 1)
    yield "sdy_constraint", mesh + op('sdy.sharding_constraint %0 <@mesh, [{"x"}, {}]> : tensor<8x8xf32>', ["tensor<8x8xf32>"], ["tensor<8x8xf32>"])
    yield "sdy_manual", mesh + op('sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x"} (%a: tensor<4x8xf32>) {\n'
                                  "%b = stablehlo.negate %a : tensor<4x8xf32>\nsdy.return %b : tensor<4x8xf32>\n} : (tensor<8x8xf32>) -> tensor<8x8xf32>", ["tensor<8x8xf32>"], ["tensor<8x8xf32>"])
    yield "sdy_rule", mesh + op("stablehlo.custom_call @f(%0) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8}, custom>} : (tensor<8x8xf32>) -> tensor<8x8xf32>",
                                ["tensor<8x8xf32>"], ["tensor<8x8xf32>"])
    yield "sdy_reduced", mesh + op("stablehlo.negate %0 : tensor<8x8xf32>", ["tensor<8x8xf32>"], ["tensor<8x8xf32>"]).replace(
        "%0: tensor<8x8xf32>", '%0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}], unreduced={"y"}>}', 1)


def main():
    path = pathlib.Path(__file__).parent / "data" / "dialects.zip"
    own = [*of_chlo(), *of_builtin(), *of_shardy()]
    with mlir.make_ir_context() as context, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        def put(name, data):
            archive.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)

        context.load_all_available_dialects()
        for programs, versions in [(operations.programs(), [0, 5, 6]), (own, range(7))]:
            for name, source in programs:
                try:
                    module = ir.Module.parse(source)
                except ir.MLIRError as error:
                    print(f"{name}: {error}")
                    continue
                put(f"{name}.mlir", module.operation.get_asm(enable_debug_info=name == "locations"))
                last = None
                for version in versions:
                    file = io.BytesIO()
                    module.operation.write_bytecode(file, desired_version=version)
                    if file.getvalue()[5:] != last:
                        put(f"{name}.{version}.mlirbc", file.getvalue())
                    last = file.getvalue()[5:]


if __name__ == "__main__":
    main()
