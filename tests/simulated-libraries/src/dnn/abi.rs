//! C interface of cuDNN: the functions of `cudnn.h` that this repository calls.
#![expect(unsafe_code, reason = "a C library is what this is for")]

use std::ffi::{c_char, c_int, c_void};
use std::sync::{Mutex, PoisonError};

use simulated_gpu::libraries::capability;

use super::descriptors::{ConvolutionDescriptor, FilterDescriptor, TensorDescriptor};
use super::rules::{Convolution, ConvolutionKind};
use super::work::Convolving;
use super::{Dnn, Status};
use crate::arguments::{overlaps, put};
use crate::element::Element;
use crate::handles::Handles;
use crate::refusal::wrong;
use crate::workspace::Workspace;

/// 9.8.0.
const VERSION: usize = 90_800;

/// Alignment of workspaces.
const WORKSPACE_ALIGNMENT: u64 = 16;

/// A handle's stream.
struct Library {
    stream: u64,
}

/// All that programs have made. Descriptions say nothing at first.
struct DnnState {
    libraries: Handles<Library>,
    tensors: Handles<Option<TensorDescriptor>>,
    filters: Handles<Option<FilterDescriptor>>,
    operations: Handles<Option<ConvolutionDescriptor>>,
}

static STATE: Mutex<DnnState> = Mutex::new(DnnState {
    libraries: Handles::new("the library's handle", 0x71),
    tensors: Handles::new("an array's description", 0x72),
    filters: Handles::new("a filter's description", 0x73),
    operations: Handles::new("a convolution's description", 0x74),
});

/// Makes a call; errors in it are reported.
fn call(name: &str, work: impl FnOnce(&mut DnnState) -> Dnn) -> u32 {
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    match work(&mut state) {
        Ok(()) => Status::SUCCESS.0,
        Err(refusal) => refusal.told("cuDNN", name).0,
    }
}

/// The object of a handle, or the library's status.
fn known<T>(found: Result<T, String>) -> Dnn<T> {
    found.or_else(|sentence| wrong(Status::BAD_PARAM, sentence))
}

/// The content of a descriptor, which must have been set.
fn said<T: Clone>(handles: &Handles<Option<T>>, handle: *mut c_void) -> Dnn<T> {
    match known(handles.get(handle.addr() as u64))? {
        Some(description) => Ok(description.clone()),
        None => wrong(Status::BAD_PARAM, "a description is used that says nothing yet"),
    }
}

/// The current device's compute capability.
fn device() -> Dnn<u32> {
    capability().or_else(|status| wrong(Status::NOT_INITIALIZED, format!("no device can be used: {status:?}")))
}

/// Makes something and puts its handle where it is wanted.
///
/// # Safety
/// `into` is null or may be written.
unsafe fn give<T>(into: *mut *mut c_void, handles: &mut Handles<T>, made: T) -> Dnn {
    let made = std::ptr::without_provenance_mut(handles.add(made) as usize);
    // SAFETY: as the caller says.
    known(unsafe { put(into, made) })
}

/// A list of numbers.
///
/// # Safety
/// `numbers` points to `count` numbers, or is null.
unsafe fn list<'a>(numbers: *const c_int, count: c_int) -> Dnn<&'a [c_int]> {
    match usize::try_from(count) {
        _ if numbers.is_null() => wrong(Status::NULL_POINTER, "a list of numbers is null"),
        // SAFETY: it is not null, so as the caller says.
        Ok(count) => Ok(unsafe { std::slice::from_raw_parts(numbers, count) }),
        Err(_) => wrong(Status::BAD_PARAM, format!("a list of {count} numbers")),
    }
}

#[unsafe(no_mangle)]
extern "C" fn cudnnGetVersion() -> usize {
    VERSION
}

#[unsafe(no_mangle)]
extern "C" fn cudnnGetErrorString(status: u32) -> *const c_char {
    Status(status).name().as_ptr()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudnnCreate(made: *mut *mut c_void) -> u32 {
    call("cudnnCreate", |state| {
        device()?;
        // SAFETY: as for `give`, by the interface.
        unsafe { give(made, &mut state.libraries, Library { stream: 0 }) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudnnDestroy(library: *mut c_void) -> u32 {
    call("cudnnDestroy", |state| known(state.libraries.remove(library.addr() as u64)).map(drop))
}

#[unsafe(no_mangle)]
extern "C" fn cudnnSetStream(library: *mut c_void, stream: *mut c_void) -> u32 {
    call("cudnnSetStream", |state| {
        known(state.libraries.get_mut(library.addr() as u64))?.stream = stream.addr() as u64;
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudnnCreateTensorDescriptor(made: *mut *mut c_void) -> u32 {
    // SAFETY: as for `give`, by the interface.
    call("cudnnCreateTensorDescriptor", |state| unsafe { give(made, &mut state.tensors, None) })
}

#[unsafe(no_mangle)]
extern "C" fn cudnnDestroyTensorDescriptor(tensor: *mut c_void) -> u32 {
    call("cudnnDestroyTensorDescriptor", |state| known(state.tensors.remove(tensor.addr() as u64)).map(drop))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudnnSetTensorNdDescriptor(
    tensor: *mut c_void,
    element: u32,
    rank: c_int,
    sizes: *const c_int,
    strides: *const c_int,
) -> u32 {
    call("cudnnSetTensorNdDescriptor", |state| {
        let tensor = known(state.tensors.get_mut(tensor.addr() as u64))?;
        // SAFETY: by the interface.
        let (sizes, strides) = unsafe { (list(sizes, rank)?, list(strides, rank)?) };
        *tensor = Some(TensorDescriptor::new(element, sizes, strides)?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudnnCreateFilterDescriptor(made: *mut *mut c_void) -> u32 {
    // SAFETY: as for `give`, by the interface.
    call("cudnnCreateFilterDescriptor", |state| unsafe { give(made, &mut state.filters, None) })
}

#[unsafe(no_mangle)]
extern "C" fn cudnnDestroyFilterDescriptor(filter: *mut c_void) -> u32 {
    call("cudnnDestroyFilterDescriptor", |state| known(state.filters.remove(filter.addr() as u64)).map(drop))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudnnSetFilterNdDescriptor(
    filter: *mut c_void,
    element: u32,
    format: u32,
    rank: c_int,
    sizes: *const c_int,
) -> u32 {
    call("cudnnSetFilterNdDescriptor", |state| {
        let filter = known(state.filters.get_mut(filter.addr() as u64))?;
        // SAFETY: by the interface.
        *filter = Some(FilterDescriptor::new(element, format, unsafe { list(sizes, rank)? })?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudnnCreateConvolutionDescriptor(made: *mut *mut c_void) -> u32 {
    // SAFETY: as for `give`, by the interface.
    call("cudnnCreateConvolutionDescriptor", |state| unsafe { give(made, &mut state.operations, None) })
}

#[unsafe(no_mangle)]
extern "C" fn cudnnDestroyConvolutionDescriptor(operation: *mut c_void) -> u32 {
    call("cudnnDestroyConvolutionDescriptor", |state| known(state.operations.remove(operation.addr() as u64)).map(drop))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudnnSetConvolutionNdDescriptor(
    operation: *mut c_void,
    rank: c_int,
    padding: *const c_int,
    stride: *const c_int,
    dilation: *const c_int,
    mode: u32,
    compute: u32,
) -> u32 {
    call("cudnnSetConvolutionNdDescriptor", |state| {
        let operation = known(state.operations.get_mut(operation.addr() as u64))?;
        // SAFETY: by the interface.
        let lists = unsafe { [list(padding, rank)?, list(stride, rank)?, list(dilation, rank)?] };
        *operation = Some(ConvolutionDescriptor::new(lists[0], lists[1], lists[2], mode, compute)?);
        Ok(())
    })
}

/// Changes a convolution's description that says something already.
fn change(name: &str, operation: *mut c_void, change: impl FnOnce(&mut ConvolutionDescriptor) -> Dnn) -> u32 {
    call(name, |state| match known(state.operations.get_mut(operation.addr() as u64))? {
        Some(operation) => change(operation),
        None => wrong(Status::BAD_PARAM, "a description is changed that says nothing yet"),
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudnnSetConvolutionMathType(operation: *mut c_void, math: u32) -> u32 {
    change("cudnnSetConvolutionMathType", operation, |operation| operation.set_math(math))
}

#[unsafe(no_mangle)]
extern "C" fn cudnnSetConvolutionGroupCount(operation: *mut c_void, groups: c_int) -> u32 {
    change("cudnnSetConvolutionGroupCount", operation, |operation| operation.set_groups(groups))
}

/// A convolution of descriptions: input, filter, output, operation.
fn convolution(state: &DnnState, kind: ConvolutionKind, [x, w, y, operation]: [*mut c_void; 4]) -> Dnn<Convolution> {
    let convolution = Convolution {
        kind,
        input: said(&state.tensors, x)?,
        filter: said(&state.filters, w)?,
        output: said(&state.tensors, y)?,
        operation: said(&state.operations, operation)?,
    };
    convolution.check(device()?)?;
    Ok(convolution)
}

/// Answers how much workspace an algorithm needs.
///
/// # Safety
/// `bytes` is null or may be written.
unsafe fn workspace(
    name: &str,
    kind: ConvolutionKind,
    library: *mut c_void,
    descriptions: [*mut c_void; 4],
    algorithm: u32,
    bytes: *mut usize,
) -> u32 {
    call(name, |state| {
        known(state.libraries.get(library.addr() as u64))?;
        let needed = convolution(state, kind, descriptions)?.workspace(algorithm)?;
        // SAFETY: as the caller says.
        known(unsafe { put(bytes, needed) })
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudnnGetConvolutionForwardWorkspaceSize(
    library: *mut c_void,
    x: *mut c_void,
    w: *mut c_void,
    operation: *mut c_void,
    y: *mut c_void,
    algorithm: u32,
    bytes: *mut usize,
) -> u32 {
    const NAME: &str = "cudnnGetConvolutionForwardWorkspaceSize";
    // SAFETY: as for `workspace`, by the interface.
    unsafe { workspace(NAME, ConvolutionKind::Forward, library, [x, w, y, operation], algorithm, bytes) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudnnGetConvolutionBackwardDataWorkspaceSize(
    library: *mut c_void,
    w: *mut c_void,
    dy: *mut c_void,
    operation: *mut c_void,
    dx: *mut c_void,
    algorithm: u32,
    bytes: *mut usize,
) -> u32 {
    const NAME: &str = "cudnnGetConvolutionBackwardDataWorkspaceSize";
    // SAFETY: as for `workspace`, by the interface.
    unsafe { workspace(NAME, ConvolutionKind::BackwardData, library, [dx, w, dy, operation], algorithm, bytes) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudnnGetConvolutionBackwardFilterWorkspaceSize(
    library: *mut c_void,
    x: *mut c_void,
    dy: *mut c_void,
    operation: *mut c_void,
    dw: *mut c_void,
    algorithm: u32,
    bytes: *mut usize,
) -> u32 {
    const NAME: &str = "cudnnGetConvolutionBackwardFilterWorkspaceSize";
    // SAFETY: as for `workspace`, by the interface.
    unsafe { workspace(NAME, ConvolutionKind::BackwardFilter, library, [x, dw, dy, operation], algorithm, bytes) }
}

/// A call that computes: its descriptions and arrays as the interface has them.
struct ConvolutionCall {
    kind: ConvolutionKind,
    library: *mut c_void,
    /// Input, filter, output, operation.
    descriptions: [*mut c_void; 4],
    algorithm: u32,
    /// Input, filter, output.
    arrays: [*const c_void; 3],
    workspace: (*mut c_void, usize),
    factors: [*const c_void; 2],
}

/// A factor: a double for arrays of doubles, else a float.
///
/// # Safety
/// There is such a number at `factor`, or it is null.
unsafe fn factor(element: Element, factor: *const c_void) -> Dnn<f64> {
    match element {
        _ if factor.is_null() => wrong(Status::NULL_POINTER, "a factor is null"),
        // SAFETY: as the caller says.
        Element::F64 => Ok(unsafe { factor.cast::<f64>().read_unaligned() }),
        // SAFETY: as the caller says.
        _ => Ok(f64::from(unsafe { factor.cast::<f32>().read_unaligned() })),
    }
}

/// Sends a convolution.
///
/// # Safety
/// Factors are numbers of the type that goes with the arrays, or null.
unsafe fn convolve(name: &'static str, asked: ConvolutionCall) -> u32 {
    call(name, |state| {
        let stream = known(state.libraries.get(asked.library.addr() as u64))?.stream;
        let convolution = convolution(state, asked.kind, asked.descriptions)?;
        let needed = match convolution.workspace(asked.algorithm) {
            Ok(needed) => needed,
            Err(refusal) => {
                return wrong(refusal.status, format!("algorithm {} is not for {convolution:?}", asked.algorithm));
            }
        };
        let element = convolution.input.element;
        // SAFETY: as the caller says.
        let (alpha, beta) = unsafe { (factor(element, asked.factors[0])?, factor(element, asked.factors[1])?) };
        let [input, filter, output] = asked.arrays.map(|array| array.addr() as u64);
        let workspace = Workspace::new(asked.workspace.0.addr() as u64, asked.workspace.1);
        let has_tf32 = device()? >= 80;
        let work = Convolving { convolution, alpha, beta, input, filter, output, has_tf32 };
        check_arrays(&work, workspace, needed)?;
        let sent = workspace.enqueue(stream, name, move |memory| work.run(memory));
        sent.or_else(|status| wrong(Status::EXECUTION_FAILED, format!("the driver does not take it: {status:?}")))
    })
}

/// Sees that arrays are there, aligned, and apart.
fn check_arrays(work: &Convolving, workspace: Workspace, needed: usize) -> Dnn {
    let Convolving { convolution, input, filter, output, .. } = work;
    let bytes = convolution.input.element.bytes() as u64;
    let arrays = [
        ("the input", (*input, convolution.input.extent() * bytes)),
        ("the filter", (*filter, convolution.filter.tensor().extent() * bytes)),
        ("the output", (*output, convolution.output.extent() * bytes)),
    ];
    for (name, (address, _)) in arrays {
        if address == 0 {
            return wrong(Status::NULL_POINTER, format!("{name} is null"));
        }
        if !address.is_multiple_of(bytes) {
            return wrong(Status::MISALIGNED_POINTER, format!("{name} at {address:#x} is not aligned to its elements"));
        }
    }
    let (at, room) = (workspace.address, workspace.bytes);
    if room < needed || (needed > 0 && at == 0) {
        let sentence = format!("a workspace of {room} bytes at {at:#x}, where {needed} are needed");
        return wrong(Status::SIZE_INSUFFICIENT, sentence);
    }
    if room > 0 && !at.is_multiple_of(WORKSPACE_ALIGNMENT) {
        return wrong(Status::MISALIGNED_POINTER, format!("a workspace at {at:#x}, which is not aligned to 16"));
    }
    let made = match convolution.kind {
        ConvolutionKind::Forward => 2,
        ConvolutionKind::BackwardData => 0,
        ConvolutionKind::BackwardFilter => 1,
    };
    let others = arrays.into_iter().enumerate().filter(|(number, _)| *number != made).map(|(_, array)| array);
    let all = others.chain([("the workspace", (at, room as u64))]);
    match all.into_iter().find(|(_, range)| overlaps(*range, arrays[made].1)) {
        Some((name, _)) => wrong(Status::BAD_PARAM, format!("{name} and {} overlap", arrays[made].0)),
        None => Ok(()),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudnnConvolutionForward(
    library: *mut c_void,
    alpha: *const c_void,
    x_description: *mut c_void,
    x: *const c_void,
    w_description: *mut c_void,
    w: *const c_void,
    operation: *mut c_void,
    algorithm: u32,
    workspace: *mut c_void,
    bytes: usize,
    beta: *const c_void,
    y_description: *mut c_void,
    y: *mut c_void,
) -> u32 {
    let asked = ConvolutionCall {
        kind: ConvolutionKind::Forward,
        library,
        descriptions: [x_description, w_description, y_description, operation],
        algorithm,
        arrays: [x, w, y.cast_const()],
        workspace: (workspace, bytes),
        factors: [alpha, beta],
    };
    // SAFETY: by the interface.
    unsafe { convolve("cudnnConvolutionForward", asked) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudnnConvolutionBackwardData(
    library: *mut c_void,
    alpha: *const c_void,
    w_description: *mut c_void,
    w: *const c_void,
    dy_description: *mut c_void,
    dy: *const c_void,
    operation: *mut c_void,
    algorithm: u32,
    workspace: *mut c_void,
    bytes: usize,
    beta: *const c_void,
    dx_description: *mut c_void,
    dx: *mut c_void,
) -> u32 {
    let asked = ConvolutionCall {
        kind: ConvolutionKind::BackwardData,
        library,
        descriptions: [dx_description, w_description, dy_description, operation],
        algorithm,
        arrays: [dx.cast_const(), w, dy],
        workspace: (workspace, bytes),
        factors: [alpha, beta],
    };
    // SAFETY: by the interface.
    unsafe { convolve("cudnnConvolutionBackwardData", asked) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudnnConvolutionBackwardFilter(
    library: *mut c_void,
    alpha: *const c_void,
    x_description: *mut c_void,
    x: *const c_void,
    dy_description: *mut c_void,
    dy: *const c_void,
    operation: *mut c_void,
    algorithm: u32,
    workspace: *mut c_void,
    bytes: usize,
    beta: *const c_void,
    dw_description: *mut c_void,
    dw: *mut c_void,
) -> u32 {
    let asked = ConvolutionCall {
        kind: ConvolutionKind::BackwardFilter,
        library,
        descriptions: [x_description, dw_description, dy_description, operation],
        algorithm,
        arrays: [x, dw.cast_const(), dy],
        workspace: (workspace, bytes),
        factors: [alpha, beta],
    };
    // SAFETY: by the interface.
    unsafe { convolve("cudnnConvolutionBackwardFilter", asked) }
}
