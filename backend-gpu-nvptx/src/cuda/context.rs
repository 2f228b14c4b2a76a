//! CUDA context of one device: current during every driver call; records the loss of the device.
#![expect(unsafe_code, reason = "the driver is a C library")]

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard};

use cudarc::driver::sys::{CUcontext, CUdevice, CUdevice_attribute};
use xla_hlo::{Error, Result};

use super::api::driver::{self as api, CUresult};
use super::driver::{self, DeviceInfo, Driver, check};
use super::stream::in_flight::InFlightLog;

/// Primary context of a device, which the libraries and frameworks in the process share. It is retained until the
/// process ends: at exit the driver shuts down before this crate could release anything in order.
pub(crate) struct Context {
    raw: CUcontext,
    ordinal: usize,
    info: DeviceInfo,
    /// First fatal error; every later call fails with it.
    lost: OnceLock<String>,
    in_flight: Mutex<InFlightLog>,
    /// Read lock: held while a stream is captured. Write lock: held by callers that synchronise the whole context,
    /// which the driver refuses during a capture.
    captures: RwLock<()>,
}

// SAFETY: a context may be current in any number of threads at the same time, and the driver accepts calls from all of
// them.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    /// `cuDevicePrimaryCtxRetain`: retains the primary context of device `ordinal`.
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

    /// Returns the ordinal of the device among those that programs can run on.
    pub fn ordinal(&self) -> usize {
        self.ordinal
    }

    /// Returns the device's name, compute capability and driver handle.
    pub fn info(&self) -> &DeviceInfo {
        &self.info
    }

    /// Returns the driver's context handle.
    pub fn raw(&self) -> CUcontext {
        self.raw
    }

    /// `cuDeviceGetAttribute`: returns an attribute of the device.
    pub fn attribute(&self, attribute: CUdevice_attribute) -> Result<i32> {
        driver::device_attribute(self.info.device, attribute)
    }

    /// Returns the driver's device handle.
    pub fn device(&self) -> CUdevice {
        self.info.device
    }

    /// Makes the driver call `work` with this context current in the calling thread; `name` is its name in errors. Once
    /// the device is lost, no call is made: the error is [`Error::FailedPrecondition`] and states how the device was
    /// lost.
    pub fn call(&self, name: &str, work: impl FnOnce() -> CUresult) -> Result<()> {
        match self.query(name, work)? {
            CUresult::CUDA_SUCCESS => Ok(()),
            status => Err(driver::failed(name, status)),
        }
    }

    /// Like [`Context::call`], but returns every status as a value: only the loss of the device is an error.
    pub fn query(&self, name: &str, work: impl FnOnce() -> CUresult) -> Result<CUresult> {
        self.alive()?;
        // SAFETY: the context is retained until the process ends.
        let current = unsafe { api::cuCtxSetCurrent(self.raw) };
        let status = if current == CUresult::CUDA_SUCCESS { work() } else { current };
        if driver::is_fatal(status) { Err(self.lose(name, status)) } else { Ok(status) }
    }

    /// Calls a library with this context current in the calling thread. Once the device is lost, no call is made.
    pub fn with<T>(&self, work: impl FnOnce() -> T) -> Result<T> {
        // A library's status is not the driver's: the next driver call returns the device's error.
        self.call("cuCtxSetCurrent", || CUresult::CUDA_SUCCESS)?;
        Ok(work())
    }

    /// Calls a library with this context current if that is possible, also once the device is lost. For calls that
    /// other devices wait for.
    pub fn regardless<T>(&self, work: impl FnOnce() -> T) -> T {
        // SAFETY: the context is retained until the process ends.
        let _ = unsafe { api::cuCtxSetCurrent(self.raw) };
        work()
    }

    /// Returns an error once the device is lost.
    fn alive(&self) -> Result<()> {
        match self.lost.get() {
            None => Ok(()),
            Some(lost) => Err(Error::failed_precondition(format!(
                "GPU {} is no longer usable in this process, which must be restarted: {lost}",
                self.ordinal
            ))),
        }
    }

    /// Records that the device is lost, together with the work in flight: the driver reports a kernel's fault at
    /// whichever call comes next.
    fn lose(&self, name: &str, status: CUresult) -> Error {
        let told = format!("{} was reported by {name}; {}", driver::described(status), self.in_flight());
        Error::internal(format!("work on the GPU failed: {}", self.lost.get_or_init(|| told)))
            .note("Run the program under NVIDIA's compute-sanitizer to find the kernel and the instruction.")
    }

    /// Locks the log of the work in flight, which errors quote.
    pub(crate) fn in_flight(&self) -> MutexGuard<'_, InFlightLog> {
        // Nothing panics while it is held, and it only serves error messages.
        self.in_flight.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks out synchronisation of the whole context while the caller captures a stream.
    pub fn capturing(&self) -> RwLockReadGuard<'_, ()> {
        self.captures.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// `cuMemAlloc`: allocates device memory, aligned to 256 bytes at least; `None` if there is not enough. `bytes` is
    /// not zero.
    pub fn allocate(&self, bytes: usize) -> Result<Option<u64>> {
        let mut address = 0;
        // SAFETY: the pointer is to a live integer.
        match self.query("cuMemAlloc", || unsafe { api::cuMemAlloc_v2(&mut address, bytes) })? {
            CUresult::CUDA_SUCCESS => Ok(Some(address)),
            CUresult::CUDA_ERROR_OUT_OF_MEMORY => Ok(None),
            status => Err(driver::failed("cuMemAlloc", status)),
        }
    }

    /// `cuMemFree`: frees memory of [`Context::allocate`]. Waits for stream captures to end, then for all work of the
    /// device.
    pub fn free(&self, address: u64) -> Result<()> {
        let _no_captures = self.captures.write().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the context is current.
        self.call("cuCtxSynchronize", || unsafe { api::cuCtxSynchronize() })?;
        // SAFETY: the driver returns an error for an address that is not one of its allocations.
        self.call("cuMemFree", || unsafe { api::cuMemFree_v2(address) })
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Context({}, {})", self.ordinal, self.info.name)
    }
}
