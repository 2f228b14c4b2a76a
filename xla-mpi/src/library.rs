//! The MPI library: its functions.
#![expect(unsafe_code, reason = "loads functions of a C library")]

use std::ffi::{c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW, Symbol};
use xla_hlo::{Error, Result};

use crate::abi::{Constants, Family, Handle, OPEN_MPI_OBJECTS, Status};
use crate::find::{Environment, VARIABLE, names};

/// Declares the table of functions.
macro_rules! functions {
    ($($(#[$doc:meta])* $field:ident: $name:literal ($($parameter:ty),*);)*) => {
        /// Functions of the library. Each returns an error code.
        #[derive(Debug)]
        pub(crate) struct Functions {
            $($(#[$doc])* pub $field: unsafe extern "C" fn($($parameter),*) -> c_int,)*
        }

        impl Functions {
            fn load(library: &Library) -> Result<Functions> {
                Ok(Functions {
                    // SAFETY: the type is the function's in `mpi.h`. Handles of MPICH are 32-bit integers: callees
                    // ignore the upper half of an argument's register, and store into the lower half of zero memory.
                    $($field: unsafe { *symbol::<unsafe extern "C" fn($($parameter),*) -> c_int>(library, $name)? },)*
                })
            }
        }
    };
}

functions! {
    /// `MPI_Initialized(flag)`.
    initialized: "MPI_Initialized" (*mut c_int);
    /// `MPI_Init_thread(argc, argv, required, provided)`.
    init_thread: "MPI_Init_thread" (*mut c_int, *mut *mut *mut c_char, c_int, *mut c_int);
    /// `MPI_Query_thread(provided)`.
    query_thread: "MPI_Query_thread" (*mut c_int);
    /// `MPI_Finalize()`.
    finalize: "MPI_Finalize" ();
    /// `MPI_Finalized(flag)`.
    finalized: "MPI_Finalized" (*mut c_int);
    /// `MPI_Comm_idup(comm, newcomm, request)`.
    comm_idup: "MPI_Comm_idup" (Handle, *mut Handle, *mut Handle);
    /// `MPI_Comm_rank(comm, rank)`.
    comm_rank: "MPI_Comm_rank" (Handle, *mut c_int);
    /// `MPI_Comm_size(comm, size)`.
    comm_size: "MPI_Comm_size" (Handle, *mut c_int);
    /// `MPI_Comm_set_errhandler(comm, errhandler)`.
    comm_set_errhandler: "MPI_Comm_set_errhandler" (Handle, Handle);
    /// `MPI_Isend(buf, count, datatype, dest, tag, comm, request)`.
    isend: "MPI_Isend" (*const c_void, c_int, Handle, c_int, c_int, Handle, *mut Handle);
    /// `MPI_Irecv(buf, count, datatype, source, tag, comm, request)`.
    irecv: "MPI_Irecv" (*mut c_void, c_int, Handle, c_int, c_int, Handle, *mut Handle);
    /// `MPI_Test(request, flag, status)`.
    test: "MPI_Test" (*mut Handle, *mut c_int, *mut Status);
    /// `MPI_Iprobe(source, tag, comm, flag, status)`.
    iprobe: "MPI_Iprobe" (c_int, c_int, Handle, *mut c_int, *mut Status);
    /// `MPI_Get_count(status, datatype, count)`.
    get_count: "MPI_Get_count" (*const Status, Handle, *mut c_int);
    /// `MPI_Error_string(errorcode, string, resultlen)`.
    error_string: "MPI_Error_string" (c_int, *mut c_char, *mut c_int);
    /// `MPI_Get_library_version(version, resultlen)`.
    get_library_version: "MPI_Get_library_version" (*mut c_char, *mut c_int);
}

/// Loaded library.
#[derive(Debug)]
pub(crate) struct MpiLibrary {
    pub functions: Functions,
    pub constants: Constants,
    /// Path or name, for messages.
    pub path: PathBuf,
    /// Keeps the functions in memory. Never unloaded: an initialised MPI has threads and handlers of its own, even if
    /// its thread level is too low for collectives.
    _library: ManuallyDrop<Library>,
}

/// Number of bytes that hold each text of MPI: `MPI_MAX_LIBRARY_VERSION_STRING` is 8192 or less.
const TEXT_BYTES: usize = 8192 + 1;

impl MpiLibrary {
    /// Loads the library that the process uses already, otherwise the first that can be loaded.
    pub fn load() -> Result<MpiLibrary> {
        let environment = Environment::of_process();
        if environment.library.is_none() {
            // Two libraries in a process would both start as the same process of the job.
            for name in names() {
                // SAFETY: loads nothing.
                if let Ok(library) = unsafe { Library::open(Some(name), RTLD_NOW | libc::RTLD_NOLOAD) } {
                    return MpiLibrary::new(library, Path::new(name));
                }
            }
        }
        let mut failures = vec![];
        for path in environment.candidates() {
            // SAFETY: MPI libraries may be loaded at any time. Open MPI loads plugins that need its symbols.
            match unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_GLOBAL) } {
                Ok(library) => return MpiLibrary::new(library, &path),
                Err(error) => failures.push(reason(&error)),
            }
        }
        Err(Error::failed_precondition("MPI cannot be loaded").note(failures.join("\n")).note(format!(
            "Install MPI (pip install mpich, or apt-get install mpich or openmpi-bin), put its mpiexec into PATH, and \
             start the program with it: mpiexec -n 4 PROGRAM. {VARIABLE}=PATH names a library elsewhere."
        )))
    }

    fn new(library: Library, path: &Path) -> Result<MpiLibrary> {
        let context = |error: Error| error.context(format_args!("MPI library {}", path.display()));
        let functions = Functions::load(&library).map_err(context)?;
        let family = family(&library, &functions, path).map_err(context)?;
        let mut objects = [0; 3];
        if family == Family::OpenMpi {
            for (object, name) in objects.iter_mut().zip(OPEN_MPI_OBJECTS) {
                *object = address(&library, name).map_err(context)?;
            }
        }
        let constants = family.constants(objects);
        Ok(MpiLibrary { functions, constants, path: path.to_path_buf(), _library: ManuallyDrop::new(library) })
    }

    /// Returns an error that names the call and has MPI's message.
    pub fn check(&self, call: &str, code: c_int) -> Result<()> {
        if code == 0 {
            return Ok(());
        }
        let text = text(|text, length| {
            // SAFETY: the memory is larger than `MPI_MAX_ERROR_STRING`, which is 512 or less.
            unsafe { (self.functions.error_string)(code, text, length) }
        });
        Err(Error::failed_precondition(format!("{call} failed: {text}")))
    }
}

/// Returns the family of a library.
fn family(library: &Library, functions: &Functions, path: &Path) -> Result<Family> {
    // A link may have another name.
    let target = std::fs::canonicalize(path).ok();
    let names = [Some(path), target.as_deref()].into_iter().flatten().filter_map(Path::file_name);
    if names.into_iter().any(|name| name.to_string_lossy().contains("mpi_abi")) {
        return Ok(Family::Standard);
    }
    if address(library, OPEN_MPI_OBJECTS[0]).is_ok() {
        return Ok(Family::OpenMpi);
    }
    let version = text(|text, length| {
        // SAFETY: the memory has `MPI_MAX_LIBRARY_VERSION_STRING` bytes. May be called before `MPI_Init`.
        unsafe { (functions.get_library_version)(text, length) }
    });
    let is_relative = ["MPICH", "Intel(R) MPI", "MVAPICH"].iter().any(|name| version.contains(name));
    match is_relative && cfg!(target_endian = "little") {
        true => Ok(Family::Mpich),
        false => Err(Error::unimplemented(format!("the binary interface of {version:?} is unknown"))
            .note("MPICH, Open MPI and libraries with the standard ABI (libmpi_abi.so) are supported")),
    }
}

/// Returns the text that a function stores.
fn text(store: impl FnOnce(*mut c_char, *mut c_int) -> c_int) -> String {
    let (mut text, mut length) = (vec![0_u8; TEXT_BYTES], 0);
    store(text.as_mut_ptr().cast(), &mut length);
    text.truncate(usize::try_from(length).unwrap_or_default());
    String::from_utf8_lossy(&text).trim_end_matches('\0').to_string()
}

/// Returns the message of the loader.
fn reason(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

/// Returns the address of a symbol.
fn address(library: &Library, name: &str) -> Result<Handle> {
    // SAFETY: the caller does not access the object.
    Ok(unsafe { symbol::<*const c_void>(library, name) }?.into_raw().addr())
}

/// Returns a symbol of a library.
///
/// # Safety
///
/// The symbol has the type `T`, or is not accessed.
unsafe fn symbol<T>(library: &Library, name: &str) -> Result<Symbol<T>> {
    // SAFETY: as the caller guarantees.
    unsafe { library.get(name.as_bytes()) }
        .map_err(|error| Error::failed_precondition(format!("it has no {name}: {}", reason(&error))))
}
