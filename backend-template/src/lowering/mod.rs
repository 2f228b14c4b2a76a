//! Lowers one scheduled instruction to one program of the device.
//!
//! ```text
//! mod.rs          which instruction is lowered by which function, the table of kernels
//! expression.rs   elementwise operations and movement, alone or fused: an element tile of any of them at any place
//! fused.rs        loops over the tiles of a result
//! reduce.rs       reductions by one operation                reduce_general.rs   reductions by any computation
//! window.rs       reductions over sliding windows            indexing.rs     gather and scatter
//! dot.rs          contractions on the matrix unit
//! reshape.rs      elements in row-major order           pad.rs          padding between elements
//! update.rs       a slice written into an array
//! builder.rs      programs instruction by instruction         registers.rs  which register holds which value
//! ```
//!
//! **To add an operation**: write a function that builds its program (a page; the shortest example is `reshape.rs`),
//! call it from `lower`, and add a test with the operation as HLO text to `tests/backend/lowering.rs`. `Ok(None)` says
//! "not mine": the reference evaluator computes the instruction on the host.

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

/// Collects the kernels of a module.
#[derive(Debug, Default)]
pub(crate) struct TemplateLowering {
    /// By [`KernelRef::index`].
    pub kernels: Vec<Kernel>,
}

impl Lowering for TemplateLowering {
    fn lower(&mut self, cx: &LoweringContext<'_>) -> Result<Lowered> {
        let Some(program) = lower(cx)? else { return Ok(Lowered::NotMine) };
        let name = program.name.clone();
        match Kernel::load(program) {
            Ok(kernel) => self.kernels.push(kernel),
            // Too large for the core: the host can do it.
            Err(Error::ResourceExhausted(_)) => return Ok(Lowered::NotMine),
            Err(error) => return Err(error),
        }
        Ok(Lowered::Kernel(KernelRef { index: (self.kernels.len() - 1) as u32, name }))
    }
}

// VENDOR(lowering): begin with `Ok(None)` for everything; then add operations one at a time.
/// The program of an instruction; `None` for one that is left to the host.
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
