//! Expands collectives: into their local result in a program for one device, and asynchronous into synchronous ones.

use xla_hlo::effects::is_async_start;
use xla_hlo::ops::{
    AllGather, AllReduce, BinaryOp, Collective, CollectivePermute, CompareDirection, DynamicSlice, DynamicUpdateSlice,
    Gather, OnOneDevice, collective::SentSlice,
};
use xla_hlo::{CompId, ElementType, InstrId, Instruction, Module, Op, Result, Shape};

use crate::rewrite::async_chain::{chain, complete};
use crate::rewrite::builder::Inserter;
use crate::{Pass, PassContext};

/// Replaces synchronous and asynchronous collectives in modules for one device. In other modules, replaces asynchronous
/// collectives by synchronous ones at the places of their starts.
pub struct ExpandCollectives;

impl Pass for ExpandCollectives {
    fn name(&self) -> &'static str {
        "expand-collectives"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        let is_alone = module.is_for_one_device();
        let ids: Vec<CompId> = module.ids().collect();
        for id in ids {
            for collective in collectives(module, id, is_alone).into_iter().filter(|_| cx.allow_rewrite(self.name())) {
                match is_alone {
                    true => expand(module, id, collective)?,
                    false => synchronize(module, id, collective)?,
                }
            }
        }
        Ok(())
    }
}

/// Returns the collectives except the `-done` operations: all of them for one device, otherwise the asynchronous ones.
fn collectives(module: &Module, id: CompId, is_alone: bool) -> Vec<InstrId> {
    let begins = |op: &Op| match op {
        Op::Collective(Collective::Done(_)) => false,
        Op::Collective(_) => is_alone || is_async_start(op),
        _ => false,
    };
    module[id].iter().filter(|(_, i)| begins(i.op())).map(|(id, _)| id).collect()
}

/// Replaces an asynchronous collective by a synchronous one at the place of the start.
fn synchronize(module: &mut Module, id: CompId, start: InstrId) -> Result<()> {
    let computation = module.computation_mut(id);
    let Op::Collective(op) = computation[start].op().clone() else { return Ok(()) };
    let op = match op {
        Collective::AllReduce(op) => Collective::AllReduce(AllReduce { is_start: false, ..op }),
        Collective::AllGather(op) => Collective::AllGather(AllGather { is_start: false, ..op }),
        Collective::CollectivePermute(op) => Collective::CollectivePermute(CollectivePermute { is_start: false, ..op }),
        op => op,
    };
    let steps = chain(computation, start)?;
    let done = &computation[steps[steps.len() - 1]];
    let value = Instruction::new(op.into(), done.shape().clone(), computation[start].operands())
        .with_name(done.name())
        .with_annotations(computation[start].annotations().cloned().map(Box::new));
    let value = computation.add(value);
    complete(computation, &steps, value)
}

fn expand(module: &mut Module, id: CompId, start: InstrId) -> Result<()> {
    let Op::Collective(op) = module[id][start].op().clone() else { return Ok(()) };
    let operands = module[id][start].operands().to_vec();
    let meaning = op.on_one_device(module, &module[id].operand_shapes(start))?;
    let mut at = Inserter::new(module, id);
    let value = match meaning {
        OnOneDevice::PassedOn(count) => together(&mut at, &op, &operands[..count])?,
        OnOneDevice::Zeros(count) => {
            let shapes = operands[..count].iter().map(|&o| at.array(o).cloned()).collect::<Result<Vec<_>>>()?;
            let zeros = shapes.iter().map(|shape| at.zeros(shape)).collect::<Result<Vec<_>>>()?;
            together(&mut at, &op, &zeros)?
        }
        OnOneDevice::Slices(slices) => place_slices(&mut at, &slices, &operands)?,
        OnOneDevice::Rows => exchange_rows(&mut at, &operands)?,
        OnOneDevice::Number => at.integer(ElementType::U32, 0)?,
        OnOneDevice::Done => return Ok(()),
    };
    let steps = chain(at.graph(), start)?;
    let (given, expected) = (at.graph()[value].shape(), at.graph()[steps[steps.len() - 1]].shape());
    if !given.compatible(expected) {
        return Err(xla_hlo::Error::invalid_argument(format!(
            "%{} has shape {} on one device, not {}",
            at.graph()[start].name(),
            given.without_layout(),
            expected.without_layout()
        )));
    }
    complete(at.graph_mut(), &steps, value)
}

/// Returns a single array as it is (unless the operation returns a tuple), and several arrays as a tuple.
fn together(at: &mut Inserter<'_>, op: &Collective, arrays: &[InstrId]) -> Result<InstrId> {
    match arrays {
        [one] if !op.returns_tuple() => Ok(*one),
        several => at.tuple(several),
    }
}

/// Returns the leaves of a value, depth first.
fn leaves(at: &mut Inserter<'_>, value: InstrId) -> Result<Vec<InstrId>> {
    let Shape::Tuple(elements) = at.graph()[value].shape().clone() else { return Ok(vec![value]) };
    let mut found = Vec::new();
    for index in 0..elements.len() {
        let element = at.get(value, index)?;
        found.extend(leaves(at, element)?);
    }
    Ok(found)
}

/// Writes slices of operand 0 into operand 1, at the indices in operands 2 and 3.
fn place_slices(at: &mut Inserter<'_>, slices: &[SentSlice], operands: &[InstrId]) -> Result<InstrId> {
    let is_tuple = at.graph()[operands[1]].shape().as_tuple().is_some();
    let (from, mut to) = (leaves(at, operands[0])?, leaves(at, operands[1])?);
    let (reads, writes) = (leaves(at, operands[2])?, leaves(at, operands[3])?);
    for sent in slices {
        let places = sent.first_place..sent.first_place + sent.sizes.len();
        let mut read = vec![from[sent.array]];
        read.extend(&reads[places.clone()]);
        let data = at.add(DynamicSlice { sizes: sent.sizes.clone() }, read)?;
        let mut write = vec![to[sent.array], data];
        write.extend(&writes[places]);
        to[sent.array] = at.add(DynamicUpdateSlice, write)?;
    }
    if is_tuple { at.tuple(&to) } else { Ok(to[0]) }
}

/// Writes rows of operand 0 into operand 1: computes the source row of each row of the result, if any.
fn exchange_rows(at: &mut Inserter<'_>, operands: &[InstrId]) -> Result<InstrId> {
    let (input, output) = (at.array(operands[0])?.clone(), at.array(operands[1])?.clone());
    let entries = at.array(operands[2])?.element_count();
    let (rows, source_rows) = (output.dims()[0], input.dims()[0]);
    if rows == 0 || source_rows == 0 {
        return Ok(operands[1]);
    }
    let ty = ElementType::S64;
    let grid = [rows, entries];
    let list = |at: &mut Inserter<'_>, i: usize| -> Result<InstrId> {
        let numbers = at.reshape(operands[i], &[entries])?;
        let numbers = at.convert(numbers, ty)?;
        at.broadcast(numbers, &grid, &[1])
    };
    let (reads, sizes, writes) = (list(at, 2)?, list(at, 3)?, list(at, 4)?);
    let row = at.iota(ty, &grid, 0)?;
    let number = |at: &mut Inserter<'_>, value: i64, dims: &[usize]| {
        let value = at.integer(ty, value)?;
        at.broadcast(value, dims, &[])
    };
    let zero = number(at, 0, &grid)?;
    let count = number(at, source_rows as i64, &grid)?;
    // Row `offset` of an entry is written here, and is read from row `source`.
    let offset = at.binary(BinaryOp::Subtract, row, writes)?;
    let source = at.binary(BinaryOp::Add, offset, reads)?;
    let mut hit = at.compare(CompareDirection::Ge, offset, zero)?;
    for (direction, a, b) in [
        (CompareDirection::Lt, offset, sizes),
        (CompareDirection::Ge, source, zero),
        (CompareDirection::Lt, source, count),
    ] {
        let also = at.compare(direction, a, b)?;
        hit = at.binary(BinaryOp::And, hit, also)?;
    }
    // The last matching entry wins: it has the greatest code of entry number and source row.
    let entry = at.iota(ty, &grid, 1)?;
    let first = at.binary(BinaryOp::Multiply, entry, count)?;
    let code = at.binary(BinaryOp::Add, first, source)?;
    let none = number(at, -1, &grid)?;
    let code = at.select(hit, code, none)?;
    let init = at.integer(ty, -1)?;
    let code = at.reduce(BinaryOp::Maximum, code, init, &[1])?;
    let (zero, count) = (number(at, 0, &[rows])?, number(at, source_rows as i64, &[rows])?);
    let hit = at.compare(CompareDirection::Ge, code, zero)?;
    let source = at.binary(BinaryOp::Remainder, code, count)?;
    let source = at.reshape(source, &[rows, 1])?;
    let moved = at.add(row_gather(input.dims()), [operands[0], source])?;
    let hit = at.broadcast(hit, output.dims(), &[0])?;
    at.select(hit, moved, operands[1])
}

/// Returns a gather of whole rows by row index.
fn row_gather(dims: &[usize]) -> Gather {
    let mut slice_sizes = dims.to_vec();
    slice_sizes[0] = 1;
    Gather {
        offset_dims: (1..dims.len()).collect(),
        collapsed_slice_dims: vec![0],
        start_index_map: vec![0],
        operand_batching_dims: Vec::new(),
        start_indices_batching_dims: Vec::new(),
        index_vector_dim: 1,
        slice_sizes,
        indices_are_sorted: false,
    }
}
