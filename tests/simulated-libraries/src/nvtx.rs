//! NVTX 3 profiler that writes ranges to a file: `simulated-nvtx-PID.txt` in the system's folder for temporary files,
//! with a line for each range that opens, indented by two blanks for each range that is open.
#![expect(unsafe_code, reason = "a C library is what this is for")]

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fs::OpenOptions;
use std::io::Write;

use simulated_gpu::libraries::tell;

/// Pointer to the address of a function, in an array of such pointers.
type Slot = *mut *const c_void;

/// `NvtxExportTableCallbacks`.
#[repr(C)]
struct Callbacks {
    bytes: usize,
    table: unsafe extern "C" fn(c_uint, *mut *mut Slot, *mut c_uint) -> c_int,
}

/// `NVTX_ETID_CALLBACKS`, `NVTX_CB_MODULE_CORE`, and numbers of functions.
const CALLBACKS: u32 = 1;
const CORE: c_uint = 1;
const CORE_SIZE: c_uint = 16;
const PUSH: usize = 9;
const POP: usize = 11;

thread_local! {
    /// Number of open ranges of the thread.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn InitializeInjectionNvtx2(export_table: unsafe extern "C" fn(u32) -> *const c_void) -> c_int {
    // SAFETY: by the NVTX protocol the table is of this type.
    let callbacks = unsafe { export_table(CALLBACKS).cast::<Callbacks>().as_ref() };
    let Some(callbacks) = callbacks.filter(|callbacks| callbacks.bytes >= size_of::<Callbacks>()) else {
        tell("NVTX hands out no table of callbacks");
        return 0;
    };
    let (mut table, mut size) = (std::ptr::null_mut(), 0);
    // SAFETY: by the NVTX protocol; both pointers are to live variables.
    if unsafe { (callbacks.table)(CORE, &mut table, &mut size) } == 0 || size < CORE_SIZE {
        tell(&format!("NVTX has {size} functions in its first module"));
        return 0;
    }
    let functions: [(usize, *const c_void); 2] = [(PUSH, push as *const c_void), (POP, pop as *const c_void)];
    for (number, function) in functions {
        // SAFETY: the table has an entry with this index, which is writable.
        unsafe { table.add(number).read().write(function) };
    }
    1
}

/// `nvtxRangePushA`
unsafe extern "C" fn push(name: *const c_char) -> c_int {
    // SAFETY: by the NVTX API's contract the name has a terminating zero.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    let depth = DEPTH.replace(DEPTH.get() + 1);
    let path = std::env::temp_dir().join(format!("simulated-nvtx-{}.txt", std::process::id()));
    let written = OpenOptions::new().create(true).append(true).open(path);
    let written = written.and_then(|mut file| file.write_all(format!("{:1$}{name}\n", "", 2 * depth).as_bytes()));
    if let Err(error) = written {
        tell(&format!("a range cannot be written down: {error}"));
    }
    depth as c_int
}

/// `nvtxRangePop`
unsafe extern "C" fn pop() -> c_int {
    let Some(depth) = DEPTH.get().checked_sub(1) else {
        tell("a range is closed that was never opened");
        return -1;
    };
    DEPTH.set(depth);
    depth as c_int
}
