//! Operations that the library supports but kernels compute faster, as measured on x86-64.

use xla_hlo::ops::{Convolution, Dot, Fusion, FusionKind, Op};
use xla_hlo::{ArrayShape, Module};
use xla_llvm::fused::has_dot_instruction;
use xla_llvm::target::Target;
use xla_service::thunks::LoweringContext;

/// Row length in elements above which the library sorts a row with several threads.
const SHARED_ROW: usize = 1 << 15;
/// Number of library threads that sort a row as fast as a kernel does with one thread.
const SORT_GAIN: usize = 4;
/// Like [`SORT_GAIN`], for top-k.
const TOP_K_GAIN: usize = 1;
/// Number of multiplications of one matrix product in a batch up to which the library's packing dominates its time.
const SMALL_MATMUL: usize = 1 << 21;

/// Number of multiplications of a real convolution up to which a kernel was faster than the library in all of 47
/// measured shapes, with a margin: the smallest convolution with a faster library call had 117,600.
const SMALL_CONVOLUTION: usize = 1 << 16;

/// Minimum number of columns for kernels with a dot-product instruction; with fewer, the library was faster.
const GROUPED_COLUMNS: usize = 8;

/// Minimum number of input channels and of output features for kernels with a dot-product instruction. Kernels were
/// faster than the library in all measured convolutions.
const GROUPED_CHANNELS: usize = 32;

/// Whether a kernel computes the operation faster than the library, with this number of threads.
pub(super) fn is_sooner_as_kernel(module: &Module, cx: &LoweringContext<'_>, threads: usize) -> bool {
    match cx.instruction().op() {
        Op::Sort(op) => keeps_threads_busy(cx, op.dimension, SORT_GAIN, threads),
        Op::TopK(_) => {
            let rank = cx.operands.first().map_or(0, |operand| operand.shape.rank());
            rank > 0 && keeps_threads_busy(cx, rank - 1, TOP_K_GAIN, threads)
        }
        Op::Convolution(op) => is_depthwise(cx, op) || is_small(cx, op),
        Op::Dot(op) => is_batch_of_small(cx, op) || is_hard_to_pack(op, cx.operands.iter().map(|o| &o.shape)),
        Op::Fusion(fusion) if fusion.kind == FusionKind::Output => {
            has_several_contractions(module, fusion) || finishes_hard_to_pack(module, cx, fusion)
        }
        _ => false,
    }
}

/// Whether the operation is a matmul or convolution whose kernel uses a dot-product instruction of the target and packs
/// operands fast. The library converts operands to wider types.
pub(super) fn multiplies_groups(
    module: &Module,
    cx: &LoweringContext<'_>,
    target: &Target,
    flush_denormals: bool,
) -> bool {
    let ([left, right], [result]) = (cx.operands, cx.results) else { return false };
    let fits = match cx.instruction().op() {
        Op::Dot(op) => has_tiles_of_groups(op, &left.shape, &right.shape),
        Op::Convolution(op) => has_contiguous_channels(op, [&left.shape, &right.shape, &result.shape]),
        _ => false,
    };
    fits && has_dot_instruction(&module[cx.computation], cx.instruction, target, flush_denormals)
}

/// Whether a dot has several rows, several steps of K, and enough columns to fill vectors.
fn has_tiles_of_groups(op: &Dot, left: &ArrayShape, right: &ArrayShape) -> bool {
    let last = |shape: &ArrayShape, dims: &[usize]| dims.iter().rev().map(|&dim| shape.dims()[dim]).find(|&d| d > 1);
    let (l, r) = (op.dims.lhs(left.rank()), op.dims.rhs(right.rank()));
    last(left, &l.free).is_some()
        && last(left, l.contracting).is_some()
        && last(right, &r.free).is_some_and(|extent| extent >= GROUPED_COLUMNS)
}

/// Whether a convolution without groups has many channels that are contiguous in the input (NHWC), and several
/// positions with features that fill vectors and are contiguous in the result: its kernel packs whole vectors and has
/// tiles.
fn has_contiguous_channels(op: &Convolution, [input, kernel, result]: [&ArrayShape; 3]) -> bool {
    let extents = [op.dims.kernel_input_feature, op.dims.kernel_output_feature].map(|dim| kernel.dims()[dim]);
    let is_dense = op.feature_group_count == 1
        && op.batch_group_count == 1
        && op.window.dims.iter().all(|dim| dim.base_dilation == 1);
    let is_last =
        op.dims.input_feature + 1 == input.rank() && op.dims.kernel_spatial.iter().all(|&dim| dim + 2 < kernel.rank());
    let feature = op.dims.output_feature;
    let has_rows = feature + 1 == result.rank() && result.element_count() > result.dims()[feature];
    is_dense && is_last && has_rows && extents.iter().all(|&extent| extent >= GROUPED_CHANNELS)
}

/// Whether the rows along a dimension are numerous or short enough that one thread per row is sufficient.
fn keeps_threads_busy(cx: &LoweringContext<'_>, dimension: usize, gain: usize, threads: usize) -> bool {
    let Some(shape) = cx.operands.first().map(|operand| &operand.shape) else { return false };
    let length = shape.dims()[dimension];
    let rows = shape.element_count() / length.max(1);
    length < SHARED_ROW || rows * gain >= threads
}

/// Whether each channel is a group: no operand element is read twice for one result, so packing gains nothing.
fn is_depthwise(cx: &LoweringContext<'_>, op: &Convolution) -> bool {
    let Some(kernel) = cx.operands.get(1).map(|kernel| kernel.shape.dims()) else { return false };
    op.feature_group_count > 1
        && kernel[op.dims.kernel_input_feature] == 1
        && kernel[op.dims.kernel_output_feature] == op.feature_group_count
}

/// Whether a real convolution has few multiplications.
fn is_small(cx: &LoweringContext<'_>, op: &Convolution) -> bool {
    let ([_, kernel], [result]) = (cx.operands, cx.results) else { return false };
    let features = kernel.shape.dims()[op.dims.kernel_output_feature].max(1);
    let of_result = kernel.shape.element_count() / features;
    let is_real = !result.shape.element_type().is_complex();
    is_real && result.shape.element_count().saturating_mul(of_result) <= SMALL_CONVOLUTION
}

/// Whether a dot is a batch of small real matrix products.
fn is_batch_of_small(cx: &LoweringContext<'_>, op: &Dot) -> bool {
    let ([left, _], [result]) = (cx.operands, cx.results) else { return false };
    let batch: usize = op.dims.lhs_batch.iter().map(|&d| left.shape.dims()[d]).product();
    let results = result.shape.element_count() / batch.max(1);
    let is_real = !left.shape.element_type().is_complex();
    is_real && batch > 1 && results.saturating_mul(op.dims.contracted_elements(&left.shape)) <= SMALL_MATMUL
}

/// Whether packing the right operand, a real matrix, is slow or useless. It is slow if the contracting dimension is
/// contiguous, because the library then transposes element by element. It is useless if the left operand is a single
/// row (GEMV), because each element is read only once.
fn is_hard_to_pack<'a>(op: &Dot, mut operands: impl Iterator<Item = &'a ArrayShape>) -> bool {
    let (Some(left), Some(right)) = (operands.next(), operands.next()) else { return false };
    let minor = right.minor_to_major().into_iter().find(|&dim| right.dims()[dim] > 1);
    let is_turned = minor.is_some_and(|dim| op.dims.rhs_contracting.contains(&dim));
    let is_one = |shape: &ArrayShape, free: &[usize]| free.iter().all(|&dim| shape.dims()[dim] == 1);
    let is_row = is_one(left, &op.dims.lhs(left.rank()).free);
    let is_matrix = !is_one(right, &op.dims.rhs(right.rank()).free);
    !left.element_type().is_complex() && is_matrix && (is_turned || is_row)
}

/// Whether a fusion contains several contractions, as an attention does: no library call computes it.
fn has_several_contractions(module: &Module, fusion: &Fusion) -> bool {
    let is_contraction = |op: &Op| matches!(op, Op::Dot(_) | Op::Convolution(_));
    module[fusion.computation].iter().filter(|(_, instruction)| is_contraction(instruction.op())).count() > 1
}

/// Whether a fusion contains such a dot followed by an epilogue. The epilogue reads accumulators in registers, which
/// requires that results do not overlap operands.
fn finishes_hard_to_pack(module: &Module, cx: &LoweringContext<'_>, fusion: &Fusion) -> bool {
    let graph = &module[fusion.computation];
    let is_such = graph.iter().any(|(_, instruction)| match instruction.op() {
        Op::Dot(op) => {
            is_hard_to_pack(op, instruction.operands().iter().filter_map(|&id| graph[id].shape().as_array()))
        }
        _ => false,
    });
    is_such && !cx.overwrites()
}
