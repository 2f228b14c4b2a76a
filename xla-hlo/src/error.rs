//! Error type of the project: an XLA status code, a message and the cause.

use std::error::Error as StdError;

/// Result type of every fallible function of the workspace.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Error, classified by its cause.
///
/// Every variant carries a [`Detail`]: the message shown to the user (the problem, its location and the remedy) and the
/// error that caused it, if any. Create errors with the constructors, one for each code.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The input can never work: bad text, wrong shapes, unknown names.
    #[error("{0}")]
    InvalidArgument(Detail),
    /// The request is valid, but the feature is not implemented (yet); the message names it.
    #[error("{0}")]
    Unimplemented(Detail),
    /// The request would exceed the memory or another limit.
    #[error("{0}")]
    ResourceExhausted(Detail),
    /// A named object (a file, a platform, a symbol) does not exist.
    #[error("{0}")]
    NotFound(Detail),
    /// The request is valid, but the current state does not permit it: LLVM is missing, a buffer is already donated.
    #[error("{0}")]
    FailedPrecondition(Detail),
    /// The work was stopped on request.
    #[error("{0}")]
    Cancelled(Detail),
    /// An invariant of this project is broken: a bug worth reporting.
    #[error("internal error: {0}")]
    Internal(Detail),
}

/// Message of an [`Error`] and its cause.
#[derive(Debug)]
pub struct Detail {
    message: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl std::fmt::Display for Detail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for Detail {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|e| e as &(dyn StdError + 'static))
    }
}

macro_rules! constructors {
    ($($(#[$doc:meta])* $name:ident => $variant:ident),* $(,)?) => {
        impl Error {
            $($(#[$doc])* pub fn $name(message: impl Into<String>) -> Error {
                Error::$variant(Detail { message: message.into(), source: None })
            })*

            fn detail_mut(&mut self) -> &mut Detail {
                match self { $(Error::$variant(detail) => detail,)* }
            }

            fn detail(&self) -> &Detail {
                match self { $(Error::$variant(detail) => detail,)* }
            }
        }
    };
}

constructors! {
    /// Creates an [`Error::InvalidArgument`].
    invalid_argument => InvalidArgument,
    /// Creates an [`Error::Unimplemented`].
    unimplemented => Unimplemented,
    /// Creates an [`Error::ResourceExhausted`].
    resource_exhausted => ResourceExhausted,
    /// Creates an [`Error::NotFound`].
    not_found => NotFound,
    /// Creates an [`Error::FailedPrecondition`].
    failed_precondition => FailedPrecondition,
    /// Creates an [`Error::Cancelled`].
    cancelled => Cancelled,
    /// Creates an [`Error::Internal`].
    internal => Internal,
}

impl Error {
    /// Returns the message, without the prefix that the code may add.
    pub fn message(&self) -> &str {
        &self.detail().message
    }

    /// Prepends `context` to the message: `while compiling fusion.3: ...`. The code is unchanged.
    #[must_use]
    pub fn context(mut self, context: impl std::fmt::Display) -> Error {
        let detail = self.detail_mut();
        detail.message = format!("{context}: {}", detail.message);
        self
    }

    /// Appends `note` to the message on separate lines. The code is unchanged.
    #[must_use]
    pub fn note(mut self, note: impl std::fmt::Display) -> Error {
        let detail = self.detail_mut();
        detail.message = format!("{}\n{note}", detail.message);
        self
    }

    /// Returns a copy with the same code and message, for an error with several receivers; the copy has no cause.
    #[must_use]
    pub fn again(&self) -> Error {
        let message = self.message();
        match self {
            Error::InvalidArgument(_) => Error::invalid_argument(message),
            Error::Unimplemented(_) => Error::unimplemented(message),
            Error::ResourceExhausted(_) => Error::resource_exhausted(message),
            Error::NotFound(_) => Error::not_found(message),
            Error::FailedPrecondition(_) => Error::failed_precondition(message),
            Error::Cancelled(_) => Error::cancelled(message),
            Error::Internal(_) => Error::internal(message),
        }
    }

    /// Records the error that caused this one.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Error {
        self.detail_mut().source = Some(source.into());
        self
    }
}

/// Adds context to the error of a `Result`.
pub trait ResultExt<T> {
    /// Prepends a description of the failed step to the message of the error.
    fn context<C: std::fmt::Display>(self, context: impl FnOnce() -> C) -> Result<T>;
}

impl<T> ResultExt<T> for Result<T> {
    fn context<C: std::fmt::Display>(self, context: impl FnOnce() -> C) -> Result<T> {
        self.map_err(|e| e.context(context()))
    }
}
