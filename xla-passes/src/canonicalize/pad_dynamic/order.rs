//! Sorts and reversals of arrays with dynamic sizes.

use xla_hlo::ops::{
    Binary, BinaryOp, Compare, CompareDirection, CompareType, DynamicSlice, Parameter, Reverse, Sort, TopK,
};
use xla_hlo::{CompId, Computation, ElementKind, ElementType, InstrId, Instruction, Result, Shape};

use super::{Padder, Sizes};
use crate::rewrite::graph;

impl Padder<'_> {
    /// Sorts elements beyond the size to the end, regardless of the comparator.
    pub(super) fn sort(&mut self, id: InstrId, sort: &Sort, operands: &[InstrId]) -> Result<Vec<Sizes>> {
        let mut sizes = self.array_sizes(operands[0]);
        for &operand in &operands[1..] {
            sizes = self.agreed(&sizes, &self.array_sizes(operand))?;
        }
        if sizes[sort.dimension].is_none() {
            return Ok(vec![sizes; operands.len()]);
        }
        let sorted = self.sorted_within(sort, operands, &sizes)?;
        let value = match sorted[..] {
            [only] => only,
            ref all => self.at.tuple(all)?,
        };
        self.stand_for(id, value, vec![sizes; operands.len()])
    }

    /// Sorts the operands along a dimension with a dynamic size.
    fn sorted_within(&mut self, sort: &Sort, operands: &[InstrId], sizes: &Sizes) -> Result<Vec<InstrId>> {
        let shape = self.at.array(operands[0])?.clone();
        let Some(inside) = self.inside(shape.dims(), sizes, &[sort.dimension])? else { return Ok(operands.to_vec()) };
        let mut types = Vec::with_capacity(operands.len());
        for &operand in operands {
            types.push(self.at.element_type(operand)?);
        }
        let computation = self.inside_first(sort.computation, &types);
        let sort = Sort { computation, ..sort.clone() };
        let sorted = self.at.add(sort, [operands, &[inside]].concat())?;
        (0..operands.len()).map(|i| self.at.get(sorted, i)).collect()
    }

    /// Adds a comparator that orders elements inside the size before elements outside, and calls `comparator` for pairs
    /// on the same side. The last two parameters state whether each element is inside.
    fn inside_first(&mut self, comparator: CompId, types: &[ElementType]) -> CompId {
        let callee = self.at.module()[comparator].clone();
        let mut whole = Computation::new(format!("{}_inside_first", callee.name()));
        let types = types.iter().chain(&[ElementType::Pred]).flat_map(|&ty| [ty, ty]);
        let parameters: Vec<InstrId> = types
            .enumerate()
            .map(|(number, ty)| whole.add(Instruction::new(Parameter { number }.into(), Shape::scalar(ty), [])))
            .collect();
        let (elements, inside) = parameters.split_at(parameters.len() - 2);
        let before = graph::splice(&mut whole, &callee, elements);
        let pred = Shape::scalar(ElementType::Pred);
        let mut add = |op: xla_hlo::Op, operands: [InstrId; 2]| whole.add(Instruction::new(op, pred.clone(), operands));
        let alike = add(Compare::new(CompareDirection::Eq).into(), [inside[0], inside[1]]);
        let alike = add(Binary { op: BinaryOp::And }.into(), [alike, before]);
        let first = add(Compare::new(CompareDirection::Gt).into(), [inside[0], inside[1]]);
        let root = add(Binary { op: BinaryOp::Or }.into(), [alike, first]);
        whole.set_root(root);
        self.at.module_mut().add(whole)
    }

    /// Computes the first elements of a sort with their indices. If the size is less than `k`, the elements beyond it
    /// are last.
    pub(super) fn top_k(&mut self, id: InstrId, op: &TopK, operand: InstrId) -> Result<Vec<Sizes>> {
        let mut sizes = self.array_sizes(operand);
        let last = sizes.len() - 1;
        let Some(size) = sizes[last] else { return Ok(vec![sizes; 2]) };
        let shape = self.at.array(operand)?.clone();
        let places = self.at.iota(ElementType::S32, shape.dims(), last)?;
        let computation = self.better(shape.element_type(), op.largest);
        let sort = Sort { dimension: last, is_stable: true, computation };
        let mut best = self.sorted_within(&sort, &[operand, places], &sizes)?;
        for array in &mut best {
            *array = self.at.slice(*array, last, 0, op.k)?;
        }
        let value = self.at.tuple(&best)?;
        sizes[last] = match self.has_bounds(id, last) {
            true => Some(self.clamped(size, op.k)?),
            false => None,
        };
        self.stand_for(id, value, vec![sizes; 2])
    }

    /// Adds the order of [`TopK`] as a comparator of elements with their indices.
    fn better(&mut self, ty: ElementType, largest: bool) -> CompId {
        let mut comparator = Computation::new("better");
        let types = [ty, ty, ElementType::S32, ElementType::S32];
        let parameter = |(number, &ty): (usize, &ElementType)| {
            comparator.add(Instruction::new(Parameter { number }.into(), Shape::scalar(ty), []))
        };
        let elements: Vec<InstrId> = types.iter().enumerate().map(parameter).collect();
        let direction = if largest { CompareDirection::Gt } else { CompareDirection::Lt };
        let order = (ty.kind() == ElementKind::Float).then_some(CompareType::TotalOrder);
        let compare = Compare { direction, order }.into();
        let root = comparator.add(Instruction::new(compare, Shape::scalar(ElementType::Pred), &elements[..2]));
        comparator.set_root(root);
        self.at.module_mut().add(comparator)
    }

    /// Reverses the array. Elements beyond the size are then first, so the array is shifted to start with the valid
    /// ones.
    pub(super) fn reverse(&mut self, id: InstrId, reverse: &Reverse, operand: InstrId) -> Result<Vec<Sizes>> {
        let sizes = self.array_sizes(operand);
        if reverse.dimensions.iter().all(|&d| sizes[d].is_none()) {
            return Ok(vec![sizes]);
        }
        let dims = self.at.dims(operand);
        let mut value = self.at.add(reverse.clone(), [operand])?;
        for &d in &reverse.dimensions {
            let Some(size) = sizes[d] else { continue };
            let twice = self.at.concatenate(&[value, value], d)?;
            let (zero, bound) = (self.known(0)?, self.known(dims[d])?);
            let start = self.at.binary(BinaryOp::Subtract, bound, size)?;
            let mut read = vec![twice];
            read.extend((0..dims.len()).map(|i| if i == d { start } else { zero }));
            value = self.at.add(DynamicSlice { sizes: dims.clone() }, read)?;
        }
        self.stand_for(id, value, vec![sizes])
    }
}
