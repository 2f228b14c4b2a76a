//! Expands scans into loops.

use xla_hlo::ops::{BinaryOp, DynamicSlice, DynamicUpdateSlice, Scan};
use xla_hlo::{InstrId, Module, Op, Result, Scalar, Shape};

use super::counted::{COUNTER, counted_loop};
use crate::rewrite::builder::Inserter;
use crate::rewrite::graph;
use crate::{Pass, PassContext};

/// Expands `scan` into a counted loop. Its state is the counter, the inputs, the outputs so far, and the carries.
pub struct ExpandScans;

impl Pass for ExpandScans {
    fn name(&self) -> &'static str {
        "expand-scans"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        super::replace_each(self, module, cx, |graph, id| matches!(graph[id].op(), Op::Scan(_)), expand)
    }
}

/// Positions in the loop's state.
struct Layout {
    steps: usize,
    inputs: usize,
    outputs: usize,
    carries: usize,
    is_tuple: bool,
}

fn expand(at: &mut Inserter<'_>, id: InstrId) -> Result<InstrId> {
    let Op::Scan(op) = at.graph()[id].op().clone() else { return Ok(id) };
    let operands = at.operands(id);
    let results: Vec<Shape> = at.shape(id).leaves().into_iter().map(|(_, leaf)| leaf.clone()).collect();
    let inputs = operands.len() - op.num_carries;
    let outputs = results.len() - op.num_carries;
    let long = if inputs > 0 { at.shape(operands[0]) } else { &results[0] };
    let steps = long.expect_array()?.dims()[op.dimension];
    let is_tuple = at.shape(id).as_tuple().is_some();
    let layout = Layout { steps, inputs, outputs, carries: op.num_carries, is_tuple };

    let mut state = operands[..inputs].to_vec();
    for output in &results[..outputs] {
        let array = output.expect_array()?;
        state.push(at.splat(array, Scalar::zero(array.element_type()))?);
    }
    state.extend(&operands[inputs..]);
    let last = counted_loop(at, "scan", steps, &state, |at, step, state| iteration(at, &op, &layout, step, state))?;
    let results = &last[inputs..];
    match results {
        &[only] if !layout.is_tuple => Ok(only),
        all => at.tuple(all),
    }
}

/// Emits one step: slices of the inputs, the scan's computation, and updates of the outputs.
fn iteration(
    at: &mut Inserter<'_>,
    op: &Scan,
    layout: &Layout,
    counter: InstrId,
    state: &[InstrId],
) -> Result<Vec<InstrId>> {
    let (inputs, rest) = state.split_at(layout.inputs);
    let (outputs, carries) = rest.split_at(layout.outputs);
    let step = if op.is_reverse {
        let last = at.scalar(COUNTER, Scalar::Signed(layout.steps as i64 - 1))?;
        at.binary(BinaryOp::Subtract, last, counter)?
    } else {
        counter
    };
    let mut arguments = inputs.iter().map(|&x| read(at, x, op.dimension, step)).collect::<Result<Vec<_>>>()?;
    arguments.extend(carries);
    let step_function = at.module()[op.computation].clone();
    let given = graph::splice(at.graph_mut(), &step_function, &arguments);
    let given = if at.shape(given).as_tuple().is_some() {
        (0..layout.outputs + layout.carries).map(|i| at.get(given, i)).collect::<Result<Vec<_>>>()?
    } else {
        vec![given]
    };
    let mut next = inputs.to_vec();
    for (&output, &slice) in outputs.iter().zip(&given) {
        next.push(write(at, output, op.dimension, step, slice)?);
    }
    next.extend(&given[layout.outputs..]);
    Ok(next)
}

/// Returns the start indices of a window: `step` in one dimension, 0 in the others.
fn starts(at: &mut Inserter<'_>, rank: usize, dimension: usize, step: InstrId) -> Result<Vec<InstrId>> {
    let zero = at.scalar(COUNTER, Scalar::Signed(0))?;
    Ok((0..rank).map(|d| if d == dimension { step } else { zero }).collect())
}

fn read(at: &mut Inserter<'_>, x: InstrId, dimension: usize, step: InstrId) -> Result<InstrId> {
    let mut sizes = at.dims(x);
    let operands = [vec![x], starts(at, sizes.len(), dimension, step)?].concat();
    sizes[dimension] = 1;
    let slice = at.add(DynamicSlice { sizes: sizes.clone() }, operands)?;
    sizes.remove(dimension);
    at.reshape(slice, &sizes)
}

fn write(at: &mut Inserter<'_>, output: InstrId, dimension: usize, step: InstrId, slice: InstrId) -> Result<InstrId> {
    let mut sizes = at.dims(output);
    let rank = sizes.len();
    sizes[dimension] = 1;
    let update = at.reshape(slice, &sizes)?;
    let operands = [vec![output, update], starts(at, rank, dimension, step)?].concat();
    at.add(DynamicUpdateSlice, operands)
}
