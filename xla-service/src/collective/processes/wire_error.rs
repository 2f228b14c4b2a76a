//! Errors as bytes.

use xla_hlo::Error;

const KINDS: [fn(String) -> Error; 7] = [
    Error::internal,
    Error::invalid_argument,
    Error::unimplemented,
    Error::resource_exhausted,
    Error::not_found,
    Error::failed_precondition,
    Error::cancelled,
];

/// Returns an error as bytes: its kind and message.
pub(super) fn to_bytes(error: &Error) -> Vec<u8> {
    let kind = match error {
        Error::Internal(_) => 0,
        Error::InvalidArgument(_) => 1,
        Error::Unimplemented(_) => 2,
        Error::ResourceExhausted(_) => 3,
        Error::NotFound(_) => 4,
        Error::FailedPrecondition(_) => 5,
        Error::Cancelled(_) => 6,
    };
    [&[kind], error.message().as_bytes()].concat()
}

/// Returns the error of these bytes. An unknown kind is an internal error.
pub(super) fn from_bytes(bytes: &[u8]) -> Error {
    let (kind, message) = bytes.split_first().map_or((0, &[][..]), |(&kind, message)| (kind, message));
    KINDS.get(usize::from(kind)).unwrap_or(&KINDS[0])(String::from_utf8_lossy(message).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_keep_their_kind_and_message() {
        for make in KINDS {
            let error = make("device 3: no memory".into());
            let copy = from_bytes(&to_bytes(&error));
            assert_eq!(format!("{copy:?}"), format!("{error:?}"));
        }
        assert_eq!(from_bytes(&[]).to_string(), "internal error: ");
        assert_eq!(from_bytes(&[200, b'x']).to_string(), "internal error: x");
    }
}
