//! Sorts, top-k, scatters and Fourier transforms as separate kernels.

use xla_hlo::Module;
use xla_hlo::ops::Op;
use xla_llvm::fused::{KernelSource, has_fft_kernel, is_scalar_computation};
use xla_passes::analysis::element_order::{Key, key_of_comparator};
use xla_service::thunks::LoweringContext;

/// Returns the kernel of a sort, a top-k, a scatter or a Fourier transform. `None` for other operations, if a
/// comparator or combiner cannot be compiled into a kernel, and for long transforms.
pub(super) fn source<'m>(module: &'m Module, cx: &LoweringContext<'_>) -> Option<KernelSource<'m>> {
    let can_be_called = |computation| is_scalar_computation(module, computation);
    let has_kernel = match cx.instruction().op() {
        Op::Sort(op) => key_of_comparator(module, op.computation).is_some() || can_be_called(op.computation),
        Op::TopK(_) => Key::total_order(cx.operands.first()?.shape.element_type()).is_some(),
        Op::Scatter(op) => can_be_called(op.computation),
        Op::Fft(op) => has_fft_kernel(op),
        _ => false,
    };
    if !has_kernel || !cx.operands.iter().all(|operand| operand.shape.is_static()) {
        return None;
    }
    // The inputs of a scatter come first.
    let is_scatter = matches!(cx.instruction().op(), Op::Scatter(_));
    let shared = cx.operands.iter().zip(cx.results).all(|(operand, result)| operand.slice == result.slice);
    Some(KernelSource {
        module,
        computation: cx.computation,
        root: cx.instruction,
        inputs: cx.instruction().operands().to_vec(),
        in_place: is_scatter && shared,
        overwrites: Vec::new(),
        scalar_loop: None,
    })
}
