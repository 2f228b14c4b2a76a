//! Ranges in NVIDIA's profilers, by the protocol of NVTX 3: a profiler puts its functions where they are called.
//!
//! NVTX is no library of its own: a profiler names one of its own in the environment of the program that it watches, as
//! `NVTX_INJECTION64_PATH`. That is opened, and its `InitializeInjectionNvtx2` is given a function that hands out
//! tables: for each module of NVTX an array of the places where functions are to be put, by their numbers in the
//! header. Of all of them two are called here; the others have places, so that a profiler which fills all finds them.
#![expect(unsafe_code, reason = "the profiler is a C library")]

use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::path::Path;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use xla_hlo::{Error, Result};

use super::api::library::Library;

/// `nvtxRangePushA`, `nvtxRangePop`.
type Push = unsafe extern "C" fn(*const c_char) -> c_int;
type Pop = unsafe extern "C" fn() -> c_int;

/// A profiler that listens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Profiler {
    push: Push,
    pop: Pop,
}

/// The place of a function.
type Slot = AtomicPtr<c_void>;

/// Modules of NVTX, from number 1 on: core, CUDA, OpenCL, CUDA runtime, core of NVTX 2, synchronisation; with the
/// numbers that their functions have at most.
const MODULES: [usize; 6] = [15, 8, 14, 6, 15, 6];
/// Functions of a module at most, and the number 0, which is none's.
const MOST: usize = 16;
/// Numbers of functions in the first module.
const PUSH: usize = 9;
const POP: usize = 11;

static SLOTS: [[Slot; MOST]; MODULES.len()] = [const { [const { AtomicPtr::new(ptr::null_mut()) }; MOST] }; 6];

/// Tables of places: none for number 0, and none at the end.
static TABLES: [[Option<&'static Slot>; MOST + 1]; MODULES.len()] = tables();

const fn tables() -> [[Option<&'static Slot>; MOST + 1]; MODULES.len()] {
    let mut tables = [[None; MOST + 1]; MODULES.len()];
    let mut module = 0;
    while module < MODULES.len() {
        let mut function = 1;
        while function <= MODULES[module] {
            tables[module][function] = Some(&SLOTS[module][function]);
            function += 1;
        }
        module += 1;
    }
    tables
}

/// `NvtxExportTableCallbacks`.
#[repr(C)]
struct Callbacks {
    bytes: usize,
    table: unsafe extern "C" fn(c_uint, *mut *const Option<&'static Slot>, *mut c_uint) -> c_int,
}

/// `NvtxExportTableVersionInfo`.
#[repr(C)]
struct VersionInfo {
    bytes: usize,
    version: u32,
    reserved: u32,
    set_version: extern "C" fn(u32),
}

static CALLBACKS: Callbacks = Callbacks { bytes: size_of::<Callbacks>(), table: module_table };
static VERSION: VersionInfo =
    VersionInfo { bytes: size_of::<VersionInfo>(), version: 3, reserved: 0, set_version: hear_version };

/// `NVTX_ETID_CALLBACKS`, `NVTX_ETID_VERSIONINFO`.
const CALLBACKS_TABLE: u32 = 1;
const VERSION_TABLE: u32 = 3;

extern "C" fn export_table(number: u32) -> *const c_void {
    match number {
        CALLBACKS_TABLE => (&raw const CALLBACKS).cast(),
        VERSION_TABLE => (&raw const VERSION).cast(),
        _ => ptr::null(),
    }
}

/// The version that the profiler knows changes nothing.
extern "C" fn hear_version(_: u32) {}

/// # Safety
/// Results are null or may be written.
unsafe extern "C" fn module_table(
    module: c_uint,
    table: *mut *const Option<&'static Slot>,
    size: *mut c_uint,
) -> c_int {
    let number = (module as usize).wrapping_sub(1);
    let Some(found) = TABLES.get(number) else { return 0 };
    if !table.is_null() {
        // SAFETY: it is not null, so the caller says that it may be written.
        unsafe { table.write(found.as_ptr()) };
    }
    if !size.is_null() {
        // SAFETY: as above.
        unsafe { size.write(MODULES[number] as c_uint + 1) };
    }
    1
}

impl Profiler {
    /// Lets a profiler's library in, once for the process: it puts its functions into places that all share. `None`
    /// where there is none that listens, with a warning.
    pub fn attach(library: &Path) -> Option<Profiler> {
        static ATTACHED: OnceLock<Option<Profiler>> = OnceLock::new();
        let refused = |error: &Error| tracing::warn!(%error, "no ranges are shown to a profiler");
        *ATTACHED.get_or_init(|| Profiler::start(library).inspect_err(refused).ok())
    }

    fn start(file: &Path) -> Result<Profiler> {
        /// `InitializeInjectionNvtx2`
        type Initialize = unsafe extern "C" fn(extern "C" fn(u32) -> *const c_void) -> c_int;

        let library = Library::at(file)?;
        let refused = |why: &str| Error::failed_precondition(format!("{}: {why}", file.display()));
        // SAFETY: the type is that of the function of this name in NVTX's headers.
        let initialize = unsafe { library.function::<Initialize>("InitializeInjectionNvtx2") };
        let initialize = initialize.ok_or_else(|| refused("it is no profiler's library for NVTX 3"))?;
        // SAFETY: the function hands out tables that live as long as the process, which the protocol asks for.
        if unsafe { initialize(export_table) } == 0 {
            return Err(refused("the profiler does not want to listen"));
        }
        let [push, pop] = [PUSH, POP].map(|number| SLOTS[0][number].load(Ordering::Acquire));
        if push.is_null() || pop.is_null() {
            return Err(refused("the profiler takes no ranges"));
        }
        // SAFETY: the profiler put a function of this type there; its library stays open until the process ends.
        let push = unsafe { std::mem::transmute::<*mut c_void, Push>(push) };
        // SAFETY: as above.
        let pop = unsafe { std::mem::transmute::<*mut c_void, Pop>(pop) };
        Ok(Profiler { push, pop })
    }

    /// Opens a range of the calling thread, inside of those that are open.
    pub fn push(self, name: &str) {
        // A text with a zero in it is none for C.
        let name = CString::new(name).unwrap_or_default();
        // SAFETY: the text lives until the call returns, and the profiler takes a copy.
        unsafe { (self.push)(name.as_ptr()) };
    }

    /// Closes the range of the calling thread that was opened last.
    pub fn pop(self) {
        // SAFETY: no requirements; without an open range it is answered with a number.
        unsafe { (self.pop)() };
    }
}
