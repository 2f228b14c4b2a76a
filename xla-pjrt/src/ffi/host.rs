//! Regions of the caller's memory that contain arrays.
#![expect(unsafe_code, reason = "reads the caller's memory")]

use std::ptr::NonNull;
use std::slice;

use xla_service::host::ExternalMemory;

use super::pointer::Address;
use crate::status::Status;

/// Region of the caller's memory around an address, valid during the call.
pub(crate) struct HostRegion {
    start: NonNull<u8>,
    size: usize,
}

impl HostRegion {
    /// Creates the region that covers `before` bytes before an address and `after` bytes from it on.
    pub fn new(address: Address, before: usize, after: usize) -> Result<HostRegion, Status> {
        let size = before.checked_add(after).filter(|&size| isize::try_from(size).is_ok());
        let size = size.ok_or_else(|| Status::invalid_argument("an array has more bytes than the address space"))?;
        let start = NonNull::new(address.0.wrapping_sub(before)).filter(|_| !address.is_null());
        match start {
            Some(start) => Ok(HostRegion { start, size }),
            None if size == 0 => Ok(HostRegion { start: NonNull::dangling(), size }),
            None => Err(Status::invalid_argument(format!("the memory of an array of {size} bytes must not be null"))),
        }
    }

    /// Returns the bytes, which are valid during the call.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the caller promises the elements of the array, which extend from the first to the last byte of the
        // region. The gaps between them are memory of the same owner.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.size) }
    }

    /// Converts the region to memory that is used beyond the call. `on_drop` notifies the caller when it is no longer
    /// read.
    pub fn external(self, on_drop: impl FnOnce() + Send + 'static) -> ExternalMemory {
        // SAFETY: for functions of the C API that take such memory, the caller promises that it stays unchanged until
        // the caller is notified.
        unsafe { ExternalMemory::new(self.start, self.size, on_drop) }
    }
}
