//! Facts about a kernel: its results, the dimensions of its loops, its reductions and their direction.

use std::collections::HashSet;

use xla_hlo::ops::{Op, Reduce};
use xla_hlo::{ArrayShape, Computation, ElementType, Error, InstrId, Instruction, Result, Shape};

use crate::denormals::Denormals;
use crate::fused::core::address::compute_bits;
use crate::fused::core::reduce::{reduces_in_parts, splits_into_lanes};
use crate::fused::source::KernelSource;
use crate::fused::tuning::threads::{ACCESS_BITS, VALUE_BITS};

/// Kernel that is being analysed and emitted.
pub(crate) struct FusedKernel<'a, 'm> {
    pub source: &'a KernelSource<'m>,
    pub outputs: Vec<Output>,
    /// Dimensions that the loops iterate over.
    pub dims: Vec<usize>,
    /// Array that contains the only result, if the result is a part of one: its strides apply.
    pub container: Option<ArrayShape>,
}

/// One stored result.
pub(crate) struct Output {
    pub root: InstrId,
    /// Number of the value, for a reduction of several arrays.
    pub value: usize,
    pub shape: ArrayShape,
}

impl<'a, 'm> FusedKernel<'a, 'm> {
    pub fn new(source: &'a KernelSource<'m>) -> Result<Self> {
        let graph = &source.module[source.computation];
        let roots = match graph[source.root].op() {
            Op::Tuple(_) => graph[source.root].operands().to_vec(),
            _ => vec![source.root],
        };
        let mut outputs = Vec::new();
        for root in roots {
            for (value, (_, leaf)) in graph[root].shape().leaves().into_iter().enumerate() {
                outputs.push(Output { root, value, shape: leaf.expect_array()?.clone() });
            }
        }
        let mut kernel = FusedKernel { source, outputs, dims: Vec::new(), container: None };
        kernel.dims = kernel.loop_dims()?;
        Ok(kernel)
    }

    /// Returns the kernel of a source that a [strategy](KernelSource::has_strategy) can compute. `None` if its results
    /// have no elements.
    pub fn of_elements(source: &'a KernelSource<'m>) -> Option<Self> {
        let kernel = if source.has_strategy() { FusedKernel::new(source).ok() } else { None };
        kernel.filter(|kernel| !kernel.dims.contains(&0))
    }

    pub fn graph(&self) -> &'m Computation {
        &self.source.module[self.source.computation]
    }

    /// Returns the dimensions of the loops, from the largest result or from the slice that is written in place.
    fn loop_dims(&self) -> Result<Vec<usize>> {
        if self.source.in_place {
            let update = self.graph()[self.source.root].operand(1);
            return Ok(self.graph()[update].shape().expect_array()?.dims().to_vec());
        }
        let dims = self.outputs.iter().map(|o| o.shape.dims()).max_by_key(|d| d.iter().product::<usize>());
        let dims = dims.ok_or_else(|| Error::internal("kernel has no result"))?.to_vec();
        match self.outputs.iter().find(|o| !dims.starts_with(o.shape.dims())) {
            Some(odd) => Err(Error::unimplemented(format!(
                "one kernel cannot compute results of dimensions {:?} and shape {}",
                dims, odd.shape
            ))),
            None => Ok(dims),
        }
    }

    /// Returns the instructions that the kernel computes.
    pub fn computed(&self) -> Vec<InstrId> {
        let graph = self.graph();
        let mut seen = HashSet::from([self.source.root]);
        let mut work = vec![self.source.root];
        let mut found = Vec::new();
        while let Some(id) = work.pop() {
            if self.source.inputs.contains(&id) {
                continue;
            }
            found.push(id);
            work.extend(graph[id].operands().iter().copied().filter(|&o| seen.insert(o)));
        }
        found
    }

    /// Returns the computed instructions that reduce.
    pub fn reductions(&self) -> Vec<InstrId> {
        let reduces = |id: &InstrId| matches!(self.graph()[*id].op(), Op::Reduce(_) | Op::Dot(_) | Op::Convolution(_));
        self.computed().into_iter().filter(reduces).collect()
    }

    pub fn has_reductions(&self) -> bool {
        !self.reductions().is_empty()
    }

    /// Returns the width in bits of the widest lane in any computation.
    pub fn widest_bits(&self) -> u32 {
        let computed = self.computed();
        let all = computed.iter().chain(&self.source.inputs);
        all.filter_map(|&id| widest(self.graph()[id].shape())).max().unwrap_or(32)
    }

    /// Returns the number of neighbouring elements per thread, a power of two: one access of [`ACCESS_BITS`] to the
    /// narrowest array that is read or written whole, limited by [`VALUE_BITS`] of registers.
    pub fn access_width(&self) -> u32 {
        let elements: usize = self.dims.iter().product();
        let inputs = self.source.inputs.iter().filter_map(|&id| self.graph()[id].shape().as_array());
        let arrays = inputs.chain(self.outputs.iter().map(|output| &output.shape));
        let whole = arrays.filter(|array| array.element_count() == elements);
        let narrowest = whole.map(|array| array.element_type().bit_width() as u32).min();
        let widest = self.widest_bits();
        let stored = narrowest.unwrap_or(widest).clamp(8, ACCESS_BITS);
        (ACCESS_BITS / stored).min(VALUE_BITS / widest.clamp(8, ACCESS_BITS)).max(1)
    }

    /// Returns the direction of an instruction's reduction: along the innermost dimension of its operand, or across it.
    pub fn reduce_direction(&self, root: InstrId) -> Option<ReduceDirection> {
        let instruction = &self.graph()[root];
        let along = match instruction.op() {
            Op::Reduce(op) => {
                let along = self.reduces_along(root, op)?;
                let ty = instruction.shape().as_array().map(ArrayShape::element_type);
                if ty.and_then(|ty| splits_into_lanes(self.source.module, op, ty)).is_none() {
                    return Some(ReduceDirection::SideBySide);
                }
                along
            }
            Op::Dot(dot) => {
                let rhs = self.graph()[instruction.operand(1)].shape().as_array()?;
                dot.dims.rhs_contracting.contains(&rhs.rank().saturating_sub(1))
            }
            _ => return None,
        };
        Some(if along { ReduceDirection::AlongRows } else { ReduceDirection::Across })
    }

    /// Returns the direction for threads that each reduce a part and combine the results.
    pub fn group_reduce_direction(&self, root: InstrId) -> Option<ReduceDirection> {
        match (self.reduce_direction(root)?, self.graph()[root].op()) {
            (ReduceDirection::SideBySide, Op::Reduce(op)) if reduces_in_parts(self.source.module, op) => {
                let along = self.reduces_along(root, op)?;
                Some(if along { ReduceDirection::AlongRows } else { ReduceDirection::Across })
            }
            (direction, _) => Some(direction),
        }
    }

    /// Whether a reduction reduces the innermost dimension.
    fn reduces_along(&self, root: InstrId, op: &Reduce) -> Option<bool> {
        let shape = self.graph()[self.graph()[root].operand(0)].shape().as_array()?;
        let innermost = shape.dims().iter().rposition(|&extent| extent > 1)?;
        Some(op.dimensions.contains(&innermost))
    }

    /// Returns the number of elements that one reduction of the instruction combines.
    pub fn reduction_size(&self, id: InstrId) -> u64 {
        let instruction = &self.graph()[id];
        let dims = instruction.operands().first().and_then(|&o| self.graph()[o].shape().as_array());
        let reduced: &[usize] = match instruction.op() {
            Op::Reduce(reduce) => &reduce.dimensions,
            Op::Dot(dot) => &dot.dims.lhs_contracting,
            _ => &[],
        };
        dims.map_or(1, |shape| reduced.iter().map(|&d| shape.dims()[d] as u64).product())
    }

    /// Returns the number of leading dimensions that index rows, if the kernel reduces rows; no result has fewer
    /// dimensions.
    pub fn rows(&self) -> Option<usize> {
        let graph = self.graph();
        let least = self.outputs.iter().map(|o| o.shape.rank()).min()?;
        let rows = |id: &InstrId| match graph[*id].op() {
            Op::Reduce(reduce) => row_reduction(graph, &self.dims, graph[*id].operand(0), reduce),
            _ => None,
        };
        self.computed().iter().filter_map(rows).min().map(|rows| rows.min(least))
    }

    /// Returns the treatment of subnormal numbers.
    ///
    /// `f8e8m0fnu` has no subnormals, but its least number is a subnormal `f32`, the type of its lanes. Sorts compare
    /// subnormal numbers unchanged, as library sorts do.
    pub fn denormals(&self) -> Denormals {
        if let Op::Sort(_) | Op::TopK(_) = self.graph()[self.source.root].op() {
            return Denormals::Preserve;
        }
        let types = self.element_types();
        match () {
            () if types.contains(&ElementType::F8E8M0FNU) => Denormals::Preserve,
            () if types.iter().any(|ty| ty.is_float() || ty.is_complex()) => Denormals::MayFlush,
            () => Denormals::Unaffected,
        }
    }

    /// Returns the element types of all values that are read or computed, including those in called computations.
    fn element_types(&self) -> HashSet<ElementType> {
        let module = self.source.module;
        let mut instructions: Vec<&Instruction> =
            self.computed().iter().chain(&self.source.inputs).map(|&id| &self.graph()[id]).collect();
        let (mut types, mut called) = (HashSet::new(), HashSet::new());
        while let Some(instruction) = instructions.pop() {
            types.extend(instruction.shape().leaves().iter().filter_map(|(_, leaf)| leaf.element_type()));
            let new = instruction.op().called_computations().into_iter().filter(|&id| called.insert(id));
            instructions.extend(new.flat_map(|id| module[id].iter().map(|(_, instruction)| instruction)));
        }
        types
    }

    /// Returns a rough count of the elementary operations.
    pub fn work(&self) -> f64 {
        self.computed().into_iter().map(|id| super::support::work(self.source.module, self.graph(), id)).sum()
    }
}

/// Returns the number of leading dimensions that index rows, for a reduction over whole rows.
pub(crate) fn row_reduction(graph: &Computation, dims: &[usize], operand: InstrId, reduce: &Reduce) -> Option<usize> {
    let is_full = graph[operand].shape().as_array().is_some_and(|a| a.dims() == dims);
    let rows = dims.len().checked_sub(reduce.dimensions.len())?;
    // Only whole rows qualify: a reduction of other dimensions iterates over all rows, and one over no dimension or
    // over single elements has no rows.
    let is_row = reduce.dimensions.iter().all(|&d| d >= rows) && dims[rows..].iter().any(|&d| d > 1);
    (is_full && is_row).then_some(rows)
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum ReduceDirection {
    /// Lanes are neighbouring elements of one reduction.
    AlongRows,
    /// Lanes are neighbouring reductions whose elements are contiguous in memory.
    Across,
    /// Lanes are neighbouring reductions with elements at any address: the reduction must run in order.
    SideBySide,
}

fn widest(shape: &Shape) -> Option<u32> {
    shape.leaves().iter().filter_map(|(_, s)| s.element_type()).map(compute_bits).max()
}
