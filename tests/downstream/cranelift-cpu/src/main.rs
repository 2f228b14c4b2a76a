//! Test program of the platform: a short conformance run, the models of the corpus, or compile times.
//!
//! ```text
//! downstream-cranelift-cpu                 levels 0, 1 and 2 of the conformance kit in small sizes, level 2 for some
//!                                          element types, and one model
//! downstream-cranelift-cpu models          models of the corpus, and their host fallbacks
//! downstream-cranelift-cpu compile FILE    compile time of a program of HLO text in milliseconds, the least of 9
//! ```

use std::time::Instant;

use xla::hlo::text::parse_module;
use xla::{Client, CompileOptions, Error, PlatformRegistry, Result, VerifiedModule};
use xla_tests::conformance::{Level, Suite};

/// Element types of the conformance run: of each width that the platform has instructions for, and one that it only
/// stores. Operations of other types are evaluated by the host, which the kit of the template covers.
const TYPES: [&str; 7] = ["pred", "s8", "u16", "s32", "f32", "f64", "bf16"];

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut registry = PlatformRegistry::new();
    registry.register(cranelift_cpu::platform());
    let suite = Suite::new(&registry, cranelift_cpu::NAME);
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {
            conforms(&suite.levels(&[Level::Registration, Level::Device]).quick())?;
            let suite = |level: Level| {
                let jobs = std::thread::available_parallelism().map_or(1, usize::from);
                Suite::new(&registry, cranelift_cpu::NAME).levels(&[level]).quick().jobs(jobs)
            };
            for ty in TYPES {
                conforms(&suite(Level::Operations).filter(format!("/{ty}")))?;
            }
            conforms(&suite(Level::Corpus).corpus(&["models"]).filter("mlp_forward"))
        }
        ["models"] => conforms(&suite.levels(&[Level::Corpus]).corpus(&["models"])),
        ["compile", ref files @ ..] => files.iter().try_for_each(|file| compile(&registry, file)),
        _ => Err(Error::invalid_argument("no arguments, `models`, or `compile FILE...`")),
    }
}

fn conforms(suite: &Suite) -> Result<()> {
    let report = suite.run(&mut ())?;
    println!("{}", report.text());
    if report.passed() { Ok(()) } else { Err(Error::failed_precondition("the platform does not conform")) }
}

fn compile(registry: &PlatformRegistry, file: &str) -> Result<()> {
    let text = std::fs::read_to_string(file).map_err(|error| Error::not_found(format!("{file}: {error}")))?;
    let module = VerifiedModule::new(parse_module(&text)?)?;
    let mut least = f64::INFINITY;
    for _ in 0..9 {
        // A client caches compiled programs, so each compilation needs a new one.
        let client = Client::new(registry, cranelift_cpu::NAME)?;
        let start = Instant::now();
        client.compile(&module, &CompileOptions::default())?;
        least = least.min(start.elapsed().as_secs_f64());
    }
    println!("{file}: {:.3} ms", least * 1e3);
    Ok(())
}
