//! Row kernels: finds the parameters whose rows are read completely before the kernel's first store to the row.

use std::collections::HashSet;

use xla_hlo::ops::Family;
use xla_hlo::{Computation, InstrId, Op, Shape};

/// Rows of a kernel in which all reductions reduce the trailing dimensions of arrays of equal dimensions.
///
/// Such a kernel computes the reductions of a row before the loop that stores the row, and reads no other row for it. A
/// result may therefore overwrite a parameter of the same dimensions if all reads of the parameter are in this order.
pub(crate) struct RowOrder<'m> {
    fused: &'m Computation,
    dims: &'m [usize],
    /// Number of leading dimensions that index rows.
    rows: usize,
    outputs: Vec<InstrId>,
}

impl<'m> RowOrder<'m> {
    /// Returns the rows of a kernel; `None` if it reduces nothing, reduces other dimensions, or uses another operation
    /// than `reduce`.
    pub(crate) fn of(fused: &'m Computation) -> Option<RowOrder<'m>> {
        let mut found: Option<(&[usize], usize)> = None;
        for (_, instruction) in fused.iter() {
            match instruction.op() {
                Op::Reduce(reduce) => {
                    let dims = fused[instruction.operand(0)].shape().as_array()?.dims();
                    let rows = dims.len().checked_sub(reduce.dimensions.len())?;
                    let trailing = reduce.dimensions.iter().all(|&d| d >= rows);
                    if !trailing || found.is_some_and(|known| known != (dims, rows)) {
                        return None;
                    }
                    found = Some((dims, rows));
                }
                Op::ReduceWindow(_) | Op::Dot(_) | Op::Convolution(_) | Op::Sort(_) | Op::Scatter(_) => return None,
                _ => {}
            }
        }
        let (dims, rows) = found?;
        let root = fused.root();
        let outputs = match fused[root].op() {
            Op::Tuple(_) => fused[root].operands().to_vec(),
            _ => vec![root],
        };
        let order = RowOrder { fused, dims, rows, outputs };
        let fits = |&output: &InstrId| order.is_full(output) || order.is_row(output);
        order.outputs.iter().all(fits).then_some(order)
    }

    /// Whether an output has the dimensions of the kernel's loops.
    pub(crate) fn stores_rows(&self, output: usize) -> bool {
        self.outputs.get(output).is_some_and(|&id| self.is_full(id))
    }

    /// Returns the parameters that every output reads in its own row only.
    pub(crate) fn parameters(&self) -> Vec<usize> {
        let mut elsewhere = HashSet::new();
        let mut seen: HashSet<(InstrId, bool)> = self.outputs.iter().map(|&id| (id, true)).collect();
        let mut work: Vec<(InstrId, bool)> = seen.iter().copied().collect();
        while let Some((id, in_row)) = work.pop() {
            if let Op::Parameter(parameter) = self.fused[id].op()
                && !in_row
            {
                elsewhere.insert(parameter.number);
            }
            for (i, &operand) in self.fused[id].operands().iter().enumerate() {
                let next = (operand, in_row && self.keeps_row(id, i));
                if seen.insert(next) {
                    work.push(next);
                }
            }
        }
        let parameters = self.fused.parameters().iter().enumerate();
        let kept = parameters.filter(|(number, id)| self.is_full(**id) && !elsewhere.contains(number));
        kept.map(|(number, _)| number).collect()
    }

    /// Whether an instruction, computed for some row, reads operand `i` in this row only.
    fn keeps_row(&self, id: InstrId, i: usize) -> bool {
        let instruction = &self.fused[id];
        let operand = instruction.operand(i);
        let same = (self.is_full(id) && self.is_full(operand)) || (self.is_row(id) && self.is_row(operand));
        match instruction.op() {
            Op::Reduce(_) => i < instruction.operands().len() / 2 && self.is_full(operand),
            Op::GetTupleElement(_) => true,
            Op::Broadcast(broadcast) => {
                let own_row = broadcast.dimensions.iter().copied().eq(0..self.rows);
                self.is_full(id) && self.is_row(operand) && own_row
            }
            Op::Map(_) | Op::Copy(_) | Op::OptBarrier(_) => same,
            op => op.opcode().family() == Family::Elementwise && same,
        }
    }

    fn is_full(&self, id: InstrId) -> bool {
        self.fused[id].shape().as_array().is_some_and(|array| array.dims() == self.dims)
    }

    /// Whether all arrays of a value have one element per row.
    fn is_row(&self, id: InstrId) -> bool {
        let row = |shape: &Shape| shape.as_array().is_some_and(|array| array.dims() == &self.dims[..self.rows]);
        self.fused[id].shape().leaves().iter().all(|(_, leaf)| row(leaf))
    }
}
