//! Compiling, for which LLVM is needed: HLO to thunks, whose routines are launches of kernels, and kernels to code.

mod ahead;
mod capabilities;
mod codegen;
mod compiler;
mod kernels;
mod libraries;
mod lowering;
mod recorder;

pub(crate) use compiler::GpuCompiler;
