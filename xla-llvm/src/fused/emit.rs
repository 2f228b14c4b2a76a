//! Emission of a kernel's function: chooses the strategy and dispatches to its code.

use inkwell::values::{BasicValueEnum, InstructionValue, Operand, PointerValue};
use xla_hlo::{Result, ResultExt};

use crate::emitter::Emitter;
use crate::fused::analysis::FusedKernel;
use crate::fused::kernel::Kernel;
use crate::fused::loops::frame::Frame;
use crate::fused::source::KernelSource;
use crate::fused::strategy::list::Chosen;
use crate::fused::tuning::FEW_ADDRESSES;

/// Emits the kernel's function into the emitter's module.
///
/// The kernel of a scatter may work in place: its results then share the buffers of its inputs. Its
/// [`ScatterPlan`](super::ScatterPlan) has the work items. Each range of work items owns a share of the windows, and no
/// two shares write the same element. Each call iterates over the windows of its share in order, so few calls are best:
/// one per thread. A scatter that is not in place first copies the inputs whose buffers differ, and has one work item.
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
    strategy: Option<Chosen>,
) -> Result<Kernel> {
    if let Some(scalar_loop) = &source.scalar_loop {
        return scalar_loop.emit(emitter, name);
    }
    let kernel = FusedKernel::new(source)?;
    let strategy = strategy.map_or_else(|| Chosen::of(&kernel, emitter), Ok)?;
    let frame = Frame::open_with_maps(emitter, name, [source.pointer_count(), strategy.maps()])?;
    let addresses = frame.pointers.clone();
    let launch = strategy.emit(&kernel, emitter, frame)?;
    if addresses.len() > FEW_ADDRESSES {
        remove_unused(&addresses);
    }
    let ended = Kernel::end(emitter, name, launch, strategy.to_string())?;
    Ok(Kernel { work: kernel.work(), denormals: kernel.denormals(), ..ended })
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
