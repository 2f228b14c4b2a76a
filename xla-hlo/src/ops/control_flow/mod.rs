//! Calls, loops, branches and fusions.

mod aliases;
mod attributes;
mod eval;
mod proto;
mod shape;
mod sharding;

pub use aliases::OutputOperandAlias;

pub(in crate::ops) use proto::{read_aliases, write_aliases};

use super::{OpRules, Opcode, ReadAttributes, ShapeContext};
use crate::eval::Evaluator;
use crate::text::{AttributeReader, AttributeWriter};
use crate::{CompId, Error, Literal, Result, Shape};

/// `while`: runs `body` on the state as long as `condition` is true; the state is operand 0.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct While {
    /// Computation from the state to `pred[]`.
    pub condition: CompId,
    /// Computation from the state to the next state.
    pub body: CompId,
}

impl ReadAttributes for While {
    fn read(_: Opcode, r: &mut AttributeReader<'_>) -> Result<Self> {
        Ok(While { condition: r.required("condition")?, body: r.required("body")? })
    }
}

impl OpRules for While {
    fn opcode(&self) -> Opcode {
        Opcode::While
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::while_loop(self, cx)
    }

    fn write_attributes(&self, w: &mut AttributeWriter<'_>) {
        w.attribute("condition", &self.condition);
        w.attribute("body", &self.body);
    }

    fn evaluate(&self, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        eval::while_loop(self, ev, operands, shape)
    }

    fn called_computations(&self) -> Vec<CompId> {
        vec![self.condition, self.body]
    }

    fn visit_called_computations(&mut self, f: &mut dyn FnMut(&mut CompId)) {
        f(&mut self.condition);
        f(&mut self.body);
    }
}

/// `conditional`: runs one of the branches on its operand. Operand 0 selects the branch: a `pred[]` (true selects
/// branch 0) or an `s32[]` (a value out of range selects the last branch). Operand `i + 1` belongs to branch `i`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Conditional {
    /// Branch computations: two for a predicate, at least one for an index.
    pub branches: Vec<CompId>,
    /// Whether text names the branches `true_computation` and `false_computation`, for a selector of type `pred[]`.
    pub by_predicate: bool,
}

impl ReadAttributes for Conditional {
    fn read(_: Opcode, r: &mut AttributeReader<'_>) -> Result<Self> {
        if let Some(branches) = r.optional("branch_computations")? {
            return Ok(Conditional { branches, by_predicate: false });
        }
        let branches = vec![r.required("true_computation")?, r.required("false_computation")?];
        Ok(Conditional { branches, by_predicate: true })
    }
}

impl OpRules for Conditional {
    fn opcode(&self) -> Opcode {
        Opcode::Conditional
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::conditional(self, cx)
    }

    fn write_attributes(&self, w: &mut AttributeWriter<'_>) {
        match self.branches[..] {
            [on_true, on_false] if self.by_predicate => {
                w.attribute("true_computation", &on_true);
                w.attribute("false_computation", &on_false);
            }
            _ => w.attribute("branch_computations", &self.branches),
        }
    }

    fn evaluate(&self, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        eval::conditional(self, ev, operands, shape)
    }

    fn called_computations(&self) -> Vec<CompId> {
        self.branches.clone()
    }

    fn visit_called_computations(&mut self, f: &mut dyn FnMut(&mut CompId)) {
        self.branches.iter_mut().for_each(f);
    }
}

/// `call`: runs a computation on the operands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    /// Computation that is called.
    pub computation: CompId,
    /// Whether the call represents a named composite operation of the framework.
    pub is_composite: bool,
}

impl ReadAttributes for Call {
    fn read(_: Opcode, r: &mut AttributeReader<'_>) -> Result<Self> {
        Ok(Call { computation: r.required("to_apply")?, is_composite: r.optional("is_composite")?.unwrap_or(false) })
    }
}

impl OpRules for Call {
    fn opcode(&self) -> Opcode {
        Opcode::Call
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::call(self, cx)
    }

    fn write_attributes(&self, w: &mut AttributeWriter<'_>) {
        w.attribute("to_apply", &self.computation);
        if self.is_composite {
            w.attribute("is_composite", &true);
        }
    }

    fn evaluate(&self, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        eval::call(self, ev, operands, shape)
    }

    fn called_computations(&self) -> Vec<CompId> {
        vec![self.computation]
    }

    fn visit_called_computations(&mut self, f: &mut dyn FnMut(&mut CompId)) {
        f(&mut self.computation);
    }
}

/// `map`: applies a scalar computation to each element of arrays of equal dimensions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Map {
    /// All dimensions of the operands, in order.
    pub dimensions: Vec<usize>,
    /// Computation that is applied.
    pub computation: CompId,
}

impl ReadAttributes for Map {
    fn read(_: Opcode, r: &mut AttributeReader<'_>) -> Result<Self> {
        Ok(Map { dimensions: r.optional("dimensions")?.unwrap_or_default(), computation: r.required("to_apply")? })
    }
}

impl OpRules for Map {
    fn opcode(&self) -> Opcode {
        Opcode::Map
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::map(self, cx)
    }

    fn write_attributes(&self, w: &mut AttributeWriter<'_>) {
        w.attribute("dimensions", &self.dimensions);
        w.attribute("to_apply", &self.computation);
    }

    fn evaluate(&self, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        eval::map(self, ev, operands, shape)
    }

    fn called_computations(&self) -> Vec<CompId> {
        vec![self.computation]
    }

    fn visit_called_computations(&mut self, f: &mut dyn FnMut(&mut CompId)) {
        f(&mut self.computation);
    }
}

/// Kind of loop generated for a fusion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FusionKind {
    /// Computes one element of the result at a time.
    Loop,
    /// Rooted in a reduction.
    Input,
    /// A dot followed by elementwise operations.
    Output,
    /// Backend-specific.
    Custom,
}

/// `fusion`: operations compiled as one kernel. Its computation has no other caller.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fusion {
    /// Kind of loop.
    pub kind: FusionKind,
    /// Computation from the operands to the result.
    pub computation: CompId,
    /// Results that reuse operand buffers.
    pub aliases: Vec<OutputOperandAlias>,
}

impl ReadAttributes for Fusion {
    fn read(_: Opcode, r: &mut AttributeReader<'_>) -> Result<Self> {
        Ok(Fusion {
            kind: r.required("kind")?,
            computation: r.required("calls")?,
            aliases: r.optional("output_to_operand_aliasing")?.unwrap_or_default(),
        })
    }
}

impl OpRules for Fusion {
    fn opcode(&self) -> Opcode {
        Opcode::Fusion
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::fusion(self, cx)
    }

    fn write_attributes(&self, w: &mut AttributeWriter<'_>) {
        w.attribute("kind", &self.kind);
        if !self.aliases.is_empty() {
            w.attribute("output_to_operand_aliasing", &self.aliases);
        }
        w.attribute("calls", &self.computation);
    }

    fn evaluate(&self, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        eval::fusion(self, ev, operands, shape)
    }

    fn called_computations(&self) -> Vec<CompId> {
        vec![self.computation]
    }

    fn visit_called_computations(&mut self, f: &mut dyn FnMut(&mut CompId)) {
        f(&mut self.computation);
    }
}
