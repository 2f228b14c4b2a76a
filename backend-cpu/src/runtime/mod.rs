//! What generated code calls: parallel loops, matrix products, the way back to the host for operations not compiled.
//!
//! Every function here is named in [`symbols`], which the JIT linker resolves. Their C signatures are stated where the
//! code generator declares them (`entry`).

mod dot;
mod fallback;
mod parallel;
mod pool;

pub(crate) use dot::{DotElement, dot_descriptor};
pub(crate) use fallback::{HostCall, RunContext};

use xla_llvm::jit::RuntimeSymbol;

/// Runs a kernel's units on several threads.
pub(crate) const PARALLEL: &str = "xla_cpu_parallel";
/// Computes a dot of which the descriptor says everything.
pub(crate) const DOT: &str = "xla_cpu_dot";
/// Evaluates an operation on the host.
pub(crate) const HOST_CALL: &str = "xla_cpu_host_call";

/// Names and addresses for the linker.
pub(crate) fn symbols() -> Vec<RuntimeSymbol<'static>> {
    vec![
        RuntimeSymbol { name: PARALLEL, address: parallel::xla_cpu_parallel as *const _ },
        RuntimeSymbol { name: DOT, address: dot::xla_cpu_dot as *const _ },
        RuntimeSymbol { name: HOST_CALL, address: fallback::xla_cpu_host_call as *const _ },
    ]
}
