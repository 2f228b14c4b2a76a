//! Tests of custom calls by built-in and registered handlers, without the evaluator.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use xla_hlo::ops::CustomCallContext;
use xla_hlo::text::{parse_literal, parse_module};
use xla_hlo::{Error, Literal, Result, VerifiedModule};
use xla_service::{Client, CompileOptions, FallbackPolicy, PlatformRegistry};

use crate::native;

#[test]
fn what_is_built_in_needs_no_fallback() {
    native(include_str!("programs/what_is_built_in_needs_no_fallback.hlo"));
}

const TEXT: &str = include_str!("programs/custom_calls.hlo");

/// Returns the program's results with these handlers, and the number of calls of the counting one.
fn run(platform: &str, text: &str) -> Result<(Vec<Literal>, usize)> {
    let mut registry = PlatformRegistry::new();
    registry.register(backend_cpu::platform());
    registry.register(xla_service::interpreter::platform());
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = calls.clone();
    let count = move |call: &CustomCallContext<'_>, operands: Vec<Literal>| {
        counter.fetch_add(1, Ordering::Relaxed);
        Ok(if call.config() == b"token" { Literal::token() } else { operands[0].clone() })
    };
    let twice =
        |_: &CustomCallContext<'_>, operands: Vec<Literal>| Ok(Literal::tuple([operands.clone(), operands].concat()));
    let fail =
        |_: &CustomCallContext<'_>, _: Vec<Literal>| Err::<Literal, _>(Error::failed_precondition("out of luck"));
    let handlers = registry.custom_calls();
    handlers.register("count", Arc::new(count));
    handlers.register("twice", Arc::new(twice));
    handlers.register("fail", Arc::new(fail));
    let module = VerifiedModule::new(parse_module(text)?)?;
    let client = Client::new(&registry, platform)?;
    let options = CompileOptions { host_fallback: FallbackPolicy::Forbid, ..CompileOptions::default() };
    let program = client.compile(&module, &options)?;
    let x = client.buffer(&parse_literal("f32[2] {1, -2}")?)?;
    let results = program.execute(&[&x])?;
    let results = results.iter().map(|r| r.to_literal()).collect::<Result<_>>()?;
    Ok((results, calls.load(Ordering::Relaxed)))
}

#[test]
fn calls_with_side_effects_happen_once() {
    let (results, calls) = run("cpu", TEXT).unwrap();
    assert_eq!(results.iter().map(Literal::to_string).collect::<Vec<_>>(), ["f32[2] {1, -2}"; 2]);
    assert_eq!(calls, 2);
}

#[test]
fn errors_of_handlers_and_of_missing_ones_arrive() {
    let failing = TEXT.replace("\"twice\"", "\"fail\"");
    for platform in ["cpu", "interpreter"] {
        let error = run(platform, &failing).unwrap_err();
        assert!(matches!(error, Error::FailedPrecondition(_)), "{error}");
        assert!(error.message().contains("custom call \"fail\": out of luck"), "{error}");
        let error = run(platform, &TEXT.replace("\"twice\"", "\"thrice\"")).unwrap_err();
        assert!(matches!(error, Error::Unimplemented(_)), "{error}");
        assert!(error.message().contains("no handler is registered for the custom call target \"thrice\""), "{error}");
    }
}
