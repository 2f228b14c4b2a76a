//! Rules of an operation: the trait that each operation implements in its family's folder.

use super::{Opcode, ShapeContext};
use crate::eval::Evaluator;
use crate::sdy::{RuleContext, ShardingRule};
use crate::text::{AttributeReader, AttributeWriter};
use crate::{CompId, Literal, Result, Shape};

/// Rules of one operation: name, shape, text attributes, called computations and evaluator.
pub trait OpRules {
    /// Returns the opcode, which is the operation's name in text.
    fn opcode(&self) -> Opcode;

    /// Checks operands and attributes, and returns the shape of the result (without layout).
    ///
    /// Operations whose shape does not follow from operands and attributes take the missing part (an element type,
    /// dimensions) from [`ShapeContext::written`], and check it. The builder, the parser and the verifier all call this
    /// method.
    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape>;

    /// Writes the operation's own attributes, in the order XLA prints them.
    fn write_attributes(&self, w: &mut AttributeWriter<'_>);

    /// Evaluates the operation on operands whose shapes have been verified.
    fn evaluate(&self, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal>;

    /// Returns the computations named by attributes, in the order of the text.
    fn called_computations(&self) -> Vec<CompId> {
        Vec::new()
    }

    /// Calls `f` on each computation named by attributes; `f` may replace it.
    fn visit_called_computations(&mut self, f: &mut dyn FnMut(&mut CompId)) {
        let _ = f;
    }
}

/// Reads the attributes of an operation. Separate from [`OpRules`] because no value exists yet.
pub trait ReadAttributes: Sized {
    /// Takes the operation's own attributes from the reader.
    fn read(opcode: Opcode, reader: &mut AttributeReader<'_>) -> Result<Self>;
}

/// Sharding rule of an operation, in `sharding.rs` of its family's folder. There is no default, so that the compiler
/// lists the operations without one.
pub trait OpSharding {
    /// Returns the factors that relate the dimensions of operands and results; `None` if no sharding is carried across
    /// the operation, or in another way than by factors.
    ///
    /// The instruction must be verified. Fails with `Error::InvalidArgument` if a rule that the program states is
    /// invalid.
    fn sharding_rule(&self, cx: &RuleContext<'_>) -> Result<Option<ShardingRule>>;
}
