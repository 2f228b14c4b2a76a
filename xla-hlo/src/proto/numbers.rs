//! Conversions between protobuf's integers and a module's, with range checks.

use crate::{Error, Result};

/// Converts a number that must not be negative.
pub(crate) fn index(field: &str, value: i64) -> Result<usize> {
    usize::try_from(value).map_err(|_| out_of_range(field, value))
}

/// Converts numbers that must not be negative.
pub(crate) fn indices(field: &str, values: &[i64]) -> Result<Vec<usize>> {
    values.iter().map(|&v| index(field, v)).collect()
}

/// Converts a number that must fit another type.
pub(crate) fn fit<A: Copy + std::fmt::Display, B: TryFrom<A>>(field: &str, value: A) -> Result<B> {
    B::try_from(value).map_err(|_| out_of_range(field, value))
}

/// Converts numbers to the integers of messages.
pub(crate) fn longs(field: &str, values: &[usize]) -> Result<Vec<i64>> {
    values.iter().map(|&v| fit(field, v)).collect()
}

fn out_of_range(field: &str, value: impl std::fmt::Display) -> Error {
    Error::invalid_argument(format!("{field} is {value}, which is out of range"))
}

/// Returns a message that must be present.
pub(crate) fn required<T>(field: &str, value: Option<T>) -> Result<T> {
    value.ok_or_else(|| Error::invalid_argument(format!("{field} is missing")))
}

/// Converts bytes that must be text.
pub(crate) fn text(field: &str, bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        Error::invalid_argument(format!("{field} is not UTF-8 at its byte {at}; binary strings are not supported"))
    })
}
