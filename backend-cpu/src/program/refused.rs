//! Errors of LLVM's builder.

use xla_hlo::Error;

/// Returns the error for an instruction that LLVM's builder rejects.
pub(crate) fn refused(reason: impl std::fmt::Display) -> Error {
    Error::internal(format!("LLVM refuses an instruction: {reason}"))
}
