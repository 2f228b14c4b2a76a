//! A buffer: an array in a memory of a client's device.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use smallvec::SmallVec;
use xla_hlo::Error;
use xla_hlo::dynamic_result::dynamic_dimensions_of;
use xla_service::{Buffer, BufferHold, Completion};

use crate::abi::kinds;
use crate::border::{Handle, Kind};
use crate::client::ClientState;
use crate::event::Event;
use crate::layout;
use crate::status::Status;

impl Kind for kinds::Buffer {
    type Value = BufferState;
    const NAME: &'static str = "PJRT_Buffer";
}

/// The error of a buffer that is gone, as XLA words it.
const DELETED: &str = "Buffer has been deleted or donated.";

/// A buffer.
pub(crate) struct BufferState {
    pub place: Place,
    pub array: Buffer,
    /// Whether it stands for a token, which carries no data.
    pub is_token: bool,
    /// The shape's dimensions, for the caller to borrow. Of a dimension of dynamic size it is the bound.
    pub dims: SmallVec<[i64; 4]>,
    /// Of an array of dynamic size, from the first request on.
    sizes: OnceLock<DynamicSizes>,
    /// Their order in memory, once somebody has asked.
    minor_to_major: OnceLock<Vec<i64>>,
    /// External references: each keeps memory and contents, whatever becomes of the buffer.
    holds: Mutex<Vec<BufferHold>>,
}

/// Dimensions of an array of dynamic size.
struct DynamicSizes {
    /// Numbers of the dimensions that have one.
    dimensions: Vec<usize>,
    /// All dimensions at their sizes, when they are there.
    dims: OnceLock<Vec<i64>>,
}

/// A memory of a client's device.
#[derive(Clone)]
pub(crate) struct Place {
    pub client: Arc<ClientState>,
    /// The device's number.
    pub device: usize,
    /// The number of the kind of memory.
    pub memory: usize,
}

impl Place {
    /// The place that a caller means by a memory or, without one, by a device.
    pub fn of(memory: Handle<kinds::Memory>, device: Handle<kinds::Device>) -> Result<Place, Status> {
        let (client, device, memory) = if memory.is_null() {
            let device = device.get()?;
            (&device.client, device.index, 0)
        } else {
            let memory = memory.get()?;
            (&memory.client, memory.device, memory.kind)
        };
        let client = client.upgrade().ok_or_else(|| Status::failed_precondition("the client was destroyed"))?;
        Ok(Place { client, device, memory })
    }

    /// The device as the service knows it.
    pub fn service(&self) -> Result<&xla_service::Device, Status> {
        Ok(&self.client.device(self.device)?.service)
    }
}

impl BufferState {
    /// A buffer for C.
    pub fn handle(place: Place, array: Buffer) -> Handle<kinds::Buffer> {
        let dims = array.shape().dims().iter().map(|&dim| dim as i64).collect();
        BufferState::boxed(place, array, false, dims)
    }

    /// A token for C: an array without meaning is there when the token is.
    pub fn token(place: Place, array: Buffer) -> Handle<kinds::Buffer> {
        BufferState::boxed(place, array, true, SmallVec::new())
    }

    fn boxed(place: Place, array: Buffer, is_token: bool, dims: SmallVec<[i64; 4]>) -> Handle<kinds::Buffer> {
        let (sizes, minor_to_major, holds) = (OnceLock::new(), OnceLock::new(), Mutex::default());
        Handle::new(BufferState { place, array, is_token, dims, sizes, minor_to_major, holds })
    }

    /// Numbers of the dimensions of dynamic size, for the caller to borrow.
    pub fn dynamic_dims(&self) -> &[usize] {
        if self.array.is_dynamic() { &self.sizes().dimensions } else { &[] }
    }

    /// The dimensions at their sizes, for the caller to borrow; waits for them.
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

    /// The order of the dimensions in memory, for the caller to borrow.
    pub fn minor_to_major(&self) -> &[i64] {
        let order = || if self.is_token { Vec::new() } else { layout::minor_to_major(self.array.shape()) };
        self.minor_to_major.get_or_init(order)
    }

    /// The array. An error once it was deleted or donated, in the words that callers look for.
    pub fn live(&self) -> Result<&Buffer, Status> {
        if self.array.is_deleted() { Err(Status::invalid_argument(DELETED)) } else { Ok(&self.array) }
    }

    /// The event of the array's being there.
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

    /// Takes an external reference away.
    pub fn remove_hold(&self) -> Result<(), Status> {
        let hold = self.holds.lock().unwrap_or_else(PoisonError::into_inner).pop();
        // Freed without the lock: it may be memory of the caller, who is told.
        hold.map(drop).ok_or_else(|| Status::invalid_argument("the buffer has no external reference"))
    }

    /// The address of its memory: that of its external references or, without one, the one it has now.
    pub fn address(&self) -> Result<usize, Status> {
        let held = self.holds.lock().unwrap_or_else(PoisonError::into_inner).last().cloned();
        let hold = match held {
            Some(hold) => hold,
            None => self.live()?.hold()?,
        };
        hold.address().ok_or_else(|| Status::unimplemented("addresses of this platform's memory"))
    }
}
