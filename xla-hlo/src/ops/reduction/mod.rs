//! Reductions and scans.

mod eval;
mod proto;
mod scan;
mod shape;
mod sharding;

pub use scan::Scan;

use super::{OpRules, Opcode, ReadAttributes, ShapeContext};
use crate::eval::Evaluator;
use crate::text::{AttributeReader, AttributeWriter};
use crate::{CompId, Literal, Result, Shape};

/// `reduce`: a reduction over dimensions of N arrays with N initial values. Operands are the arrays, followed by the
/// initial values.
///
/// The computation takes N accumulators and N elements and returns N results (a tuple if N > 1). The order of
/// combination is unspecified.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reduce {
    /// Dimensions that are reduced.
    pub dimensions: Vec<usize>,
    /// Combiner of accumulators and elements.
    pub computation: CompId,
}

impl ReadAttributes for Reduce {
    fn read(_: Opcode, r: &mut AttributeReader<'_>) -> Result<Self> {
        Ok(Reduce { dimensions: r.required("dimensions")?, computation: r.required("to_apply")? })
    }
}

impl OpRules for Reduce {
    fn opcode(&self) -> Opcode {
        Opcode::Reduce
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::reduce(self, cx)
    }

    fn write_attributes(&self, w: &mut AttributeWriter<'_>) {
        w.attribute("dimensions", &self.dimensions);
        w.attribute("to_apply", &self.computation);
    }

    fn evaluate(&self, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        eval::reduce(self, ev, operands, shape)
    }

    fn called_computations(&self) -> Vec<CompId> {
        vec![self.computation]
    }

    fn visit_called_computations(&mut self, f: &mut dyn FnMut(&mut CompId)) {
        f(&mut self.computation);
    }
}
