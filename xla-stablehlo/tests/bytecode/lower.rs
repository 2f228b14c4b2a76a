//! Lowering of MLIR text: a file of programs for each family, with the HLO that each becomes, or its error.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use xla_hlo::eval::evaluate;
use xla_hlo::text::{parse_literal, parse_module};
use xla_hlo::{Result, VerifiedModule, proto};
use xla_stablehlo::parse_text;

/// The program as HLO text, which reads back from text and protobuf as the same module.
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

/// The result of a program for these arguments.
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
