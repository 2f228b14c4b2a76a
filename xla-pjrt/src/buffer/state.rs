//! State of a buffer: an array in a memory of a client's device.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use smallvec::SmallVec;
use xla_hlo::Error;
use xla_hlo::dynamic_result::dynamic_dimensions_of;
use xla_service::{Buffer, BufferHold, Completion};

use crate::abi::kinds;
use crate::client::ClientState;
use crate::event::Event;
use crate::ffi::{Handle, Kind};
use crate::layout;
use crate::status::Status;

impl Kind for kinds::Buffer {
    type Value = BufferState;
    const NAME: &'static str = "PJRT_Buffer";
}

/// Message of the error for a deleted buffer, identical to XLA's.
const DELETED: &str = "Buffer has been deleted or donated.";

/// Buffer.
pub(crate) struct BufferState {
    pub place: Place,
    pub array: Buffer,
    /// Whether the buffer represents a token, which carries no data.
    pub is_token: bool,
    /// Dimensions of the shape, lent to the caller. A dynamic dimension has its bound.
    pub dims: SmallVec<[i64; 4]>,
    /// Sizes of an array with dynamic dimensions, created on the first request.
    sizes: OnceLock<DynamicSizes>,
    /// Minor-to-major order of the dimensions, created on the first request.
    minor_to_major: OnceLock<Vec<i64>>,
    /// External references. Each one keeps memory and contents, even if the buffer is deleted.
    holds: Mutex<Vec<BufferHold>>,
}

/// Dimensions of an array with dynamic dimensions.
struct DynamicSizes {
    /// Numbers of the dynamic dimensions.
    dimensions: Vec<usize>,
    /// Actual sizes of all dimensions, once they are available.
    dims: OnceLock<Vec<i64>>,
}

/// Memory of a client's device.
#[derive(Clone)]
pub(crate) struct Place {
    pub client: Arc<ClientState>,
    /// Global id of the device.
    pub device: usize,
    /// Number of the memory kind.
    pub memory: usize,
}

impl Place {
    /// Returns the place that a caller specifies by a memory or, without one, by a device.
    pub fn of(memory: Handle<kinds::Memory>, device: Handle<kinds::Device>) -> Result<Place, Status> {
        let (client, device, memory) = if memory.is_null() {
            let device = device.get()?;
            (&device.client, device.id, 0)
        } else {
            let memory = memory.get()?;
            (&memory.client, memory.device, memory.kind)
        };
        let client = client.upgrade().ok_or_else(|| Status::failed_precondition("the client was destroyed"))?;
        Ok(Place { client, device, memory })
    }

    /// Returns the device in the service.
    pub fn service(&self) -> Result<&xla_service::Device, Status> {
        self.client.devices[self.device].local()
    }
}

impl BufferState {
    /// Creates a buffer for C.
    pub fn handle(place: Place, array: Buffer) -> Handle<kinds::Buffer> {
        let dims = array.shape().dims().iter().map(|&dim| dim as i64).collect();
        BufferState::boxed(place, array, false, dims)
    }

    /// Creates a token for C. `array` has no meaningful contents; it is ready when the token is.
    pub fn token(place: Place, array: Buffer) -> Handle<kinds::Buffer> {
        BufferState::boxed(place, array, true, SmallVec::new())
    }

    fn boxed(place: Place, array: Buffer, is_token: bool, dims: SmallVec<[i64; 4]>) -> Handle<kinds::Buffer> {
        let (sizes, minor_to_major, holds) = (OnceLock::new(), OnceLock::new(), Mutex::default());
        Handle::new(BufferState { place, array, is_token, dims, sizes, minor_to_major, holds })
    }

    /// Returns the numbers of the dynamic dimensions, lent to the caller.
    pub fn dynamic_dims(&self) -> &[usize] {
        if self.array.is_dynamic() { &self.sizes().dimensions } else { &[] }
    }

    /// Returns the actual dimensions, lent to the caller; waits until they are available.
    pub fn unpadded_dims(&self) -> Result<&[i64], Status> {
        if !self.array.is_dynamic() {
            return Ok(&self.dims);
        }
        let dims = &self.sizes().dims;
        if let Some(dims) = dims.get() {
            return Ok(dims);
        }
        let shape = self.array.real_shape()?;
        Ok(dims.get_or_init(|| shape.dims().iter().map(|&dim| dim as i64).collect()))
    }

    fn sizes(&self) -> &DynamicSizes {
        let dimensions = || dynamic_dimensions_of(self.array.shape()).collect();
        self.sizes.get_or_init(|| DynamicSizes { dimensions: dimensions(), dims: OnceLock::new() })
    }

    /// Returns the minor-to-major order of the dimensions, lent to the caller.
    pub fn minor_to_major(&self) -> &[i64] {
        let order = || if self.is_token { Vec::new() } else { layout::minor_to_major(self.array.shape()) };
        self.minor_to_major.get_or_init(order)
    }

    /// Returns the array; an error with XLA's message once it was deleted or donated.
    pub fn live(&self) -> Result<&Buffer, Status> {
        if self.array.is_deleted() { Err(Status::invalid_argument(DELETED)) } else { Ok(&self.array) }
    }

    /// Returns the event that completes when the array is ready.
    pub fn ready(&self) -> Event {
        let failed = || Completion::failed(Error::invalid_argument(DELETED));
        Event::of(self.live().map_or_else(|_| failed(), Buffer::completion))
    }

    /// Adds an external reference; waits for the value.
    pub fn add_hold(&self) -> Result<(), Status> {
        let hold = self.live()?.hold()?;
        self.holds.lock().unwrap_or_else(PoisonError::into_inner).push(hold);
        Ok(())
    }

    /// Removes an external reference.
    pub fn remove_hold(&self) -> Result<(), Status> {
        let hold = self.holds.lock().unwrap_or_else(PoisonError::into_inner).pop();
        // Freed without the lock, because this may notify the caller that its memory is free.
        hold.map(drop).ok_or_else(|| Status::invalid_argument("the buffer has no external reference"))
    }

    /// Returns the address of the memory: that of an external reference if there is one, otherwise the current one.
    pub fn address(&self) -> Result<usize, Status> {
        let held = self.holds.lock().unwrap_or_else(PoisonError::into_inner).last().cloned();
        let hold = match held {
            Some(hold) => hold,
            None => self.live()?.hold()?,
        };
        hold.address().ok_or_else(|| Status::unimplemented("addresses of this platform's memory are not available"))
    }
}
