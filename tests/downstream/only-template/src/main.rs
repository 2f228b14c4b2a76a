//! Compiles and runs a program on the platform `template`, the one that this crate's features give.

use xla::hlo::text::parse_module;
use xla::{Availability, Client, CompileOptions, ElementType, Literal, Scalar, VerifiedModule};

const PLATFORM: &str = "template";

fn main() -> xla::Result<()> {
    let registry = xla::registry();
    let mut usable = Vec::new();
    for status in registry.check() {
        if let Availability::Usable { .. } = status.availability {
            usable.push(status.name);
        }
    }
    let mut expected = vec![PLATFORM, "interpreter"];
    expected.dedup();
    assert_eq!(usable, expected, "the features decide what there is");

    let text = "ENTRY main { x = f32[] parameter(0)\n y = f32[] add(x, x)\n ROOT z = f32[] multiply(y, x) }";
    let module = VerifiedModule::new(parse_module(text)?)?;
    let client = Client::new(&registry, PLATFORM)?;
    let program = client.compile(&module, &CompileOptions::default())?;
    let result = program.run(vec![Literal::scalar(ElementType::F32, Scalar::Float(3.0))])?;
    assert_eq!(result.get(0), Scalar::Float(18.0));
    println!("{PLATFORM}: 18");
    Ok(())
}
