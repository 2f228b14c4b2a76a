//! Refusal of a library call: a sentence and a status code.

use simulated_gpu::libraries::tell;

/// The library's code, with the sentence if the call was a mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal<S> {
    pub status: S,
    /// None where asking is how one finds out.
    pub sentence: Option<String>,
}

/// Result of a call.
pub(crate) type LibraryResult<T, S> = Result<T, Refusal<S>>;

/// A call that the library must not get.
pub(crate) fn wrong<T, S>(status: S, sentence: impl Into<String>) -> LibraryResult<T, S> {
    Err(Refusal { status, sentence: Some(sentence.into()) })
}

/// A question whose answer is no.
pub(crate) fn none<T, S>(status: S) -> LibraryResult<T, S> {
    Err(Refusal { status, sentence: None })
}

impl<S> Refusal<S> {
    /// The code, once the sentence is told.
    pub fn told(self, library: &str, call: &str) -> S {
        if let Some(sentence) = &self.sentence {
            tell(&format!("misuse of {library}: {call}: {sentence}"));
        }
        self.status
    }
}
