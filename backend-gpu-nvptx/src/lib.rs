//! The NVIDIA GPU backend: HLO to PTX through LLVM, run through the CUDA driver or on the host.

#![allow(dead_code, reason = "the parts come one after the other")]

mod cuda;
mod device;
mod ptx;
