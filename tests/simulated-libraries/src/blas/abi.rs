//! C interface of cuBLASLt: the functions of `cublasLt.h` that this repository calls.
#![expect(unsafe_code, reason = "a C library is what this is for")]

use std::ffi::{c_char, c_int, c_void};
use std::sync::{Mutex, PoisonError};

use simulated_gpu::libraries::{capability, is_wrong};

use super::algorithms::{self, Algorithm};
use super::descriptors::{MatmulDescriptor, MatrixLayout, Preference};
use super::matmul::Matmul;
use super::work::MatmulCall;
use super::{Blas, Status, rules};
use crate::arguments::{overlaps, put};
use crate::handles::Handles;
use crate::refusal::wrong;
use crate::workspace::Workspace;

/// Version 12.8.4.
const VERSION: usize = 120_804;

/// Alignment of workspaces.
const WORKSPACE_ALIGNMENT: u64 = 16;

/// Objects that programs have created.
struct BlasState {
    handles: Handles<()>,
    operations: Handles<MatmulDescriptor>,
    layouts: Handles<MatrixLayout>,
    preferences: Handles<Preference>,
}

static STATE: Mutex<BlasState> = Mutex::new(BlasState {
    handles: Handles::new("the library's handle", 0x61),
    operations: Handles::new("a matmul descriptor", 0x62),
    layouts: Handles::new("a matrix layout", 0x63),
    preferences: Handles::new("a preference", 0x64),
});

/// `cublasLtMatmulHeuristicResult_t`.
#[repr(C)]
struct HeuristicResult {
    algorithm: algorithms::Bytes,
    workspace: usize,
    state: u32,
    waves: f32,
    reserved: [c_int; 4],
}

/// Makes a call; misuse is reported.
fn call(name: &str, work: impl FnOnce(&mut BlasState) -> Blas) -> u32 {
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    match work(&mut state) {
        Ok(()) => Status::SUCCESS.0,
        Err(refusal) => refusal.told("cuBLASLt", name).0,
    }
}

/// Returns the object of a handle, or `CUBLAS_STATUS_INVALID_VALUE`.
fn known<T>(found: Result<T, String>) -> Blas<T> {
    found.or_else(|sentence| wrong(Status::INVALID_VALUE, sentence))
}

fn handle(state: &BlasState, handle: *mut c_void) -> Blas {
    state.handles.get(handle.addr() as u64).copied().or_else(|sentence| wrong(Status::NOT_INITIALIZED, sentence))
}

/// Returns the current device's compute capability.
fn device() -> Blas<u32> {
    capability().or_else(|status| wrong(Status::NOT_INITIALIZED, format!("no device can be used: {status:?}")))
}

/// Adds an object and writes its handle to an address of the program.
///
/// # Safety
/// `into` is null or writable.
unsafe fn give<T>(into: *mut *mut c_void, handles: &mut Handles<T>, made: T) -> Blas {
    let made = std::ptr::without_provenance_mut(handles.add(made) as usize);
    // SAFETY: the caller guarantees it.
    known(unsafe { put(into, made) })
}

/// Returns the bytes of an attribute's value.
///
/// # Safety
/// `value` points to `size` bytes, or is null.
unsafe fn bytes<'a>(value: *const c_void, size: usize) -> Blas<&'a [u8]> {
    if value.is_null() {
        return wrong(Status::INVALID_VALUE, "an attribute's value is null");
    }
    // SAFETY: `value` is not null, so the caller guarantees that it points to `size` bytes.
    Ok(unsafe { std::slice::from_raw_parts(value.cast(), size) })
}

#[unsafe(no_mangle)]
extern "C" fn cublasLtGetVersion() -> usize {
    VERSION
}

#[unsafe(no_mangle)]
extern "C" fn cublasLtGetStatusString(status: u32) -> *const c_char {
    Status(status).name().as_ptr()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtCreate(made: *mut *mut c_void) -> u32 {
    call("cublasLtCreate", |state| {
        device()?;
        // SAFETY: the API's contract implies that of `give`.
        unsafe { give(made, &mut state.handles, ()) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cublasLtDestroy(handle: *mut c_void) -> u32 {
    call("cublasLtDestroy", |state| {
        state.handles.remove(handle.addr() as u64).or_else(|sentence| wrong(Status::NOT_INITIALIZED, sentence))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtMatmulDescCreate(made: *mut *mut c_void, compute: u32, scale: u32) -> u32 {
    // SAFETY: the API's contract implies that of `give`.
    call("cublasLtMatmulDescCreate", |state| unsafe {
        give(made, &mut state.operations, MatmulDescriptor::new(compute, scale)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cublasLtMatmulDescDestroy(operation: *mut c_void) -> u32 {
    call("cublasLtMatmulDescDestroy", |state| known(state.operations.remove(operation.addr() as u64)).map(drop))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtMatmulDescSetAttribute(
    operation: *mut c_void,
    attribute: u32,
    value: *const c_void,
    size: usize,
) -> u32 {
    call("cublasLtMatmulDescSetAttribute", |state| {
        let operation = known(state.operations.get_mut(operation.addr() as u64))?;
        // SAFETY: the API's contract guarantees it.
        operation.set(attribute, unsafe { bytes(value, size)? })
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtMatrixLayoutCreate(
    made: *mut *mut c_void,
    element: u32,
    rows: u64,
    columns: u64,
    leading: i64,
) -> u32 {
    // SAFETY: the API's contract implies that of `give`.
    call("cublasLtMatrixLayoutCreate", |state| unsafe {
        give(made, &mut state.layouts, MatrixLayout::new(element, rows, columns, leading)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cublasLtMatrixLayoutDestroy(layout: *mut c_void) -> u32 {
    call("cublasLtMatrixLayoutDestroy", |state| known(state.layouts.remove(layout.addr() as u64)).map(drop))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtMatrixLayoutSetAttribute(
    layout: *mut c_void,
    attribute: u32,
    value: *const c_void,
    size: usize,
) -> u32 {
    call("cublasLtMatrixLayoutSetAttribute", |state| {
        let layout = known(state.layouts.get_mut(layout.addr() as u64))?;
        // SAFETY: the API's contract guarantees it.
        layout.set(attribute, unsafe { bytes(value, size)? })
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtMatmulPreferenceCreate(made: *mut *mut c_void) -> u32 {
    // SAFETY: the API's contract implies that of `give`.
    call("cublasLtMatmulPreferenceCreate", |state| unsafe { give(made, &mut state.preferences, Preference::new()) })
}

#[unsafe(no_mangle)]
extern "C" fn cublasLtMatmulPreferenceDestroy(preference: *mut c_void) -> u32 {
    call("cublasLtMatmulPreferenceDestroy", |state| known(state.preferences.remove(preference.addr() as u64)).map(drop))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtMatmulPreferenceSetAttribute(
    preference: *mut c_void,
    attribute: u32,
    value: *const c_void,
    size: usize,
) -> u32 {
    call("cublasLtMatmulPreferenceSetAttribute", |state| {
        let preference = known(state.preferences.get_mut(preference.addr() as u64))?;
        // SAFETY: the API's contract guarantees it.
        preference.set(attribute, unsafe { bytes(value, size)? })
    })
}

/// Returns the matmul of descriptors, checked for the current device.
fn matmul(state: &BlasState, operation: *mut c_void, layouts: [*mut c_void; 4]) -> Blas<Matmul> {
    let layout = |layout: *mut c_void| known(state.layouts.get(layout.addr() as u64)).cloned();
    let operation = known(state.operations.get(operation.addr() as u64))?.clone();
    let [a, b, c, d] = layouts;
    let matmul = Matmul { operation, a: layout(a)?, b: layout(b)?, c: layout(c)?, d: layout(d)? };
    matmul.check()?;
    rules::check(&matmul, device()?)?;
    Ok(matmul)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtMatmulAlgoGetHeuristic(
    library: *mut c_void,
    operation: *mut c_void,
    a: *mut c_void,
    b: *mut c_void,
    c: *mut c_void,
    d: *mut c_void,
    preference: *mut c_void,
    wanted: c_int,
    results: *mut c_void,
    count: *mut c_int,
) -> u32 {
    call("cublasLtMatmulAlgoGetHeuristic", |state| {
        // SAFETY: the API's contract implies that of `put`.
        known(unsafe { put(count, 0) })?;
        handle(state, library)?;
        let preference = known(state.preferences.get(preference.addr() as u64))?;
        let wanted = usize::try_from(wanted).unwrap_or(0);
        if wanted == 0 || results.is_null() {
            return wrong(Status::INVALID_VALUE, "no answers are asked for, or there is no place for them");
        }
        let matmul = matmul(state, operation, [a, b, c, d])?;
        let found = algorithms::find(&matmul, preference)?;
        if found.is_empty() {
            return crate::refusal::none(Status::NOT_SUPPORTED);
        }
        for (number, (algorithm, status)) in found.iter().take(wanted).enumerate() {
            let result = HeuristicResult {
                algorithm: algorithm.to_bytes(),
                workspace: algorithm.workspace as usize,
                state: status.0,
                waves: 1.0,
                reserved: [0; 4],
            };
            // SAFETY: by the API's contract there is room for the requested number of results.
            unsafe { results.cast::<HeuristicResult>().add(number).write_unaligned(result) };
        }
        // SAFETY: the API's contract implies that of `put`.
        known(unsafe { put(count, found.len().min(wanted) as c_int) })
    })
}

/// Reads alpha or beta in the scale type of a descriptor.
///
/// # Safety
/// `factor` points to such a number, or is null.
unsafe fn factor(operation: &MatmulDescriptor, factor: *const c_void) -> Blas<(f64, f64)> {
    // SAFETY: the caller guarantees it.
    let bytes = unsafe { bytes(factor, operation.scale.bytes())? };
    Ok(operation.scale.decode(bytes))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtMatmul(
    library: *mut c_void,
    operation: *mut c_void,
    alpha: *const c_void,
    a: *const c_void,
    layout_a: *mut c_void,
    b: *const c_void,
    layout_b: *mut c_void,
    beta: *const c_void,
    c: *const c_void,
    layout_c: *mut c_void,
    d: *mut c_void,
    layout_d: *mut c_void,
    algorithm: *const algorithms::Bytes,
    workspace: *mut c_void,
    workspace_bytes: usize,
    stream: *mut c_void,
) -> u32 {
    call("cublasLtMatmul", |state| {
        handle(state, library)?;
        let matmul = matmul(state, operation, [layout_a, layout_b, layout_c, layout_d])?;
        // SAFETY: the API's contract guarantees it.
        let (alpha, beta) = unsafe { (factor(&matmul.operation, alpha)?, factor(&matmul.operation, beta)?) };
        if algorithm.is_null() {
            return wrong(Status::NOT_SUPPORTED, "a matmul without an algorithm is not simulated");
        }
        // SAFETY: `algorithm` is not null, so by the API's contract it points to an algorithm.
        let algorithm = Algorithm::of_bytes(unsafe { algorithm.read_unaligned() })?;
        let [a, b, c, d] = [a, b, c, d.cast_const()].map(|array| array.addr() as u64);
        // A deliberately wrong result: twice the right one.
        let alpha = if algorithm.workspace == 0 && is_wrong() { (2.0 * alpha.0, 2.0 * alpha.1) } else { alpha };
        let work = MatmulCall { matmul, alpha, beta, a, b, c, d };
        let workspace = Workspace::new(workspace.addr() as u64, workspace_bytes);
        check_arrays(&work, workspace, &algorithm)?;
        let sent = workspace.enqueue(stream.addr() as u64, "cublasLtMatmul", move |memory| work.run(memory));
        sent.or_else(|status| wrong(Status::EXECUTION_FAILED, format!("the driver does not take it: {status:?}")))
    })
}

/// Returns the number of bytes from the first to the last element of all matrices.
fn extent(layout: &MatrixLayout) -> u64 {
    let [leading, stride] = [layout.leading, layout.stride].map(|number| number as u64);
    let matrices = (layout.batch as u64 - 1).saturating_mul(stride);
    let elements = (layout.columns - 1).saturating_mul(leading).saturating_add(layout.rows).saturating_add(matrices);
    elements.saturating_mul(layout.element.bytes() as u64)
}

/// Checks that arrays are not null, aligned as the algorithm requires, and disjoint where required.
fn check_arrays(work: &MatmulCall, workspace: Workspace, algorithm: &Algorithm) -> Blas {
    let MatmulCall { matmul, a, b, c, d, .. } = work;
    algorithm.check(matmul)?;
    let has_bias = matmul.operation.epilogue.has_bias;
    let bias = matmul.operation.bias;
    let adds = work.beta != (0.0, 0.0);
    if [*a, *b, *d].contains(&0) || (adds && *c == 0) || (has_bias && bias == 0) {
        return wrong(Status::INVALID_VALUE, "an array is null");
    }
    let arrays = [("A", *a, true), ("B", *b, true), ("C", *c, adds), ("D", *d, true), ("the bias", bias, has_bias)];
    for ((name, address, is_used), needs) in arrays.into_iter().zip(algorithm.alignments) {
        if is_used && !address.is_multiple_of(u64::from(needs)) {
            let sentence =
                format!("{name} at {address:#x} is not aligned to {needs}, which the algorithm was chosen for");
            return wrong(Status::NOT_SUPPORTED, sentence);
        }
    }
    let (at, bytes) = (workspace.address, workspace.bytes as u64);
    if bytes < algorithm.workspace || (algorithm.workspace > 0 && at == 0) {
        let sentence = format!("a workspace of {bytes} bytes at {at:#x}, where {} are needed", algorithm.workspace);
        return wrong(Status::INVALID_VALUE, sentence);
    }
    if bytes > 0 && !at.is_multiple_of(WORKSPACE_ALIGNMENT) {
        return wrong(Status::INVALID_VALUE, format!("a workspace at {at:#x}, which is not aligned to 16"));
    }
    if adds && c == d && matmul.c != matmul.d {
        return wrong(Status::INVALID_VALUE, "C and D in one place, with different layouts");
    }
    let result = (*d, extent(&matmul.d));
    let apart = [
        ("A", (*a, extent(&matmul.a)), true),
        ("B", (*b, extent(&matmul.b)), true),
        ("C", (*c, extent(&matmul.c)), adds && c != d),
        ("the workspace", (at, bytes), true),
        ("the bias", (bias, matmul.d.rows * matmul.bias_element().bytes() as u64), has_bias),
    ];
    match apart.into_iter().find(|(_, range, is_used)| *is_used && overlaps(*range, result)) {
        Some((name, ..)) => wrong(Status::INVALID_VALUE, format!("{name} and D overlap")),
        None => Ok(()),
    }
}
