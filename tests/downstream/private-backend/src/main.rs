//! Example of a platform outside of the project, registered in addition to the built-in ones: a whole-graph backend on
//! the host.

mod backend;

use xla::hlo::text::parse_module;
use xla::{Client, CompileOptions, ElementType, Literal, Scalar, VerifiedModule};

fn main() -> xla::Result<()> {
    let mut registry = xla::registry();
    registry.register(backend::platform());

    let text = "ENTRY main { x = s32[] parameter(0)\n ROOT y = s32[] multiply(x, x) }";
    let module = VerifiedModule::new(parse_module(text)?)?;
    for platform in [backend::NAME, "interpreter"] {
        let client = Client::new(&registry, platform)?;
        let program = client.compile(&module, &CompileOptions::default())?;
        let result = program.run(vec![Literal::scalar(ElementType::S32, Scalar::Signed(-12))])?;
        assert_eq!(result.get(0), Scalar::Signed(144));
        println!("{platform}: 144");
    }
    Ok(())
}
