//! `xla` with the features of this crate: it runs programs that were compiled for GPUs elsewhere, and compiles none.

use xla::hlo::text::parse_module;
use xla::{CompileOptions, Error, VerifiedModule};

fn main() -> xla::Result<()> {
    let registry = xla::registry();
    let names: Vec<&str> = registry.platforms().iter().map(|platform| platform.name()).collect();
    assert_eq!(names, ["gpu", "interpreter"], "the features decide what there is");

    let compiler = registry.get("gpu")?.compiler();
    let module = VerifiedModule::new(parse_module("ENTRY main { ROOT x = f32[] parameter(0) }")?)?;
    let error = compiler.run_hlo_passes(module, &CompileOptions::default()).expect_err("there is no LLVM");
    assert!(matches!(&error, Error::FailedPrecondition(_)) && error.message().contains("\"gpu\""), "{error}");

    let loader = compiler.loader().expect("it loads");
    let error = loader.load(b"no program", &CompileOptions::default()).expect_err("it is none");
    assert!(matches!(&error, Error::InvalidArgument(_)), "{error}");
    println!("gpu: programs are loaded, none is compiled");
    Ok(())
}
