//! Handlers in C, as programs call them: values, attributes, states, memory, futures, errors.

mod handlers;

use std::sync::Arc;

use xla_hlo::eval::Evaluator;
use xla_hlo::ops::{CustomCallRegistry, OnMemory};
use xla_hlo::{Result, VerifiedModule, text};

use handlers::Function;

/// Evaluates a program of one custom call.
fn run(function: Function, attributes: &str) -> Result<String> {
    let text = format!(
        "ENTRY main {{ x = f32[2,2] parameter(0)
  ROOT y = f32[2,2] custom-call(x), custom_call_target=\"tested\", api_version=API_VERSION_TYPED_FFI,
    backend_config={attributes} }}"
    );
    let module = VerifiedModule::new(text::parse_module(&text)?)?;
    let registry = CustomCallRegistry::new();
    registry.register("tested", Arc::new(OnMemory(handlers::handler(function)?)));
    let x = text::parse_literal("f32[2,2] {{1, 2}, {3, 4}}")?;
    let y = Evaluator::new(&module).with_custom_calls(&registry).call(module.entry_id(), vec![x])?;
    Ok(y.to_string().split_whitespace().collect::<Vec<_>>().join(" "))
}

#[test]
fn operands_and_attributes_come_in_and_results_out() {
    let scaled = run(handlers::scale, "{factor = 3.0 : f32}").expect("a result");
    assert_eq!(scaled, "f32[2,2] { { 3, 6 }, { 9, 12 } }");
}

#[test]
fn attributes_are_sorted_and_typed() {
    let attributes = r#"{z = 1 : i64, a = true, m = "text", d = {y = 2 : i32, x = array<i64: 1, 2, 3>}}"#;
    let told = run(handlers::describe, attributes).expect_err("the description").message().to_string();
    let described = "a: scalar 1; d: dictionary (x: array 5 of 3; y: scalar 4; ); m: string text; z: scalar 5; ";
    assert_eq!(told, format!("evaluating y of computation main: custom call \"tested\": {described}"));
}

#[test]
fn an_error_keeps_code_and_message() {
    let error = run(handlers::fail, "{}").expect_err("the error");
    assert!(matches!(error, xla_hlo::Error::ResourceExhausted(_)), "{error:?}");
    assert_eq!(error.message(), "evaluating y of computation main: custom call \"tested\": too much");
}

#[test]
fn memory_types_and_threads_are_the_runtime_s() {
    assert_eq!(run(handlers::use_runtime, "{}").expect("a result"), "f32[2,2] { { 7, 7 }, { 7, 7 } }");
}

#[test]
fn a_future_is_awaited() {
    assert_eq!(run(handlers::later, "{}").expect("a result"), "f32[2,2] { { 5, 5 }, { 5, 5 } }");
}

#[test]
fn another_version_is_refused() {
    let error = run(handlers::of_the_future, "{}").expect_err("refused");
    assert_eq!(error.message(), "the handler was compiled for version 0.99 of the FFI, this is 0.3");
}

#[test]
fn what_no_handler_can_read_is_named() {
    let error = run(handlers::scale, "{list = [1 : i64]}").expect_err("refused");
    assert!(error.message().ends_with("among the attributes of typed handlers"), "{error}");
}
