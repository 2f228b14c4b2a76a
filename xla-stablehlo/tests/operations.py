"""Writes tests/data/operations.zip: a program for each operation of StableHLO, as text, generic text and artifacts.

Needs jax 0.10.2. OPERATION.mlir and OPERATION.generic.mlir are the two forms of one module; OPERATION.VERSION.mlirbc is
the artifact for a version of VHLO, one for each form of the operation that jaxlib writes, and one for the newest version.
"""

import pathlib
import re
import zipfile

from jax.interpreters import mlir
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

TARGETS = ["0.9.0", "0.12.0", "0.16.0", "0.19.0", "0.20.0", "1.1.0", "1.4.0", "1.6.0", "1.9.0", "1.12.0", "1.14.0", "1.17.0"]

UNARY = """abs cbrt ceil cosine exponential exponential_minus_one floor log log_plus_one logistic negate round_nearest_afz
round_nearest_even rsqrt sign sine sqrt tan tanh""".split()
BINARY = "add atan2 divide maximum minimum multiply power remainder subtract".split()
INTEGER = "and or xor shift_left shift_right_arithmetic shift_right_logical".split()
INTEGER_UNARY = "count_leading_zeros not popcnt".split()

F = "tensor<4xf32>"
I = "tensor<4xi32>"
M = "tensor<2x3xf32>"
S = "tensor<f32>"
SUM = "({\n^bb0(%x: tensor<f32>, %y: tensor<f32>):\n  %s = stablehlo.add %x, %y : tensor<f32>\n  stablehlo.return %s : tensor<f32>\n})"
GROUPS = "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>"
CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"
HOST = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 2>, is_host_transfer = true"
T = "!stablehlo.token"


def op(text, arguments, results):
    """A module whose main function has arguments %0, %1, ... and returns %r or %r#0, %r#1, ..."""
    names = [f"%{i}: {ty}" for i, ty in enumerate(arguments)]
    values = ["%r"] if len(results) == 1 else [f"%r#{i}" for i in range(len(results))]
    types = ", ".join(results)
    left = "" if not results else ("%r = " if len(results) == 1 else f"%r:{len(results)} = ")
    returned = f"return {', '.join(values)} : {types}" if results else "return"
    return f"func.func @main({', '.join(names)}) -> ({types}) {{\n{left}{text}\n{returned}\n}}"


def generic(name, arguments, results, properties="", regions=""):
    operands = ", ".join(f"%{i}" for i in range(len(arguments)))
    properties = f" <{{{properties}}}>" if properties else ""
    regions = f" ({regions})" if regions and not regions.startswith("(") else regions
    types = f"({', '.join(arguments)}) -> ({', '.join(results)})"
    return op(f'"stablehlo.{name}"({operands}){properties} {regions} : {types}', arguments, results)


def convolution(name, operands):
    return generic(
        name, operands, ["tensor<1x4x4x5xf32>"],
        "batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, "
        "feature_group_count = 1 : i64, precision_config = [#stablehlo<precision HIGH>, #stablehlo<precision DEFAULT>], "
        "window_strides = array<i64: 1, 1>" + (", padding = dense<1> : tensor<2x2xi64>" if name == "convolution" else ""))


def gather(name, arguments, more):
    numbers = "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1"
    return generic(name, arguments, ["tensor<5x3xf32>"],
                   f"dimension_numbers = #stablehlo.gather<{numbers}>, indices_are_sorted = false{more}")


def programs():
    for name in UNARY:
        yield name, generic(name, [F], [F])
    for name in BINARY:
        yield name, generic(name, [F, F], [F])
    for name in INTEGER:
        yield name, generic(name, [I, I], [I])
    for name in INTEGER_UNARY:
        yield name, generic(name, [I], [I])
    yield "accuracy", op("stablehlo.tanh %0 {result_accuracy = #stablehlo.result_accuracy<atol = 1.0e-5, rtol = 0.0, ulps = 1, mode = "
                         "#stablehlo.result_accuracy_mode<TOLERANCE>>} : tensor<4xf32>", [F], [F])
    yield "after_all", generic("after_all", [T, T], [T])
    yield "all_gather", generic("all_gather", [M], ["tensor<2x6xf32>"], f"all_gather_dim = 1 : i64, {CHANNEL}, {GROUPS}")
    yield "all_gather_two", generic("all_gather", [M, F], ["tensor<4x3xf32>", "tensor<8xf32>"], f"all_gather_dim = 0 : i64, {CHANNEL}, {GROUPS}")
    yield "all_reduce", generic("all_reduce", [F], [F], f"{CHANNEL}, {GROUPS}, use_global_device_ids", SUM)
    yield "all_to_all", generic("all_to_all", ["tensor<2x4xf32>"], ["tensor<4x2xf32>"],
                                f"concat_dimension = 0 : i64, {GROUPS}, split_count = 2 : i64, split_dimension = 1 : i64")
    yield "async_start", op('"stablehlo.async_start"(%0) ({\n^bb0(%x: tensor<2x3xf32>):\n%y = "stablehlo.all_gather"(%x) '
                            f'<{{all_gather_dim = 1 : i64, {CHANNEL}, {GROUPS}}}> : ({M}) -> tensor<2x6xf32>\nstablehlo.return %y : tensor<2x6xf32>\n}}) : '
                            f'({M}) -> !stablehlo.future<tensor<2x6xf32>>\n%d = "stablehlo.async_done"(%r) : (!stablehlo.future<tensor<2x6xf32>>) -> tensor<2x6xf32>',
                            [M], ["!stablehlo.future<tensor<2x6xf32>>"]).replace("return %r : !stablehlo.future<tensor<2x6xf32>>", "return %d : tensor<2x6xf32>").replace("-> (!stablehlo.future<tensor<2x6xf32>>) {", "-> (tensor<2x6xf32>) {")
    three = ["tensor<3xf32>"]
    norm = "epsilon = 1.0e-3 : f32, feature_index = 1 : i64"
    yield "batch_norm_grad", generic("batch_norm_grad", [M] + three * 3 + [M], [M] + three * 2, norm)
    yield "batch_norm_inference", generic("batch_norm_inference", [M] + three * 4, [M], norm)
    yield "batch_norm_training", generic("batch_norm_training", [M] + three * 2, [M] + three * 2, norm)
    yield "bitcast_convert", generic("bitcast_convert", [F], [I])
    yield "broadcast", generic("broadcast", [F], ["tensor<2x4xf32>"], "broadcast_sizes = array<i64: 2>")
    yield "broadcast_in_dim", generic("broadcast_in_dim", [F], ["tensor<4x2xf32>"], "broadcast_dimensions = array<i64: 0>")
    yield "call", op("call @f(%0) : (tensor<4xf32>) -> tensor<4xf32>", [F], [F]) + "\nfunc.func private @f(%0: tensor<4xf32>) -> tensor<4xf32> { return %0 : tensor<4xf32> }"
    branch = "{{ %b = stablehlo.constant dense<{}> : tensor<f32>\nstablehlo.return %b : tensor<f32> }}"
    yield "case", generic("case", ["tensor<i32>"], [S], "", f"({branch.format('1.0')}, {branch.format('2.0')})")
    yield "if", generic("if", ["tensor<i1>"], [S], "", f"({branch.format('1.0')}, {branch.format('2.0')})")
    yield "cholesky", generic("cholesky", ["tensor<3x3xf32>"], ["tensor<3x3xf32>"], "lower = true")
    yield "clamp", generic("clamp", [S, F, S], [F])
    yield "collective_broadcast", generic("collective_broadcast", [F], [F], f"{CHANNEL}, {GROUPS}")
    yield "collective_permute", generic("collective_permute", [F], [F], f"{CHANNEL}, source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>")
    yield "compare", op("stablehlo.compare LT, %0, %1, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>", [F, F], ["tensor<4xi1>"])
    yield "compare_without_type", op("stablehlo.compare GE, %0, %1 : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>", [I, I], ["tensor<4xi1>"])
    yield "complex", generic("complex", [F, F], ["tensor<4xcomplex<f32>>"])
    yield "composite", op('stablehlo.composite "my.op" %0 {composite_attributes = {k = 2 : i64, name = "n"}, decomposition = @f, version = 3 : i32} : '
                          "(tensor<4xf32>) -> tensor<4xf32>", [F], [F]) + "\nfunc.func private @f(%0: tensor<4xf32>) -> tensor<4xf32> { %1 = stablehlo.sine %0 : tensor<4xf32> return %1 : tensor<4xf32> }"
    yield "concatenate", generic("concatenate", [F, F], ["tensor<8xf32>"], "dimension = 0 : i64")
    yield "constant", op("stablehlo.constant dense<[[1.0, -2.5, 0x7FC00000], [3.0, 4.0, 5.0]]> : tensor<2x3xf32>", [], [M])
    for name, value in [("splat", "dense<7> : tensor<3xui8>"), ("pred", "dense<[true, false, true]> : tensor<3xi1>"), ("complex", "dense<[(1.0, 2.0), (3.0, -4.0)]> : tensor<2xcomplex<f32>>"),
                        ("bf16", "dense<[1.0, -0.0]> : tensor<2xbf16>"), ("f8", "dense<[1.5, 2.0]> : tensor<2xf8E5M2>"), ("i4", "dense<[-8, 7]> : tensor<2xi4>"),
                        ("empty", "dense<> : tensor<0xf64>"), ("f16", "dense<[0x7C00, 1.0]> : tensor<2xf16>")]:
        yield f"constant_{name}", op(f"stablehlo.constant {value}", [], [value.split(" : ")[1]])
    yield "convert", generic("convert", [F], ["tensor<4xi8>"])
    yield "convolution", convolution("convolution", ["tensor<1x4x4x2xf32>", "tensor<3x3x2x5xf32>"])
    yield "dynamic_conv", convolution("dynamic_conv", ["tensor<1x4x4x2xf32>", "tensor<3x3x2x5xf32>", "tensor<2x2xi32>"])
    yield "create_token", generic("create_token", [], [T])
    yield "cross-replica-sum", generic("cross-replica-sum", [F], [F], GROUPS)
    yield "custom_call", op('stablehlo.custom_call @target(%0) {api_version = 2 : i32, backend_config = "text", has_side_effect = true, '
                            "operand_layouts = [dense<[1, 0]> : tensor<2xindex>], result_layouts = [dense<[0, 1]> : tensor<2xindex>]} : (tensor<2x3xf32>) -> tensor<2x3xf32>", [M], [M])
    yield "custom_call_alias", op('stablehlo.custom_call @target(%0) {output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], '
                                  "operand_index = 0, operand_tuple_indices = []>]} : (tensor<4xf32>) -> tensor<4xf32>", [F], [F])
    yield "custom_call_ffi", op("stablehlo.custom_call @target(%0) {api_version = 4 : i32, backend_config = {a = 1 : i32, b = \"x\"}} : (tensor<4xf32>) -> tensor<4xf32>", [F], [F])
    yield "dot", generic("dot", ["tensor<2x3xf32>", "tensor<3x4xf32>"], ["tensor<2x4xf32>"], "precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision DEFAULT>]")
    dot = "dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>"
    three_d = ["tensor<5x2x3xf32>", "tensor<5x3x4xf32>"], ["tensor<5x2x4xf32>"]
    yield "dot_general", generic("dot_general", *three_d, dot + ", precision_config = [#stablehlo<precision HIGH>, #stablehlo<precision DEFAULT>]")
    yield "dot_general_algorithm", generic("dot_general", *three_d, dot + ", algorithm = #stablehlo.dot_algorithm<lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, "
                                           "lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false>")
    yield "dynamic_broadcast_in_dim", generic("dynamic_broadcast_in_dim", [F, "tensor<2xi64>"], ["tensor<4x2xf32>"],
                                              "broadcast_dimensions = array<i64: 0>, known_expanding_dimensions = array<i64>, known_nonexpanding_dimensions = array<i64: 0>")
    yield "dynamic_gather", gather("dynamic_gather", ["tensor<7x3xf32>", "tensor<5x1xi32>", "tensor<2xi32>"], "")
    yield "gather", gather("gather", ["tensor<7x3xf32>", "tensor<5x1xi32>"], ", slice_sizes = array<i64: 1, 3>")
    yield "gather_batching", generic(
        "gather", ["tensor<5x7xf32>", "tensor<5x1xi32>"], ["tensor<5xf32>"],
        "dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], "
        "start_index_map = [1], index_vector_dim = 1>, indices_are_sorted = true, slice_sizes = array<i64: 1, 1>")
    yield "dynamic_iota", generic("dynamic_iota", ["tensor<1xi64>"], [F], "iota_dimension = 0 : i64")
    yield "dynamic_pad", generic("dynamic_pad", [F, S] + ["tensor<1xi64>"] * 3, ["tensor<6xf32>"])
    yield "dynamic_reshape", generic("dynamic_reshape", [M, "tensor<1xi64>"], ["tensor<6xf32>"])
    yield "dynamic_slice", generic("dynamic_slice", [M, "tensor<i32>", "tensor<i32>"], ["tensor<1x2xf32>"], "slice_sizes = array<i64: 1, 2>")
    yield "dynamic_update_slice", generic("dynamic_update_slice", [M, "tensor<1x2xf32>", "tensor<i32>", "tensor<i32>"], [M])
    yield "einsum", generic("einsum", ["tensor<2x3xf32>", "tensor<3x4xf32>"], ["tensor<2x4xf32>"], 'einsum_config = "ab,bc->ac"')
    yield "unary_einsum", generic("unary_einsum", [M], ["tensor<2xf32>"], 'einsum_config = "ab->a"')
    yield "fft", generic("fft", ["tensor<8xf32>"], ["tensor<5xcomplex<f32>>"], "fft_length = array<i64: 8>, fft_type = #stablehlo<fft_type RFFT>")
    yield "get_dimension_size", generic("get_dimension_size", [M], ["tensor<i32>"], "dimension = 1 : i64")
    yield "tuple", op(f'"stablehlo.tuple"(%0, %1) : ({F}, {I}) -> tuple<{F}, {I}>', [F, I], [f"tuple<{F}, {I}>"])
    yield "get_tuple_element", generic("get_tuple_element", [f"tuple<{F}, {I}>"], [I], "index = 1 : i32")
    for name in ["real", "imag"]:
        yield name, generic(name, ["tensor<4xcomplex<f32>>"], [F])
    yield "infeed", generic("infeed", [T], [F, T], 'infeed_config = "c", layout = [[0]]')
    yield "outfeed", generic("outfeed", [F, T], [T], 'outfeed_config = "c"')
    yield "iota", generic("iota", [], [M], "iota_dimension = 1 : i64")
    yield "is_finite", generic("is_finite", [F], ["tensor<4xi1>"])
    yield "map", generic("map", [F, F], [F], "dimensions = array<i64: 0>", SUM)
    yield "optimization_barrier", generic("optimization_barrier", [F, I], [F, I])
    yield "pad", generic("pad", [F, S], ["tensor<8xf32>"], "edge_padding_low = array<i64: 1>, edge_padding_high = array<i64: 0>, interior_padding = array<i64: 1>")
    yield "partition_id", generic("partition_id", [], ["tensor<ui32>"])
    yield "replica_id", generic("replica_id", [], ["tensor<ui32>"])
    yield "real_dynamic_slice", generic("real_dynamic_slice", ["tensor<?xf32>"] + ["tensor<1xi64>"] * 3, ["tensor<?xf32>"])
    yield "recv", generic("recv", [T], [F, T], HOST.replace("type = 2", "type = 3"))
    yield "send", generic("send", [F, T], [T], HOST)
    yield "send_pairs", generic("send", [F, T], [T], CHANNEL + ", source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>")
    yield "reduce", op("stablehlo.reduce(%0 init: %1) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>", [M, S], ["tensor<2xf32>"])
    yield "reduce_two", generic("reduce", [M, "tensor<2x3xi32>", S, "tensor<i32>"], ["tensor<3xf32>", "tensor<3xi32>"], "dimensions = array<i64: 0>",
                                "({\n^bb0(%a: tensor<f32>, %b: tensor<i32>, %c: tensor<f32>, %d: tensor<i32>):\n%e = stablehlo.maximum %a, %c : tensor<f32>\n"
                                "%f = stablehlo.add %b, %d : tensor<i32>\nstablehlo.return %e, %f : tensor<f32>, tensor<i32>\n})")
    yield "reduce_precision", generic("reduce_precision", [F], [F], "exponent_bits = 5 : i32, mantissa_bits = 10 : i32")
    yield "reduce_scatter", generic("reduce_scatter", ["tensor<2x4xf32>"], ["tensor<2x2xf32>"], f"{CHANNEL}, {GROUPS}, scatter_dimension = 1 : i64", SUM)
    yield "reduce_window", generic("reduce_window", [M, S], ["tensor<1x3xf32>"], "window_dimensions = array<i64: 2, 1>", SUM)
    yield "reduce_window_padding", generic("reduce_window", [M, S], ["tensor<2x3xf32>"], "padding = dense<[[0, 1], [0, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 2, 1>, "
                                           "window_strides = array<i64: 1, 1>, base_dilations = array<i64: 1, 1>, window_dilations = array<i64: 1, 1>", SUM)
    yield "reshape", generic("reshape", [M], ["tensor<6xf32>"])
    yield "reverse", generic("reverse", [M], [M], "dimensions = array<i64: 0, 1>")
    yield "rng", generic("rng", [S, S, "tensor<1xi64>"], [F], "rng_distribution = #stablehlo<rng_distribution UNIFORM>")
    yield "rng_bit_generator", generic("rng_bit_generator", ["tensor<2xui64>"], ["tensor<2xui64>", "tensor<4xui32>"], "rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>")
    yield "scatter", generic("scatter", ["tensor<7x3xf32>", "tensor<5x1xi32>", "tensor<5x3xf32>"], ["tensor<7x3xf32>"],
                             "indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], "
                             "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = true", SUM)
    yield "select", generic("select", ["tensor<4xi1>", F, F], [F])
    greater = "{\n^bb0(%p: tensor<f32>, %q: tensor<f32>):\n%c = stablehlo.compare GE, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>\nstablehlo.return %c : tensor<i1>\n}"
    yield "select_and_scatter", generic("select_and_scatter", ["tensor<4x4xf32>", "tensor<2x2xf32>", S], ["tensor<4x4xf32>"],
                                        "window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 2>", f"({greater}, {SUM[1:-1]})")
    yield "set_dimension_size", generic("set_dimension_size", [F, "tensor<i32>"], ["tensor<?xf32, #stablehlo.bounds<4>>"], "dimension = 0 : i64")
    yield "slice", op("stablehlo.slice %0 [0:2:1, 0:3:2] : (tensor<2x3xf32>) -> tensor<2x2xf32>", [M], ["tensor<2x2xf32>"])
    yield "sort", generic("sort", [F], [F], "dimension = 0 : i64, is_stable = true", f"({greater.replace('GE', 'LT')})")
    yield "torch_index_select", generic("torch_index_select", ["tensor<5x3xf32>", "tensor<2xi32>"], ["tensor<2x3xf32>"], "batch_dims = 0 : i64, dim = 0 : i64")
    yield "transpose", generic("transpose", [M], ["tensor<3x2xf32>"], "permutation = array<i64: 1, 0>")
    yield "triangular_solve", generic("triangular_solve", ["tensor<3x3xf32>", "tensor<3x2xf32>"], ["tensor<3x2xf32>"],
                                      "left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false")
    yield "while", op("stablehlo.while(%i = %0) : tensor<i32>\ncond { %n = stablehlo.constant dense<9> : tensor<i32>\n%c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
                      "stablehlo.return %c : tensor<i1> } do { %j = stablehlo.add %i, %i : tensor<i32>\nstablehlo.return %j : tensor<i32> }", ["tensor<i32>"], ["tensor<i32>"])


def artifacts(name, text):
    """For each form of an operation the artifact of the oldest version that has it, and the newest artifact."""
    found, newest = {}, None
    for target in TARGETS:
        try:
            data = stablehlo.serialize_portable_artifact_str(text, target)
        except Exception:  # The version lacks something.
            continue
        forms = tuple(sorted(set(re.findall(rb"[a-z_2-]+_v\d+(?=\0)", data))))
        if forms not in found:
            found[forms] = (target, data)
        newest = (target, data)
    kept = dict(found.values())
    kept.update([newest] if newest else [])
    return kept


def main():
    path = pathlib.Path(__file__).parent / "data" / "operations.zip"
    with mlir.make_ir_context(), zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        def put(name, data):
            archive.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)

        for name, source in programs():
            module = ir.Module.parse(source)
            text = str(module)
            put(f"{name}.mlir", text)
            put(f"{name}.generic.mlir", module.operation.get_asm(print_generic_op_form=True))
            for target, data in artifacts(name, text).items():
                put(f"{name}.{target}.mlirbc", data)


if __name__ == "__main__":
    main()
