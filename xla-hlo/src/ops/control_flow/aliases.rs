//! Buffer aliases: results of fusions, custom calls and asynchronous calls that reuse operand buffers.

use crate::ops::ShapeContext;
use crate::{Error, Result, Shape};

/// `{output}: (operand, {path})`: part `output` of the result shares the buffer of part `path` of the operand.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OutputOperandAlias {
    /// Path into the result.
    pub output: Vec<usize>,
    /// Number of the operand.
    pub operand: usize,
    /// Path into the operand.
    pub path: Vec<usize>,
}

impl OutputOperandAlias {
    /// Checks that the aliased parts of the result and of the operand have the same shape. The string names the
    /// operation in errors.
    pub(in crate::ops) fn check(&self, what: &str, cx: &ShapeContext<'_>, result: &Shape) -> Result<()> {
        let operand = cx.operand(self.operand)?;
        let (from, to) = (result.subshape(&self.output), operand.subshape(&self.path));
        // A buffer may alias the array that it is made from (`Pin`), and vice versa (`Unpin`).
        let fits = |from: &Shape, to: &Shape| match (from, to) {
            (Shape::Buffer(a), Shape::Array(b)) | (Shape::Array(b), Shape::Buffer(a)) => {
                Shape::Array((**a).clone()).compatible(&Shape::Array(b.clone()))
            }
            _ => from.compatible(to),
        };
        if matches!((from, to), (Some(from), Some(to)) if fits(from, to)) {
            return Ok(());
        }
        Err(Error::invalid_argument(format!(
            "output {:?} of {what} cannot alias operand {} at {:?}: {} and {}",
            self.output,
            self.operand,
            self.path,
            result.without_layout(),
            operand.without_layout()
        )))
    }
}
