//! The tests of this backend from outside, in one binary, so that LLVM is linked once.

mod agrees;
mod executables;
mod libraries;
mod ptx;
