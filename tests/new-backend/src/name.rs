//! Name of a backend, and renaming of its crate's text.

use std::fmt;

use anyhow::{Result, ensure};

/// The crate that is copied.
pub const ORIGINAL: &str = "template";

/// A platform's name: lower case letters and digits, so that it is a feature, an identifier and a file name at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name(String);

impl Name {
    pub fn parse(text: &str) -> Result<Name> {
        let is_name = text.starts_with(|c: char| c.is_ascii_lowercase())
            && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        ensure!(is_name, "'{text}' is not a name for a backend: lower case letters and digits, a letter first");
        let is_free = syn::parse_str::<syn::Ident>(text).is_ok() && !RESERVED.contains(&text);
        ensure!(is_free, "'{text}' is a word of Rust, of Cargo or of this workspace; take another name");
        Ok(Name(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The crate and its folder.
    pub fn package(&self) -> String {
        format!("backend-{}", self.0)
    }

    /// Text of the original under this name.
    pub fn rename(&self, text: &str) -> String {
        text.replace(&capitalised(ORIGINAL), &capitalised(&self.0))
            .replace(&ORIGINAL.to_uppercase(), &self.0.to_uppercase())
            .replace(ORIGINAL, &self.0)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Words that are keywords only to the compiler, or that name a feature, package or platform already.
const RESERVED: &[&str] = &["default", "gen", "gpu", "interpreter", "test", "unify"];

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_words() {
        assert!(Name::parse("acme").is_ok() && Name::parse("npu2").is_ok());
        for bad in ["", "Acme", "2npu", "my-npu", "my_npu", "../x", "type", "gen", "interpreter", "unify"] {
            assert!(Name::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn every_spelling_is_renamed() {
        let acme = Name::parse("acme").unwrap();
        let text = "backend-template backend_template::TemplateCompiler TEMPLATE_VERSION \"template\"";
        assert_eq!(acme.rename(text), "backend-acme backend_acme::AcmeCompiler ACME_VERSION \"acme\"");
    }
}
