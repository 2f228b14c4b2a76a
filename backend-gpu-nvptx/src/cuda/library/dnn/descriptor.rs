//! Handle of cuDNN, and descriptors of its backend API: written as a [`Draft`], read once they are finalised.
#![expect(unsafe_code, reason = "cuDNN is a C library")]

use std::ffi::{CStr, c_void};
use std::sync::Arc;

use cudarc::cudnn::sys::{
    cudnnBackendAttributeName_t as Attribute, cudnnBackendAttributeType_t as AttributeType, cudnnBackendDescriptor_t,
    cudnnBackendDescriptorType_t as DescriptorType, cudnnBackendHeurMode_t as HeuristicMode,
    cudnnConvolutionMode_t as ConvolutionMode, cudnnDataType_t as DataType, cudnnHandle_t,
    cudnnNanPropagation_t as NanPropagation, cudnnPointwiseMode_t as PointwiseMode,
};
use xla_hlo::{Error, Result};

use crate::cuda::api::cudnn::{self as api, cudnnStatus_t as Status};
use crate::cuda::context::Context;
use crate::cuda::stream::queue::Queue;

/// cuDNN's handle for one device.
pub(super) struct DnnHandle {
    raw: cudnnHandle_t,
    context: Arc<Context>,
}

// SAFETY: the library allows any thread to use a handle, by one at a time. `&mut` ensures this, and so does the lock of
// the library, under which descriptors are made.
unsafe impl Send for DnnHandle {}

impl DnnHandle {
    /// `cudnnCreate`: creates a handle. The library must be open.
    pub fn new(context: &Arc<Context>) -> Result<DnnHandle> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: the pointer is to a live pointer; the context is current, so that the handle is for its device.
        context.with(|| check("cudnnCreate", unsafe { api::cudnnCreate(&mut raw) }))??;
        Ok(DnnHandle { raw, context: context.clone() })
    }

    /// `cudnnBackendExecute`: sends a plan's work on the arrays of a variant pack to a queue.
    ///
    /// The addresses in the pack are of device memory of the sizes that the plan's tensors describe: the caller
    /// guarantees this, as for every launch.
    pub fn execute(&mut self, plan: &Descriptor, pack: &Descriptor, queue: &Queue) -> Result<()> {
        queue.send_to_library(|stream| {
            // SAFETY: handle and stream are alive and of one device.
            check("cudnnSetStream", unsafe { api::cudnnSetStream(self.raw, stream.cast()) })?;
            // SAFETY: handle and descriptors are alive and finalised; a wrong kind of descriptor is refused.
            check("cudnnBackendExecute", unsafe { api::cudnnBackendExecute(self.raw, plan.0.raw, pack.0.raw) })
        })
    }
}

impl Drop for DnnHandle {
    fn drop(&mut self) {
        // SAFETY: the handle is alive, and destroyed once. An error means that the device is lost.
        let _ = self.context.with(|| unsafe { api::cudnnDestroy(self.raw) });
    }
}

/// `cudnnGetVersion`: returns the version of the library, which must be open.
pub(super) fn version() -> usize {
    // SAFETY: no requirements.
    unsafe { api::cudnnGetVersion() }
}

/// Descriptor of the library, with the descriptors that it refers to.
struct Raw {
    raw: cudnnBackendDescriptor_t,
    parts: Vec<Descriptor>,
}

// SAFETY: descriptors are plain memory of the library, and are not changed once they are shared.
unsafe impl Send for Raw {}
// SAFETY: as above.
unsafe impl Sync for Raw {}

impl Drop for Raw {
    fn drop(&mut self) {
        // SAFETY: the descriptor is alive, and destroyed once, before its parts.
        let _ = unsafe { api::cudnnBackendDestroyDescriptor(self.raw) };
    }
}

/// Descriptor that is being written.
pub(super) struct Draft(Raw);

/// Finalised descriptor, which no longer changes.
#[derive(Clone)]
pub(super) struct Descriptor(Arc<Raw>);

/// Value of an attribute.
#[derive(Clone, Copy)]
pub(super) enum Value<'a> {
    Handle(&'a DnnHandle),
    DataType(DataType),
    Boolean(bool),
    Integers(&'a [i64]),
    Float(f32),
    Double(f64),
    /// Addresses of device memory.
    Addresses(&'a [u64]),
    ConvolutionMode(ConvolutionMode),
    HeuristicMode(HeuristicMode),
    NanPropagation(NanPropagation),
    PointwiseMode(PointwiseMode),
    Descriptors(&'a [&'a Descriptor]),
}

impl Draft {
    /// `cudnnBackendCreateDescriptor`: creates an empty descriptor.
    pub fn new(kind: DescriptorType) -> Result<Draft> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: the pointer is to a live pointer.
        let status = unsafe { api::cudnnBackendCreateDescriptor(kind, &mut raw) };
        check("cudnnBackendCreateDescriptor", status)?;
        Ok(Draft(Raw { raw, parts: Vec::new() }))
    }

    /// Sets an attribute.
    pub fn set(mut self, attribute: Attribute, value: Value<'_>) -> Result<Draft> {
        use AttributeType as Type;
        match value {
            Value::Handle(handle) => self.write(attribute, Type::CUDNN_TYPE_HANDLE, &[handle.raw])?,
            Value::DataType(value) => self.write(attribute, Type::CUDNN_TYPE_DATA_TYPE, &[value])?,
            Value::Boolean(value) => self.write(attribute, Type::CUDNN_TYPE_BOOLEAN, &[value])?,
            Value::Integers(values) => self.write(attribute, Type::CUDNN_TYPE_INT64, values)?,
            Value::Float(value) => self.write(attribute, Type::CUDNN_TYPE_FLOAT, &[value])?,
            Value::Double(value) => self.write(attribute, Type::CUDNN_TYPE_DOUBLE, &[value])?,
            Value::Addresses(values) => self.write(attribute, Type::CUDNN_TYPE_VOID_PTR, &pointers(values))?,
            Value::ConvolutionMode(value) => self.write(attribute, Type::CUDNN_TYPE_CONVOLUTION_MODE, &[value])?,
            Value::HeuristicMode(value) => self.write(attribute, Type::CUDNN_TYPE_HEUR_MODE, &[value])?,
            Value::NanPropagation(value) => self.write(attribute, Type::CUDNN_TYPE_NAN_PROPOGATION, &[value])?,
            Value::PointwiseMode(value) => self.write(attribute, Type::CUDNN_TYPE_POINTWISE_MODE, &[value])?,
            Value::Descriptors(parts) => {
                let raw: Vec<cudnnBackendDescriptor_t> = parts.iter().map(|part| part.0.raw).collect();
                self.write(attribute, Type::CUDNN_TYPE_BACKEND_DESCRIPTOR, &raw)?;
                self.0.parts.extend(parts.iter().map(|&part| part.clone()));
            }
        }
        Ok(self)
    }

    /// `cudnnBackendSetAttribute`: writes elements of type `T`, whose number in the library is `ty`.
    fn write<T>(&self, attribute: Attribute, ty: AttributeType, elements: &[T]) -> Result<()> {
        let (count, elements) = (elements.len() as i64, elements.as_ptr().cast());
        // SAFETY: the descriptor is alive; there are `count` elements of the type, and they are copied.
        let status = unsafe { api::cudnnBackendSetAttribute(self.0.raw, attribute, ty, count, elements) };
        check(&format!("cudnnBackendSetAttribute of {attribute:?}"), status)
    }

    /// `cudnnBackendFinalize`: makes the library check the descriptor. The error states the unsupported part.
    pub fn finalize(self) -> Result<Descriptor> {
        // SAFETY: the descriptor is alive.
        check("cudnnBackendFinalize", unsafe { api::cudnnBackendFinalize(self.0.raw) })?;
        Ok(Descriptor(Arc::new(self.0)))
    }
}

impl Descriptor {
    /// Returns an attribute that is one number.
    pub fn integer(&self, attribute: Attribute) -> Result<i64> {
        let mut number = [0i64];
        match self.read(attribute, AttributeType::CUDNN_TYPE_INT64, &mut number)? {
            1 => Ok(number[0]),
            count => Err(Error::internal(format!("cuDNN returned {count} numbers instead of 1 for {attribute:?}"))),
        }
    }

    /// Returns an engine's numerical notes as numbers, since a newer library may have unknown ones.
    pub fn numerical_notes(&self) -> Result<Vec<u32>> {
        let mut notes = [0u32; 64];
        let attribute = Attribute::CUDNN_ATTR_ENGINE_NUMERICAL_NOTE;
        let count = self.read(attribute, AttributeType::CUDNN_TYPE_NUMERICAL_NOTE, &mut notes)?;
        match notes.get(..count) {
            Some(notes) => Ok(notes.to_vec()),
            None => Err(Error::internal(format!("a cuDNN engine has too many numerical notes: {count}"))),
        }
    }

    /// Returns up to `most` descriptors that the library created, in its order.
    pub fn descriptors(&self, attribute: Attribute, kind: DescriptorType, most: usize) -> Result<Vec<Descriptor>> {
        let mut empty = (0..most).map(|_| Draft::new(kind)).collect::<Result<Vec<Draft>>>()?;
        let mut raw: Vec<cudnnBackendDescriptor_t> = empty.iter().map(|draft| draft.0.raw).collect();
        let count = self.read(attribute, AttributeType::CUDNN_TYPE_BACKEND_DESCRIPTOR, &mut raw)?;
        empty.truncate(count);
        let filled = empty.into_iter().map(|mut draft| {
            draft.0.parts.push(self.clone());
            Descriptor(Arc::new(draft.0))
        });
        Ok(filled.collect())
    }

    /// `cudnnBackendGetAttribute`: reads elements of type `T`, whose number in the library is `ty`, until the slice is
    /// full. Returns the number of all elements.
    fn read<T>(&self, attribute: Attribute, ty: AttributeType, elements: &mut [T]) -> Result<usize> {
        let mut count = 0;
        let (room, elements) = (elements.len() as i64, elements.as_mut_ptr().cast());
        // SAFETY: the descriptor is alive; there is room for `room` elements of the type, and every bit pattern is a
        // valid one.
        let status = unsafe { api::cudnnBackendGetAttribute(self.0.raw, attribute, ty, room, &mut count, elements) };
        check(&format!("cudnnBackendGetAttribute of {attribute:?}"), status)?;
        usize::try_from(count).map_err(|_| Error::internal(format!("cuDNN returned an invalid element count: {count}")))
    }
}

/// Converts addresses to pointers, which are not dereferenced here.
fn pointers(addresses: &[u64]) -> Vec<*mut c_void> {
    addresses.iter().map(|&address| std::ptr::without_provenance_mut(address as usize)).collect()
}

/// Returns the error of a call. Statuses are grouped by thousands: 2xxx reject an argument, and 3xxx mean that this
/// version or GPU lacks support. Compiling a kernel at run time may fail, too. The program determines the descriptors
/// of convolutions, so none of these is a fault of the compiler.
fn check(call: &str, status: Status) -> Result<()> {
    if status == Status::CUDNN_STATUS_SUCCESS {
        return Ok(());
    }
    // SAFETY: no requirements.
    let text = unsafe { api::cudnnGetErrorString(status) };
    // SAFETY: texts of the library are never freed and end with a zero.
    let text = (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy());
    let sentence = format!("{call} failed: {status:?} {}", text.unwrap_or_default());
    Err(match status {
        Status::CUDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED => Error::unimplemented(sentence),
        Status(2000..=3999) => Error::unimplemented(sentence),
        _ => Error::internal(sentence),
    })
}
