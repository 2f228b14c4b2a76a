//! Snapshot tests of lowering of MLIR text: a file of programs for each family, with the resulting HLO or error.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use xla_hlo::eval::evaluate;
use xla_hlo::text::{parse_literal, parse_module};
use xla_hlo::{Result, VerifiedModule, proto};
use xla_stablehlo::parse_text;

/// Returns the program as HLO text, after checking round trips through text and protobuf.
fn lowered(program: &str) -> Result<String> {
    let module = VerifiedModule::new(parse_text(program)?)?.into_inner();
    let text = module.to_string();
    let again = parse_module(&text).unwrap_or_else(|error| panic!("{text}\n{error}"));
    assert_eq!(again.to_string(), text);
    let bytes = proto::serialize_module(&module).unwrap_or_else(|error| panic!("{text}\n{error}"));
    let again = proto::parse_module(&bytes).unwrap_or_else(|error| panic!("{text}\n{error}"));
    for (_, computation) in module.iter() {
        let other = &again[again.find(computation.name()).expect("the computation")];
        for ((_, a), (_, b)) in computation.iter().zip(other.iter()) {
            assert_eq!((a.op().opcode(), a.annotations()), (b.op().opcode(), b.annotations()), "{text}");
        }
    }
    Ok(text)
}

#[test]
fn programs_become_hlo() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lower");
    let entries = fs::read_dir(&folder).expect("the folder").map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<_> = entries.filter(|path| path.extension().is_some_and(|e| e == "mlir")).collect();
    paths.sort();
    assert!(!paths.is_empty());
    for path in paths {
        let programs = fs::read_to_string(&path).expect("a readable file");
        let mut results = String::new();
        for program in programs.split("// -----\n") {
            match lowered(program) {
                Ok(text) => writeln!(results, "{text}\n").expect("text"),
                Err(error) => writeln!(results, "error: {error}\n").expect("text"),
            }
        }
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        insta::with_settings!({
            snapshot_path => &folder,
            prepend_module_to_snapshot => false,
            omit_expression => true,
        }, {
            insta::assert_snapshot!(name, results);
        });
    }
}

/// Evaluates a program with arguments.
fn value(body: &str, arguments: &[&str]) -> String {
    let module = parse_text(body).unwrap_or_else(|error| panic!("{body}: {error}"));
    let module = VerifiedModule::new(module).unwrap_or_else(|error| panic!("{body}: {error}"));
    let arguments = arguments.iter().map(|text| parse_literal(text).expect(text)).collect();
    evaluate(&module, arguments).unwrap_or_else(|error| panic!("{body}: {error}")).to_string()
}

#[test]
fn einstein_sums_have_their_values() {
    let program = |config: &str, a: &str, b: &str, r: &str| {
        format!(
            "func.func @main(%a: tensor<{a}xi32>, %b: tensor<{b}xi32>) -> tensor<{r}xi32> {{
              %0 = \"stablehlo.einsum\"(%a, %b) {{einsum_config = \"{config}\"}}
                : (tensor<{a}xi32>, tensor<{b}xi32>) -> tensor<{r}xi32>
              return %0 : tensor<{r}xi32>
            }}"
        )
    };
    let of = |config, a: (&str, &str), b: (&str, &str), r| {
        value(&format!("module {{ {} }}", program(config, a.0, b.0, r)), &[a.1, b.1])
    };
    let square = ("2x2", "s32[2,2] {{1, 2}, {3, 4}}");
    let pair = ("2", "s32[2] {10, 100}");
    assert_eq!(of("ab,b->a", square, pair, "2"), "s32[2] {210, 430}");
    assert_eq!(of("aa,a->a", square, pair, "2"), "s32[2] {10, 400}");
    assert_eq!(of("ab,c->ca", square, pair, "2x2"), "s32[2,2] { { 30, 70 }, { 300, 700 } }");
    assert_eq!(of("...a,...->a...", square, pair, "2x2"), "s32[2,2] { { 10, 300 }, { 20, 400 } }");
}

#[test]
fn rows_are_selected_in_each_batch() {
    let program = "module { func.func @main(%a: tensor<2x3xi32>, %b: tensor<2x2xi32>) -> tensor<2x2xi32> {
      %0 = \"stablehlo.torch_index_select\"(%a, %b) {dim = 1 : i64, batch_dims = 1 : i64}
        : (tensor<2x3xi32>, tensor<2x2xi32>) -> tensor<2x2xi32>
      return %0 : tensor<2x2xi32>
    } }";
    let arguments = ["s32[2,3] {{1, 2, 3}, {4, 5, 6}}", "s32[2,2] {{2, 0}, {1, 1}}"];
    assert_eq!(value(program, &arguments), "s32[2,2] { { 3, 1 }, { 5, 5 } }");
}

#[test]
fn sizes_that_are_operands_cut_a_bounded_result() {
    let program = "module { func.func @main(%a: tensor<2xi32>, %s: tensor<2xi64>) -> tensor<i32> {
      %0 = stablehlo.dynamic_broadcast_in_dim %a, %s, dims = [1]
        : (tensor<2xi32>, tensor<2xi64>) -> tensor<?x2xi32, #stablehlo.bounds<5, ?>>
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0, 1]
        : (tensor<?x2xi32, #stablehlo.bounds<5, ?>>, tensor<i32>) -> tensor<i32>
      return %1 : tensor<i32>
    } }";
    assert_eq!(value(program, &["s32[2] {1, 10}", "s64[2] {3, 2}"]), "s32[] 33");
}

#[test]
fn bitcast_of_complex_numbers_keeps_their_bits() {
    let program = |from: &str, to: &str| {
        format!(
            "module {{ func.func @main(%a: tensor<{from}>) -> tensor<{to}> {{
              %0 = stablehlo.bitcast_convert %a : (tensor<{from}>) -> tensor<{to}>
              return %0 : tensor<{to}>
            }} }}"
        )
    };
    // 1 is 0x3FF0000000000000, whose halves are 0 and 1.875; -2 is 0xC000000000000000.
    let narrow = value(&program("complex<f64>", "2xcomplex<f32>"), &["c128[] (1, -2)"]);
    assert_eq!(narrow, "c64[2] {(0, 1.875), (0, -2)}");
    let two = program("2xcomplex<f64>", "2x2xcomplex<f32>");
    let narrow = value(&two, &["c128[2] {(1, -2), (2, 1)}"]);
    assert_eq!(narrow, "c64[2,2] { { (0, 1.875), (0, -2) }, { (0, 2), (0, 1.875) } }");
    assert_eq!(value(&program("2x2xcomplex<f32>", "2xcomplex<f64>"), &[&narrow]), "c128[2] {(1, -2), (2, 1)}");
    let error = parse_text(&program("complex<f32>", "complex<f64>")).expect_err("no pair").to_string();
    assert!(error.contains("must be 2 for a cast to c128"), "{error}");
}

#[test]
fn cube_roots_of_complex_numbers_are_the_principal_ones() {
    let program = "module { func.func @main(%a: tensor<4xcomplex<f64>>) -> tensor<4xcomplex<f64>> {
      %0 = stablehlo.cbrt %a : tensor<4xcomplex<f64>>
      return %0 : tensor<4xcomplex<f64>>
    } }";
    let numbers = "c128[4] {(0, 0), (27, 0), (-8, 0), (inf, 0)}";
    assert_eq!(
        value(program, &[numbers]),
        "c128[4] {(0, 0), (3, 0), (1.0000000000000002, 1.7320508075688772), (inf, 0)}"
    );
}

#[test]
fn square_of_complex_numbers_whose_parts_cancel_has_a_real_part_of_zero() {
    let program = "module { func.func @main(%a: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> {
      %0 = chlo.square %a : tensor<4xcomplex<f32>> -> tensor<4xcomplex<f32>>
      return %0 : tensor<4xcomplex<f32>>
    } }";
    let numbers = "c64[4] {(3e38, 3e38), (-2e38, 2e38), (3, -3), (2, 1)}";
    assert_eq!(value(program, &[numbers]), "c64[4] {(0, inf), (0, -inf), (0, -18), (3, 4)}");
}

/// The sizes of the slices are an operand, and determine the result's shape.
#[test]
fn dynamic_gather_of_sizes_that_are_arguments() {
    let program =
        "module { func.func @main(%a: tensor<3x4xi32>, %i: tensor<2x1xi64>, %s: tensor<2xi64>) -> tensor<2x3xi32> {
      %0 = \"stablehlo.dynamic_gather\"(%a, %i, %s) {dimension_numbers = #stablehlo.gather<offset_dims = [1],
        collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>}
        : (tensor<3x4xi32>, tensor<2x1xi64>, tensor<2xi64>) -> tensor<2x3xi32>
      return %0 : tensor<2x3xi32>
    } }";
    let array = "s32[3,4] {{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, 12}}";
    let arguments = [array, "s64[2,1] {{2}, {0}}", "s64[2] {1, 3}"];
    assert_eq!(value(program, &arguments), "s32[2,3] { { 9, 10, 11 }, { 1, 2, 3 } }");
}

/// Amounts before, between and after elements, also negative ones; the result's shape implies those at the end.
#[test]
fn dynamic_pad_of_amounts_that_are_arguments() {
    let program = "module { func.func @main(%a: tensor<2x3xi32>, %v: tensor<i32>, %l: tensor<2xi64>, %h: tensor<2xi64>,
        %i: tensor<2xi64>) -> tensor<4x4xi32> {
      %0 = stablehlo.dynamic_pad %a, %v, %l, %h, %i : (tensor<2x3xi32>, tensor<i32>, tensor<2xi64>, tensor<2xi64>,
        tensor<2xi64>) -> tensor<4x4xi32>
      return %0 : tensor<4x4xi32>
    } }";
    let padded = |low: &str, high: &str, interior: &str| {
        value(program, &["s32[2,3] {{1, 2, 3}, {4, 5, 6}}", "s32[] 9", low, high, interior])
    };
    assert_eq!(
        padded("s64[2] {1, -1}", "s64[2] {0, 0}", "s64[2] {1, 1}"),
        "s32[4,4] { { 9, 9, 9, 9 }, { 9, 2, 9, 3 }, { 9, 9, 9, 9 }, { 9, 5, 9, 6 } }"
    );
    assert_eq!(
        padded("s64[2] {2, 1}", "s64[2] {0, 0}", "s64[2] {0, 0}"),
        "s32[4,4] { { 9, 9, 9, 9 }, { 9, 9, 9, 9 }, { 9, 1, 2, 3 }, { 9, 4, 5, 6 } }"
    );
    assert_eq!(
        padded("s64[2] {-1, 0}", "s64[2] {3, -1}", "s64[2] {0, 1}"),
        "s32[4,4] { { 4, 9, 5, 9 }, { 9, 9, 9, 9 }, { 9, 9, 9, 9 }, { 9, 9, 9, 9 } }"
    );
}

#[test]
fn dynamic_conv_of_a_padding_that_is_an_argument() {
    let program = "module { func.func @main(%a: tensor<1x3x1xi32>, %k: tensor<2x1x1xi32>, %p: tensor<1x2xi64>)
        -> tensor<1x3x1xi32> {
      %0 = \"stablehlo.dynamic_conv\"(%a, %k, %p) {window_strides = array<i64: 2>, lhs_dilation = array<i64: 2>,
        dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, batch_group_count = 1 : i64,
        feature_group_count = 1 : i64} : (tensor<1x3x1xi32>, tensor<2x1x1xi32>, tensor<1x2xi64>) -> tensor<1x3x1xi32>
      return %0 : tensor<1x3x1xi32>
    } }";
    let of = |padding| value(program, &["s32[1,3,1] {{{1}, {2}, {3}}}", "s32[2,1,1] {{{10}}, {{1}}}", padding]);
    // Dilated: 1 0 2 0 3.
    assert_eq!(of("s64[1,2] {{0, 1}}"), "s32[1,3,1] { { {10}, {20}, {30} } }");
    assert_eq!(of("s64[1,2] {{1, 0}}"), "s32[1,3,1] { { {1}, {2}, {3} } }");
    assert_eq!(of("s64[1,2] {{3, -1}}"), "s32[1,3,1] { { {0}, {1}, {2} } }");
}
