//! Lowering of instructions to calls of library functions. Kernels that a backend must generate are passed by number.
//!
//! Functions return `None` for element types and shapes that the library does not support. Arrays have the layouts of
//! their shapes for [`dot`] and [`convolution`], and are row-major for all other functions.

use xla_hlo::Module;
use xla_hlo::ops::{Convolution, Dot, Op, Sort, SparsityConfig, TopK};
use xla_service::thunks::LoweringContext;

use crate::convolution::{ConvolutionElement, convolution_descriptor};
use crate::dot::{DotElement, dot_descriptor};
use crate::fft::fft_descriptor;
use crate::library::{LibraryCall, LibraryFunction};
use crate::linalg::{cholesky_descriptor, triangular_solve_descriptor};
use crate::narrow_dot::NarrowTypes;
use crate::plans::convolution::ConvolutionPlan;
use crate::plans::dot::DotPlan;
use crate::plans::sort::{Rows, SortOrder, SortPlan, TopKPlan};
use xla_passes::analysis::element_order::key_of_comparator;

/// Library call with a readable name of its types and sizes: `f32 512x512x512`.
pub type NamedCall = (LibraryCall, String);

/// Lowers a dot of at least `fewest` multiplications: f32, f64, c64 and c128, and floats of 8 to 32 bits to f16, bf16
/// or f32.
pub fn dot(cx: &LoweringContext<'_>, dot: &Dot, fewest: f64) -> Option<NamedCall> {
    let ([lhs, rhs], [out]) = (cx.operands, cx.results) else { return None };
    let ty = out.shape.element_type();
    let types = [lhs, rhs, out].map(|array| array.shape.element_type());
    let (function, elements) = match DotElement::of(ty).filter(|_| types == [ty; 3]) {
        Some(element) => (LibraryFunction::Dot, element as i64),
        None => (LibraryFunction::NarrowDot, NarrowTypes::of(types)?.to_number()),
    };
    let plan = DotPlan::new(&dot.dims, &lhs.shape, &rhs.shape, &out.shape);
    if plan.multiplications() < fewest {
        return None;
    }
    let name = format!(
        "{ty} {}x{}x{}{}",
        plan.m.extent,
        plan.n.extent,
        plan.k.extent,
        if plan.matmuls() > 1 { format!(" x{}", plan.matmuls()) } else { String::new() }
    );
    Some((LibraryCall::new(function, dot_descriptor(elements, &plan)), name))
}

/// Lowers a convolution of f32, f64, c64, c128, s32 or s64. Returns `None` for sparse operands, and for element types
/// that a pass should have replaced but could not.
pub fn convolution(cx: &LoweringContext<'_>, op: &Convolution) -> Option<NamedCall> {
    let ([input, kernel], [out]) = (cx.operands, cx.results) else { return None };
    let ty = out.shape.element_type();
    let element = ConvolutionElement::of(ty)?;
    let same_types = input.shape.element_type() == ty && kernel.shape.element_type() == ty;
    if !same_types || op.sparsity != SparsityConfig::default() {
        return None;
    }
    let plan = ConvolutionPlan::new(op, &input.shape, &kernel.shape, &out.shape);
    let name = format!("{ty} {}x{}", plan.results(), plan.k());
    Some((LibraryCall::new(LibraryFunction::Convolution, convolution_descriptor(element, &plan)), name))
}

/// Lowers a top-k: the best elements of each row and their indices, for all element types except complex ones.
pub fn top_k(cx: &LoweringContext<'_>, op: &TopK) -> Option<NamedCall> {
    let plan = TopKPlan::new(&cx.operands.first()?.shape, op.k, op.largest)?;
    let name = format!("{} of {} x {}", plan.k, plan.rows, plan.length);
    Some((LibraryCall::new(LibraryFunction::TopK, plan.to_numbers()), name))
}

/// Lowers a stable sort of arrays of any types. Sorts by integer keys if the comparator is recognized as an order of
/// keys, and otherwise by the kernel whose number `comparator` returns; it is called only in this case. The operands of
/// that kernel are two elements of each array, its result is one `pred`.
pub fn sort(
    module: &Module,
    cx: &LoweringContext<'_>,
    sort: &Sort,
    comparator: impl FnOnce() -> Option<u32>,
) -> Option<NamedCall> {
    let (order, kernels) = match key_of_comparator(module, sort.computation) {
        Some((array, key)) => (SortOrder::Key { array, key }, Vec::new()),
        None => (SortOrder::Comparator, vec![comparator()?]),
    };
    let first = cx.operands.first()?;
    let rows = Rows::new(&first.shape, sort.dimension);
    let widths = cx.operands.iter().map(|o| o.shape.element_type().byte_width()).collect();
    let name = format!("{} of {}", rows.count, rows.length);
    let descriptor = SortPlan { rows, widths, order }.to_numbers();
    Some((LibraryCall { kernels, ..LibraryCall::new(LibraryFunction::Sort, descriptor) }, name))
}

/// Lowers a scatter to a kernel that updates the results in place, in `work_items` independent parts. The library first
/// copies the inputs to the results, unless they share memory.
pub fn scatter(cx: &LoweringContext<'_>, work_items: u64, kernel: u32) -> NamedCall {
    let inputs = cx.operands.iter().take(cx.results.len()).map(|array| &array.shape);
    let bytes = inputs.map(|shape| shape.element_count() * shape.element_type().byte_width());
    let descriptor = [work_items as i64].into_iter().chain(bytes.map(|bytes| bytes as i64)).collect();
    let name = cx.instruction().shape().without_layout().to_string();
    (LibraryCall { kernels: vec![kernel], ..LibraryCall::new(LibraryFunction::Scatter, descriptor) }, name)
}

/// Lowers operations for which the library is the only implementation, at any size: the random state, `fft`, `cholesky`
/// and `triangular-solve`; the latter two for f32, f64, c64 and c128.
pub fn alone(cx: &LoweringContext<'_>) -> Option<NamedCall> {
    let instruction = cx.instruction();
    let first = || cx.operands.first().map(|operand| &operand.shape);
    let (function, descriptor) = match instruction.op() {
        Op::RngGetAndUpdateState(op) => (LibraryFunction::RandomState, vec![op.delta]),
        Op::Fft(op) => (LibraryFunction::Fft, fft_descriptor(op, first()?)),
        Op::Cholesky(op) => (LibraryFunction::Cholesky, cholesky_descriptor(op, first()?)?),
        Op::TriangularSolve(op) => {
            let right = &cx.operands.get(1)?.shape;
            (LibraryFunction::TriangularSolve, triangular_solve_descriptor(op, right)?)
        }
        // All other operations have a separate function above, or none.
        _ => return None,
    };
    let name = first().map_or_else(|| instruction.shape().to_string(), ToString::to_string);
    Some((LibraryCall::new(function, descriptor), name))
}
