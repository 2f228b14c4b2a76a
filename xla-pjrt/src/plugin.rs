//! The plugin: the platforms that it was built with, what it tells of itself.

use std::sync::{LazyLock, OnceLock};

use xla_service::PlatformRegistry;

use crate::abi::errors::{PluginAttributesArgs, PluginInitializeArgs};
use crate::named::{Attributes, Value};
use crate::status::Status;

/// Makes the registry of platforms; set by the first call of [`crate::api`].
static PLATFORMS: OnceLock<fn() -> PlatformRegistry> = OnceLock::new();

/// The newest StableHLO that `xla-stablehlo` reads, and the oldest.
const STABLEHLO: [[i64; 3]; 2] = [[1, 17, 0], [0, 9, 0]];

/// Says where platforms come from. A process has one answer: later ones change nothing.
pub(crate) fn set_platforms(platforms: fn() -> PlatformRegistry) {
    PLATFORMS.get_or_init(|| platforms);
}

/// A registry of the plugin's platforms.
pub(crate) fn platforms() -> Result<PlatformRegistry, Status> {
    let make = PLATFORMS.get().ok_or_else(|| Status::failed_precondition("GetPjrtApi was not called"))?;
    Ok(make())
}

/// Does nothing, any number of times: several names may share one library.
pub(crate) fn initialize(_: &PluginInitializeArgs) -> Result<(), Status> {
    Ok(())
}

pub(crate) fn attributes(args: &PluginAttributesArgs) -> Result<(), Status> {
    static ATTRIBUTES: LazyLock<Attributes> = LazyLock::new(|| {
        let [current, minimum] = STABLEHLO.map(|version| Value::Integers(version.to_vec()));
        Attributes::new(vec![
            ("stablehlo_current_version".to_string(), current),
            ("stablehlo_minimum_version".to_string(), minimum),
            ("xla_version".to_string(), Value::Integer(2)),
        ])
    });
    args.attributes.set(ATTRIBUTES.list());
    Ok(())
}
