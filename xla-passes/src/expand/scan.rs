//! Scans as loops.

use xla_hlo::builder::ModuleBuilder;
use xla_hlo::ops::{BinaryOp, CompareDirection, DynamicSlice, DynamicUpdateSlice, Parameter, Scan, While};
use xla_hlo::{CompId, Computation, ElementType, InstrId, Instruction, Literal, Module, Op, Result, Scalar, Shape};

use super::Writer;
use crate::{Pass, PassContext, graph};

/// Puts `scan` in terms of a loop that counts its steps: the state is the counter, the inputs, the outputs so far, and the
/// carries.
pub struct ExpandScans;

impl Pass for ExpandScans {
    fn name(&self) -> &'static str {
        "expand-scans"
    }

    fn rewrite(&self, module: &mut Module, _: &PassContext<'_>) -> Result<()> {
        super::expand_each(module, |graph, id| matches!(graph[id].op(), Op::Scan(_)), expand)
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

fn expand(w: &mut Writer<'_>, id: InstrId) -> Result<InstrId> {
    let Op::Scan(op) = w.graph()[id].op().clone() else { return Ok(id) };
    let operands = w.operands(id);
    let results: Vec<Shape> = w.shape(id).leaves().into_iter().map(|(_, leaf)| leaf.clone()).collect();
    let inputs = operands.len() - op.num_carries;
    let outputs = results.len() - op.num_carries;
    let long = if inputs > 0 { w.shape(operands[0]) } else { &results[0] };
    let steps = long.expect_array()?.dims()[op.dimension];
    let is_tuple = w.shape(id).as_tuple().is_some();
    let layout = Layout { steps, inputs, outputs, carries: op.num_carries, is_tuple };

    let zero = w.literal(Literal::scalar(COUNTER, Scalar::Signed(0)))?;
    let mut state = vec![zero];
    state.extend(&operands[..inputs]);
    for output in &results[..outputs] {
        let array = output.expect_array()?;
        state.push(w.splat(array, Scalar::zero(array.element_type()))?);
    }
    state.extend(&operands[inputs..]);
    let last = if steps == 0 { state } else { run(w, &op, &layout, &state)? };
    let results = &last[1 + inputs..];
    match results {
        &[only] if !layout.is_tuple => Ok(only),
        all => w.tuple(all),
    }
}

/// The state after all steps.
fn run(w: &mut Writer<'_>, op: &Scan, layout: &Layout, state: &[InstrId]) -> Result<Vec<InstrId>> {
    let init = w.tuple(state)?;
    let shape = w.shape(init).clone();
    let condition = condition(w.module(), &shape, layout.steps)?;
    let body = body(w.module(), &shape, op, layout)?;
    let last = w.add(While { condition, body }, None, &[init])?;
    (0..state.len()).map(|i| w.get(last, i)).collect()
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
    let w = &mut Writer::new(module, id);
    let elements = (0..1 + layout.inputs + layout.outputs + layout.carries).map(|i| w.get(parameter, i));
    let elements = elements.collect::<Result<Vec<_>>>()?;
    let (counter, rest) = (elements[0], &elements[1..]);
    let (inputs, rest) = rest.split_at(layout.inputs);
    let (outputs, carries) = rest.split_at(layout.outputs);

    let at = if op.is_reverse {
        let last = w.literal(Literal::scalar(COUNTER, Scalar::Signed(layout.steps as i64 - 1)))?;
        w.binary(BinaryOp::Subtract, last, counter)?
    } else {
        counter
    };
    let mut arguments = inputs.iter().map(|&x| read(w, x, op.dimension, at)).collect::<Result<Vec<_>>>()?;
    arguments.extend(carries);
    let given = graph::splice(w.graph_mut(), &step_function, &arguments);
    let given = if w.shape(given).as_tuple().is_some() {
        (0..layout.outputs + layout.carries).map(|i| w.get(given, i)).collect::<Result<Vec<_>>>()?
    } else {
        vec![given]
    };
    let mut next = vec![w.binary_with(BinaryOp::Add, counter, Scalar::Signed(1))?];
    next.extend(inputs);
    for (&output, &slice) in outputs.iter().zip(&given) {
        next.push(write(w, output, op.dimension, at, slice)?);
    }
    next.extend(&given[layout.outputs..]);
    let root = w.tuple(&next)?;
    w.graph_mut().set_root(root);
    Ok(id)
}

/// Starts of a box at `at` of one dimension, at 0 of the others.
fn starts(w: &mut Writer<'_>, rank: usize, dimension: usize, at: InstrId) -> Result<Vec<InstrId>> {
    let zero = w.literal(Literal::scalar(COUNTER, Scalar::Signed(0)))?;
    Ok((0..rank).map(|d| if d == dimension { at } else { zero }).collect())
}

fn read(w: &mut Writer<'_>, x: InstrId, dimension: usize, at: InstrId) -> Result<InstrId> {
    let mut sizes = w.dims(x);
    let operands = [vec![x], starts(w, sizes.len(), dimension, at)?].concat();
    sizes[dimension] = 1;
    let slice = w.add(DynamicSlice { sizes: sizes.clone() }, None, &operands)?;
    sizes.remove(dimension);
    w.reshape(slice, &sizes)
}

fn write(w: &mut Writer<'_>, output: InstrId, dimension: usize, at: InstrId, slice: InstrId) -> Result<InstrId> {
    let mut sizes = w.dims(output);
    let rank = sizes.len();
    sizes[dimension] = 1;
    let update = w.reshape(slice, &sizes)?;
    let operands = [vec![output, update], starts(w, rank, dimension, at)?].concat();
    w.add(DynamicUpdateSlice, None, &operands)
}
