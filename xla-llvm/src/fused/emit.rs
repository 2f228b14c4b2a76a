//! Emission of a kernel's function: chooses the strategy and dispatches to its code.

use inkwell::values::{BasicValueEnum, InstructionValue, Operand, PointerValue};
use xla_hlo::{Result, ResultExt};

use crate::emitter::Emitter;
use crate::fused::analysis::FusedKernel;
use crate::fused::kernel::{Kernel, Launch};
use crate::fused::loops::frame::Frame;
use crate::fused::source::KernelSource;
use crate::fused::strategy::Strategy;
use crate::fused::tuning::FEW_ADDRESSES;

/// Emits the kernel's function into the emitter's module.
///
/// The kernel of a scatter may work in place: its results then share the buffers of its inputs. Its work items are
/// those of its [`ScatterPlan`](super::ScatterPlan). Each range of work items owns a share of the windows, and no two
/// shares write the same element. Each call iterates over the windows of its share in order, so few calls are best: one
/// per thread. A scatter that is not in place first copies the inputs whose buffers differ, and has one work item.
///
/// The kernel of a sort or a top-k keeps its items in scratch memory, which no two calls may share.
pub fn emit_kernel(emitter: &Emitter<'_>, source: &KernelSource<'_>, name: &str) -> Result<Kernel> {
    emit_function(emitter, source, name, None).context(|| source.context())
}

/// Emits the kernel's function by a strategy that is known to be valid for it, or by the one that is chosen by rule.
pub(crate) fn emit_function(
    emitter: &Emitter<'_>,
    source: &KernelSource<'_>,
    name: &str,
    strategy: Option<Strategy>,
) -> Result<Kernel> {
    if let Some(scalar_loop) = &source.scalar_loop {
        return scalar_loop.emit(emitter, name);
    }
    let kernel = FusedKernel::new(source)?;
    let strategy = strategy.map_or_else(|| Strategy::of(&kernel, emitter), Ok)?;
    let frame = Frame::open_with_maps(emitter, name, [source.pointer_count(), strategy.maps()])?;
    let addresses = frame.pointers.clone();
    let launch = kernel.emit(emitter, frame, &strategy)?;
    if addresses.len() > FEW_ADDRESSES {
        remove_unused(&addresses);
    }
    let ended = Kernel::end(emitter, name, launch, (kernel.work(), strategy.to_string()))?;
    Ok(Kernel { denormals: kernel.denormals(), ..ended })
}

/// Removes unused loads of addresses: each branch of a concatenation of many operands loads its own.
fn remove_unused(addresses: &[PointerValue<'_>]) {
    let is_unused = |instruction: &InstructionValue<'_>| instruction.get_first_use().is_none();
    for load in addresses.iter().filter_map(|address| address.as_instruction()).filter(is_unused) {
        let place = load.get_operand(0).and_then(Operand::value);
        load.erase_from_basic_block();
        let Some(BasicValueEnum::PointerValue(place)) = place else { continue };
        if let Some(place) = place.as_instruction().filter(is_unused) {
            place.erase_from_basic_block();
        }
    }
}

impl FusedKernel<'_, '_> {
    /// Emits the function's body.
    fn emit<'ctx>(&self, emitter: &Emitter<'ctx>, frame: Frame<'_, 'ctx>, strategy: &Strategy) -> Result<Launch> {
        match strategy {
            Strategy::Empty => Ok(Launch::alone(0)),
            Strategy::Scatter => self.emit_scatter(emitter, frame).map(Launch::alone),
            Strategy::Fibers(fibers) => self.emit_fibers(emitter, frame, fibers).map(Launch::alone),
            Strategy::RowSort(sort) => self.emit_row_sort(emitter, frame, sort).map(Launch::alone),
            Strategy::VectorLoops(loops) => self.emit_vector_loops(emitter, frame, loops).map(Launch::alone),
            Strategy::RegisterTiles(tiles) => self.emit_register_tiles(emitter, frame, tiles).map(Launch::alone),
            Strategy::VectorTranspose(grid) => self.emit_vector_transpose(emitter, frame, grid).map(Launch::alone),
            Strategy::ThreadLoops(loops) => self.emit_thread_loops(emitter, frame, loops).map(Launch::alone),
            Strategy::RowReduce(rows) => self.emit_rows(emitter, frame, rows),
            Strategy::ColumnReduce { plan, members } => self.emit_columns(emitter, frame, plan, *members),
            Strategy::SharedTranspose { plan, across } => self.emit_shared_transpose(emitter, frame, plan, *across),
            Strategy::Matmul(tiling) => self.emit_matmul(emitter, frame, &self.matmul()?, *tiling),
            Strategy::Attention(tiling) => self.emit_attention(emitter, frame, *tiling),
            Strategy::WgmmaAttention(_) => self.emit_attention_of_groups(emitter, frame),
            Strategy::ScoreSum(tiling) => self.emit_score_sum(emitter, frame, tiling),
            Strategy::SkinnyMatmul(skinny) => self.emit_skinny_matmul(emitter, frame, &self.matmul()?, *skinny),
        }
    }
}
