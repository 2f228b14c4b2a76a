//! Test program for the single platform that a crate's features select.

use xla::hlo::text::parse_module;
use xla::{Availability, Client, CompileOptions, ElementType, Literal, Scalar, VerifiedModule};

/// Runs a program on `platform`, which must be the only platform in addition to the interpreter.
pub fn only(platform: &str) -> xla::Result<String> {
    let registry = xla::registry();
    let mut usable = Vec::new();
    for status in registry.check() {
        if let Availability::Usable { .. } = status.availability {
            usable.push(status.name);
        }
    }
    let mut expected = vec![platform, "interpreter"];
    expected.dedup();
    assert_eq!(usable, expected, "the features decide what there is");

    let text = "ENTRY main { x = f32[] parameter(0)\n y = f32[] add(x, x)\n ROOT z = f32[] multiply(y, x) }";
    let module = VerifiedModule::new(parse_module(text)?)?;
    let client = Client::new(&registry, platform)?;
    let program = client.compile(&module, &CompileOptions::default())?;
    let result = program.run(vec![Literal::scalar(ElementType::F32, Scalar::Float(3.0))])?;
    assert_eq!(result.get(0), Scalar::Float(18.0));
    Ok(format!("{platform}: 18"))
}
