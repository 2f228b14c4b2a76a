//! Statuses: the errors of the C API, with codes and payloads.

use xla_hlo::Error;

/// Error codes, numbered as in Abseil.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
#[expect(missing_docs, reason = "the names are the field's")]
pub enum Code {
    Ok = 0,
    Cancelled = 1,
    Unknown = 2,
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    NotFound = 5,
    AlreadyExists = 6,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    FailedPrecondition = 9,
    Aborted = 10,
    OutOfRange = 11,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
    DataLoss = 15,
    Unauthenticated = 16,
}

impl Code {
    const ALL: [Code; 17] = [
        Code::Ok,
        Code::Cancelled,
        Code::Unknown,
        Code::InvalidArgument,
        Code::DeadlineExceeded,
        Code::NotFound,
        Code::AlreadyExists,
        Code::PermissionDenied,
        Code::ResourceExhausted,
        Code::FailedPrecondition,
        Code::Aborted,
        Code::OutOfRange,
        Code::Unimplemented,
        Code::Internal,
        Code::Unavailable,
        Code::DataLoss,
        Code::Unauthenticated,
    ];

    /// Returns the code with this number; `Unknown` if there is none.
    pub fn from_number(number: i32) -> Code {
        usize::try_from(number).ok().and_then(|i| Code::ALL.get(i)).copied().unwrap_or(Code::Unknown)
    }
}

/// Error of the C API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Status {
    pub code: Code,
    pub message: String,
    /// Keys and values of an error from the caller.
    pub payload: Vec<(String, Vec<u8>)>,
}

impl Status {
    pub fn new(code: Code, message: impl Into<String>) -> Status {
        Status { code, message: message.into(), payload: Vec::new() }
    }

    pub fn invalid_argument(message: impl Into<String>) -> Status {
        Status::new(Code::InvalidArgument, message)
    }

    pub fn internal(message: impl Into<String>) -> Status {
        Status::new(Code::Internal, message)
    }

    pub fn unimplemented(message: impl Into<String>) -> Status {
        Status::new(Code::Unimplemented, message)
    }

    pub fn failed_precondition(message: impl Into<String>) -> Status {
        Status::new(Code::FailedPrecondition, message)
    }
}

impl From<Error> for Status {
    fn from(error: Error) -> Status {
        let code = match &error {
            Error::InvalidArgument(_) => Code::InvalidArgument,
            Error::Unimplemented(_) => Code::Unimplemented,
            Error::ResourceExhausted(_) => Code::ResourceExhausted,
            Error::NotFound(_) => Code::NotFound,
            Error::FailedPrecondition(_) => Code::FailedPrecondition,
            Error::Cancelled(_) => Code::Cancelled,
            Error::Internal(_) => Code::Internal,
        };
        Status::new(code, error.message())
    }
}

impl From<&Status> for Error {
    /// Converts to the nearest error of the service, which has fewer codes.
    fn from(status: &Status) -> Error {
        let message = status.message.as_str();
        match status.code {
            Code::InvalidArgument | Code::OutOfRange => Error::invalid_argument(message),
            Code::Unimplemented => Error::unimplemented(message),
            Code::ResourceExhausted => Error::resource_exhausted(message),
            Code::NotFound => Error::not_found(message),
            Code::FailedPrecondition | Code::AlreadyExists | Code::PermissionDenied | Code::Unauthenticated => {
                Error::failed_precondition(message)
            }
            Code::Cancelled | Code::Aborted => Error::cancelled(message),
            Code::Ok | Code::Unknown | Code::DeadlineExceeded | Code::Internal | Code::Unavailable | Code::DataLoss => {
                Error::internal(message)
            }
        }
    }
}
