//! Tests of programs on a GPU; without one they report so and pass.

mod autotune;
mod device_time;
mod ranges;
mod warp_groups;

use std::io::Write;

use xla_hlo::text::parse_module;
use xla_hlo::{Literal, Scalar, VerifiedModule};
use xla_service::{Buffer, Client, CompileOptions, LoadedExecutable, Platform, PlatformRegistry};

/// Returns a client of the first GPU.
fn client() -> Option<Client> {
    client_of(backend_gpu_nvptx::platform())
}

fn client_of(platform: std::sync::Arc<dyn Platform>) -> Option<Client> {
    let mut registry = PlatformRegistry::new();
    registry.register(platform);
    let client = Client::new(&registry, "gpu");
    client.inspect_err(|error| writeln!(std::io::stderr(), "skipped: {error}").unwrap_or_default()).ok()
}

fn compiled(client: &Client, text: &str, options: &CompileOptions) -> LoadedExecutable {
    client.compile(&VerifiedModule::new(parse_module(text).unwrap()).unwrap(), options).unwrap()
}

/// Returns `count` lists of arguments, each in separate memory.
fn arguments(program: &LoadedExecutable, count: usize) -> Vec<Vec<Buffer>> {
    let leaf = |number: usize| {
        let shape = &program.signature().arguments()[number].shape;
        let literal = Literal::from_fn(shape, |i| Scalar::Float(1.0 + (i % 7) as f64 / 8.0)).unwrap();
        program.argument_buffer(number, &literal).unwrap()
    };
    (0..count).map(|_| (0..program.signature().arguments().len()).map(leaf).collect()).collect()
}

/// Whether the clock counts instructions.
fn is_simulated(client: &Client) -> bool {
    client.first_device().description().model.starts_with("Simulated")
}
