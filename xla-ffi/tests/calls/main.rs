//! Tests of handlers in C that programs call: values, attributes, states, memory, futures, errors.

mod handlers;

use std::sync::Arc;

use xla_hlo::eval::Evaluator;
use xla_hlo::ops::{CustomCallRegistry, OnMemory};
use xla_hlo::{Result, VerifiedModule, text};

use handlers::Function;

/// Evaluates a program of one custom call.
fn run(function: Function, attributes: &str) -> Result<String> {
    run_on(function, attributes, "f32[2,2] {{1, 2}, {3, 4}}")
}

/// Evaluates a program like [`run`], with a given operand; the result has its shape.
fn run_on(function: Function, attributes: &str, operand: &str) -> Result<String> {
    let x = text::parse_literal(operand)?;
    let shape = x.shape();
    let text = format!(
        "ENTRY main {{ x = {shape} parameter(0)
  ROOT y = {shape} custom-call(x), custom_call_target=\"tested\", api_version=API_VERSION_TYPED_FFI,
    backend_config={attributes} }}"
    );
    let module = VerifiedModule::new(text::parse_module(&text)?)?;
    let registry = CustomCallRegistry::new();
    registry.register("tested", Arc::new(OnMemory(handlers::handler(function)?)));
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
fn elements_of_less_than_a_byte_are_packed_for_handlers() {
    let inverted = |operand: &str| run_on(handlers::invert, "{}", operand).expect("a result");
    assert_eq!(inverted("s4[3] {1, -2, 7}"), "s4[3] {-2, 1, -8}");
    assert_eq!(inverted("u2[4] {0, 1, 2, 3}"), "u2[4] {3, 2, 1, 0}");
    assert_eq!(inverted("u8[2] {0, 254}"), "u8[2] {255, 1}");
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
fn runs_have_neither_extensions_nor_options() {
    assert_eq!(run(handlers::ask_for_newer_things, "{}").expect("a result"), "f32[2,2] { { 1, 1 }, { 1, 1 } }");
}

/// The return value of a `ctypes` callback is undefined after an exception: the runtime must interpret it neither as an
/// error nor as success.
#[test]
fn a_handler_left_by_an_exception_is_an_error() {
    let run = |factor: &str| run(handlers::outcome_in_frame, &format!("{{factor = {factor} : f32}}"));
    assert_eq!(run("2.0").expect("a result"), "f32[2,2] { { 2, 2 }, { 2, 2 } }");
    let failed = run("-1.0").expect_err("the error");
    assert!(matches!(failed, xla_hlo::Error::ResourceExhausted(_)) && failed.message().ends_with("too much"));
    let left = run("0.0").expect_err("no outcome");
    assert!(left.message().contains("ended with an exception"), "{left}");
}

#[test]
fn another_version_is_refused() {
    let error = run(handlers::of_the_future, "{}").expect_err("refused");
    assert_eq!(error.message(), "the handler was compiled for version 0.99 of the FFI, but this is 0.5");
}

#[test]
fn what_no_handler_can_read_is_named() {
    let error = run(handlers::scale, "{list = [1 : i64]}").expect_err("refused");
    let named =
        "attribute \"list\": the FFI of handlers has no type for lists, only for arrays, strings and dictionaries";
    assert!(error.message().ends_with(named), "{error}");
}
