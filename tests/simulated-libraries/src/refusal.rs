//! Refusal of a library call: a status code and a message.

use simulated_gpu::libraries::tell;

/// Refused call: the status code, with a message if the call was a misuse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal<S> {
    pub status: S,
    /// Message; `None` if the status is a regular answer, such as "not supported".
    pub sentence: Option<String>,
}

/// Result of a library call.
pub(crate) type LibraryResult<T, S> = Result<T, Refusal<S>>;

/// Refuses a call that is a misuse of the library.
pub(crate) fn wrong<T, S>(status: S, sentence: impl Into<String>) -> LibraryResult<T, S> {
    Err(Refusal { status, sentence: Some(sentence.into()) })
}

/// Refuses a call without a message, as a regular negative answer.
pub(crate) fn none<T, S>(status: S) -> LibraryResult<T, S> {
    Err(Refusal { status, sentence: None })
}

impl<S> Refusal<S> {
    /// Reports the message, if any, and returns the status code.
    pub fn told(self, library: &str, call: &str) -> S {
        if let Some(sentence) = &self.sentence {
            tell(&format!("misuse of {library}: {call}: {sentence}"));
        }
        self.status
    }
}
