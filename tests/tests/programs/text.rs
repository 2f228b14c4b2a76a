//! Random programs survive a round trip through text, before and after a compiler's passes.

use xla::{CompileOptions, VerifiedModule};
use xla_hlo::Module;
use xla_hlo::text::parse_module;
use xla_tests::generate::{Family, program};

/// Number of programs of each family.
const PROGRAMS: u64 = 60;

fn assert_fixed_point(module: &Module, what: &str) {
    let text = module.to_string();
    let again = parse_module(&text).unwrap_or_else(|error| panic!("{what}: {error}\n{text}"));
    assert_eq!(again.to_string(), text, "{what}");
    VerifiedModule::new(again).unwrap_or_else(|error| panic!("{what}: {error}\n{text}"));
}

#[test]
fn what_is_printed_is_read_again() {
    let compiler = xla::registry().get("cpu").unwrap().compiler();
    for family in Family::ALL {
        for seed in 0..PROGRAMS {
            let what = format!("{}:{seed}", family.name());
            let module = VerifiedModule::new(program(family, seed).module).unwrap();
            assert_fixed_point(&module, &what);
            let optimized = compiler.run_hlo_passes(module, &CompileOptions::default()).unwrap();
            assert_fixed_point(&optimized, &format!("{what} after passes"));
        }
    }
}
