//! The plugin: its platforms and its attributes.

use std::sync::{LazyLock, OnceLock};

use xla_service::PlatformRegistry;

use crate::abi::errors::{PluginAttributesArgs, PluginInitializeArgs};
use crate::named::{Attributes, Value};
use crate::status::Status;

/// Function that creates the registry of platforms, set by the first call of [`crate::api`].
static PLATFORMS: OnceLock<fn() -> PlatformRegistry> = OnceLock::new();

/// Newest and oldest StableHLO version that `xla-stablehlo` reads.
const STABLEHLO: [[i64; 3]; 2] = [[1, 17, 0], [0, 9, 0]];

/// Sets the source of platforms. Only the first call in a process has an effect.
pub(crate) fn set_platforms(platforms: fn() -> PlatformRegistry) {
    PLATFORMS.get_or_init(|| platforms);
}

/// Creates a registry of the plugin's platforms.
pub(crate) fn platforms() -> Result<PlatformRegistry, Status> {
    let make = PLATFORMS.get().ok_or_else(|| Status::failed_precondition("GetPjrtApi was not called"))?;
    Ok(make())
}

/// `PJRT_Plugin_Initialize`: does nothing. It may be called repeatedly, because several plugin names may share one
/// library.
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
