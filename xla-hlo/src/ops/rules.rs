//! Rules of an operation: the trait that each implements in its family's folder.

use super::{Opcode, ShapeContext};
use crate::eval::Evaluator;
use crate::text::{AttributeReader, AttributeWriter};
use crate::{CompId, Literal, Result, Shape};

/// The rules of one operation: its name, shape, text attributes, called computations and evaluator.
pub trait OpRules {
    /// The opcode, as text spells it.
    fn opcode(&self) -> Opcode;

    /// Checks operands and attributes, and returns the shape of the result (without layout).
    ///
    /// Operations whose shape does not follow from operands and attributes take what they need (an element type,
    /// dimensions) from [`ShapeContext::written`], and check it. The builder, the parser and the verifier all ask here.
    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape>;

    /// Writes the operation's own attributes, in the order XLA prints them.
    fn write_attributes(&self, w: &mut AttributeWriter<'_>);

    /// The result for those operands; shapes have been verified.
    fn evaluate(&self, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal>;

    /// Computations named by attributes, in the order of the text.
    fn called_computations(&self) -> Vec<CompId> {
        Vec::new()
    }

    /// Lets `f` replace each computation named by attributes.
    fn visit_called_computations(&mut self, f: &mut dyn FnMut(&mut CompId)) {
        let _ = f;
    }
}

/// Reads the attributes of an operation; beside [`OpRules`] because there is no value yet.
pub trait ReadAttributes: Sized {
    /// Takes the operation's own attributes out of the reader.
    fn read(opcode: Opcode, reader: &mut AttributeReader<'_>) -> Result<Self>;
}
