//! Tests that subnormal numbers are flushed in kernels if that is allowed, and never in Rust code, however a program
//! switches between the two.

use std::hint::black_box;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt};
use xla_hlo::ops::CustomCallContext;
use xla_hlo::text::{parse_literal, parse_module};
use xla_hlo::{ElementType, Error, Literal, Result, Scalar, VerifiedModule};
use xla_service::{Client, CompileOptions, LoadedExecutable, PlatformRegistry};

/// Whether floating-point arithmetic of this thread keeps subnormal operands and results.
fn keeps_subnormals() -> bool {
    let half = black_box(f32::MIN_POSITIVE) * black_box(0.5);
    let wide = black_box(f64::MIN_POSITIVE) * black_box(0.5);
    half.to_bits() == 1 << 22 && black_box(half) * black_box(2.0) == f32::MIN_POSITIVE && wide.to_bits() == 1 << 51
}

/// Creates a client with the handlers `look`, which counts calls in the wrong mode, and `fail`.
fn client(wrong: &Arc<AtomicUsize>) -> Client {
    let mut registry = PlatformRegistry::new();
    registry.register(backend_cpu::platform());
    let wrong = wrong.clone();
    let look = move |_: &CustomCallContext<'_>, operands: Vec<Literal>| {
        wrong.fetch_add(usize::from(!keeps_subnormals()), Ordering::Relaxed);
        Ok(operands[0].clone())
    };
    let fail =
        |_: &CustomCallContext<'_>, _: Vec<Literal>| Err::<Literal, _>(Error::failed_precondition("out of luck"));
    registry.custom_calls().register("look", Arc::new(look));
    registry.custom_calls().register("fail", Arc::new(fail));
    Client::new(&registry, "cpu").unwrap()
}

fn flushing() -> CompileOptions {
    CompileOptions { flush_denormals: true, ..CompileOptions::default() }
}

fn execute(client: &Client, program: &LoadedExecutable, inputs: &[Literal]) -> Result<Vec<Literal>> {
    let buffers: Vec<_> = inputs.iter().map(|input| client.buffer(input).unwrap()).collect();
    let results = program.execute(&buffers.iter().collect::<Vec<_>>());
    assert!(keeps_subnormals(), "the caller's mode is back");
    results?.iter().map(|result| result.to_literal()).collect()
}

fn run(text: &str, options: &CompileOptions, inputs: &[Literal]) -> Result<Vec<Literal>> {
    let wrong = Arc::new(AtomicUsize::new(0));
    let client = client(&wrong);
    let program = client.compile(&VerifiedModule::new(parse_module(text)?)?, options)?;
    let results = execute(&client, &program, inputs);
    assert_eq!(wrong.load(Ordering::Relaxed), 0, "Rust ran while subnormals were flushed");
    results
}

/// Returns the results of a program as text; its inputs are text.
fn printed(text: &str, options: &CompileOptions, inputs: &[&str]) -> Vec<String> {
    let inputs: Vec<Literal> = inputs.iter().map(|input| parse_literal(input).unwrap()).collect();
    run(text, options, &inputs).unwrap().iter().map(ToString::to_string).collect()
}

const HALVE: &str = include_str!("programs/halve.hlo");
const LEAST: &str = "f32[4] {1.17549435e-38, -1.17549435e-38, 2.3509887e-38, 1e-40}";

#[test]
fn kernels_flush_where_it_is_allowed() {
    let kept = printed(HALVE, &CompileOptions::default(), &[LEAST]);
    assert_eq!(kept, ["f32[4] {5.87747175e-39, -5.87747175e-39, 1.17549435e-38, 4.99997e-41}"]);
    assert_eq!(printed(HALVE, &flushing(), &[LEAST]), ["f32[4] {0, -0.0, 1.17549435e-38, 0}"]);
}

/// Helper threads set the mode themselves, and reset it.
#[test]
fn spread_kernels_flush_too() {
    let text = include_str!("programs/spread_kernels_flush_too.hlo");
    let x =
        Literal::from_fn(&xla_hlo::ArrayShape::new(ElementType::F32, [4_000_000]), |_| Scalar::Float(1e-20)).unwrap();
    for threads in [1, 4] {
        let options = CompileOptions { threads: NonZeroUsize::new(threads), ..flushing() };
        let z = &run(text, &options, std::slice::from_ref(&x)).unwrap()[0];
        assert!((0..4_000_000).all(|i| z.get(i) == Scalar::Float(0.0)), "{threads} threads");
    }
    let seen: Vec<bool> = rayon::broadcast(|_| keeps_subnormals());
    assert!(seen.iter().all(|&keeps| keeps), "{seen:?}");
}

/// Loops and branches, and calls of the host in all of them.
const CONTROL: &str = include_str!("programs/control.hlo");

#[test]
fn rust_never_runs_where_subnormals_are_flushed() {
    for choice in ["true", "false"] {
        for options in [flushing(), CompileOptions { opt_level: xla_service::OptLevel::O0, ..flushing() }] {
            let inputs = ["f32[4] {1e-15, 1e-40, -1e-40, 0.5}", &format!("pred[] {choice}")];
            let found = printed(CONTROL, &options, &inputs);
            let [tiny, zero, minus, _] = found[0].split(['{', '}']).nth(1).unwrap().split(", ").collect::<Vec<_>>()[..]
            else {
                panic!("{found:?}")
            };
            assert_eq!((tiny, zero), ("1e-15", "0"), "{choice}");
            assert!(["0", "-0.0"].contains(&minus), "{minus}");
        }
    }
}

/// Collects the names of thunks, and checks the mode of floating-point arithmetic.
#[derive(Clone, Default)]
struct Watch(Arc<Mutex<Vec<String>>>);

/// Reads the field `name`.
struct Name<'a>(&'a mut Vec<String>);

impl Visit for Name<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "name" {
            self.0.push(value.to_string());
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}

impl<S: tracing::Subscriber> Layer<S> for Watch {
    fn on_new_span(&self, attributes: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
        assert!(keeps_subnormals(), "a profiler is called while subnormals are flushed");
        if attributes.metadata().name() == "thunk" {
            attributes.record(&mut Name(&mut self.0.lock().unwrap()));
        }
    }

    fn on_exit(&self, _: &Id, _: Context<'_, S>) {
        assert!(keeps_subnormals(), "a profiler is called while subnormals are flushed");
    }
}

/// A profiled run has a span for each thunk, and the results of a run without a profile.
#[test]
fn a_run_that_is_profiled_reports_thunks_and_flushes_as_others_do() {
    let inputs = ["f32[4] {1e-15, 1e-40, -1e-40, 0.5}", "pred[] true"];
    let expected = printed(CONTROL, &flushing(), &inputs);
    let watch = Watch::default();
    // `tracing` caches the interest of the first thread that meets a span, unless there has been more than one
    // subscriber.
    let _other = tracing::Dispatch::new(tracing_subscriber::registry());
    let subscriber = tracing_subscriber::registry().with(watch.clone());
    let profiled = tracing::subscriber::with_default(subscriber, || printed(CONTROL, &flushing(), &inputs));
    assert_eq!(profiled, expected);
    let names = std::mem::take(&mut *watch.0.lock().unwrap());
    // The conditional, the call in its branch, and the call after it.
    assert!(["e", "y", "last"].iter().all(|name| names.iter().any(|found| found == name)), "{names:?}");
}

#[test]
fn the_mode_is_set_back_when_a_call_fails() {
    let failing = CONTROL.replacen("\"look\"", "\"fail\"", 1);
    let inputs = ["f32[4] {1, 2, 3, 4}", "pred[] true"].map(|input| parse_literal(input).unwrap());
    let error = run(&failing, &flushing(), &inputs).unwrap_err();
    assert!(matches!(error, Error::FailedPrecondition(_)), "{error}");
}

/// 2^-127 is normal in a type without subnormals, but subnormal in f32, in which it is multiplied.
#[test]
fn numbers_that_are_subnormal_in_lanes_alone_are_kept() {
    let text = include_str!("programs/numbers_that_are_subnormal_in_lanes_alone_are_kept.hlo");
    let input = "f8e8m0fnu[2] {5.877471754111438e-39, 1}";
    let kept = printed(text, &CompileOptions::default(), &[input]);
    assert_eq!(printed(text, &flushing(), &[input]), kept);
    assert_eq!(kept, ["f64[2] {5.8774717541114375e-39, 1}", "f32[2] {2.3509887e-38, 4}"]);
}

/// Cached code that flushes is not reused for a program that must not flush.
#[test]
fn stored_code_is_of_the_mode_that_it_is_loaded_for() {
    let client = client(&Arc::default());
    let module = VerifiedModule::new(parse_module(HALVE).unwrap()).unwrap();
    let least = parse_literal(LEAST).unwrap();
    let of =
        |program: &LoadedExecutable| execute(&client, program, std::slice::from_ref(&least)).unwrap()[0].to_string();
    let (flushes, keeps) =
        (client.compile(&module, &flushing()).unwrap(), client.compile(&module, &CompileOptions::default()).unwrap());
    assert_ne!(of(&flushes), of(&keeps));
    for stored in [&flushes, &keeps] {
        let bytes = stored.serialize().unwrap();
        assert_eq!(of(&client.load(&bytes, &flushing()).unwrap()), of(&flushes));
        assert_eq!(of(&client.load(&bytes, &CompileOptions::default()).unwrap()), of(&keeps));
    }
}
