//! Sizes, rates and architecture of the installed GPUs, as the driver reports them.

use cudarc::driver::sys::CUdevice_attribute as Attribute;

use super::driver::{DeviceInfo, Driver, device_attribute};
use crate::gpu_profile::GpuProfile;
use crate::program::compiled_for::own_architecture;

/// Returns the profile of the first device; `None` without a device.
pub(crate) fn of_first() -> Option<GpuProfile> {
    Some(of(Driver::get().ok()?.device(0).ok()?))
}

/// Returns the architecture of code for all GPUs of this machine; `None` without a GPU.
pub(crate) fn architecture() -> Option<String> {
    let devices = &Driver::get().ok()?.devices;
    architecture_of(&devices.iter().map(|device| device.capability).collect::<Vec<_>>())
}

/// Returns the architecture for GPUs of these compute capabilities. If all are equal, returns their own architecture,
/// such as `sm_90a`; otherwise that of the first GPU without a suffix, such as `sm_90`, whose PTX also runs on later
/// GPUs.
fn architecture_of(capabilities: &[(u32, u32)]) -> Option<String> {
    let (&first, others) = capabilities.split_first()?;
    let (major, minor) = first;
    let are_alike = others.iter().all(|other| *other == first);
    Some(if are_alike { own_architecture(first) } else { format!("sm_{major}{minor}") })
}

/// Builds a profile from the driver's attributes. The architecture's profile fills in for attributes that are not
/// reported.
fn of(device: &DeviceInfo) -> GpuProfile {
    let (major, minor) = device.capability;
    let known = GpuProfile::of_architecture(&format!("sm_{major}{minor}")).unwrap_or_else(GpuProfile::usual);
    let told = |attribute| device_attribute(device.device, attribute).ok().and_then(|value| u32::try_from(value).ok());
    let told = |attribute| told(attribute).filter(|&value| value > 0);
    // Clocks are in kHz, the bus width in bits; memory transfers twice per cycle.
    let clock = told(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE).map(|clock| u64::from(clock) * 1000);
    let memory = told(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
    let bus = told(Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
    let bandwidth = memory.zip(bus).map(|(clock, bits)| u64::from(clock) * 1000 * 2 * u64::from(bits) / 8);
    let shared = [
        told(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
        told(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
    ];
    GpuProfile {
        name: device.name.clone(),
        multiprocessors: told(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT).unwrap_or(known.multiprocessors),
        clock_hz: clock.unwrap_or(known.clock_hz),
        memory_bandwidth: bandwidth.unwrap_or(known.memory_bandwidth),
        l2_bytes: told(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE).map_or(known.l2_bytes, u64::from),
        shared_bytes: [shared[0].unwrap_or(known.shared_bytes[0]), shared[1].unwrap_or(known.shared_bytes[1])],
        ..known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_for_all_gpus_of_a_machine() {
        let of = |capabilities: &[(u32, u32)]| architecture_of(capabilities).unwrap();
        assert_eq!([of(&[(9, 0)]), of(&[(9, 0); 8]), of(&[(8, 0)])], ["sm_90a", "sm_90a", "sm_80"]);
        assert_eq!([of(&[(9, 0), (10, 0)]), of(&[(8, 0), (9, 0)])], ["sm_90", "sm_80"]);
        assert_eq!(architecture_of(&[]), None);
    }

    #[test]
    fn the_drivers_numbers_are_taken() {
        let Ok(driver) = Driver::get() else { return };
        let device = driver.device(0).unwrap();
        let gpu = of_first().unwrap();
        let told = |attribute| device_attribute(device.device, attribute).unwrap() as u32;
        assert_eq!(gpu.multiprocessors, told(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
        assert_eq!(gpu.l2_bytes, u64::from(told(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)));
        assert_eq!(gpu.shared_bytes[1], told(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
        assert_eq!(gpu.name, device.name);
        assert!(gpu.is_sound());
        // The range of all supported GPUs, which shows that the units are right.
        assert!((1e10..2e13).contains(&(gpu.memory_bandwidth as f64)), "{gpu:?}");
        assert!((3e8..5e9).contains(&(gpu.clock_hz as f64)), "{gpu:?}");
    }
}
