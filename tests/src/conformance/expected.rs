//! Expected failures, declared next to the backend.
//!
//! Each line of the text is `ID : reason` or `PREFIX* : reason`; empty lines and lines that begin with `#` are skipped.
//! A declared case that passes is a failure, as is a prefix all of whose cases pass, or a line that matches no case:
//! declarations of fixed cases must be removed.

use xla::{Error, Result};

/// Lines of the text.
#[derive(Clone, Debug, Default)]
pub struct Expected {
    lines: Vec<ExpectedFailure>,
}

/// Line of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedFailure {
    /// Number of the line, from 1.
    pub number: usize,
    /// Identifier of a case, or a prefix of identifiers that ends with `*`.
    pub pattern: String,
    /// Text after the colon.
    pub reason: String,
}

impl ExpectedFailure {
    /// Returns whether the pattern matches the identifier of a case.
    pub fn fits(&self, id: &str) -> bool {
        self.prefix().map_or(self.pattern == id, |prefix| id.starts_with(prefix))
    }

    /// Returns the pattern without its `*`, if it ends with one.
    pub fn prefix(&self) -> Option<&str> {
        self.pattern.strip_suffix('*')
    }
}

impl Expected {
    /// Parses the text. The error names the malformed line.
    pub fn parse(text: &str) -> Result<Expected> {
        let mut lines = Vec::new();
        for (index, line) in text.lines().map(str::trim).enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (pattern, reason) = line.split_once(':').map_or((line, ""), |(a, b)| (a.trim(), b.trim()));
            if pattern.is_empty() || reason.is_empty() || pattern.contains(char::is_whitespace) {
                return Err(Error::invalid_argument(format!(
                    "line {} of the expected failures is {line:?}; it must be `ID-or-PREFIX* : reason`",
                    index + 1
                )));
            }
            lines.push(ExpectedFailure { number: index + 1, pattern: pattern.to_string(), reason: reason.to_string() });
        }
        Ok(Expected { lines })
    }

    /// Returns the first line that matches a case.
    pub fn line(&self, id: &str) -> Option<&ExpectedFailure> {
        self.lines.iter().find(|line| line.fits(id))
    }

    pub(super) fn lines(&self) -> &[ExpectedFailure] {
        &self.lines
    }
}
