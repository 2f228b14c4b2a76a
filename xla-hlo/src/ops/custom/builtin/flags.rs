//! LAPACK's flags: attributes whose value is the code of one of two letters.

use crate::ops::FfiAttributes;
use crate::{Error, Result};

/// Whether an attribute is the letter `yes`. Fails if it is neither `yes` nor `no`.
pub(super) fn is_letter(attributes: &FfiAttributes, name: &str, yes: char, no: char) -> Result<bool> {
    let code = attributes.integer(name)?;
    let found = u8::try_from(code).map(char::from);
    match found {
        Ok(letter) if letter == yes => Ok(true),
        Ok(letter) if letter == no => Ok(false),
        _ => Err(Error::invalid_argument(format!("attribute {name} must be the code of {yes} or {no}, it is {code}"))),
    }
}
