//! The error type of this crate, in one spot.

/// Until the IR crate's error lands: same constructors, same meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    message: String,
}

/// The result of everything fallible here.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// The caller handed in something that cannot be.
    pub fn invalid_argument(message: impl Into<String>) -> Error {
        Error {
            message: message.into(),
        }
    }

    /// The operation exists but not here.
    pub fn unimplemented(message: impl Into<String>) -> Error {
        Error {
            message: message.into(),
        }
    }

    /// Something that should not happen did.
    pub fn internal(message: impl Into<String>) -> Error {
        Error {
            message: message.into(),
        }
    }

    /// Memory, address space or the like ran out.
    pub fn resource_exhausted(message: impl Into<String>) -> Error {
        Error {
            message: message.into(),
        }
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
