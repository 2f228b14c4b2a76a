//! Tests of chains of operations of narrow floats: rounded once with excess precision, otherwise after each operation.

use xla_hlo::{ElementType, Literal, Scalar, VerifiedModule, text};
use xla_service::{Client, CompileOptions, PlatformRegistry};

/// Returns the sum of 1 and three times 2^-9 in bf16, with the operands as arguments. Half of the distance from 1 to
/// the next number is 2^-8.
fn sum(third: &str, excess_precision: bool) -> Scalar {
    let module = format!(
        "HloModule m
        ENTRY main {{
          one = bf16[] parameter(0)
          little = bf16[] parameter(1)
          a = bf16[] add(one, little)
          b = bf16[] add(a, little)
          {third}
          ROOT d = bf16[] add(c, little)
        }}"
    );
    let module = VerifiedModule::new(text::parse_module(&module).unwrap()).unwrap();
    let mut registry = PlatformRegistry::new();
    registry.register(backend_gpu_nvptx::emulated_platform());
    let client = Client::new(&registry, backend_gpu_nvptx::EMULATED_NAME).unwrap();
    let options = CompileOptions { excess_precision, ..CompileOptions::default() };
    let program = client.compile(&module, &options).unwrap();
    let number = |x: f64| client.buffer(&Literal::scalar(ElementType::BF16, Scalar::Float(x))).unwrap();
    let results = program.execute(&[&number(1.0), &number(2f64.powi(-9))]).unwrap();
    results[0].to_literal().unwrap().get(0)
}

#[test]
fn chains_are_rounded_once_where_that_is_allowed() {
    let chain = "c = bf16[] copy(b)";
    assert_eq!(sum(chain, false), Scalar::Float(1.0));
    assert_eq!(sum(chain, true), Scalar::Float(1.0078125));
}

#[test]
fn converts_round_always() {
    let converts = "e = f32[] convert(b)
          f = f32[] reduce-precision(e), exponent_bits=8, mantissa_bits=7
          c = bf16[] convert(f)";
    // Two of the small operands are half of the distance, and the tie rounds to 1.
    assert_eq!([false, true].map(|excess| sum(converts, excess)), [Scalar::Float(1.0); 2]);
}
