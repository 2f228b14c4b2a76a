//! Tests of JAX programs with symbolic shapes, refined for concrete ones: the results are those of JAX.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use xla_hlo::eval::evaluate;
use xla_hlo::text::parse_literal;
use xla_hlo::{ArrayShape, ElementType, Literal, Result, Scalar, VerifiedModule};
use xla_stablehlo::ir::Module;
use xla_stablehlo::{ArgumentShapes, bytecode, lower, refine, text};

use crate::operations::archived;

/// Programs that call library functions.
const NOT_RUN: [&str; 1] = ["linalg"];

/// Parses the literals of a file, one a line.
fn literals(content: &[u8]) -> Vec<Literal> {
    let text = std::str::from_utf8(content).expect("text");
    text.lines().map(|line| parse_literal(line).unwrap_or_else(|error| panic!("{line}: {error}"))).collect()
}

fn refined(program: &Module, arguments: &[Literal]) -> Result<VerifiedModule> {
    let mut shapes = ArgumentShapes::default();
    for (i, argument) in arguments.iter().enumerate() {
        shapes.set(i, argument.array_shape());
    }
    VerifiedModule::new(refine(program, &shapes)?)
}

fn differ(found: &Literal, wanted: &Literal) -> bool {
    let shapes = [found, wanted].map(|literal| literal.array_shape().clone().with_layout(None));
    if shapes[0] != shapes[1] {
        return true;
    }
    (0..shapes[0].element_count()).any(|i| match (found.get(i), wanted.get(i)) {
        (Scalar::Float(a), Scalar::Float(b)) => a != b && (a - b).abs() > 1e-5 * (1.0 + b.abs()),
        (a, b) => a != b,
    })
}

#[test]
fn programs_with_symbolic_shapes_have_their_values() {
    let mut wrong = String::new();
    let programs = archived("dynamic.zip");
    assert!(programs.len() > 40);
    for (name, files) in &programs {
        let files: BTreeMap<&str, &[u8]> = files.iter().map(|(kind, content)| (&**kind, &**content)).collect();
        let program = bytecode::read(files["mlirbc"]).expect("a program");
        let (arguments, wanted) = (literals(files["arguments"]), literals(files["results"]));
        let module = match refined(&program, &arguments) {
            Ok(module) => module,
            Err(error) => {
                wrong += &format!("{name}: {error}\n");
                continue;
            }
        };
        if NOT_RUN.contains(&&**name) {
            continue;
        }
        match evaluate(&module, arguments) {
            Ok(value) => {
                let found = value.leaves();
                let is_wrong = found.len() != wanted.len()
                    || found.iter().zip(&wanted).any(|(found, wanted)| differ(found, wanted));
                if is_wrong {
                    wrong += &format!("{name}: {value} instead of {wanted:?}\n");
                }
            }
            Err(error) => wrong += &format!("{name}: {error}\n{}\n", *module),
        }
        let error = lower(&program).expect_err("no shapes").to_string();
        assert!(error.contains("such as --shapes arg"), "{name}: {error}");
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Returns the program of a text, refined for the shapes in its first line, as HLO text.
fn refined_text(program: &str) -> Result<String> {
    let shapes = program.lines().next().unwrap_or_default().trim_start_matches('/').trim();
    let shapes = if shapes.is_empty() { ArgumentShapes::default() } else { shapes.parse()? };
    let module = VerifiedModule::new(refine(&text::read(program)?, &shapes)?)?;
    Ok(module.into_inner().to_string())
}

#[test]
fn dynamic_programs_become_static_ones() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/refine");
    for name in ["operations", "errors"] {
        let programs = fs::read_to_string(folder.join(name).with_extension("mlir")).expect("a readable file");
        let mut results = String::new();
        for program in programs.split("// -----\n") {
            let result = refined_text(program);
            assert_eq!(result.is_err(), name == "errors", "{program}: {result:?}");
            results += &result.unwrap_or_else(|error| format!("error: {error}"));
            results += "\n\n";
        }
        insta::with_settings!({
            snapshot_path => &folder,
            prepend_module_to_snapshot => false,
            omit_expression => true,
        }, {
            insta::assert_snapshot!(name, results);
        });
    }
}

#[test]
fn functions_that_call_each_other_more_and_more_are_refused() {
    let mut program = "// arg0=f32[3]\nmodule {\n\
        func.func @main(%a: tensor<?xf32>) -> tensor<?xf32> {\n\
        %0 = call @f0(%a) : (tensor<?xf32>) -> tensor<?xf32>\n\
        %z = stablehlo.constant dense<1> : tensor<i32>\n\
        %1 = call @g0(%z) : (tensor<i32>) -> tensor<i32>\n\
        return %0 : tensor<?xf32>\n}\n"
        .to_string();
    for i in 0..40 {
        let (f, g) = (format!("f{}", i + 1), format!("g{}", i + 1));
        program += &format!(
            "func.func private @f{i}(%a: tensor<?xf32>) -> tensor<?xf32> {{\n\
             %0 = stablehlo.concatenate %a, %a, dim = 0 : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>\n\
             %1 = call @{f}(%a) : (tensor<?xf32>) -> tensor<?xf32>\n\
             %2 = call @{f}(%0) : (tensor<?xf32>) -> tensor<?xf32>\nreturn %a : tensor<?xf32>\n}}\n\
             func.func private @g{i}(%a: tensor<i32>) -> tensor<i32> {{\n\
             %0 = call @{g}(%a) : (tensor<i32>) -> tensor<i32>\n%1 = call @{g}(%a) : (tensor<i32>) -> tensor<i32>\n\
             %2 = stablehlo.add %0, %1 : tensor<i32>\nreturn %2 : tensor<i32>\n}}\n"
        );
    }
    program += "func.func private @f40(%a: tensor<?xf32>) -> tensor<?xf32> { return %a : tensor<?xf32> }\n\
                func.func private @g40(%a: tensor<i32>) -> tensor<i32> { return %a : tensor<i32> }\n}\n";
    let error = refined_text(&program).expect_err("too many").to_string();
    assert!(error.contains("more than 16384 calls"), "{error}");
}

fn refused(text: &str) -> String {
    text.parse::<ArgumentShapes>().expect_err(text).to_string()
}

#[test]
fn shapes_of_arguments_are_read() {
    let shapes: ArgumentShapes = "arg2=s32[], arg0=f32[8,4]{1,0}".parse().expect("shapes");
    let mut expected = ArgumentShapes::default();
    expected.set(0, &ArrayShape::new(ElementType::F32, [8, 4]));
    expected.set(2, &ArrayShape::new(ElementType::S32, []));
    assert_eq!(shapes, expected);
    assert!(refused("").contains("such as arg0=f32[8,4]"));
    assert!(refused("arg0=f32[2],").contains("such as"));
    assert!(refused("x=f32[2]").contains("\"x=f32[2]\" is not the shape"));
    assert!(refused("arg0=f32[2],arg0=f32[3]").contains("two shapes"));
    assert!(refused("arg0=f32[?]").contains("arg0"));
    assert!(refused("arg0=(f32[2])").contains("is not the shape"));
    assert!(refused("arg0=f33[2]").contains("the shape of arg0"));
}
