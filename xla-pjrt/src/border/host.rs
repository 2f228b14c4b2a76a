//! Regions of the caller's memory that arrays lie in.
#![expect(unsafe_code, reason = "reads the caller's memory")]

use std::ptr::NonNull;
use std::slice;

use xla_service::host::OutsideMemory;

use super::pointer::Address;
use crate::status::Status;

/// Memory of the caller around an address, which it promises during the call.
pub(crate) struct HostRegion {
    start: NonNull<u8>,
    size: usize,
}

impl HostRegion {
    /// The region of so many bytes before an address and from it on.
    pub fn new(address: Address, before: usize, after: usize) -> Result<HostRegion, Status> {
        let size = before.checked_add(after).filter(|&size| isize::try_from(size).is_ok());
        let size = size.ok_or_else(|| Status::invalid_argument("an array of more bytes than memory has"))?;
        let start = NonNull::new(address.0.wrapping_sub(before)).filter(|_| !address.is_null());
        match start {
            Some(start) => Ok(HostRegion { start, size }),
            None if size == 0 => Ok(HostRegion { start: NonNull::dangling(), size }),
            None => Err(Status::invalid_argument(format!("the memory of an array of {size} bytes must not be null"))),
        }
    }

    /// The bytes, during the call.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the caller promises the array's elements, which reach from the first byte of the region to its last;
        // gaps between them are memory of the same array's owner.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.size) }
    }

    /// The memory beyond the call; `on_drop` tells the caller when nothing reads it any more.
    pub fn outside(self, on_drop: impl FnOnce() + Send + 'static) -> OutsideMemory {
        // SAFETY: functions of the C API that take such memory are promised that it stays as it is until the caller is
        // told.
        unsafe { OutsideMemory::new(self.start, self.size, on_drop) }
    }
}
