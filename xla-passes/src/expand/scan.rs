//! Scans as loops.

use xla_hlo::builder::ModuleBuilder;
use xla_hlo::ops::{BinaryOp, CompareDirection, DynamicSlice, DynamicUpdateSlice, Parameter, Scan, While};
use xla_hlo::{CompId, Computation, ElementType, InstrId, Instruction, Literal, Module, Op, Result, Scalar, Shape};

use crate::insert::Inserter;
use crate::{Pass, PassContext, graph};

/// Puts `scan` in terms of a loop that counts its steps: the state is the counter, the inputs, the outputs so far, and the
/// carries.
pub struct ExpandScans;

impl Pass for ExpandScans {
    fn name(&self) -> &'static str {
        "expand-scans"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        super::expand_each(self, module, cx, |graph, id| matches!(graph[id].op(), Op::Scan(_)), expand)
    }
}

/// The type of the counter.
const COUNTER: ElementType = ElementType::S64;

/// Places of the loop's state.
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

    let zero = at.scalar(COUNTER, Scalar::Signed(0))?;
    let mut state = vec![zero];
    state.extend(&operands[..inputs]);
    for output in &results[..outputs] {
        let array = output.expect_array()?;
        state.push(at.splat(array, Scalar::zero(array.element_type()))?);
    }
    state.extend(&operands[inputs..]);
    let last = if steps == 0 { state } else { run(at, &op, &layout, &state)? };
    let results = &last[1 + inputs..];
    match results {
        &[only] if !layout.is_tuple => Ok(only),
        all => at.tuple(all),
    }
}

/// The state after all steps.
fn run(at: &mut Inserter<'_>, op: &Scan, layout: &Layout, state: &[InstrId]) -> Result<Vec<InstrId>> {
    let init = at.tuple(state)?;
    let shape = at.shape(init).clone();
    let condition = condition(at.module_mut(), &shape, layout.steps)?;
    let body = body(at.module_mut(), &shape, op, layout)?;
    let last = at.add(While { condition, body }, [init])?;
    (0..state.len()).map(|i| at.get(last, i)).collect()
}

/// Whether there are steps left.
fn condition(module: &mut Module, state: &Shape, steps: usize) -> Result<CompId> {
    let mut scratch = ModuleBuilder::new("scratch");
    let mut b = scratch.computation("scan_condition");
    let state = b.parameter(state.clone())?;
    let step = b.get_tuple_element(state, 0)?;
    let steps = b.constant(Literal::scalar(COUNTER, Scalar::Signed(steps as i64)))?;
    let root = b.compare(CompareDirection::Lt, step, steps)?;
    let main = b.finish(root);
    let computation = scratch.finish(main)?.entry().clone();
    Ok(module.add(computation))
}

/// One step: slices of the inputs, the scan's computation, slices of the outputs.
fn body(module: &mut Module, state: &Shape, op: &Scan, layout: &Layout) -> Result<CompId> {
    let step_function = module[op.computation].clone();
    let mut computation = Computation::new("scan_body");
    let parameter = computation.add(Instruction::new(Parameter { number: 0 }.into(), state.clone(), []));
    computation.set_root(parameter);
    let id = module.add(computation);
    let at = &mut Inserter::new(module, id);
    let elements = (0..1 + layout.inputs + layout.outputs + layout.carries).map(|i| at.get(parameter, i));
    let elements = elements.collect::<Result<Vec<_>>>()?;
    let (counter, rest) = (elements[0], &elements[1..]);
    let (inputs, rest) = rest.split_at(layout.inputs);
    let (outputs, carries) = rest.split_at(layout.outputs);

    let step = if op.is_reverse {
        let last = at.scalar(COUNTER, Scalar::Signed(layout.steps as i64 - 1))?;
        at.binary(BinaryOp::Subtract, last, counter)?
    } else {
        counter
    };
    let mut arguments = inputs.iter().map(|&x| read(at, x, op.dimension, step)).collect::<Result<Vec<_>>>()?;
    arguments.extend(carries);
    let given = graph::splice(at.graph_mut(), &step_function, &arguments);
    let given = if at.shape(given).as_tuple().is_some() {
        (0..layout.outputs + layout.carries).map(|i| at.get(given, i)).collect::<Result<Vec<_>>>()?
    } else {
        vec![given]
    };
    let mut next = vec![at.binary_with(BinaryOp::Add, counter, Scalar::Signed(1))?];
    next.extend(inputs);
    for (&output, &slice) in outputs.iter().zip(&given) {
        next.push(write(at, output, op.dimension, step, slice)?);
    }
    next.extend(&given[layout.outputs..]);
    let root = at.tuple(&next)?;
    at.graph_mut().set_root(root);
    Ok(id)
}

/// Starts of a box at `step` of one dimension, at 0 of the others.
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
