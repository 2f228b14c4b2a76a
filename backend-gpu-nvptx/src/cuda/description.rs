//! Description of a GPU for the service.

use cudarc::driver::sys::CUdevice_attribute as Attribute;
use xla_hlo::Result;
use xla_service::DeviceDescription;

use super::context::Context;
use super::driver::{Driver, dotted};
use super::memory::pool::ALIGNMENT;

/// Describes the GPU model, its clocks and its memory.
pub(crate) fn describe(platform: &str, context: &Context, memory: usize) -> Result<DeviceDescription> {
    let attribute = |attribute| context.attribute(attribute);
    let kilohertz = |value: i32| format!("{} MHz", value / 1000);
    let kibibytes = |value: i32| format!("{} KiB", value / 1024);
    let (major, minor) = context.info().capability;
    let attributes = [
        ("compute capability", format!("{major}.{minor}")),
        ("driver", driver_line(Driver::get()?)),
        ("clock", kilohertz(attribute(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?)),
        ("memory clock", kilohertz(attribute(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)?)),
        ("memory bus", format!("{} bits", attribute(Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)?)),
        ("L2 cache", kibibytes(attribute(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?)),
        (
            "shared memory of a block",
            kibibytes(attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?),
        ),
    ];
    Ok(DeviceDescription {
        platform: platform.to_string(),
        ordinal: context.ordinal(),
        model: context.info().name.clone(),
        cores: usize::try_from(attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?).unwrap_or(0),
        memory_bytes: Some(memory),
        memory_alignment: ALIGNMENT,
        attributes: attributes.map(|(name, value)| (name.to_string(), value)).into(),
    })
}

/// Returns the size of the L2 cache in bytes.
pub(crate) fn cache_bytes(context: &Context) -> Result<usize> {
    let bytes = context.attribute(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?;
    Ok(usize::try_from(bytes).unwrap_or(0))
}

/// Formats the driver's version and file: `CUDA 12.8, /usr/lib/x86_64-linux-gnu/libcuda.so.1`.
fn driver_line(driver: &Driver) -> String {
    let file = driver.file.as_ref().map(|file| format!(", {}", file.display()));
    format!("CUDA {}{}", dotted(driver.version), file.unwrap_or_default())
}
