//! Linker of the driver: assembles PTX to a cubin, which is stored for the next start.
#![expect(unsafe_code, reason = "the driver is a C library")]

use std::ffi::{CString, c_uint, c_void};
use std::sync::Arc;

use cudarc::driver::sys::{CUjit_option, CUjitInputType, CUlinkState};
use xla_hlo::{Error, Result};

use super::api::driver::{self as api, CUresult};
use super::context::Context;
use super::driver::{self, Driver, dotted};
use super::module::{LOG_BYTES, log_text};
use crate::ptx::assembler::{Assemble, Cubin};
use crate::ptx::report::Report;

/// Linker for one device.
pub(crate) struct Linker {
    context: Arc<Context>,
}

/// Link in progress, with the log buffers that the driver writes until the link ends.
struct Link<'a> {
    context: &'a Context,
    state: CUlinkState,
    info: Vec<u8>,
    errors: Vec<u8>,
}

impl Linker {
    /// Creates the linker of the device's driver; `None` if the driver has none.
    pub fn new(context: &Arc<Context>) -> Option<Linker> {
        Driver::get().is_ok_and(Driver::has_linker).then(|| Linker { context: context.clone() })
    }
}

impl Assemble for Linker {
    fn tool(&self) -> String {
        let version = Driver::get().map_or_else(|_| "unknown".to_string(), |driver| dotted(driver.version));
        format!("the driver's linker, CUDA {version}")
    }

    /// Assembles for the device's own architecture and ignores the named one.
    fn assemble(&self, ptx: &str, _: &str) -> Result<Cubin> {
        let text = CString::new(ptx).map_err(|_| Error::internal("the PTX contains a zero byte"))?;
        let mut link = Link::new(&self.context)?;
        link.add(&text)?;
        let bytes = link.complete()?;
        Ok(Cubin { bytes, report: Report::parse(&log_text(&link.info)) })
    }
}

impl<'a> Link<'a> {
    fn new(context: &'a Context) -> Result<Link<'a>> {
        let (info, errors) = (vec![0u8; LOG_BYTES], vec![0u8; LOG_BYTES]);
        let mut link = Link { context, state: std::ptr::null_mut(), info, errors };
        let mut options = [
            CUjit_option::CU_JIT_INFO_LOG_BUFFER,
            CUjit_option::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
            CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
            CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
            CUjit_option::CU_JIT_LOG_VERBOSE,
        ];
        // Option values are pointers; numbers are passed as pointer values.
        let number = std::ptr::without_provenance_mut::<c_void>;
        let (info, errors) = (link.info.as_mut_ptr().cast(), link.errors.as_mut_ptr().cast());
        let mut values = [info, number(LOG_BYTES), errors, number(LOG_BYTES), number(1)];
        let state = &mut link.state;
        context.call("cuLinkCreate", || {
            let count = options.len() as c_uint;
            // SAFETY: there is one value for each option; the logs have the sizes that are passed, and live on the heap
            // as long as the link.
            unsafe { api::linker::cuLinkCreate_v2(count, options.as_mut_ptr(), values.as_mut_ptr(), state) }
        })?;
        Ok(link)
    }

    fn add(&mut self, text: &CString) -> Result<()> {
        let bytes = text.as_bytes_with_nul();
        let data = bytes.as_ptr().cast_mut().cast::<c_void>();
        let status = self.context.query("cuLinkAddData", || {
            let (kind, name) = (CUjitInputType::CU_JIT_INPUT_PTX, c"program.ptx".as_ptr());
            // SAFETY: the link is alive; the text has `bytes.len()` bytes, ends with a zero, and is only read.
            unsafe {
                api::linker::cuLinkAddData_v2(
                    self.state,
                    kind,
                    data,
                    bytes.len(),
                    name,
                    0,
                    std::ptr::null_mut(),
                    std::ptr::null_mut(),
                )
            }
        })?;
        self.check("cuLinkAddData", status)
    }

    /// `cuLinkComplete`: finishes the link and returns the cubin.
    fn complete(&mut self) -> Result<Vec<u8>> {
        let (mut code, mut size) = (std::ptr::null_mut::<c_void>(), 0);
        let status = self.context.query("cuLinkComplete", || {
            // SAFETY: the link is alive; the pointers are to a live pointer and a live integer.
            unsafe { api::linker::cuLinkComplete(self.state, &mut code, &mut size) }
        })?;
        self.check("cuLinkComplete", status)?;
        if code.is_null() {
            return Err(Error::internal("cuLinkComplete succeeded but returned no cubin"));
        }
        // SAFETY: the driver returned that many bytes, which live as long as the link.
        Ok(unsafe { std::slice::from_raw_parts(code.cast::<u8>(), size) }.to_vec())
    }

    fn check(&self, call: &str, status: CUresult) -> Result<()> {
        match (status, log_text(&self.errors)) {
            (CUresult::CUDA_SUCCESS, _) => Ok(()),
            (status, log) if log.is_empty() => Err(driver::failed(call, status)),
            (status, log) => Err(driver::failed(call, status).note(log)),
        }
    }
}

impl Drop for Link<'_> {
    fn drop(&mut self) {
        if !self.state.is_null() {
            // SAFETY: the link is alive, and destroyed once. An error means that the device is lost.
            let _ = self.context.call("cuLinkDestroy", || unsafe { api::linker::cuLinkDestroy(self.state) });
        }
    }
}
