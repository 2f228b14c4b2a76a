//! `xla platforms`: lists the platforms of this build.

use xla::Client;
use xla::PlatformRegistry;
use xla::service::{Availability, PlatformStatus};

use super::failure::Outcome;
use super::output;
use super::session::Session;

const EXAMPLES: &str = "\
Examples:
  xla platforms                                        available platforms, and requirements of the others
  xla run module.hlo --platform NAME --inputs-seed 0   use one";

/// List the platforms of this build, their devices and memory
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {}

/// Lists the platforms.
pub fn run(session: &Session, _: &Args) -> Outcome {
    let registry = session.registry();
    let lines: String = registry.check().iter().map(|status| describe(&registry, status)).collect();
    Ok(output::print(&lines)?)
}

fn describe(registry: &PlatformRegistry, status: &PlatformStatus) -> String {
    let name = &status.name;
    match &status.availability {
        Availability::Usable { devices } => {
            let plural = if *devices == 1 { "device" } else { "devices" };
            let list: String = (0..*devices).map(|ordinal| device(registry, name, ordinal)).collect();
            format!("{name}: {devices} {plural}\n{list}")
        }
        Availability::Unusable(why) => format!("{name}: cannot be used here: {why}\n"),
        Availability::CompiledOut(remedy) => format!("{name}: not in this build: {remedy}\n"),
    }
}

fn device(registry: &PlatformRegistry, platform: &str, ordinal: usize) -> String {
    let client = match Client::for_device(registry, platform, ordinal, Default::default()) {
        Ok(client) => client,
        Err(why) => return format!("  device {ordinal}: {why}\n"),
    };
    let first = client.first_device();
    let device = first.description();
    let memory = device.memory_bytes.map(|bytes| format!(", {:.1} GiB", bytes as f64 / (1u64 << 30) as f64));
    let attributes: String = device.attributes.iter().map(|(name, value)| format!("\n    {name}: {value}")).collect();
    let libraries = first.libraries().into_iter().map(|(name, told)| match told {
        Ok(told) => format!("\n    {name}: {told}"),
        Err(why) => format!("\n    {name}: {why}"),
    });
    let (model, cores, libraries) = (&device.model, device.cores, libraries.collect::<String>());
    format!("  device {ordinal}: {model}, {cores} cores{}{attributes}{libraries}\n", memory.unwrap_or_default())
}
