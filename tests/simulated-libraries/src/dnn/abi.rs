//! C interface of cuDNN: the functions of `cudnn.h` and `cudnn_graph.h` that this repository calls.
#![expect(unsafe_code, reason = "a C library is what this is for")]

use std::ffi::{c_char, c_void};
use std::sync::{Mutex, PoisonError};

use simulated_gpu::libraries::capability;

use super::attributes::{
    DESCRIPTOR, ENGINE, ENGINE_CONFIGURATION, INT64, NUMERICAL_NOTE, Object, element_bytes, value,
};
use super::graph::{self, Made};
use super::work::Convolving;
use super::{Dnn, Status};
use crate::arguments::put;
use crate::handles::Handles;
use crate::refusal::wrong;

/// Version 9.8.0.
const VERSION: usize = 90_800;

/// Library handle, with its stream.
struct Library {
    stream: u64,
}

/// Objects that programs have created.
struct DnnState {
    libraries: Handles<Library>,
    descriptors: Handles<Object<Made>>,
}

static STATE: Mutex<DnnState> = Mutex::new(DnnState {
    libraries: Handles::new("the library's handle", 0x71),
    descriptors: Handles::new("a descriptor", 0x72),
});

/// Makes a call; misuse is reported.
fn call(name: &str, work: impl FnOnce(&mut DnnState) -> Dnn) -> u32 {
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    match work(&mut state) {
        Ok(()) => Status::SUCCESS.0,
        Err(refusal) => refusal.told("cuDNN", name).0,
    }
}

/// Returns the object of a handle, or `CUDNN_STATUS_BAD_PARAM`.
fn known<T>(found: Result<T, String>) -> Dnn<T> {
    found.or_else(|sentence| wrong(Status::BAD_PARAM, sentence))
}

/// Returns the current device's compute capability.
fn device() -> Dnn<u32> {
    capability().or_else(|status| wrong(Status::NOT_INITIALIZED, format!("no device can be used: {status:?}")))
}

/// Adds an object and writes its handle to an address of the program.
///
/// # Safety
/// `into` is null or writable.
unsafe fn give<T>(into: *mut *mut c_void, handles: &mut Handles<T>, made: T) -> Dnn {
    let made = std::ptr::without_provenance_mut(handles.add(made) as usize);
    // SAFETY: the caller guarantees it.
    known(unsafe { put(into, made) })
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
        // SAFETY: the API's contract implies that of `give`.
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
unsafe extern "C" fn cudnnBackendCreateDescriptor(kind: u32, made: *mut *mut c_void) -> u32 {
    call("cudnnBackendCreateDescriptor", |state| {
        let object = Object::new(kind)?;
        // SAFETY: the API's contract implies that of `give`.
        unsafe { give(made, &mut state.descriptors, object) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudnnBackendDestroyDescriptor(descriptor: *mut c_void) -> u32 {
    call("cudnnBackendDestroyDescriptor", |state| known(state.descriptors.remove(descriptor.addr() as u64)).map(drop))
}

#[unsafe(no_mangle)]
extern "C" fn cudnnBackendFinalize(descriptor: *mut c_void) -> u32 {
    call("cudnnBackendFinalize", |state| {
        let capability = device()?;
        known(state.descriptors.get_mut(descriptor.addr() as u64))?
            .finalize(|kind, object| graph::make(kind, object, capability))
    })
}

/// Returns the bits of elements, zero-extended.
///
/// # Safety
/// `elements` points to `count` elements of the type, or is null.
unsafe fn bits(ty: u32, count: usize, elements: *const c_void) -> Dnn<Vec<u64>> {
    let Some(bytes) = element_bytes(ty) else {
        return wrong(Status::ATTRIBUTE_TYPE, format!("elements of type {ty} are not simulated"));
    };
    if elements.is_null() {
        return wrong(Status::NULL_POINTER, "the elements of an attribute are at address zero");
    }
    // SAFETY: `elements` is not null, so the caller guarantees `count` elements of the type.
    let all = unsafe { std::slice::from_raw_parts(elements.cast::<u8>(), count * bytes) };
    Ok(all
        .chunks_exact(bytes)
        .map(|element| element.iter().rev().fold(0, |bits, &b| bits << 8 | u64::from(b)))
        .collect())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudnnBackendSetAttribute(
    descriptor: *mut c_void,
    name: u32,
    ty: u32,
    count: i64,
    elements: *const c_void,
) -> u32 {
    call("cudnnBackendSetAttribute", |state| {
        let descriptor = descriptor.addr() as u64;
        let count = known(state.descriptors.get(descriptor))?.check(name, ty, count)?;
        // SAFETY: the API's contract guarantees it.
        let bits = unsafe { bits(ty, count, elements)? };
        if ty == super::attributes::HANDLE {
            bits.iter().try_for_each(|&handle| known(state.libraries.get(handle)).map(drop))?;
        }
        let value = value(ty, &bits, |part| known(state.descriptors.get(part))?.made().cloned())?;
        known(state.descriptors.get_mut(descriptor))?.set(name, value);
        Ok(())
    })
}

/// Writes at most `room` elements, and the total number of elements.
///
/// # Safety
/// `count` is null or writable; `elements` has room for `room` elements of the type.
unsafe fn answer<T: Copy>(all: &[T], room: i64, count: *mut i64, elements: *mut c_void) -> Dnn {
    let room = usize::try_from(room).unwrap_or(0);
    for (place, &element) in all.iter().enumerate().take(room) {
        // SAFETY: the caller guarantees the room.
        known(unsafe { put(elements.cast::<T>().wrapping_add(place), element) })?;
    }
    // SAFETY: the caller guarantees it.
    known(unsafe { put(count, all.len() as i64) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudnnBackendGetAttribute(
    descriptor: *mut c_void,
    name: u32,
    ty: u32,
    room: i64,
    count: *mut i64,
    elements: *mut c_void,
) -> u32 {
    call("cudnnBackendGetAttribute", |state| {
        let made = known(state.descriptors.get(descriptor.addr() as u64))?.made()?.clone();
        let (wanted, kind, parts) = match (&made, name) {
            (Made::Plan(plan), 402) if ty == INT64 => {
                let bytes = plan.configuration.engine.workspace(&plan.configuration.graph) as i64;
                // SAFETY: the API's contract guarantees it.
                return unsafe { answer(&[bytes], room, count, elements) };
            }
            (Made::Engine(engine), 1303) if ty == NUMERICAL_NOTE => {
                // SAFETY: the API's contract guarantees it.
                return unsafe { answer(engine.notes(), room, count, elements) };
            }
            (Made::Heuristic(found), 202) => {
                (DESCRIPTOR, ENGINE_CONFIGURATION, found.iter().cloned().map(Made::Configuration).collect())
            }
            (Made::Configuration(found), 300) => (DESCRIPTOR, ENGINE, vec![Made::Engine(found.engine)]),
            (Made::Plan(_), 402) | (Made::Engine(_), 1303) => {
                return wrong(Status::ATTRIBUTE_TYPE, format!("attribute {name} is not of type {ty}"));
            }
            _ => return wrong(Status::BAD_PARAM, format!("there is no attribute {name} to get")),
        };
        if ty != wanted {
            return wrong(Status::ATTRIBUTE_TYPE, format!("attribute {name} is of type {wanted}, not {ty}"));
        }
        let places = usize::try_from(room).unwrap_or(0).min(parts.len());
        // SAFETY: by the API's contract there are `places` descriptors.
        let empty = if places > 0 { unsafe { bits(ty, places, elements)? } } else { Vec::new() };
        let all: &Vec<Made> = &parts;
        for (handle, part) in empty.into_iter().zip(all) {
            known(state.descriptors.get_mut(handle))?.fill(kind, part.clone())?;
        }
        // SAFETY: the API's contract guarantees it.
        known(unsafe { put(count, all.len() as i64) })
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudnnBackendExecute(library: *mut c_void, plan: *mut c_void, pack: *mut c_void) -> u32 {
    const NAME: &str = "cudnnBackendExecute";
    call(NAME, |state| {
        let library = library.addr() as u64;
        let stream = known(state.libraries.get(library))?.stream;
        let made = |descriptor: *mut c_void| known(state.descriptors.get(descriptor.addr() as u64))?.made();
        let (Made::Plan(plan), Made::Pack(pack)) = (made(plan)?, made(pack)?) else {
            return wrong(Status::DESCRIPTOR_TYPE, "a plan and a variant pack are wanted");
        };
        if plan.handle as u64 != library {
            return wrong(Status::BAD_PARAM, "a plan is executed with another handle than it was made with");
        }
        let (work, workspace) = Convolving::new(&plan.configuration, pack)?;
        let sent = workspace.enqueue(stream, NAME, move |memory| work.run(memory));
        sent.or_else(|status| wrong(Status::EXECUTION_FAILED, format!("the driver does not take it: {status:?}")))
    })
}
