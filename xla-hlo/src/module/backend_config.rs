//! Configuration of an instruction for a backend or the handler of a custom call.

use std::fmt;

use crate::{Error, Result};

/// Value of `backend_config`: JSON with its braces, any other text, or arbitrary bytes.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct BackendConfig(Vec<u8>);

impl BackendConfig {
    /// Returns the bytes as the program states them.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether the program states no configuration.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the configuration as text. Bytes that are not UTF-8 are an [`Error::InvalidArgument`] with the offset of
    /// the first.
    pub fn text(&self) -> Result<&str> {
        text("backend_config", &self.0)
    }
}

/// Returns `bytes` as text; an error states that they are the value of the field `name`.
pub(crate) fn text<'b>(name: &str, bytes: &'b [u8]) -> Result<&'b str> {
    std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        Error::invalid_argument(format!(
            "{name} must be text here, but is not UTF-8 at byte {at}; write text, or read the value as bytes"
        ))
    })
}

impl fmt::Debug for BackendConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

impl From<Vec<u8>> for BackendConfig {
    fn from(bytes: Vec<u8>) -> BackendConfig {
        BackendConfig(bytes)
    }
}

impl From<String> for BackendConfig {
    fn from(text: String) -> BackendConfig {
        BackendConfig(text.into_bytes())
    }
}

impl From<&str> for BackendConfig {
    fn from(text: &str) -> BackendConfig {
        BackendConfig(text.as_bytes().to_vec())
    }
}
