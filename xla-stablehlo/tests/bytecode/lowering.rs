//! Tests of JAX programs as HLO modules: the text is valid, and equal for every version of the format.

use xla_hlo::{Module, Result, VerifiedModule};
use xla_stablehlo::parse_bytecode;

use crate::files;

fn verified(bytes: &[u8]) -> Result<Module> {
    Ok(VerifiedModule::new(parse_bytecode(bytes)?)?.into_inner())
}

#[test]
fn programs_become_modules() {
    for (name, bytes) in files("") {
        let module = verified(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        insta::assert_snapshot!(format!("lowered_{name}"), module.to_string());
    }
}

#[test]
fn every_target_becomes_the_same_module() {
    let targets = files("targets");
    let texts: Vec<String> = targets.iter().map(|(_, bytes)| verified(bytes).expect("a module").to_string()).collect();
    for (text, (name, _)) in texts.iter().zip(&targets) {
        assert_eq!(text, &texts[0], "{name}");
    }
}

/// Lowers a function in text.
fn lowered_text(function: &str) -> Result<Module> {
    xla_stablehlo::parse_text(&format!("module @m {{ {function} }}"))
}

/// Returns a function in text as HLO text.
fn lowered(function: &str) -> String {
    let module = lowered_text(function).expect("a module");
    VerifiedModule::new(module).expect("a verified module").into_inner().to_string()
}

#[test]
fn arguments_that_a_loop_passes_on_are_captures() {
    // The inner loop captures %x from the outer one, which captures it from the function; %c is a constant.
    insta::assert_snapshot!(lowered(
        r#"func.func @main(%x: tensor<4xf32>, %n: tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>) {
             %c = stablehlo.constant dense<1> : tensor<i32>
             %0:4 = stablehlo.while(%a = %x, %i = %n, %s = %x, %k = %c)
               : tensor<4xf32>, tensor<i32>, tensor<4xf32>, tensor<i32>
             cond {
               %p = stablehlo.compare GT, %i, %k : (tensor<i32>, tensor<i32>) -> tensor<i1>
               stablehlo.return %p : tensor<i1>
             } do {
               %1:3 = stablehlo.while(%b = %a, %j = %i, %t = %s) : tensor<4xf32>, tensor<i32>, tensor<4xf32>
               cond {
                 %p = stablehlo.compare GT, %j, %k : (tensor<i32>, tensor<i32>) -> tensor<i1>
                 stablehlo.return %p : tensor<i1>
               } do {
                 %u = stablehlo.add %t, %b : tensor<4xf32>
                 %l = stablehlo.subtract %j, %k : tensor<i32>
                 stablehlo.return %b, %l, %u : tensor<4xf32>, tensor<i32>, tensor<4xf32>
               }
               %m = stablehlo.subtract %i, %k : tensor<i32>
               stablehlo.return %1#0, %m, %1#2, %k : tensor<4xf32>, tensor<i32>, tensor<4xf32>, tensor<i32>
             }
             return %0#0, %0#2 : tensor<4xf32>, tensor<4xf32>
           }"#
    ));
}

#[test]
fn results_are_row_major_whatever_layout_the_root_has() {
    insta::assert_snapshot!(lowered(
        "func.func @main(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {
           %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
           %1 = stablehlo.tanh %0 : tensor<3x2xf32>
           return %1 : tensor<3x2xf32>
         }"
    ));
}

#[test]
fn a_constant_is_not_broadcast_to_another_type() {
    let text = "func.func @main() -> tensor<3xi32> {
        %c = stablehlo.constant dense<1.0> : tensor<f32>
        %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<3xi32>
        return %0 : tensor<3xi32>
    }";
    let error = lowered_text(text).expect_err("another type").to_string();
    insta::assert_snapshot!(error);
}

#[test]
fn identities_hold_bit_for_bit() {
    // A negative zero plus zero is zero, and not every element of the second constant is one.
    insta::assert_snapshot!(lowered(
        "func.func @main(%x: tensor<2xf32>, %y: tensor<2xi32>)
             -> (tensor<2xf32>, tensor<2xf32>, tensor<2xi32>, tensor<2xf32>) {
           %zero = stablehlo.constant dense<0.0> : tensor<2xf32>
           %ones = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
           %none = stablehlo.constant dense<0> : tensor<2xi32>
           %0 = stablehlo.add %zero, %x : tensor<2xf32>
           %1 = stablehlo.multiply %ones, %x : tensor<2xf32>
           %2 = stablehlo.add %none, %y : tensor<2xi32>
           %3 = stablehlo.subtract %zero, %x : tensor<2xf32>
           return %0, %1, %2, %3 : tensor<2xf32>, tensor<2xf32>, tensor<2xi32>, tensor<2xf32>
         }"
    ));
}
