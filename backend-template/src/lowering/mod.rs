//! Lowering of one scheduled instruction to one device program.
//!
//! ```text
//! mod.rs          selects the lowering function of an instruction; table of kernels
//! expression.rs   elementwise operations and data movement, alone or fused: a tile of elements at any coordinates
//! fused.rs        loops over the tiles of a result
//! reduce.rs       reductions by one operation                reduce_general.rs   reductions by any computation
//! window.rs       reductions over sliding windows            indexing.rs     gather and scatter
//! dot.rs          matrix products on the matrix unit
//! reshape.rs      elements in row-major order           pad.rs          padding between elements
//! update.rs       dynamic-update-slice
//! builder.rs      emits instructions                          registers.rs  register allocation
//! ```
//!
//! **To add an operation**: write a function that builds its program (about a page; the shortest example is
//! `reshape.rs`), call it from `lower`, and add a test with the operation as HLO text to `tests/backend/lowering.rs`.
//! If the function returns `Ok(None)`, the reference evaluator computes the instruction on the host.

mod builder;
mod dot;
mod expression;
mod fused;
mod indexing;
mod pad;
mod reduce;
mod reduce_general;
mod registers;
mod reshape;
mod update;
mod window;

use xla_hlo::{Error, Op, Result};
use xla_service::thunks::{KernelRef, Lowered, Lowering, LoweringContext};

use crate::device::{Kernel, Program};

/// Lowering of a module, with the kernels that it has collected.
#[derive(Debug, Default)]
pub(crate) struct TemplateLowering {
    /// Kernels, indexed by [`KernelRef::index`].
    pub kernels: Vec<Kernel>,
}

impl Lowering for TemplateLowering {
    fn lower(&mut self, cx: &LoweringContext<'_>) -> Result<Lowered> {
        let Some(program) = lower(cx)? else { return Ok(Lowered::NotMine) };
        let name = program.name.clone();
        match Kernel::load(program) {
            Ok(kernel) => self.kernels.push(kernel),
            // The program exceeds the core's resources; the host fallback computes it instead.
            Err(Error::ResourceExhausted(_)) => return Ok(Lowered::NotMine),
            Err(error) => return Err(error),
        }
        Ok(Lowered::Kernel(KernelRef { index: (self.kernels.len() - 1) as u32, name }))
    }

    fn has_collectives(&self) -> bool {
        true
    }
}

// VENDOR(lowering): start with `Ok(None)` for every instruction; then add operations one at a time.
/// Returns the program of an instruction, or `None` if the host must compute it.
fn lower(cx: &LoweringContext<'_>) -> Result<Option<Program>> {
    match cx.instruction().op() {
        Op::Dot(op) => dot::lower(cx, op),
        Op::Reduce(op) => reduce::lower(cx, op),
        Op::ReduceWindow(op) => window::lower(cx, op),
        Op::Gather(op) => indexing::gather(cx, op),
        Op::Scatter(op) => indexing::scatter(cx, op),
        Op::Pad(op) if op.dims.iter().any(|dim| dim.interior > 0) => pad::lower(cx, op),
        Op::Reshape(_) | Op::Bitcast(_) => reshape::lower(cx),
        Op::DynamicUpdateSlice(_) => update::lower(cx),
        Op::Fusion(op) => fused::lower_fusion(cx, op),
        _ => fused::lower(cx),
    }
}
