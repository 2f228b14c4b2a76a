//! Widens operations: converts operands to a wider element type, and results back.

use xla_hlo::ops::{Convert, GetTupleElement, Tuple};
use xla_hlo::{Annotations, ArrayShape, Computation, ElementType, InstrId, Instruction, Op, Result, Shape};

/// Converts an array to that element type.
pub(crate) fn converted(computation: &mut Computation, array: InstrId, to: ElementType) -> Result<InstrId> {
    let shape = computation[array].shape().expect_array()?;
    if shape.element_type() == to {
        return Ok(array);
    }
    let shape = in_type(shape, to);
    Ok(computation.add(Instruction::new(Convert.into(), shape, [array])))
}

/// Computes `op`, which replaces the operation of instruction `id`, in the element types to which `wide` maps the
/// present ones.
///
/// Operands are converted to them, and the result is converted back. The instruction itself is kept for its result,
/// with its name, annotations and control dependencies.
pub(crate) fn compute_in(
    computation: &mut Computation,
    id: InstrId,
    op: Op,
    wide: impl Fn(ElementType) -> ElementType,
) -> Result<()> {
    let mut operands = computation[id].operands().to_vec();
    for operand in &mut operands {
        if let Some(ty) = computation[*operand].shape().element_type() {
            *operand = converted(computation, *operand, wide(ty))?;
        }
    }
    let narrow = computation[id].shape().clone();
    let shape = widened(&narrow, &wide);
    if shape.compatible(&narrow) {
        computation.set_op(id, op);
        computation.set_operands(id, operands);
        return Ok(());
    }
    let metadata = computation[id].annotations().map(|a| a.metadata.clone());
    let metadata = metadata.map(|metadata| Box::new(Annotations { metadata, ..Annotations::default() }));
    let add = |computation: &mut Computation, op: Op, shape: Shape, operands: Vec<InstrId>| {
        computation.add(Instruction::new(op, shape, operands).with_annotations(metadata.clone()))
    };
    let result = add(computation, op, shape.clone(), operands);
    let (Some(wide_elements), Some(elements)) = (shape.as_tuple(), narrow.as_tuple()) else {
        computation.set_op(id, Convert.into());
        computation.set_operands(id, vec![result]);
        return Ok(());
    };
    let mut parts = Vec::with_capacity(elements.len());
    for (index, (wide, narrow)) in wide_elements.iter().zip(elements).enumerate() {
        let part = add(computation, GetTupleElement { index }.into(), wide.clone(), vec![result]);
        parts.push(match narrow.element_type() {
            Some(ty) => converted(computation, part, ty)?,
            None => part,
        });
    }
    computation.set_op(id, Tuple.into());
    computation.set_operands(id, parts);
    Ok(())
}

/// Returns a shape with its element types mapped by `wide`.
pub(crate) fn widened(shape: &Shape, wide: &impl Fn(ElementType) -> ElementType) -> Shape {
    match shape {
        Shape::Array(array) => in_type(array, wide(array.element_type())),
        Shape::Tuple(elements) => Shape::Tuple(elements.iter().map(|e| widened(e, wide)).collect()),
        Shape::Buffer(_) | Shape::Token | Shape::Opaque => shape.clone(),
    }
}

fn in_type(shape: &ArrayShape, ty: ElementType) -> Shape {
    shape.clone().with_element_type(ty).into()
}
