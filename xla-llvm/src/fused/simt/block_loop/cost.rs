//! Cost estimate of a phase that one block computes, each thread some of its elements.

use std::collections::HashMap;

use xla_hlo::ops::Op;
use xla_hlo::{InstrId, Shape};

use crate::fused::analysis::{FusedKernel, ReduceDirection};
use crate::fused::simt::block_loop::phase::{PhaseWork, Unfit};
use crate::fused::simt::row_shape::RowShape;
use crate::fused::support::work;
use crate::fused::tuning::block_loop::{AT_ONCE, LOAD_CYCLES, OPERATION_CYCLES, PHASE_CYCLES, SHUFFLE_CYCLES};
use crate::simt::WARP;
use crate::target::Target;

/// Cost of a phase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PhaseCost {
    /// Number of elements of the result, or of words of a copy.
    pub items: u64,
    /// Number of HLO instructions of the phase.
    pub operations: usize,
    /// Estimated cycles of the block.
    pub cycles: u64,
}

/// Returns the number of threads that a phase can use.
pub(super) fn wanted_threads(phase: &PhaseWork<'_>, target: &Target) -> u64 {
    match phase {
        PhaseWork::Copy { bytes, .. } => words(*bytes),
        PhaseWork::Compute { source, .. } => {
            FusedKernel::new(source).map_or(0, |kernel| match kernel.row_shape(target).filter(|_| !source.in_place) {
                Some(shape) => extent(&kernel.dims[..shape.rows]).saturating_mul(shape.threads.into()),
                None => extent(&kernel.dims),
            })
        }
    }
}

impl PhaseCost {
    /// Estimates the cost for a block of `threads` threads.
    pub fn of(phase: &PhaseWork<'_>, target: &Target, threads: u32) -> Result<PhaseCost, Unfit> {
        let source = match phase {
            PhaseWork::Copy { bytes, .. } => {
                return Ok(PhaseCost::new(words(*bytes), 1, words(*bytes).div_ceil(AT_ONCE) as f64 * LOAD_CYCLES));
            }
            PhaseWork::Compute { source, .. } => source,
        };
        let root = || Unfit::Operation(source.module[source.computation][source.root].name().to_string());
        let kernel = FusedKernel::new(source).map_err(|_| root())?;
        if kernel.dims.contains(&0) {
            return Ok(PhaseCost::new(0, 0, 0.0));
        }
        // Sequential computations (one thread per fiber of elements) and attention cannot be phases of a block loop.
        if !matches!(kernel.fibers(target), Ok(None)) || kernel.attention(target).is_some() {
            return Err(root());
        }
        let rows = kernel.row_shape_in_block(target, threads);
        let turns = match rows {
            None => extent(&kernel.dims).div_ceil(AT_ONCE),
            Some(shape) => {
                let (groups, at_once) = (u64::from(threads / shape.threads), u64::from(threads).div_ceil(AT_ONCE));
                extent(&kernel.dims[..shape.rows]).div_ceil(groups) * at_once
            }
        };
        let cycles = turns as f64 * turn_cycles(&kernel, rows);
        Ok(PhaseCost::new(extent(&kernel.dims), kernel.computed().len(), cycles))
    }

    fn new(items: u64, operations: usize, cycles: f64) -> PhaseCost {
        PhaseCost { items, operations, cycles: (PHASE_CYCLES + cycles) as u64 }
    }
}

fn extent(dims: &[usize]) -> u64 {
    dims.iter().fold(1, |all, &extent| all.saturating_mul(extent as u64))
}

/// Returns the number of words of a copy.
fn words(bytes: usize) -> u64 {
    (bytes / word_bytes(bytes)) as u64
}

/// Returns the word size in bytes of a copy of `bytes` bytes.
pub(super) fn word_bytes(bytes: usize) -> usize {
    1 << bytes.trailing_zeros().min(3)
}

/// Estimates the cycles of a thread for an element, or for its part of a row. A value that several results read is
/// computed once. An operand of a reduction is computed for each of its elements, or only for the thread's share if a
/// group reduces.
fn turn_cycles(kernel: &FusedKernel<'_, '_>, rows: Option<RowShape>) -> f64 {
    let (graph, source) = (kernel.graph(), kernel.source);
    let members = rows.map_or(1.0, |shape| f64::from(shape.threads));
    let of_output = |rank: usize| match rows {
        Some(shape) if rank > shape.rows => (extent(&kernel.dims[shape.rows..]) as f64 / members).ceil(),
        Some(_) | None => 1.0,
    };
    let outputs = kernel.outputs.iter().map(|output| (output.root, of_output(output.shape.rank())));
    let mut turns: HashMap<InstrId, f64> = outputs.collect();
    let mut cycles = 0.0;
    for id in graph.post_order().into_iter().rev() {
        let Some(&turn) = turns.get(&id) else { continue };
        if source.inputs.contains(&id) {
            cycles += turn * LOAD_CYCLES;
            continue;
        }
        let each = work(source.module, graph, id) / elements(graph[id].shape());
        let reduced = match graph[id].op() {
            Op::Reduce(_) => elements(graph[graph[id].operand(0)].shape()) / elements(graph[id].shape()),
            Op::Dot(_) | Op::Convolution(_) | Op::ReduceWindow(_) => each,
            _ => 1.0,
        };
        let together = rows.is_some() && kernel.group_reduce_direction(id) == Some(ReduceDirection::AlongRows);
        let (turn, share) = if together && reduced >= f64::from(WARP) {
            cycles += SHUFFLE_CYCLES;
            (1.0, members)
        } else {
            (turn, 1.0)
        };
        cycles += turn * (each / share).max(1.0) * OPERATION_CYCLES;
        for &operand in graph[id].operands() {
            let known = turns.entry(operand).or_insert(0.0);
            *known = known.max(turn * (reduced / share).ceil().max(1.0));
        }
    }
    cycles
}

/// Returns the number of elements of a value's first array, at least one.
fn elements(shape: &Shape) -> f64 {
    let leaves = shape.leaves();
    let first = leaves.iter().find_map(|(_, leaf)| leaf.as_array());
    first.map_or(1.0, |array| array.element_count().max(1) as f64)
}
