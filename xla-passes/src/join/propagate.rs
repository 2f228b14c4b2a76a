//! Forward propagation of shardings to results whose sharding a program leaves open, along operations that keep
//! dimensions.
//!
//! It only determines the location of results, not their values.

use std::collections::HashMap;

use xla_hlo::ops::{Dot, Family};
use xla_hlo::sdy::{self, DimSharding, Mesh, MeshAxis, MeshName, Meshes, Role, TensorSharding};
use xla_hlo::{ArrayShape, CompId, InstrId, Instruction, Module, Op, Result, Shape};

/// Axes that split each dimension of an array.
type Split = Vec<Vec<MeshAxis>>;
/// Splits of the leaves of a value; `None` if unknown.
type Leaves = Vec<Option<Split>>;

/// Maximum number of visited instructions. A computation is visited again for each call.
const MAX_STEPS: usize = 1 << 18;
/// Maximum depth of nested calls.
const MAX_DEPTH: usize = 64;

/// Returns the sharding of each leaf of the entry's result, as far as it can be derived. All are over the mesh of the
/// first sharding that the program states; shardings over other meshes are ignored.
pub(super) fn of_results(module: &Module, meshes: &Meshes) -> Result<Vec<Option<TensorSharding>>> {
    let mut propagation = Propagation { module, meshes, mesh: None, steps: 0 };
    let leaves = propagation.computation(module.entry_id(), None, 0)?;
    let Some(mesh) = propagation.mesh else { return Ok(vec![None; leaves.len()]) };
    let sharding = |split: Split| {
        let dim = |axes| DimSharding { axes, ..DimSharding::default() };
        let dims = split.into_iter().map(dim).collect();
        TensorSharding { dims, ..TensorSharding::unsplit(mesh.clone(), 0, false) }
    };
    Ok(leaves.into_iter().map(|leaf| leaf.map(sharding)).collect())
}

struct Propagation<'m> {
    module: &'m Module,
    meshes: &'m Meshes,
    mesh: Option<MeshName>,
    steps: usize,
}

impl Propagation<'_> {
    /// Returns the splits of a computation's result. Parameters have the given splits, or state their own.
    fn computation(&mut self, id: CompId, parameters: Option<Vec<Leaves>>, depth: usize) -> Result<Leaves> {
        let computation = &self.module[id];
        let mut values: HashMap<_, Leaves> = HashMap::with_capacity(computation.len());
        for at in computation.sequence() {
            self.steps += 1;
            let instruction = &computation[at];
            let operands: Vec<&Leaves> = instruction.operands().iter().map(|operand| &values[operand]).collect();
            let given = match instruction.op() {
                Op::Parameter(op) => parameters.as_ref().and_then(|list| list.get(op.number)).cloned(),
                _ => None,
            };
            let leaves = match given {
                Some(leaves) => leaves,
                None if self.steps > MAX_STEPS || depth > MAX_DEPTH => unknown(instruction),
                None => match self.stated(id, at)? {
                    Some(stated) => stated,
                    None => self.derived(id, at, &operands, depth)?,
                },
            };
            values.insert(at, leaves);
        }
        Ok(values.remove(&computation.root()).unwrap_or_default())
    }

    /// Returns the shardings that the program states for an instruction.
    fn stated(&mut self, id: CompId, at: InstrId) -> Result<Option<Leaves>> {
        let instruction = &self.module[id][at];
        let list = match sdy::role(self.module, id, at)? {
            Some(Role::LocalToGlobal(edge)) => edge.shardings,
            Some(Role::Constraint(one) | Role::Reshard(one) | Role::FunctionResult(one)) => vec![one],
            Some(_) => return Ok(None),
            None => match sdy::shardings(self.module, id, at)? {
                Some(list) => list,
                None => return Ok(None),
            },
        };
        let leaves = instruction.shape().leaves();
        if list.len() != leaves.len() {
            return Ok(None);
        }
        let split = |(sharding, (_, leaf)): (TensorSharding, (Vec<usize>, &Shape))| {
            let shape = leaf.as_array()?;
            if self.has_no_axes(&sharding.mesh) {
                return Some(vec![Vec::new(); shape.rank()]);
            }
            let mesh = self.mesh.get_or_insert_with(|| sharding.mesh.clone());
            let fits = *mesh == sharding.mesh && sharding.dims.len() == shape.rank() && sharding.unreduced.is_empty();
            fits.then(|| sharding.dims.into_iter().map(|dim| dim.axes).collect())
        };
        Ok(Some(list.into_iter().zip(leaves).map(split).collect()))
    }

    /// Derives shardings from the operands' shardings.
    fn derived(&mut self, id: CompId, at: InstrId, operands: &[&Leaves], depth: usize) -> Result<Leaves> {
        let computation = &self.module[id];
        let instruction = &computation[at];
        let all = || operands.iter().flat_map(|leaves| leaves.iter().cloned()).collect();
        Ok(match instruction.op() {
            Op::Tuple(_) | Op::While(_) | Op::OptBarrier(_) => all(),
            Op::GetTupleElement(op) => {
                let elements = computation[instruction.operand(0)].shape().as_tuple().unwrap_or_default();
                let before: usize = elements.iter().take(op.index).map(|element| element.leaves().len()).sum();
                let leaf = |leaf: usize| operands[0].get(before + leaf).cloned().flatten();
                (0..instruction.shape().leaves().len()).map(leaf).collect()
            }
            Op::Call(op) => {
                let parameters = operands.iter().map(|&leaves| leaves.clone()).collect();
                self.computation(op.computation, Some(parameters), depth + 1)?
            }
            op => {
                let Shape::Array(shape) = instruction.shape() else { return Ok(unknown(instruction)) };
                let shapes = computation.operand_shapes(at);
                let split = |(shape, leaves): (&&Shape, &&Leaves)| {
                    shape.as_array()?;
                    leaves.first()?.clone()
                };
                let splits: Vec<Option<Split>> = shapes.iter().zip(operands).map(split).collect();
                vec![array(op, shape, &shapes, &splits).map(|split| self.that_divides(split, shape))]
            }
        })
    }

    /// Whether the mesh has neither axes nor devices. Arrays over such a mesh are replicated, as over every other mesh.
    fn has_no_axes(&self, mesh: &MeshName) -> bool {
        self.meshes.get(mesh).is_ok_and(|mesh| mesh.axes.is_empty() && mesh.device_ids.is_empty())
    }

    /// Removes axes from the split that would cut a dimension into unequal parts.
    fn that_divides(&self, split: Split, shape: &ArrayShape) -> Split {
        let mesh = self.mesh.as_ref().and_then(|mesh| self.meshes.get(mesh).ok());
        let size = |mesh: &Mesh, axis: &MeshAxis| mesh.size_of(axis).ok();
        let fitting = |(axes, &dim): (Vec<MeshAxis>, &usize)| {
            let parts = mesh.and_then(|mesh| axes.iter().try_fold(1usize, |n, axis| n.checked_mul(size(mesh, axis)?)));
            if parts.is_some_and(|parts| dim.is_multiple_of(parts)) { axes } else { Vec::new() }
        };
        split.into_iter().zip(shape.dims()).map(fitting).collect()
    }
}

fn unknown(instruction: &Instruction) -> Leaves {
    vec![None; instruction.shape().leaves().len()]
}

/// Returns the split of an operation's result from the splits of its operands.
fn array(op: &Op, shape: &ArrayShape, shapes: &[&Shape], splits: &[Option<Split>]) -> Option<Split> {
    let first = || splits.first().cloned().flatten();
    let none = || vec![Vec::new(); shape.rank()];
    match op {
        op if op.opcode().family() == Family::Elementwise || matches!(op, Op::Copy(_)) => {
            let mut merged: Option<Split> = None;
            for split in splits.iter().flatten().filter(|split| split.len() == shape.rank()) {
                merge(merged.get_or_insert_with(none), split);
            }
            merged
        }
        Op::Broadcast(op) => first().map(|split| placed(shape.rank(), op.dimensions.iter().copied().zip(split))),
        Op::Transpose(op) => first().map(|split| op.permutation.iter().map(|&d| split[d].clone()).collect()),
        Op::Reshape(_) => first().map(|split| reshaped(split, shapes[0].dims(), shape.dims())),
        Op::Reduce(op) => first().map(|split| {
            let kept = split.into_iter().enumerate().filter(|(d, _)| !op.dimensions.contains(d));
            kept.map(|(_, axes)| axes).collect()
        }),
        Op::Dot(op) => Some(product(op, splits)).filter(|split| split.len() == shape.rank()),
        Op::Slice(_)
        | Op::Pad(_)
        | Op::DynamicSlice(_)
        | Op::DynamicUpdateSlice(_)
        | Op::Concatenate(_)
        | Op::Reverse(_) => {
            // A dimension keeps its split if its size is unchanged.
            let dims = shapes.first()?.as_array()?.dims();
            let kept = |(d, axes): (usize, Vec<MeshAxis>)| if dims[d] == shape.dims()[d] { axes } else { Vec::new() };
            first().map(|split| split.into_iter().enumerate().map(kept).collect())
        }
        _ => None,
    }
}

/// Assigns axes to dimensions; each axis is used for the first dimension that requests it.
fn placed(rank: usize, wanted: impl Iterator<Item = (usize, Vec<MeshAxis>)>) -> Split {
    let mut split = vec![Vec::new(); rank];
    for (d, axes) in wanted {
        let is_used = |axis: &MeshAxis| split.iter().flatten().any(|used: &MeshAxis| used.name == axis.name);
        if split[d].is_empty() && !axes.iter().any(is_used) {
            split[d] = axes;
        }
    }
    split
}

fn merge(into: &mut Split, other: &Split) {
    let wanted = std::mem::take(into).into_iter().enumerate().chain(other.iter().cloned().enumerate());
    let wanted: Vec<(usize, Vec<MeshAxis>)> = wanted.filter(|(_, axes)| !axes.is_empty()).collect();
    *into = placed(other.len(), wanted.into_iter());
}

/// Splits batch dimensions, then the free dimensions of the left operand, then those of the right operand.
fn product(op: &Dot, splits: &[Option<Split>]) -> Split {
    let dims = &op.dims;
    let of = |side: usize, d: usize| {
        let split = splits.get(side).and_then(Option::as_ref);
        split.and_then(|split| split.get(d)).cloned().unwrap_or_default()
    };
    let free = |side: usize, batch: &[usize], contracting: &[usize]| -> Vec<Vec<MeshAxis>> {
        let rank = splits.get(side).and_then(Option::as_ref).map_or(0, Vec::len);
        (0..rank).filter(|d| !batch.contains(d) && !contracting.contains(d)).map(|d| of(side, d)).collect()
    };
    let batch = dims.lhs_batch.iter().zip(&dims.rhs_batch).map(|(&l, &r)| {
        let left = of(0, l);
        if left.is_empty() { of(1, r) } else { left }
    });
    let all: Vec<Vec<MeshAxis>> = batch
        .chain(free(0, &dims.lhs_batch, &dims.lhs_contracting))
        .chain(free(1, &dims.rhs_batch, &dims.rhs_contracting))
        .collect();
    placed(all.len(), all.into_iter().enumerate())
}

/// Returns the split after a reshape. For each pair of dimension groups with equal sizes, the split of the first
/// dimension of the source is moved to the first dimension of the target.
fn reshaped(split: Split, from: &[usize], to: &[usize]) -> Split {
    let mut result = vec![Vec::new(); to.len()];
    let (mut i, mut j) = (0, 0);
    while i < from.len() && j < to.len() {
        if from[i] == 1 && to[j] != 1 {
            i += 1;
            continue;
        }
        if to[j] == 1 && from[i] != 1 {
            j += 1;
            continue;
        }
        result[j] = split[i].clone();
        let (mut left, mut right) = (from[i], to[j]);
        (i, j) = (i + 1, j + 1);
        while left != right {
            let next = if left < right {
                from.get(i).map(|size| (&mut left, &mut i, *size))
            } else {
                to.get(j).map(|size| (&mut right, &mut j, *size))
            };
            let Some((count, at, size)) = next.filter(|(count, _, _)| **count > 0) else { return result };
            *count = count.saturating_mul(size);
            *at += 1;
        }
    }
    result
}
