//! Elements of instructions at indices.
//!
//! Data movement only maps the index of an element to an index of the operand, so no intermediate array of a fusion is
//! materialized.

use std::collections::HashMap;
use std::sync::Arc;

use cranelift_codegen::ir::Value;
use xla::hlo::ops::{Family, Op};
use xla::hlo::{CompId, Computation, ElementType, InstrId, Module};

use super::{arithmetic, convert};
use crate::builder::{Array, KernelBuilder};

/// Value of an instruction that is not computed by the kernel.
enum Leaf {
    Array(Array),
    Value(Value),
}

/// Computes elements of the instructions of one computation. All methods return `None` for unsupported operations.
pub(super) struct Expression<'m> {
    pub module: &'m Module,
    pub graph: &'m Computation,
    leaves: HashMap<InstrId, Leaf>,
    /// Computed elements: those of the whole kernel, then those of each open loop or branch.
    known: Vec<Known>,
}

/// Values of instructions at indices.
type Known = HashMap<(InstrId, Vec<Value>), Vec<Value>>;

impl<'m> Expression<'m> {
    /// Creates an expression whose `leaves` are the first arrays of the kernel. `None` if they are not arrays.
    pub fn of_arrays(
        module: &'m Module,
        graph: &'m Computation,
        leaves: &[InstrId],
        k: &KernelBuilder<'_>,
    ) -> Option<Expression<'m>> {
        let leaf = |(i, &id): (usize, &InstrId)| Some((id, Leaf::Array(k.array(i, graph[id].shape().as_array()?))));
        let leaves = leaves.iter().enumerate().map(leaf).collect::<Option<_>>()?;
        Some(Expression { module, graph, leaves, known: vec![Known::new()] })
    }

    /// Creates an expression of a computation of scalars, with given values of its parameters.
    pub fn of_values(module: &'m Module, graph: &'m Computation, values: &[Value]) -> Expression<'m> {
        let leaves = graph.parameters().iter().copied().zip(values.iter().map(|&value| Leaf::Value(value)));
        Expression { module, graph, leaves: leaves.collect(), known: vec![Known::new()] }
    }

    /// Enters a loop or branch: elements computed in it are not available after it.
    pub fn enter(&mut self) {
        self.known.push(Known::new());
    }

    /// Leaves the loop or branch.
    pub fn leave(&mut self) {
        self.known.pop();
    }

    /// Returns the element type and dimensions of an array.
    pub fn array(&self, id: InstrId) -> Option<(ElementType, &'m [usize])> {
        let shape = self.graph[id].shape().as_array()?;
        Some((shape.element_type(), shape.dims()))
    }

    /// Computes an element of an array.
    pub fn element(&mut self, k: &mut KernelBuilder<'_>, id: InstrId, at: &[Value]) -> Option<Value> {
        let [value] = self.elements(k, id, at)?[..] else { return None };
        Some(value)
    }

    /// Computes an element of each array that an instruction returns, all at one index.
    pub fn elements(&mut self, k: &mut KernelBuilder<'_>, id: InstrId, at: &[Value]) -> Option<Vec<Value>> {
        let key = (id, at.to_vec());
        if let Some(values) = self.known.iter().find_map(|known| known.get(&key)) {
            return Some(values.clone());
        }
        let values = match self.leaves.get(&id) {
            Some(Leaf::Array(array)) => vec![k.load(array, at)],
            Some(&Leaf::Value(value)) => vec![value],
            None => self.compute(k, id, at)?,
        };
        self.known.last_mut()?.insert(key, values.clone());
        Some(values)
    }

    fn compute(&mut self, k: &mut KernelBuilder<'_>, id: InstrId, at: &[Value]) -> Option<Vec<Value>> {
        let instruction = &self.graph[id];
        let operands = instruction.operands();
        let value = match instruction.op() {
            Op::Tuple(_) => return operands.iter().map(|&operand| self.element(k, operand, at)).collect(),
            Op::GetTupleElement(op) => self.elements(k, operands[0], at)?.get(op.index).copied()?,
            Op::Reduce(op) => return self.reduce(k, op, operands, at),
            Op::ReduceWindow(op) => return self.reduce_window(k, op, operands, at),
            Op::Call(op) => return self.called(k, op.computation, operands, at),
            Op::Map(op) => return self.called(k, op.computation, operands, at),
            Op::Fusion(op) if at.is_empty() => return self.called(k, op.computation, operands, at),
            Op::Dot(op) => self.dot(k, id, op, at)?,
            Op::Constant(op) if at.is_empty() || op.literal.as_splat().is_some() => {
                k.constant(self.array(id)?.0, op.literal.get(0))
            }
            Op::Constant(op) => {
                let array = k.constant_array(&Arc::new(op.literal.clone()));
                k.load(&array, at)
            }
            Op::Iota(op) => convert::convert(k, at[op.dimension], ElementType::S64, self.array(id)?.0)?,
            Op::OptBarrier(_) => self.element(k, operands[0], at)?,
            Op::Gather(op) => self.gather(k, op, operands, at)?,
            op if op.opcode().family() == Family::Movement => self.moved(k, id, at)?,
            op => {
                let result = self.array(id)?.0;
                let mut values = Vec::with_capacity(3);
                for &operand in operands {
                    let (ty, dims) = self.array(operand)?;
                    // A scalar operand is used for every element.
                    let at = if dims.is_empty() { &[] } else { at };
                    values.push((self.element(k, operand, at)?, ty));
                }
                arithmetic::apply(k, op, &values, result)?
            }
        };
        Some(vec![value])
    }

    /// Evaluates a called computation of scalars, for elements of the operands at an index.
    fn called(
        &mut self,
        k: &mut KernelBuilder<'_>,
        computation: CompId,
        operands: &[InstrId],
        at: &[Value],
    ) -> Option<Vec<Value>> {
        let graph = &self.module[computation];
        let is_scalar = |&id: &InstrId| graph[id].shape().as_array().is_some_and(|shape| shape.is_scalar());
        if !graph.parameters().iter().all(is_scalar) {
            return None;
        }
        let values: Vec<Value> = operands.iter().map(|&operand| self.element(k, operand, at)).collect::<Option<_>>()?;
        Expression::of_values(self.module, graph, &values).elements(k, graph.root(), &[])
    }

    /// Applies a combiner to accumulators and elements, which are converted to its parameter types.
    pub fn combined(
        &self,
        k: &mut KernelBuilder<'_>,
        combiner: &'m Computation,
        accumulators: &[Value],
        elements: &[(Value, ElementType)],
    ) -> Option<Vec<Value>> {
        let mut values = accumulators.to_vec();
        let taken_as = combiner.parameters().iter().skip(accumulators.len());
        for (&(value, from), &parameter) in elements.iter().zip(taken_as) {
            values.push(convert::convert(k, value, from, combiner[parameter].shape().as_array()?.element_type())?);
        }
        Expression::of_values(self.module, combiner, &values).elements(k, combiner.root(), &[])
    }

    /// Returns the element types of a combiner's accumulators.
    pub fn accumulator_types(&self, combiner: &Computation) -> Option<Vec<ElementType>> {
        combiner.result_shape().leaves().into_iter().map(|(_, leaf)| Some(leaf.as_array()?.element_type())).collect()
    }
}
