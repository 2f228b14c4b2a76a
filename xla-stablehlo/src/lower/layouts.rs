//! Propagation of layouts from operands to results, as in XLA's shape inference: operations that propagate the whole
//! shape also propagate the layout.

use xla_hlo::Shape;
use xla_hlo::ops::{Collective, Op};

/// Adds the layouts that a result inherits from its operands; existing layouts stay.
pub(super) fn inherited(op: &Op, shape: Shape, operands: &[&Shape]) -> Shape {
    let from = match op {
        Op::Unary(_) | Op::Binary(_) | Op::Compare(_) | Op::Convert(_) | Op::BitcastConvert(_) => 0,
        Op::Copy(_) | Op::ReducePrecision(_) | Op::Reverse(_) | Op::DynamicUpdateSlice(_) | Op::Cholesky(_) => 0,
        Op::Scatter(_) | Op::Sort(_) | Op::Collective(Collective::AllReduce(_)) => 0,
        Op::Clamp(_) => 1,
        Op::GetTupleElement(of) => {
            let element = operands.first().and_then(|tuple| tuple.as_tuple()?.get(of.index));
            return match element {
                Some(element) => with_layout(shape, element),
                None => shape,
            };
        }
        // A scalar predicate has no layout to propagate.
        Op::Select(_) => usize::from(operands.first().is_some_and(|of| of.as_array().is_some_and(|of| of.rank() == 0))),
        _ => return shape,
    };
    match shape {
        Shape::Tuple(elements) => {
            let with_layout = |(element, from): (Shape, &&Shape)| with_layout(element, from);
            let (count, from) = (elements.len(), operands.iter());
            if count > operands.len() {
                Shape::Tuple(elements)
            } else {
                Shape::Tuple(elements.into_iter().zip(from).map(with_layout).collect())
            }
        }
        shape => match operands.get(from) {
            Some(operand) => with_layout(shape, operand),
            None => shape,
        },
    }
}

fn with_layout(shape: Shape, from: &Shape) -> Shape {
    match (shape, from) {
        (Shape::Array(array), Shape::Array(from)) if array.layout().is_none() && array.dims() == from.dims() => {
            array.with_layout(from.layout().cloned()).into()
        }
        (shape, _) => shape,
    }
}
