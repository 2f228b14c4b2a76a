//! Handlers as a C library would define them, which use only offsets of the API.
#![expect(unsafe_code, reason = "functions of C")]

use std::ffi::{CStr, c_void};
use std::fmt::Write as _;
use std::ptr;

use xla_ffi::FfiHandler;

/// Handler function.
pub type Function = unsafe extern "C" fn(*mut u8) -> *mut c_void;

pub fn handler(function: Function) -> xla_hlo::Result<FfiHandler> {
    // SAFETY: the functions of this file are handlers.
    unsafe { FfiHandler::from_address((function as *const c_void).expose_provenance()) }
}

fn read<T: Copy>(address: usize) -> T {
    // SAFETY: the tests read only memory that the API provides.
    unsafe { ptr::with_exposed_provenance::<T>(address).read_unaligned() }
}

fn write<T>(address: usize, value: T) {
    // SAFETY: the tests write only memory that the API allows handlers to write.
    unsafe { ptr::with_exposed_provenance_mut::<T>(address).write_unaligned(value) };
}

/// Calls a function of the API table with a structure of words; returns its error.
fn call(frame: usize, function: usize, args: &mut [usize]) -> *mut c_void {
    let table: usize = read(frame + 16);
    let pointer: *const c_void = ptr::with_exposed_provenance(read::<usize>(table + 48 + 8 * function));
    // SAFETY: by the API's contract this entry of the table is a function of this type.
    let function: Function = unsafe { std::mem::transmute(pointer) };
    args[0] = 8 * args.len();
    // SAFETY: the structure holds the function's arguments.
    unsafe { function(args.as_mut_ptr().cast()) }
}

fn error(frame: usize, code: usize, message: &CStr) -> *mut c_void {
    call(frame, 0, &mut [0, 0, message.as_ptr().expose_provenance(), code])
}

/// Writes the API version if the call is a metadata query; returns whether it is.
fn tells_version(frame: usize, minor: i32) -> bool {
    let extension: usize = read(frame + 8);
    if extension == 0 {
        return false;
    }
    assert_eq!(read::<i32>(extension + 8), 1);
    let metadata: usize = read(extension + 24);
    write(metadata + 8 + 16, 0_i32);
    write(metadata + 8 + 20, minor);
    true
}

/// Returns the address of the elements of operand or result 0.
fn data(frame: usize, list: usize) -> usize {
    assert_eq!(read::<i64>(frame + list + 16), 1);
    let buffer: usize = read(read(frame + list + 32));
    assert_eq!((read::<i32>(buffer + 16), read::<i64>(buffer + 32)), (11, 2));
    assert_eq!(read::<i64>(read(buffer + 40)), 2);
    read(buffer + 24)
}

fn fill(frame: usize, value: f32) {
    let result = data(frame, 80);
    (0..4).for_each(|i| write(result + 4 * i, value));
}

/// Returns a text of the frame.
fn span(address: usize) -> String {
    let (start, len): (usize, usize) = (read(address), read(address + 8));
    (0..len).map(|i| char::from(read::<u8>(start + i))).collect()
}

pub unsafe extern "C" fn scale(frame: *mut u8) -> *mut c_void {
    let frame = frame.expose_provenance();
    if tells_version(frame, 3) {
        return ptr::null_mut();
    }
    let value: usize = read(read(frame + 120 + 40));
    let factor: f32 = read(read(value + 8));
    let (from, to) = (data(frame, 40), data(frame, 80));
    (0..4).for_each(|i| write(to + 4 * i, factor * read::<f32>(from + 4 * i)));
    ptr::null_mut()
}

/// Inverts the bits of an operand of less than 256 bytes, without interpreting its elements.
pub unsafe extern "C" fn invert(frame: *mut u8) -> *mut c_void {
    let frame = frame.expose_provenance();
    if tells_version(frame, 3) {
        return ptr::null_mut();
    }
    let [from, to] = [40, 80].map(|list| read::<usize>(read(frame + list + 32)));
    let bits = match read::<i32>(from + 16) {
        21 => 4,
        27 => 2,
        _ => 8,
    };
    let bytes = (read::<usize>(read(from + 40)) * bits).div_ceil(8);
    let [from, to] = [from, to].map(|buffer| read::<usize>(buffer + 24));
    (0..bytes).for_each(|i| write(to + i, !read::<u8>(from + i)));
    ptr::null_mut()
}

fn describe_attributes(attributes: usize, text: &mut String) {
    let lists = [24, 32, 40].map(|at| read::<usize>(attributes + at));
    for i in 0..read::<usize>(attributes + 16) {
        let (ty, name): (i32, usize) = (read(lists[0] + 4 * i), read(lists[1] + 8 * i));
        let value: usize = read(lists[2] + 8 * i);
        write!(text, "{}: ", span(name)).expect("text");
        match ty {
            1 => write!(text, "array {} of {}", read::<i32>(value), read::<usize>(value + 8)).expect("text"),
            2 => {
                text.push_str("dictionary (");
                describe_attributes(value, text);
                text.push(')');
            }
            3 => write!(text, "scalar {}", read::<i32>(value)).expect("text"),
            _ => write!(text, "string {}", span(value)).expect("text"),
        }
        text.push_str("; ");
    }
}

pub unsafe extern "C" fn describe(frame: *mut u8) -> *mut c_void {
    let frame = frame.expose_provenance();
    if tells_version(frame, 3) {
        return ptr::null_mut();
    }
    let mut text = String::new();
    describe_attributes(frame + 120, &mut text);
    let text = std::ffi::CString::new(text).expect("no zero");
    error(frame, 3, &text)
}

pub unsafe extern "C" fn fail(frame: *mut u8) -> *mut c_void {
    let frame = frame.expose_provenance();
    if tells_version(frame, 2) { ptr::null_mut() } else { error(frame, 8, c"too much") }
}

pub unsafe extern "C" fn use_runtime(frame: *mut u8) -> *mut c_void {
    let frame = frame.expose_provenance();
    if tells_version(frame, 3) {
        return ptr::null_mut();
    }
    let context: usize = read(frame + 24);
    let mut memory = [0, 0, context, 100, 64, 0];
    assert!(call(frame, 9, &mut memory).is_null());
    assert_eq!(memory[5] % 64, 0);
    write(memory[5], 7.0_f32);
    let name = "tests.object";
    let (mut id, start) = (0_i64, name.as_ptr().expose_provenance());
    let id_place = ptr::from_mut(&mut id).expose_provenance();
    assert!(call(frame, 5, &mut [0, 0, start, name.len(), id_place, 0]).is_null());
    assert_ne!(read::<i64>(id_place), 0);
    assert!(call(frame, 7, &mut [0, 0, context, 3, id_place, memory[5]]).is_null());
    let mut state = [0, 0, context, 3, id_place, 0];
    assert!(call(frame, 8, &mut state).is_null());
    fill(frame, read(state[5]));
    let mut threads = 0_i64;
    let threads_place = ptr::from_mut(&mut threads).expose_provenance();
    assert!(call(frame, 12, &mut [0, 0, context, threads_place]).is_null());
    assert!(read::<i64>(threads_place) > 0);
    call(frame, 10, &mut [0, 0, context, 100, memory[5]])
}

/// Uses the functions that version 0.5 added: an extension of the run context, its options, and the code of an error.
pub unsafe extern "C" fn ask_for_newer_things(frame: *mut u8) -> *mut c_void {
    let frame = frame.expose_provenance();
    if tells_version(frame, 5) {
        return ptr::null_mut();
    }
    let context: usize = read(frame + 24);
    let mut extension = [0, 0, context, 77, 1];
    assert!(call(frame, 18, &mut extension).is_null());
    assert_eq!(extension[4], 0);
    let mut options = [0, 0, context, 0];
    assert!(call(frame, 19, &mut options).is_null());
    assert_eq!(read::<i64>(options[3] + 16), 0);
    let error = error(frame, 8, c"code").expose_provenance();
    let mut details = [0, 0, error, 0, 99];
    // These functions return nothing.
    call(frame, 1, &mut details);
    assert_eq!(details[4] as u32, 8);
    call(frame, 2, &mut [0, 0, error]);
    fill(frame, 1.0);
    ptr::null_mut()
}

/// Task of a thread: the table's function that completes a future, the future, and the address of the result.
struct Work {
    set: Function,
    future: usize,
    result: usize,
}

unsafe extern "C" fn finish(work: *mut u8) -> *mut c_void {
    // SAFETY: `work` is the task that `later` passed.
    let work = unsafe { Box::from_raw(work.cast::<Work>()) };
    (0..4).for_each(|i| write(work.result + 4 * i, 5.0_f32));
    let mut args = [24, 0, work.future];
    // SAFETY: `set` is the table's function that completes a future.
    unsafe { (work.set)(args.as_mut_ptr().cast()) }
}

pub unsafe extern "C" fn later(frame: *mut u8) -> *mut c_void {
    let frame = frame.expose_provenance();
    if tells_version(frame, 3) {
        return ptr::null_mut();
    }
    let mut future = [0, 0, 0];
    assert!(call(frame, 13, &mut future).is_null());
    let pointer: *const c_void = ptr::with_exposed_provenance(read::<usize>(read::<usize>(frame + 16) + 48 + 8 * 14));
    // SAFETY: by the API's contract this entry of the table is a function of this type.
    let set: Function = unsafe { std::mem::transmute(pointer) };
    let work = Box::new(Work { set, future: future[2], result: data(frame, 80) });
    let task = (finish as *const c_void).expose_provenance();
    let context: usize = read(frame + 24);
    assert!(call(frame, 11, &mut [0, 0, context, task, Box::into_raw(work).expose_provenance()]).is_null());
    write(frame + 168, future[2]);
    ptr::null_mut()
}

pub unsafe extern "C" fn of_the_future(frame: *mut u8) -> *mut c_void {
    tells_version(frame.expose_provenance(), 99);
    ptr::null_mut()
}

/// Handler like one in Python: it stores its outcome in the frame, and its return value is undefined. It fills the
/// result with its attribute `factor`; for 0 it stores no outcome, for -1 an error.
pub unsafe extern "C" fn outcome_in_frame(frame: *mut u8) -> *mut c_void {
    let frame = frame.expose_provenance();
    if tells_version(frame, 3) {
        let metadata: usize = read(read::<usize>(frame + 8) + 24);
        write(metadata + 32, 1_u32 << 31);
        return ptr::null_mut();
    }
    let undefined = ptr::without_provenance_mut(16);
    if read::<i32>(frame + 32) != 3 {
        return undefined;
    }
    let value: f32 = read(read::<usize>(read::<usize>(read::<usize>(frame + 120 + 40)) + 8));
    fill(frame, value);
    if value != 0.0 {
        let failed = if value < 0.0 { error(frame, 8, c"too much") } else { ptr::null_mut() };
        write(frame + 168, failed);
    }
    undefined
}
