//! Adapter of C handlers to handlers of custom calls.
#![expect(unsafe_code, reason = "calls functions of C")]

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use xla_hlo::ops::{CallState, CustomCallContext, FfiAttributes, RawCall, RawCustomCall};
use xla_hlo::{Error, Result, ResultExt, Shape};

use crate::abi::{
    ApiVersion, Attributes, Buffer, Buffers, Bundle, CallFrame, Extension, Handler, Head, Metadata, MetadataExtension,
};
use crate::api::api;
use crate::attributes::EncodedAttributes;
use crate::context::{CallContext, UserData};
use crate::convert::{await_future, end_object, take_error};
use crate::element_type::number;
use crate::packing::{packed, unpack};
use crate::types;

/// Number of the extension that requests a handler's version.
const METADATA: i32 = 1;
/// Kind of every operand and result.
const BUFFER: i32 = 1;
/// Element type number of tokens.
const TOKEN: i32 = 17;
/// Number of the stage that computes.
const EXECUTE: i32 = 3;

/// Trait bit that only this library defines: a function stores the address of its error, or null, in the frame's
/// `future` as its last step, and its return value is ignored. Python handlers set it, because the return value of a
/// `ctypes` callback is undefined after an exception, such as `KeyboardInterrupt` on the main thread.
const OUTCOME_IN_FRAME: u32 = 1 << 31;
/// Value of `future` before a function with [`OUTCOME_IN_FRAME`] has stored its outcome.
const NO_OUTCOME: *mut c_void = ptr::without_provenance_mut(usize::MAX);

/// C handler: an optional function for each stage, except the required last one.
#[derive(Clone, Copy)]
pub struct FfiHandler {
    bundle: Bundle,
    /// Whether the handler has the trait [`OUTCOME_IN_FRAME`].
    outcome_in_frame: bool,
}

impl FfiHandler {
    /// Creates a handler with one function.
    ///
    /// # Safety
    ///
    /// `execute` must be the address of an `XLA_FFI_Handler` that may be called from any thread during the lifetime of
    /// the process.
    pub unsafe fn from_address(execute: usize) -> Result<FfiHandler> {
        let function: *const c_void = ptr::with_exposed_provenance(execute);
        // SAFETY: by contract; null is `None`.
        let execute: Option<Handler> = unsafe { std::mem::transmute(function) };
        FfiHandler::new(Bundle { instantiate: None, prepare: None, initialize: None, execute })
    }

    /// Creates a handler with several stages and queries its version. Fails with [`Error::InvalidArgument`] for an
    /// incompatible version.
    pub(crate) fn new(bundle: Bundle) -> Result<FfiHandler> {
        let execute = bundle.execute.ok_or_else(|| Error::invalid_argument("a handler must have a function"))?;
        let head = Head::new(ApiVersion::SIZE);
        let version = ApiVersion { head, major: 0, minor: 0 };
        let mut metadata = Metadata { struct_size: Metadata::SIZE, version, traits: 0, state_type: 0 };
        let base = Extension { struct_size: MetadataExtension::SIZE, number: METADATA, next: ptr::null() };
        let extension = MetadataExtension { base, metadata: &raw mut metadata };
        let mut frame = empty_frame();
        frame.head.extensions = ptr::from_ref(&extension).cast();
        call(execute, &mut frame).context(|| "the handler's version")?;
        let outcome_in_frame = metadata.traits & OUTCOME_IN_FRAME != 0;
        let ApiVersion { major, minor, .. } = metadata.version;
        if (major, minor) > (crate::MAJOR, crate::MINOR) || major != crate::MAJOR {
            return Err(Error::invalid_argument(format!(
                "the handler was compiled for version {major}.{minor} of the FFI, but this is {}.{}",
                crate::MAJOR,
                crate::MINOR
            )));
        }
        Ok(FfiHandler { bundle, outcome_in_frame })
    }
}

/// State of a call: its objects, and its attributes, which are parsed once.
struct Instance {
    left: LeftObjects,
    attributes: FfiAttributes,
}

/// Objects that the stages of a call set; freed on drop.
struct LeftObjects(Vec<(i64, usize)>);

impl Drop for LeftObjects {
    fn drop(&mut self) {
        for &(type_id, object) in &self.0 {
            // SAFETY: the handler set the object with its type, whose deleter frees it; there are no other owners.
            unsafe { end_object(types::deleter(type_id), object) };
        }
    }
}

impl RawCustomCall for FfiHandler {
    fn instantiate(&self, call: &CustomCallContext<'_>) -> Result<CallState> {
        let context = CallContext::default();
        let attributes = call.attributes()?;
        let encoded = EncodedAttributes::new(&attributes)?;
        let outcome = self.stage(self.bundle.instantiate, CallFrame { stage: 0, ..empty_frame() }, &encoded, &context);
        let left = LeftObjects(context.take_states());
        outcome?;
        Ok(Arc::new(Instance { left, attributes }))
    }

    /// Runs the stages of a run in sequence; their objects belong to this call only.
    fn execute(&self, call: &mut RawCall<'_>) -> Result<()> {
        let state = call.state.downcast_ref::<Instance>();
        let Instance { left, attributes } =
            state.ok_or_else(|| Error::internal("a custom call is executed that was not instantiated"))?;
        let instance = left.0.first().copied();
        let run = call.context.run();
        let user_data = run.get::<UserData>().cloned().unwrap_or_default();
        let context = CallContext::of_run(user_data, run.run_id(), call.device as i32, instance);
        let attributes = EncodedAttributes::new(attributes)?;
        let mut packed_results: Vec<_> = call.results.iter().map(|result| packed(result.shape, result.bytes)).collect();
        let packed_operands: Vec<_> =
            call.operands.iter().map(|operand| packed(operand.shape, operand.bytes)).collect();
        let outputs = call.results.iter_mut().zip(&mut packed_results).map(|(result, packed)| {
            let bytes = packed.as_deref_mut().unwrap_or(&mut *result.bytes);
            (bytes.as_mut_ptr(), result.shape)
        });
        let outputs = BufferList::new(outputs.collect());
        let inputs = call.operands.iter().zip(&packed_operands).map(|(operand, packed)| {
            // Handlers must not write to operands, except if a result aliases the operand.
            let aliased = operand.alias.and_then(|result| outputs.buffers.get(result)).map(|result| result.data);
            let bytes = packed.as_deref().unwrap_or(operand.bytes);
            (aliased.unwrap_or_else(|| bytes.as_ptr().cast_mut()), operand.shape)
        });
        let inputs = BufferList::new(inputs.collect());
        let stages = [self.bundle.prepare, self.bundle.initialize, self.bundle.execute];
        let outcome = (1..).zip(stages).try_for_each(|(stage, handler)| {
            let mut frame = CallFrame { stage, ..empty_frame() };
            // Stages before the last one have no operands and results.
            if stage == EXECUTE {
                (frame.args, frame.rets) = (inputs.structure(), outputs.structure());
            }
            self.stage(handler, frame, &attributes, &context)
        });
        drop(LeftObjects(context.take_states()));
        for (result, packed) in call.results.iter_mut().zip(&packed_results) {
            packed.iter().for_each(|packed| unpack(result.shape, packed, result.bytes));
        }
        outcome
    }
}

impl FfiHandler {
    /// Runs one stage, if the handler has a function for it.
    fn stage(
        &self,
        handler: Option<Handler>,
        mut frame: CallFrame,
        attributes: &EncodedAttributes,
        context: &CallContext,
    ) -> Result<()> {
        (frame.context, frame.attrs) = (ptr::from_ref(context).cast(), attributes.structure());
        let Some(handler) = handler else { return Ok(()) };
        if self.outcome_in_frame { call_for_outcome(handler, &mut frame) } else { call(handler, &mut frame) }
    }
}

/// Operands or results of a frame, with everything that they point to.
struct BufferList {
    types: Vec<i32>,
    values: Vec<*const Buffer>,
    buffers: Vec<Buffer>,
    _dims: Vec<Vec<i64>>,
}

impl BufferList {
    fn new(values: Vec<(*mut u8, &Shape)>) -> BufferList {
        let dims = |shape: &Shape| -> Vec<i64> {
            shape.as_array().map_or_else(Vec::new, |array| array.dims().iter().map(|&dim| dim as i64).collect())
        };
        let dims: Vec<Vec<i64>> = values.iter().map(|(_, shape)| dims(shape)).collect();
        let buffer = |((data, shape), dims): (&(*mut u8, &Shape), &Vec<i64>)| Buffer {
            head: Head::new(Buffer::SIZE),
            dtype: shape.as_array().map_or(TOKEN, |array| number(array.element_type())),
            data: *data,
            rank: dims.len() as i64,
            dims: dims.as_ptr(),
        };
        let buffers: Vec<Buffer> = values.iter().zip(&dims).map(buffer).collect();
        BufferList {
            types: vec![BUFFER; buffers.len()],
            values: buffers.iter().map(ptr::from_ref).collect(),
            buffers,
            _dims: dims,
        }
    }

    fn structure(&self) -> Buffers {
        Buffers {
            head: Head::new(Buffers::SIZE),
            len: self.values.len() as i64,
            types: self.types.as_ptr(),
            values: self.values.as_ptr(),
        }
    }
}

fn empty_frame() -> CallFrame {
    let none = Buffers { head: Head::new(Buffers::SIZE), len: 0, types: ptr::null(), values: ptr::null() };
    let attrs = Attributes {
        head: Head::new(Attributes::SIZE),
        len: 0,
        types: ptr::null(),
        names: ptr::null(),
        values: ptr::null(),
    };
    CallFrame {
        // As in the C header, the size ends with the attributes; the future follows.
        head: Head::new(std::mem::offset_of!(CallFrame, future)),
        api: api(),
        context: ptr::null(),
        stage: EXECUTE,
        args: none,
        rets: none,
        attrs,
        future: ptr::null_mut(),
    }
}

/// Calls a handler, and waits for the work that it started.
fn call(handler: Handler, frame: &mut CallFrame) -> Result<()> {
    // SAFETY: the creator of the handler guaranteed that it may be called with a frame of the API. This is one:
    // everything that it points to lives until the call, and the work that it started, are done.
    let error = unsafe { handler(frame) };
    // SAFETY: errors of handlers are made by this library's table.
    if let Some(error) = unsafe { take_error(error) } {
        return Err(error.into_error());
    }
    // SAFETY: futures of handlers are made by this library's table, and returned to be waited for.
    unsafe { await_future(frame.future) }
}

/// Calls a handler that stores its outcome in the frame.
fn call_for_outcome(handler: Handler, frame: &mut CallFrame) -> Result<()> {
    frame.future = NO_OUTCOME;
    // SAFETY: as in [`call`].
    unsafe { handler(frame) };
    if frame.future == NO_OUTCOME {
        let message =
            "the handler of a call ended with an exception, such as KeyboardInterrupt, before it set an outcome";
        return Err(Error::internal(message));
    }
    // SAFETY: errors of handlers are made by this library's table.
    unsafe { take_error(frame.future) }.map_or(Ok(()), |error| Err(error.into_error()))
}
