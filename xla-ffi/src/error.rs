//! Errors of handlers and of the API functions that they call: a code and a message.

use std::ffi::CString;

use xla_hlo::Error;

/// Error in the form that C sees.
#[derive(Debug)]
pub(crate) struct FfiError {
    pub code: i32,
    pub message: CString,
}

impl FfiError {
    /// Creates an error with that message; zero bytes become spaces, because C strings end at them.
    pub fn new(code: i32, message: &str) -> FfiError {
        let message = CString::new(message.replace('\0', " ")).unwrap_or_default();
        FfiError { code, message }
    }

    /// Converts to the service's error type, which has fewer codes.
    pub fn into_error(self) -> Error {
        let message = self.message.to_string_lossy().into_owned();
        match self.code {
            1 | 10 => Error::cancelled(message),
            3 | 11 => Error::invalid_argument(message),
            5 => Error::not_found(message),
            8 => Error::resource_exhausted(message),
            6 | 7 | 9 | 16 => Error::failed_precondition(message),
            12 => Error::unimplemented(message),
            _ => Error::internal(message),
        }
    }
}

impl From<Error> for FfiError {
    fn from(error: Error) -> FfiError {
        let code = match &error {
            Error::Cancelled(_) => 1,
            Error::InvalidArgument(_) => 3,
            Error::NotFound(_) => 5,
            Error::ResourceExhausted(_) => 8,
            Error::FailedPrecondition(_) => 9,
            Error::Unimplemented(_) => 12,
            Error::Internal(_) => 13,
        };
        FfiError::new(code, error.message())
    }
}
