//! Programs whose kernels run on the host give what the reference evaluator gives.

mod contractions;
mod folds;
mod random;
mod scan;
mod scatter;
mod sorting;

use xla_hlo::text::parse_module;
use xla_hlo::{ElementKind, Literal, Scalar, Shape, VerifiedModule};
use xla_service::{Client, CompileOptions, FallbackPolicy, PlatformRegistry};

/// Inputs that are the same every time: small multiples of a quarter, so that sums are exact, or small integers.
fn input(shape: &Shape, salt: usize) -> Literal {
    let shape = shape.as_array().expect("parameters are arrays");
    let ty = shape.element_type();
    let value = |i: usize| ((i * 7919 + salt * 104_729) % 1009 % 33) as f64 / 4.0 - 4.0;
    let element = |i: usize| match ty.kind() {
        ElementKind::Pred => Scalar::Pred(value(i) > 0.0),
        ElementKind::Signed => Scalar::Signed((value(i) * 4.0) as i64),
        ElementKind::Unsigned => Scalar::Unsigned((value(i).abs() * 4.0) as u64),
        ElementKind::Float => Scalar::Float(value(i)),
        ElementKind::Complex => Scalar::Complex(value(i), value(i + 1)),
    };
    Literal::from_fn(shape, element).expect("a small array")
}

/// Equal to the last bit but for the patterns of NaN, or, for long sums, nearly.
fn close(a: Scalar, b: Scalar) -> bool {
    let near = |a: f64, b: f64| {
        let exact = a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
        exact || (a != 0.0 && (a - b).abs() <= 1e-5 * b.abs())
    };
    match (a, b) {
        (Scalar::Float(a), Scalar::Float(b)) => near(a, b),
        (Scalar::Complex(a, c), Scalar::Complex(b, d)) => near(a, b) && near(c, d),
        (a, b) => a == b,
    }
}

/// Runs a program on `gpu-host` and in the evaluator; no part of it may run elsewhere than in kernels.
pub fn agrees(text: &str) {
    let module = VerifiedModule::new(parse_module(text).expect("the text parses")).expect("the module is valid");
    let mut registry = PlatformRegistry::new();
    registry.register(backend_gpu_nvptx::host_platform());
    registry.register(xla_service::interpreter::platform());
    let entry = module.entry();
    let inputs: Vec<Literal> =
        entry.parameters().iter().enumerate().map(|(i, &p)| input(entry[p].shape(), i)).collect();
    let run = |platform: &str| {
        let client = Client::new(&registry, platform).expect("the platform is registered");
        let options = CompileOptions { host_fallback: FallbackPolicy::Forbid, ..CompileOptions::default() };
        let program = client.compile(&module, &options).unwrap_or_else(|e| panic!("{platform}: {e}\n{text}"));
        let buffers: Vec<_> = inputs.iter().map(|i| client.buffer(i).expect("an upload")).collect();
        let results = program.execute(&buffers.iter().collect::<Vec<_>>());
        let results = results.unwrap_or_else(|e| panic!("{platform}: {e}\n{text}"));
        results.iter().map(|r| r.to_literal().expect("a download")).collect::<Vec<_>>()
    };
    let (expected, actual) = (run("interpreter"), run(backend_gpu_nvptx::HOST_NAME));
    assert_eq!(expected.len(), actual.len());
    for (number, (e, a)) in expected.iter().zip(&actual).enumerate() {
        assert_eq!(e.shape(), a.shape());
        for i in 0..e.array_shape().element_count() {
            let (a, e) = (a.get(i), e.get(i));
            assert!(close(a, e), "result {number}, element {i}: {a:?} expected {e:?}\n{text}");
        }
    }
}
