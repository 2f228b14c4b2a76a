//! Failures of the command: the error and its exit code.

use xla::hlo::Error;

/// Failure of the command.
#[derive(Debug)]
pub struct Failure {
    /// Error that is shown to the user.
    pub error: Error,
    /// Whether the user's input is invalid; otherwise, the program or the compiler failed.
    pub bad_input: bool,
}

/// Result of a subcommand.
pub type Outcome<T = ()> = Result<T, Failure>;

/// Exit code for a failure of the program or the compiler.
pub const FAILED: u8 = 1;
/// Exit code for bad usage and bad input.
pub const BAD_INPUT: u8 = 2;

impl Failure {
    /// Creates a failure that the user can fix by other input.
    pub fn usage(message: impl Into<String>) -> Failure {
        Failure { error: Error::invalid_argument(message), bad_input: true }
    }

    /// Returns the exit code. Unimplemented features and internal errors are never the user's fault.
    pub fn exit_code(&self) -> u8 {
        let ours = matches!(self.error, Error::Unimplemented(_) | Error::Internal(_));
        if self.bad_input && !ours { BAD_INPUT } else { FAILED }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure { error, bad_input: false }
    }
}

/// Conversion of errors in the user's input to failures.
pub trait BadInput<T> {
    /// Returns the result with its error marked as [`Failure::bad_input`].
    fn bad_input(self) -> Outcome<T>;
}

impl<T> BadInput<T> for xla::Result<T> {
    fn bad_input(self) -> Outcome<T> {
        self.map_err(|error| Failure { error, bad_input: true })
    }
}
