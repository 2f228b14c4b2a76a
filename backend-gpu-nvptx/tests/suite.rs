//! Integration tests of this backend, in one binary, so that LLVM is linked once.

mod agrees;
mod collectives;
mod cuda;
mod executables;
mod graphs;
mod libraries;
mod log;
mod ptx;
