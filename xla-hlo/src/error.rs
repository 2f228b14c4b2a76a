//! The error type of the project: a status code of the field, a sentence, and its cause.

use std::error::Error as StdError;

/// Shorthand used by every fallible function of the workspace.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Error, by whose fault it is.
///
/// Every variant carries a [`Detail`]: the sentence shown to the user (what was wrong, where, and what to do) and the
/// error that caused it, if any. Create errors with the constructors, one for each code.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller handed in something that can never work: bad text, wrong shapes, unknown names.
    #[error("{0}")]
    InvalidArgument(Detail),
    /// A valid request for something that is not built (yet); the message names it.
    #[error("{0}")]
    Unimplemented(Detail),
    /// Memory or another limit would be exceeded.
    #[error("{0}")]
    ResourceExhausted(Detail),
    /// Something named (a file, a platform, a symbol) is not there.
    #[error("{0}")]
    NotFound(Detail),
    /// The request is fine but the state of the world is not: missing LLVM, a buffer already donated.
    #[error("{0}")]
    FailedPrecondition(Detail),
    /// The work was stopped on request.
    #[error("{0}")]
    Cancelled(Detail),
    /// A broken invariant of this project: a bug worth reporting.
    #[error("internal error: {0}")]
    Internal(Detail),
}

/// The sentence of an [`Error`] and its cause.
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
    /// An [`Error::InvalidArgument`].
    invalid_argument => InvalidArgument,
    /// An [`Error::Unimplemented`].
    unimplemented => Unimplemented,
    /// An [`Error::ResourceExhausted`].
    resource_exhausted => ResourceExhausted,
    /// An [`Error::NotFound`].
    not_found => NotFound,
    /// An [`Error::FailedPrecondition`].
    failed_precondition => FailedPrecondition,
    /// An [`Error::Cancelled`].
    cancelled => Cancelled,
    /// An [`Error::Internal`].
    internal => Internal,
}

impl Error {
    /// The sentence, without the prefix that the code may add.
    pub fn message(&self) -> &str {
        &self.detail().message
    }

    /// Puts `context` in front of the message: `while compiling fusion.3: ...`. The code stays.
    #[must_use]
    pub fn context(mut self, context: impl std::fmt::Display) -> Error {
        let detail = self.detail_mut();
        detail.message = format!("{context}: {}", detail.message);
        self
    }

    /// Appends `note` to the message, on lines of its own. The code stays.
    #[must_use]
    pub fn note(mut self, note: impl std::fmt::Display) -> Error {
        let detail = self.detail_mut();
        detail.message = format!("{}\n{note}", detail.message);
        self
    }

    /// The same code and sentence once more, for each of several who must be told; the cause stays with the original.
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
    /// Puts a description of the attempt in front of the error's message.
    fn context<C: std::fmt::Display>(self, context: impl FnOnce() -> C) -> Result<T>;
}

impl<T> ResultExt<T> for Result<T> {
    fn context<C: std::fmt::Display>(self, context: impl FnOnce() -> C) -> Result<T> {
        self.map_err(|e| e.context(context()))
    }
}
