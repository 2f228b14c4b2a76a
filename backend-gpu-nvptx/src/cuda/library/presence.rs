//! Presence of a library on this machine, and the error where it is missing.

use xla_hlo::{Error, Result};

/// Sees that a library is there, with the functions that are called: cudarc looks for a function when it is first
/// called, and panics where it finds none.
pub(super) fn load(
    present: bool,
    symbols: &[&str],
    has: impl Fn(&str) -> bool,
    absent: impl Fn() -> Error,
) -> Result<()> {
    if !present {
        return Err(absent());
    }
    match symbols.iter().find(|symbol| !has(symbol)) {
        Some(symbol) => Err(absent().note(format!("The one that was found has another version: it lacks {symbol}."))),
        None => Ok(()),
    }
}

/// The error for a library that is not installed: `file` is the file searched for, `package` the Python package that
/// has it.
pub(super) fn missing(library: &str, file: &str, package: &str) -> Error {
    Error::failed_precondition(format!(
        "{library} is not installed: {file} was not found; install it with the CUDA toolkit, or the Python package {package} with its \
         folder in LD_LIBRARY_PATH"
    ))
}
