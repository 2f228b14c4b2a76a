//! Buffers that the host fills incrementally.

use std::sync::{Mutex, MutexGuard, PoisonError};

use xla_hlo::{ArrayShape, Error};
use xla_service::host::StridedShape;
use xla_service::{Buffer, StagedBuffer};

use crate::abi::kinds;
use crate::abi::transfer::{
    ClientCreateBuffersForAsyncHostToDeviceArgs, TransferManagerAddMetadataArgs, TransferManagerBufferCountArgs,
    TransferManagerBufferSizeArgs, TransferManagerDestroyArgs, TransferManagerDeviceArgs,
    TransferManagerRetrieveBufferArgs, TransferManagerSetBufferErrorArgs, TransferManagerTransferDataArgs,
    TransferManagerTransferLiteralArgs,
};
use crate::buffer::{BufferState, Place};
use crate::event::Event;
use crate::ffi::{Field, Handle, Kind, Pointer};
use crate::layout;
use crate::status::{Code, Status};

impl Kind for kinds::TransferManager {
    type Value = TransferManager;
    const NAME: &'static str = "PJRT_AsyncHostToDeviceTransferManager";
}

/// Transfer manager: several buffers that are being filled.
pub(crate) struct TransferManager {
    place: Place,
    buffers: Vec<Filled>,
}

/// Buffer that is being filled.
struct Filled {
    shape: ArrayShape,
    bytes: usize,
    /// Buffer, until the caller retrieves it.
    buffer: Mutex<Option<Buffer>>,
    /// Memory of the buffer, until it is full or set to an error.
    staged: Mutex<Option<StagedBuffer>>,
}

impl Filled {
    fn new(place: &Place, shape: &ArrayShape) -> Result<Filled, Status> {
        let (buffer, staged) = place.service()?.staged_buffer(shape)?;
        let (shape, bytes) = (buffer.shape().clone(), buffer.byte_size()?);
        Ok(Filled { shape, bytes, buffer: Mutex::new(Some(buffer)), staged: Mutex::new(Some(staged)) })
    }

    fn staged(&self) -> MutexGuard<'_, Option<StagedBuffer>> {
        self.staged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes bytes in the device's layout. The buffer is ready after the last ones.
    fn write(&self, offset: usize, bytes: &[u8], is_last: bool) -> Result<(), Status> {
        let mut staged = self.staged();
        let finished = || Status::failed_precondition("the buffer was already filled or set to an error");
        staged.as_mut().ok_or_else(finished)?.write(offset, bytes)?;
        let full = if is_last { staged.take() } else { None };
        // Callbacks that wait for the buffer run without the lock.
        drop(staged);
        full.into_iter().for_each(|full| full.finish(Ok(())));
        Ok(())
    }
}

impl TransferManager {
    fn buffer(&self, index: i32) -> Result<&Filled, Status> {
        let found = usize::try_from(index).ok().and_then(|index| self.buffers.get(index));
        let count = self.buffers.len();
        found
            .ok_or_else(|| Status::invalid_argument(format!("buffer {index} does not exist; the transfer has {count}")))
    }
}

pub(crate) fn create(args: &ClientCreateBuffersForAsyncHostToDeviceArgs) -> Result<(), Status> {
    args.client.get()?;
    let place = Place::of(args.memory, Handle::NULL)?;
    let (specs, layouts) = (args.shape_specs.get()?, args.device_layouts.get()?);
    if !layouts.is_empty() && layouts.len() != specs.len() {
        return Err(Status::invalid_argument(format!(
            "the number of layouts ({}) differs from the number of shapes ({})",
            layouts.len(),
            specs.len()
        )));
    }
    let buffers = specs.iter().enumerate().map(|(i, spec)| {
        let layout = layouts.get(i).copied().unwrap_or(Pointer::NULL);
        Filled::new(&place, &layout::shape(spec.element_type, &spec.dims, &layout)?)
    });
    let buffers = buffers.collect::<Result<_, _>>()?;
    args.transfer_manager.set(Handle::new(TransferManager { place, buffers }));
    Ok(())
}

pub(crate) fn destroy(args: &TransferManagerDestroyArgs) -> Result<(), Status> {
    args.transfer_manager.destroy()
}

pub(crate) fn transfer_data(args: &TransferManagerTransferDataArgs) -> Result<(), Status> {
    let range = usize::try_from(args.offset).ok().zip(usize::try_from(args.transfer_size).ok());
    let (offset, size) = range.ok_or_else(|| Status::invalid_argument("offset and size must not be negative"))?;
    let buffer = args.transfer_manager.get()?.buffer(args.buffer_index)?;
    buffer.write(offset, args.data.bytes(size)?, args.is_last_transfer.get())?;
    args.done_with_h2d_transfer.set(Event::done().handle());
    Ok(())
}

/// `PJRT_AsyncHostToDeviceTransferManager_TransferLiteral`: fills a buffer from an array in the host's layout.
pub(crate) fn transfer_literal(args: &TransferManagerTransferLiteralArgs) -> Result<(), Status> {
    let buffer = args.transfer_manager.get()?.buffer(args.buffer_index)?;
    let source = layout::shape(args.shape_element_type, &args.shape_dims, &args.shape_layout)?;
    let strides = layout::strides(&source);
    let (element_type, dims) = (source.element_type(), source.dims());
    let array = StridedShape { element_type, dims, strides: Some(&strides), offset: 0 };
    let mut bytes = vec![0; buffer.bytes];
    array.copy_to(args.data.bytes(array.extent()?.after)?, &buffer.shape, &mut bytes)?;
    buffer.write(0, &bytes, true)?;
    args.done_with_h2d_transfer.set(Event::done().handle());
    Ok(())
}

pub(crate) fn retrieve_buffer(args: &TransferManagerRetrieveBufferArgs) -> Result<(), Status> {
    let manager = args.transfer_manager.get()?;
    let buffer = manager.buffer(args.buffer_index)?.buffer.lock().unwrap_or_else(PoisonError::into_inner).take();
    let buffer = buffer.ok_or_else(|| Status::failed_precondition("the buffer was already retrieved"))?;
    args.buffer_out.set(BufferState::handle(manager.place.clone(), buffer));
    Ok(())
}

pub(crate) fn device(args: &TransferManagerDeviceArgs) -> Result<(), Status> {
    let place = &args.transfer_manager.get()?.place;
    args.device_out.set(place.client.device_handles[place.device]);
    Ok(())
}

pub(crate) fn buffer_count(args: &TransferManagerBufferCountArgs) -> Result<(), Status> {
    args.buffer_count.set(args.transfer_manager.get()?.buffers.len());
    Ok(())
}

pub(crate) fn buffer_size(args: &TransferManagerBufferSizeArgs) -> Result<(), Status> {
    args.buffer_size.set(args.transfer_manager.get()?.buffer(args.buffer_index)?.bytes);
    Ok(())
}

pub(crate) fn set_buffer_error(args: &TransferManagerSetBufferErrorArgs) -> Result<(), Status> {
    let buffer = args.transfer_manager.get()?.buffer(args.buffer_index)?;
    let status = Status::new(Code::from_number(args.error_code), args.error_message.as_str()?);
    let staged = buffer.staged().take();
    let staged = staged.ok_or_else(|| Status::failed_precondition("the buffer was already filled"))?;
    staged.finish(Err(Error::from(&status)));
    Ok(())
}

/// `PJRT_AsyncHostToDeviceTransferManager_AddMetadata`: does nothing. Metadata is for profilers.
pub(crate) fn add_metadata(args: &TransferManagerAddMetadataArgs) -> Result<(), Status> {
    args.transfer_manager.get().map(drop)
}
