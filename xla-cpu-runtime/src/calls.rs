//! Instructions as calls of library functions. What a backend must have code for comes as the number of its kernel.
//!
//! All answer `None` for element types and shapes that the library does not do. Arrays are in the layouts of their
//! shapes for [`dot`] and [`convolution`], and row major for all others.

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

/// A call with its types and sizes for people: `f32 512x512x512`.
pub type NamedCall = (LibraryCall, String);

/// A dot of at least `fewest` multiplications: f32, f64, c64 and c128, and floats of 8 to 32 bits to f16, bf16 or f32.
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

/// A convolution of f32, f64, c64, c128, s32 or s64; `None` for operands that are not stored in full, and for element
/// types that a pass should have replaced but could not.
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

/// The best elements of the rows of any type but complex ones, and their places.
pub fn top_k(cx: &LoweringContext<'_>, op: &TopK) -> Option<NamedCall> {
    let plan = TopKPlan::new(&cx.operands.first()?.shape, op.k, op.largest)?;
    let name = format!("{} of {} x {}", plan.k, plan.rows, plan.length);
    Some((LibraryCall::new(LibraryFunction::TopK, plan.to_numbers()), name))
}

/// A stable sort of arrays of any types: by integer keys, where the comparator is seen to order by them, and else by
/// the kernel of the number that `comparator` answers, which is asked only then. Its operands are two elements of each
/// array, its result is one `pred`.
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

/// A scatter by a kernel that updates the results in place, in `work_items` independent parts: the library copies the
/// inputs to the results first, where they are not there already.
pub fn scatter(cx: &LoweringContext<'_>, work_items: u64, kernel: u32) -> NamedCall {
    let inputs = cx.operands.iter().take(cx.results.len()).map(|array| &array.shape);
    let bytes = inputs.map(|shape| shape.element_count() * shape.element_type().byte_width());
    let descriptor = [work_items as i64].into_iter().chain(bytes.map(|bytes| bytes as i64)).collect();
    let name = cx.instruction().shape().without_layout().to_string();
    (LibraryCall { kernels: vec![kernel], ..LibraryCall::new(LibraryFunction::Scatter, descriptor) }, name)
}

/// Operations that the library does alone, whatever their size: the random state, `fft`, `cholesky` and
/// `triangular-solve`; the latter two of f32, f64, c64 and c128.
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
        // Whatever else there is has a function of its own above, or none.
        _ => return None,
    };
    let name = first().map_or_else(|| instruction.shape().to_string(), ToString::to_string);
    Some((LibraryCall::new(function, descriptor), name))
}
