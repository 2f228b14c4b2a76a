//! What every LLVM backend shares.
