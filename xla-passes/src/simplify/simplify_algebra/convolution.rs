//! Rules for convolutions.

use xla_hlo::ops::{Convolution, SparsityConfig};
use xla_hlo::{ArrayShape, InstrId, Op};

use super::draft::{Draft, DraftValue};
use super::{Rule, dims, rules};
use crate::framework::profile::ConvolutionOrder;

pub const CONVOLUTION: &[Rule] = rules![convolution_of_transpose];

/// Returns a dense convolution if the target accepts any dimension order.
fn in_any_order(cx: &Draft<'_>, id: InstrId) -> Option<Convolution> {
    match cx.op(id) {
        Op::Convolution(op)
            if op.sparsity == SparsityConfig::default() && cx.profile().layout.convolution == ConvolutionOrder::Any =>
        {
            Some(op.clone())
        }
        _ => None,
    }
}

/// `convolution(transpose(x), transpose(w))` = `convolution(x, w)` with other dimension numbers.
fn convolution_of_transpose(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let mut new = in_any_order(cx, id)?;
    let mut operands: Vec<DraftValue> = Vec::with_capacity(2);
    let of = &mut new.dims;
    let numbers = [
        (&mut of.input_batch, &mut of.input_feature, &mut of.input_spatial),
        (&mut of.kernel_input_feature, &mut of.kernel_output_feature, &mut of.kernel_spatial),
    ];
    let mut changed = false;
    for (&operand, (first, second, spatial)) in cx.instruction(id).operands().iter().zip(numbers) {
        let Op::Transpose(transpose) = cx.op(operand) else {
            operands.push(operand.into());
            continue;
        };
        changed = true;
        operands.push(cx.operand(operand, 0).into());
        spatial.iter_mut().chain([first, second]).for_each(|d| *d = transpose.permutation[*d]);
    }
    changed.then(|| Some(cx.add(new, cx.shape(id)?.clone(), operands)))?
}

/// `transpose(convolution(x, w))` = `convolution(x, w)` with other dimension numbers.
pub fn transpose_of_convolution(cx: &mut Draft<'_>, id: InstrId) -> Option<DraftValue> {
    let inner = cx.operand(id, 0);
    let Op::Transpose(transpose) = cx.op(id) else { return None };
    let mut new = in_any_order(cx, inner)?;
    if !cx.is_used_once(inner) {
        return None;
    }
    let place = dims::inverse(&transpose.permutation);
    let of = &mut new.dims;
    let numbers = of.output_spatial.iter_mut().chain([&mut of.output_batch, &mut of.output_feature]);
    numbers.for_each(|d| *d = place[*d]);
    let shape = ArrayShape::new(cx.element_type(id)?, cx.dims(id));
    Some(cx.add(new, shape, [cx.operand(inner, 0).into(), cx.operand(inner, 1).into()]))
}
