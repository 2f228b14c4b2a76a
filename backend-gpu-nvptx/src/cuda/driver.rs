//! CUDA driver: loaded on first use and checked; converts its status codes to error messages.
#![expect(unsafe_code, reason = "the driver is a C library")]

use std::ffi::{CStr, c_char, c_int};
use std::path::PathBuf;
use std::sync::OnceLock;

use cudarc::driver::sys::{CUdevice, CUdevice_attribute};
use xla_hlo::{Error, Result};

use super::api::driver::{self as api, CUresult};
use super::api::library::Library;
use super::api::search::{Places, Wanted};

/// Oldest driver version that has every function called here, in the driver's encoding: 1000 * major + 10 * minor.
const OLDEST_VERSION: i32 = 12_000;

/// Oldest compute capability that code is generated for.
const OLDEST_CAPABILITY: (u32, u32) = (7, 0);

/// Remedy for a machine without a driver, part of error messages.
const WITHOUT: &str = if cfg!(feature = "compile") {
    "Without a GPU, `xla compile --platform gpu --target sm_90` compiles for another machine, and the platform gpu-emulated runs the same \
     kernels on the CPU"
} else {
    "This build only runs programs for GPUs; a build with the Cargo feature \"gpu\" compiles them for other machines"
};

/// Device that programs can run on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeviceInfo {
    /// Driver handle of the device.
    pub device: CUdevice,
    /// Name of the model.
    pub name: String,
    /// Compute capability, major and minor: `(9, 0)` for sm_90.
    pub capability: (u32, u32),
}

/// Loaded and initialised driver.
#[derive(Debug)]
pub(crate) struct Driver {
    /// Newest CUDA version that the driver supports, such as 12080 for 12.8.
    pub version: i32,
    /// Library file that was opened, if the system reports it.
    pub file: Option<PathBuf>,
    /// Whether the functions for conditional nodes in graphs exist.
    has_loops: bool,
    /// Whether the functions of the linker exist.
    has_linker: bool,
    /// Whether `cuTensorMapEncodeTiled` exists.
    has_maps: bool,
    /// Devices that programs can run on, by ordinal; at least one.
    pub devices: Vec<DeviceInfo>,
}

impl Driver {
    /// Returns the driver of this machine, which the first call loads. [`Error::FailedPrecondition`] names the missing
    /// part and a remedy.
    pub fn get() -> Result<&'static Driver> {
        static DRIVER: OnceLock<Result<Driver>> = OnceLock::new();
        DRIVER.get_or_init(Driver::start).as_ref().map_err(Error::again)
    }

    fn start() -> Result<Driver> {
        let library = Library::open_in(&LIBRARY, 0, &places()).map_err(|_| {
            Error::failed_precondition(format!(
                "there is no NVIDIA driver on this machine: libcuda.so was not found; install the driver (version 525 or newer). \
                 {WITHOUT}"
            ))
        })?;
        api::bind(&library).map_err(|function| too_old(&format!("it does not export {function}")))?;
        let (has_loops, has_linker) = (api::loops::bind(&library).is_ok(), api::linker::bind(&library).is_ok());
        let has_maps = api::maps::bind(&library).is_ok();
        // SAFETY: no requirements.
        let status = unsafe { api::cuInit(0) };
        if status != CUresult::CUDA_SUCCESS {
            return Err(cannot_start(status));
        }
        let mut version = 0;
        // SAFETY: the pointer is to a live integer.
        check("cuDriverGetVersion", unsafe { api::cuDriverGetVersion(&mut version) })?;
        let (devices, file) = (usable(version, devices()?)?, library.file("cuInit"));
        let has_loops = has_loops && version >= LOOP_VERSION;
        Ok(Driver { version, file, has_loops, has_linker, has_maps, devices })
    }

    /// Whether graphs may have conditional nodes.
    pub fn has_loops(&self) -> bool {
        self.has_loops
    }

    /// Whether the driver can assemble PTX to a cubin that can be stored.
    pub fn has_linker(&self) -> bool {
        self.has_linker
    }

    /// Whether the driver can encode tensor maps, for kernels that use TMA.
    pub fn has_maps(&self) -> bool {
        self.has_maps
    }

    /// Returns device `ordinal`, or an error with the number of devices.
    pub fn device(&self, ordinal: usize) -> Result<&DeviceInfo> {
        let missing = || xla_service::platform::no_such_device("gpu", ordinal, self.devices.len());
        self.devices.get(ordinal).ok_or_else(missing)
    }
}

/// First CUDA version whose graphs have conditional nodes.
const LOOP_VERSION: i32 = 12_040;

/// Library of the driver.
const LIBRARY: Wanted = Wanted {
    name: "the NVIDIA driver",
    files: if cfg!(windows) { &[(0, "nvcuda.dll")] } else { &[(0, "libcuda.so.1"), (0, "libcuda.so")] },
    folders: &[],
    packages: "",
};

/// Returns the folder of the library that the loader does not search: that of the Windows Subsystem for Linux.
fn places() -> Places {
    Places { packages: Vec::new(), toolkits: vec![PathBuf::from("/usr/lib/wsl/lib")] }
}

fn devices() -> Result<Vec<DeviceInfo>> {
    let mut count = 0;
    // SAFETY: the pointer is to a live integer, and the driver was started.
    check("cuDeviceGetCount", unsafe { api::cuDeviceGetCount(&mut count) })?;
    (0..count).map(device_info).collect()
}

fn device_info(ordinal: c_int) -> Result<DeviceInfo> {
    let mut device = 0;
    // SAFETY: the pointer is to a live integer, and the driver was started.
    check("cuDeviceGet", unsafe { api::cuDeviceGet(&mut device, ordinal) })?;
    let mut name = [0 as c_char; 256];
    // SAFETY: the buffer has the size that is passed, and the driver ends the text with a zero inside of it.
    check("cuDeviceGetName", unsafe { api::cuDeviceGetName(name.as_mut_ptr(), name.len() as c_int, device) })?;
    // SAFETY: the driver ended the text with a zero inside of the buffer.
    let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned();
    let attribute = |attribute| device_attribute(device, attribute).map(|value| u32::try_from(value).unwrap_or(0));
    let major = attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
    let minor = attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
    Ok(DeviceInfo { device, name, capability: (major, minor) })
}

/// `cuDeviceGetAttribute`: returns an attribute of a device.
pub(crate) fn device_attribute(device: CUdevice, attribute: CUdevice_attribute) -> Result<i32> {
    let mut value = 0;
    // SAFETY: the pointer is to a live integer; the driver returns an error for a number that is not a device's.
    check("cuDeviceGetAttribute", unsafe { api::cuDeviceGetAttribute(&mut value, attribute, device) })?;
    Ok(value)
}

/// `cuDeviceTotalMem`: returns the size of a device's memory in bytes.
pub(crate) fn device_memory(device: CUdevice) -> Result<usize> {
    let mut bytes = 0;
    // SAFETY: the pointer is to a live integer; the driver returns an error for a number that is not a device's.
    check("cuDeviceTotalMem", unsafe { api::cuDeviceTotalMem_v2(&mut bytes, device) })?;
    Ok(bytes)
}

/// Returns the devices that programs can run on, or an error with the reason if there is none.
fn usable(version: i32, devices: Vec<DeviceInfo>) -> Result<Vec<DeviceInfo>> {
    if version < OLDEST_VERSION {
        return Err(too_old(&format!("it supports CUDA {}", dotted(version))));
    }
    if devices.is_empty() {
        return Err(Error::failed_precondition(format!(
            "the NVIDIA driver finds no GPU (CUDA_VISIBLE_DEVICES may hide it). {WITHOUT}"
        )));
    }
    let (new, old): (Vec<_>, Vec<_>) = devices.into_iter().partition(|device| device.capability >= OLDEST_CAPABILITY);
    if new.is_empty() {
        let old: Vec<_> =
            old.iter().map(|d| format!("{} has sm_{}{}", d.name, d.capability.0, d.capability.1)).collect();
        let (major, minor) = OLDEST_CAPABILITY;
        return Err(Error::failed_precondition(format!(
            "no GPU of this machine is new enough: {}, but sm_{major}{minor} or newer is required. {WITHOUT}",
            old.join(", ")
        )));
    }
    Ok(new)
}

fn too_old(found: &str) -> Error {
    Error::failed_precondition(format!(
        "the NVIDIA driver is too old: {found}, but CUDA {} is required; install version 525 or newer. {WITHOUT}",
        dotted(OLDEST_VERSION)
    ))
}

/// Formats a version: `12.8` for 12080.
pub(crate) fn dotted(version: i32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

/// Returns the error of a failed `cuInit`, with a remedy.
fn cannot_start(status: CUresult) -> Error {
    let remedy = match status {
        CUresult::CUDA_ERROR_NO_DEVICE => {
            return usable(OLDEST_VERSION, Vec::new()).err().unwrap_or_else(|| failed("cuInit", status));
        }
        CUresult::CUDA_ERROR_STUB_LIBRARY => {
            "the libcuda.so that was found is the stub of the CUDA toolkit; put the folder of the driver's libcuda.so before it in LD_LIBRARY_PATH"
        }
        CUresult::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH => {
            "the kernel module and libcuda.so have different versions; restart the machine after the driver update"
        }
        CUresult::CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE => {
            "the forward-compatibility libcuda.so does not support this GPU; remove its folder from LD_LIBRARY_PATH"
        }
        CUresult::CUDA_ERROR_SYSTEM_NOT_READY => {
            "the system services of the driver are not ready; check that nvidia-fabricmanager runs"
        }
        _ => "check the output of nvidia-smi",
    };
    Error::failed_precondition(format!(
        "the NVIDIA driver cannot be initialized, {}: {remedy}. {WITHOUT}",
        described(status)
    ))
}

/// Converts a status to a result, for calls that need no context. `call` is the name of the function.
pub(crate) fn check(call: &str, status: CUresult) -> Result<()> {
    if status == CUresult::CUDA_SUCCESS { Ok(()) } else { Err(failed(call, status)) }
}

/// Returns the error for a call that returned a status other than success.
pub(crate) fn failed(call: &str, status: CUresult) -> Error {
    let sentence = format!("{call} failed: {}", described(status));
    match status {
        CUresult::CUDA_ERROR_OUT_OF_MEMORY => Error::resource_exhausted(sentence),
        CUresult::CUDA_ERROR_NOT_SUPPORTED => Error::unimplemented(sentence),
        _ => Error::internal(sentence),
    }
}

/// Whether a status means that the context is lost: every later call on it returns the same status.
pub(crate) fn is_fatal(status: CUresult) -> bool {
    matches!(
        status,
        CUresult::CUDA_ERROR_DEINITIALIZED
            | CUresult::CUDA_ERROR_ECC_UNCORRECTABLE
            | CUresult::CUDA_ERROR_NVLINK_UNCORRECTABLE
            | CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
            | CUresult::CUDA_ERROR_LAUNCH_TIMEOUT
            | CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED
            | CUresult::CUDA_ERROR_ASSERT
            | CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR
            | CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION
            | CUresult::CUDA_ERROR_MISALIGNED_ADDRESS
            | CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE
            | CUresult::CUDA_ERROR_INVALID_PC
            | CUresult::CUDA_ERROR_LAUNCH_FAILED
            | CUresult::CUDA_ERROR_TENSOR_MEMORY_LEAK
            | CUresult::CUDA_ERROR_MPS_CLIENT_TERMINATED
            | CUresult::CUDA_ERROR_EXTERNAL_DEVICE
            | CUresult::CUDA_ERROR_CONTAINED
            | CUresult::CUDA_ERROR_UNKNOWN
    )
}

/// Formats a status: `CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)`. Works without a driver,
/// too.
pub(crate) fn described(status: CUresult) -> String {
    format!("{status:?} ({})", text(status).unwrap_or_else(|| format!("code {}", status.0)))
}

fn text(status: CUresult) -> Option<String> {
    let mut text = std::ptr::null();
    // SAFETY: the pointer is to a live pointer; the returned pointer is null or a text that is never freed.
    let known = unsafe { api::cuGetErrorString(status, &mut text) } == CUresult::CUDA_SUCCESS && !text.is_null();
    // SAFETY: the check above shows that it is a text of the driver, which ends with a zero.
    known.then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(name: &str, capability: (u32, u32)) -> DeviceInfo {
        DeviceInfo { device: 0, name: name.to_string(), capability }
    }

    #[test]
    fn what_is_missing_is_told() {
        let told = |version, devices| usable(version, devices).unwrap_err().to_string();
        assert!(told(11_040, vec![]).starts_with(
            "the NVIDIA driver is too old: it supports CUDA 11.4, but CUDA 12.0 is required; install version 525 or newer. Without a GPU, `xla"
        ));
        assert!(
            told(12_080, vec![])
                .starts_with("the NVIDIA driver finds no GPU (CUDA_VISIBLE_DEVICES may hide it). Without a GPU")
        );
        let old = vec![device("Tesla P100", (6, 0)), device("Tesla K80", (3, 7))];
        assert!(told(12_080, old).starts_with(
            "no GPU of this machine is new enough: Tesla P100 has sm_60, Tesla K80 has sm_37, but sm_70 or newer is required. Without a GPU"
        ));
        let stub = cannot_start(CUresult::CUDA_ERROR_STUB_LIBRARY).to_string();
        assert!(stub.starts_with("the NVIDIA driver cannot be initialized, CUDA_ERROR_STUB_LIBRARY ("), "{stub}");
        assert!(cannot_start(CUresult::CUDA_ERROR_NO_DEVICE).to_string().contains("finds no GPU"));
    }

    #[test]
    fn devices_that_are_too_old_are_left_out() {
        let devices = vec![device("Tesla P100", (6, 0)), device("H200", (9, 0))];
        assert_eq!(usable(12_000, devices).unwrap(), [device("H200", (9, 0))]);
    }

    #[test]
    fn asking_for_the_driver_never_panics() {
        match Driver::get() {
            Ok(driver) => assert!(driver.device(driver.devices.len()).is_err()),
            Err(error) => {
                assert!(matches!(error, Error::FailedPrecondition(_)), "{error}");
                assert!(error.message().contains("xla compile --platform gpu --target sm_90"), "{error}");
            }
        }
    }
}
