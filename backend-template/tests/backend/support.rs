//! Test support: runs HLO text on the device and in the reference evaluator and compares the results; provides edge
//! values of every element type.

use std::sync::Arc;

use xla_hlo::text::parse_module;
use xla_hlo::{ArrayShape, ElementKind, ElementType, Literal, Scalar, VerifiedModule};
use xla_service::{Client, CompileOptions, FallbackPolicy, LoadedExecutable, Platform, PlatformRegistry, interpreter};
pub use xla_tests::agreement::assert_close;

/// Creates a client of the given platform and a client of the interpreter.
pub fn clients(platform: Arc<dyn Platform>) -> (Client, Client) {
    let mut registry = PlatformRegistry::new();
    let name = platform.name().to_string();
    registry.register(platform);
    registry.register(interpreter::platform());
    let client = |name: &str| Client::new(&registry, name).expect("the platform is registered");
    (client(&name), client("interpreter"))
}

/// Parses and verifies a module.
pub fn module(text: &str) -> VerifiedModule {
    let module = parse_module(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    VerifiedModule::new(module).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Edge values of a type, mixed with ordinary numbers.
pub fn values(ty: ElementType) -> Vec<Scalar> {
    let floats = [0.0, 1.0, -0.0, -1.5, 0.75, f64::INFINITY, 2.0, f64::NEG_INFINITY, -3.0, f64::NAN, 1e-3, 7.0, -0.25];
    let bits = ty.bit_width() as u32;
    match ty.kind() {
        ElementKind::Pred => vec![Scalar::Pred(true), Scalar::Pred(false), Scalar::Pred(true)],
        ElementKind::Signed => {
            let (least, greatest) = (i64::MIN >> (64 - bits), i64::MAX >> (64 - bits));
            [0, 1, -1, greatest, 3, least, -2, 2].map(Scalar::Signed).to_vec()
        }
        ElementKind::Unsigned => [0, 1, u64::MAX >> (64 - bits), 3, 2].map(Scalar::Unsigned).to_vec(),
        ElementKind::Float => floats.map(Scalar::Float).to_vec(),
        ElementKind::Complex => floats.iter().zip(&floats[3..]).map(|(&a, &b)| Scalar::Complex(a, b)).collect(),
    }
}

/// Creates an array that cycles through `values`, starting with number `salt`.
pub fn array(shape: &ArrayShape, values: &[Scalar], salt: usize) -> Literal {
    Literal::from_fn(shape, |i| values[(i + salt) % values.len()].rounded(shape.element_type())).expect("a small array")
}

/// Small numbers, for operations whose results depend on evaluation order. Their products are never negative zero,
/// whose sign a sum may or may not keep.
pub fn tame(ty: ElementType) -> Vec<Scalar> {
    (0..11)
        .map(|i| Scalar::from_i64(ty, if ty.is_signed() { [1, -2, 2, -1, 3][i % 5] } else { i as i64 % 3 }))
        .collect()
}

/// Runs a program with parameters filled from `values`; forbids the host fallback.
pub fn native(text: &str, values: &dyn Fn(ElementType) -> Vec<Scalar>) {
    compare(text, FallbackPolicy::Forbid, values);
}

/// Runs a program on the device and in the evaluator and compares the results.
pub fn compare(text: &str, host_fallback: FallbackPolicy, values: &dyn Fn(ElementType) -> Vec<Scalar>) {
    let module = module(text);
    let (device, evaluator) = clients(backend_template::platform());
    let options = CompileOptions { host_fallback, ..CompileOptions::default() };
    let entry = module.entry();
    let argument = |(i, &p): (usize, &_)| {
        let shape = entry[p].shape().as_array().expect("parameters are arrays");
        array(shape, &values(shape.element_type()), i)
    };
    let arguments: Vec<Literal> = entry.parameters().iter().enumerate().map(argument).collect();
    let run = |client: &Client| {
        let program = client.compile(&module, &options).unwrap_or_else(|e| panic!("{e}\n{text}"));
        results(&program, &arguments)
    };
    let (found, expected) = (run(&device), run(&evaluator));
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        assert_close(found, expected, text);
    }
    // The cache keeps programs alive, and programs own constants in device memory.
    device.cache().clear();
    assert_eq!(device.memory_stats().bytes_in_use, 0, "memory leaked\n{text}");
}

/// Runs a program and downloads the arrays of its result.
pub fn results(program: &LoadedExecutable, arguments: &[Literal]) -> Vec<Literal> {
    let upload = |argument| program.client().buffer(argument).expect("an upload");
    let buffers: Vec<_> = arguments.iter().map(upload).collect();
    let results = program.execute(&buffers.iter().collect::<Vec<_>>()).expect("it runs");
    results.iter().map(|result| result.to_literal().expect("a download")).collect()
}
