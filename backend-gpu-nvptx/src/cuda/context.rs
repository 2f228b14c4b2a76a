//! Context of one device: every driver call goes through it, and it remembers when the device is lost.
#![expect(unsafe_code, reason = "the driver is a C library")]

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard};

use cudarc::driver::sys::{CUcontext, CUdevice, CUdevice_attribute};
use xla_hlo::{Error, Result};

use super::api::driver::{self as api, CUresult};
use super::driver::{self, DeviceInfo, Driver, check};
use super::stream::in_flight::InFlightLog;

/// The primary context of a device, which a process shares with the libraries and frameworks in it. Kept until the
/// process ends: the driver takes itself down before anything of ours could be in order.
pub(crate) struct Context {
    raw: CUcontext,
    ordinal: usize,
    info: DeviceInfo,
    /// The first error after which every call fails.
    lost: OnceLock<String>,
    in_flight: Mutex<InFlightLog>,
    /// Held for reading while a stream is captured, and for writing by who waits for the whole context, which the
    /// driver refuses meanwhile.
    captures: RwLock<()>,
}

// SAFETY: a context may be current in any number of threads at the same time; the driver's calls may come from all of
// them.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    /// The context of device `ordinal`.
    pub fn new(ordinal: usize) -> Result<Arc<Context>> {
        let info = Driver::get()?.device(ordinal)?.clone();
        let mut raw = std::ptr::null_mut();
        // SAFETY: the pointer is to a live pointer, and the driver was started.
        check("cuDevicePrimaryCtxRetain", unsafe { api::cuDevicePrimaryCtxRetain(&mut raw, info.device) })?;
        Ok(Arc::new(Context {
            raw,
            ordinal,
            info,
            lost: OnceLock::new(),
            in_flight: Mutex::default(),
            captures: RwLock::default(),
        }))
    }

    /// The device's number among those that programs can run on.
    pub fn ordinal(&self) -> usize {
        self.ordinal
    }

    /// Facts of the device.
    pub fn info(&self) -> &DeviceInfo {
        &self.info
    }

    /// The driver's own handle.
    pub fn raw(&self) -> CUcontext {
        self.raw
    }

    /// A number that the driver knows about the device.
    pub fn attribute(&self, attribute: CUdevice_attribute) -> Result<i32> {
        driver::device_attribute(self.info.device, attribute)
    }

    /// The driver's number for the device.
    pub fn device(&self) -> CUdevice {
        self.info.device
    }

    /// Makes a call of the driver, named `name`, with this context current in the calling thread. Once the device is
    /// lost, nothing is called any more: the error is [`Error::FailedPrecondition`] and says how it was lost.
    pub fn call(&self, name: &str, work: impl FnOnce() -> CUresult) -> Result<()> {
        match self.query(name, work)? {
            CUresult::CUDA_SUCCESS => Ok(()),
            status => Err(driver::failed(name, status)),
        }
    }

    /// Like [`Context::call`], where a status other than success is an answer: only the loss of the device is an error.
    pub fn query(&self, name: &str, work: impl FnOnce() -> CUresult) -> Result<CUresult> {
        self.alive()?;
        // SAFETY: the context is retained until the process ends.
        let current = unsafe { api::cuCtxSetCurrent(self.raw) };
        let status = if current == CUresult::CUDA_SUCCESS { work() } else { current };
        if driver::is_fatal(status) { Err(self.lose(name, status)) } else { Ok(status) }
    }

    /// Calls a library, with this context current in the calling thread. Once the device is lost, nothing is called any
    /// more.
    pub fn with<T>(&self, work: impl FnOnce() -> T) -> Result<T> {
        // The library's status is not the driver's: an error of the device comes out of the driver's next call.
        self.call("cuCtxSetCurrent", || CUresult::CUDA_SUCCESS)?;
        Ok(work())
    }

    /// An error once the device is lost.
    fn alive(&self) -> Result<()> {
        match self.lost.get() {
            None => Ok(()),
            Some(lost) => Err(Error::failed_precondition(format!(
                "GPU {} is lost to this process, which must be started again: {lost}",
                self.ordinal
            ))),
        }
    }

    /// Remembers that the device is lost, and says with which work: the driver tells of a kernel's fault at whichever
    /// call comes next.
    fn lose(&self, name: &str, status: CUresult) -> Error {
        let told = format!("{} was reported by {name}; {}", driver::described(status), self.in_flight());
        Error::internal(format!("work of the GPU failed: {}", self.lost.get_or_init(|| told)))
            .note("Run the program under NVIDIA's compute-sanitizer to find the kernel and the instruction.")
    }

    /// The in-flight work, for errors.
    pub(crate) fn in_flight(&self) -> MutexGuard<'_, InFlightLog> {
        // Nothing panics while it is held, and it is only for people.
        self.in_flight.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Held by who captures a stream: nobody waits for the whole context meanwhile.
    pub fn capturing(&self) -> RwLockReadGuard<'_, ()> {
        self.captures.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Device memory, aligned to 256 bytes at least; `None` if there is not enough. `bytes` is not zero.
    pub fn allocate(&self, bytes: usize) -> Result<Option<u64>> {
        let mut address = 0;
        // SAFETY: the pointer is to a live integer.
        match self.query("cuMemAlloc", || unsafe { api::cuMemAlloc_v2(&mut address, bytes) })? {
            CUresult::CUDA_SUCCESS => Ok(Some(address)),
            CUresult::CUDA_ERROR_OUT_OF_MEMORY => Ok(None),
            status => Err(driver::failed("cuMemAlloc", status)),
        }
    }

    /// Frees memory of [`Context::allocate`] when all work of the device is done; before that, waits for captures.
    pub fn free(&self, address: u64) -> Result<()> {
        let _no_captures = self.captures.write().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the context is current.
        self.call("cuCtxSynchronize", || unsafe { api::cuCtxSynchronize() })?;
        // SAFETY: an address that is none of the driver's allocations is answered with an error.
        self.call("cuMemFree", || unsafe { api::cuMemFree_v2(address) })
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Context({}, {})", self.ordinal, self.info.name)
    }
}
