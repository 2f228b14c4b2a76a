//! Shared library of NVIDIA: opened by one of its names, and kept open until the process ends.
#![expect(unsafe_code, reason = "opens libraries and looks for their functions")]

use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};

use xla_hlo::{Error, Result};

use super::search::{Places, Wanted};

/// Open library. It is never closed: pointers to its functions are kept, and its threads would not end.
#[derive(Debug)]
pub(crate) struct Library {
    handle: ManuallyDrop<libloading::Library>,
    /// File of the library, if the system reports it.
    path: Option<PathBuf>,
}

impl Library {
    /// Opens a library: first on the loader's path, then in folders of Python packages and toolkits. Versions that a
    /// driver of version `driver` supports come first, the newest of them first. [`Error::FailedPrecondition`] with a
    /// remedy if no file is found. A file on the loader's path that cannot be opened ends the search: it also hides
    /// files elsewhere from all other programs.
    pub fn open(wanted: &Wanted, driver: i32) -> Result<Library> {
        Library::open_in(wanted, driver, &Places::of_this_machine())
    }

    /// Opens a library like [`Library::open`], with `places` instead of the folders of this machine.
    pub fn open_in(wanted: &Wanted, driver: i32, places: &Places) -> Result<Library> {
        let mut refused = None;
        for name in wanted.names(driver).into_iter().map(PathBuf::from) {
            match open(&name) {
                Ok(handle) => return Ok(Library { handle, path: None }),
                Err(error) if is_there(&error) => refused = refused.or(Some((name, error))),
                Err(_) => {}
            }
        }
        let files = if refused.is_none() { wanted.files(driver, places) } else { Vec::new() };
        for file in files {
            match open(&file) {
                Ok(handle) => return Ok(Library { handle, path: Some(file) }),
                Err(error) => refused = refused.or(Some((file, error))),
            }
        }
        let missing = wanted.missing();
        Err(match refused {
            Some((file, error)) => missing.note(format!("{} cannot be opened: {error}.", file.display())),
            None => missing,
        })
    }

    /// Opens the library with this file name or path.
    pub fn at(file: &Path) -> Result<Library> {
        let unopened = |error| Error::failed_precondition(format!("{} cannot be opened: {error}", file.display()));
        Ok(Library { handle: open(file).map_err(unopened)?, path: Some(file.to_path_buf()) })
    }

    /// Looks up a function by its name.
    ///
    /// # Safety
    ///
    /// `F` is the type of a function pointer, and the function has that type.
    pub unsafe fn function<F: Copy>(&self, name: &str) -> Option<F> {
        // SAFETY: the caller guarantees it.
        unsafe { self.handle.get::<F>(name.as_bytes()) }.ok().map(|symbol| *symbol)
    }

    /// Returns the file that was opened; `name` is one of its functions. `None` if the system does not report it.
    pub fn file(&self, name: &str) -> Option<PathBuf> {
        if let Some(path) = &self.path {
            return Some(path.clone());
        }
        // SAFETY: the address is only looked up, not called or read.
        unsafe { self.function::<*const u8>(name) }.and_then(file_of)
    }

    /// Returns the error for a library of another version, which lacks a function.
    pub fn lacks(&self, wanted: &Wanted, function: &str) -> Error {
        let file = self.path.as_deref().unwrap_or(Path::new("the library that was found"));
        wanted.missing().note(format!("{} has a different version: it does not export {function}.", file.display()))
    }
}

fn open(file: &Path) -> std::result::Result<ManuallyDrop<libloading::Library>, libloading::Error> {
    // SAFETY: opening a library of NVIDIA runs its initialisers, as the request for it implies.
    unsafe { libloading::Library::new(file) }.map(ManuallyDrop::new)
}

/// Whether a library could not be opened although its file exists, judged by the message of Linux's loader.
fn is_there(error: &libloading::Error) -> bool {
    cfg!(target_os = "linux") && !error.to_string().contains("No such file or directory")
}

/// `dladdr`: returns the file that contains an address.
#[cfg(unix)]
fn file_of(address: *const u8) -> Option<PathBuf> {
    use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
    use std::os::unix::ffi::OsStrExt;

    /// `Dl_info` of the C library.
    #[repr(C)]
    struct Info {
        file: *const c_char,
        base: *mut c_void,
        symbol: *const c_char,
        address: *mut c_void,
    }

    // SAFETY: this is the function of the C library, as its header declares it.
    unsafe extern "C" {
        fn dladdr(address: *const c_void, info: *mut Info) -> c_int;
    }

    let null = std::ptr::null_mut::<c_void>();
    let mut info = Info { file: null.cast(), base: null, symbol: null.cast(), address: null };
    // SAFETY: any address may be passed; the structure is alive.
    if unsafe { dladdr(address.cast(), &mut info) } == 0 || info.file.is_null() {
        return None;
    }
    // SAFETY: the name is a text of the loader, which ends with a zero and lives as long as the library, which is never
    // closed.
    let name = unsafe { CStr::from_ptr(info.file) };
    Some(PathBuf::from(OsStr::from_bytes(name.to_bytes())))
}

#[cfg(not(unix))]
fn file_of(_: *const u8) -> Option<PathBuf> {
    None
}
