//! Ranges in NVIDIA's profilers, by the injection protocol of NVTX 3.
//!
//! NVTX has no shared library of its own. A profiler sets the environment variable `NVTX_INJECTION64_PATH` of the
//! program that it watches to its own library. That library is opened, and its `InitializeInjectionNvtx2` receives a
//! function that returns tables. Each module of NVTX has a table of slots, in the order of the function numbers of the
//! header, and the profiler stores its functions in these slots. Only two functions are called here. The others have
//! slots for profilers that fill all of them.
#![expect(unsafe_code, reason = "the profiler is a C library")]

use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::path::Path;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use xla_hlo::{Error, Result};

use super::api::library::Library;

/// Type of `nvtxRangePushA`.
type Push = unsafe extern "C" fn(*const c_char) -> c_int;
/// Type of `nvtxRangePop`.
type Pop = unsafe extern "C" fn() -> c_int;

/// Profiler that is attached to the process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Profiler {
    push: Push,
    pop: Pop,
}

/// Slot for a function of the profiler.
type Slot = AtomicPtr<c_void>;

/// Largest function number of each NVTX module, from module 1 on: core, CUDA, OpenCL, CUDA runtime, core of NVTX 2,
/// synchronisation.
const MODULES: [usize; 6] = [15, 8, 14, 6, 15, 6];
/// Length of a table of slots: the functions of the largest module, and number 0, which is unused.
const MOST: usize = 16;
/// Function number of `nvtxRangePushA` in the core module.
const PUSH: usize = 9;
/// Function number of `nvtxRangePop` in the core module.
const POP: usize = 11;

static SLOTS: [[Slot; MOST]; MODULES.len()] = [const { [const { AtomicPtr::new(ptr::null_mut()) }; MOST] }; 6];

/// Tables of slots: the entry of number 0 and the last entry are `None`.
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

/// `NvtxExportTableCallbacks` of the NVTX headers.
#[repr(C)]
struct Callbacks {
    bytes: usize,
    table: unsafe extern "C" fn(c_uint, *mut *const Option<&'static Slot>, *mut c_uint) -> c_int,
}

/// `NvtxExportTableVersionInfo` of the NVTX headers.
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

/// `NVTX_ETID_CALLBACKS` of the NVTX headers.
const CALLBACKS_TABLE: u32 = 1;
/// `NVTX_ETID_VERSIONINFO` of the NVTX headers.
const VERSION_TABLE: u32 = 3;

extern "C" fn export_table(number: u32) -> *const c_void {
    match number {
        CALLBACKS_TABLE => (&raw const CALLBACKS).cast(),
        VERSION_TABLE => (&raw const VERSION).cast(),
        _ => ptr::null(),
    }
}

/// Ignores the version that the profiler supports.
extern "C" fn hear_version(_: u32) {}

/// # Safety
/// `table` and `size` are null or may be written.
unsafe extern "C" fn module_table(
    module: c_uint,
    table: *mut *const Option<&'static Slot>,
    size: *mut c_uint,
) -> c_int {
    let number = (module as usize).wrapping_sub(1);
    let Some(found) = TABLES.get(number) else { return 0 };
    if !table.is_null() {
        // SAFETY: it is not null, so the caller guarantees that it may be written.
        unsafe { table.write(found.as_ptr()) };
    }
    if !size.is_null() {
        // SAFETY: as above.
        unsafe { size.write(MODULES[number] as c_uint + 1) };
    }
    1
}

impl Profiler {
    /// Attaches the library of a profiler, once per process: it stores its functions in global slots. Warns and returns
    /// `None` if the library cannot be attached.
    pub fn attach(library: &Path) -> Option<Profiler> {
        static ATTACHED: OnceLock<Option<Profiler>> = OnceLock::new();
        let refused = |error: &Error| tracing::warn!(%error, "the profiler cannot be attached; it receives no ranges");
        *ATTACHED.get_or_init(|| Profiler::start(library).inspect_err(refused).ok())
    }

    fn start(file: &Path) -> Result<Profiler> {
        /// Type of `InitializeInjectionNvtx2`.
        type Initialize = unsafe extern "C" fn(extern "C" fn(u32) -> *const c_void) -> c_int;

        let library = Library::at(file)?;
        let refused = |why: &str| Error::failed_precondition(format!("{}: {why}", file.display()));
        // SAFETY: the type is that of the function of this name in NVTX's headers.
        let initialize = unsafe { library.function::<Initialize>("InitializeInjectionNvtx2") };
        let initialize = initialize.ok_or_else(|| refused("the file is not a profiler's library for NVTX 3"))?;
        // SAFETY: the function returns tables that live as long as the process, as the protocol requires.
        if unsafe { initialize(export_table) } == 0 {
            return Err(refused("the profiler's InitializeInjectionNvtx2 failed"));
        }
        let [push, pop] = [PUSH, POP].map(|number| SLOTS[0][number].load(Ordering::Acquire));
        if push.is_null() || pop.is_null() {
            return Err(refused("the profiler has no functions for NVTX ranges"));
        }
        // SAFETY: the profiler stored a function of this type there; its library stays open until the process ends.
        let push = unsafe { std::mem::transmute::<*mut c_void, Push>(push) };
        // SAFETY: as above.
        let pop = unsafe { std::mem::transmute::<*mut c_void, Pop>(pop) };
        Ok(Profiler { push, pop })
    }

    /// Opens a range on the calling thread, nested in its open ranges.
    pub fn push(self, name: &str) {
        // A text with a zero in it is not a C string.
        let name = CString::new(name).unwrap_or_default();
        // SAFETY: the text lives until the call returns, and the profiler takes a copy.
        unsafe { (self.push)(name.as_ptr()) };
    }

    /// Closes the innermost open range of the calling thread.
    pub fn pop(self) {
        // SAFETY: no requirements; without an open range, the function returns a number.
        unsafe { (self.pop)() };
    }
}
