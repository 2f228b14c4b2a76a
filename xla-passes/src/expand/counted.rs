//! Counted loops that expansions insert.

use xla_hlo::builder::ModuleBuilder;
use xla_hlo::ops::{BinaryOp, CompareDirection, Parameter, While};
use xla_hlo::{CompId, Computation, ElementType, InstrId, Instruction, Literal, Module, Result, Scalar, Shape};

use crate::rewrite::builder::Inserter;

/// Element type of the counter.
pub(super) const COUNTER: ElementType = ElementType::S64;

/// Inserts a loop and returns the state after `iterations` iterations. `iteration` computes the next state from the
/// counter, which starts at 0, and the current state. No loop is inserted for zero iterations.
///
/// The computations of the loop are named `NAME_condition` and `NAME_body`.
pub(super) fn counted_loop(
    at: &mut Inserter<'_>,
    name: &str,
    iterations: usize,
    state: &[InstrId],
    iteration: impl FnOnce(&mut Inserter<'_>, InstrId, &[InstrId]) -> Result<Vec<InstrId>>,
) -> Result<Vec<InstrId>> {
    if iterations == 0 {
        return Ok(state.to_vec());
    }
    let zero = at.scalar(COUNTER, Scalar::Signed(0))?;
    let init = at.tuple(&[&[zero], state].concat())?;
    let shape = at.shape(init).clone();
    let condition = condition(at.module_mut(), name, &shape, iterations)?;
    let body = body(at.module_mut(), name, &shape, iteration)?;
    let last = at.add(While { condition, body }, [init])?;
    (1..=state.len()).map(|i| at.get(last, i)).collect()
}

/// Returns the counter multiplied by a number.
pub(super) fn times(at: &mut Inserter<'_>, counter: InstrId, by: usize) -> Result<InstrId> {
    if by == 1 { Ok(counter) } else { at.binary_with(BinaryOp::Multiply, counter, Scalar::Signed(by as i64)) }
}

/// Adds the condition: whether iterations are left.
fn condition(module: &mut Module, name: &str, state: &Shape, iterations: usize) -> Result<CompId> {
    let mut scratch = ModuleBuilder::new("scratch");
    let mut b = scratch.computation(format!("{name}_condition"));
    let state = b.parameter(state.clone())?;
    let counter = b.get_tuple_element(state, 0)?;
    let iterations = b.constant(Literal::scalar(COUNTER, Scalar::Signed(iterations as i64)))?;
    let root = b.compare(CompareDirection::Lt, counter, iterations)?;
    let main = b.finish(root);
    let computation = scratch.finish(main)?.entry().clone();
    Ok(module.add(computation))
}

fn body(
    module: &mut Module,
    name: &str,
    state: &Shape,
    iteration: impl FnOnce(&mut Inserter<'_>, InstrId, &[InstrId]) -> Result<Vec<InstrId>>,
) -> Result<CompId> {
    let mut computation = Computation::new(format!("{name}_body"));
    let parameter = computation.add(Instruction::new(Parameter { number: 0 }.into(), state.clone(), []));
    computation.set_root(parameter);
    let id = module.add(computation);
    let at = &mut Inserter::new(module, id);
    let count = state.as_tuple().map_or(0, <[Shape]>::len);
    let elements = (0..count).map(|i| at.get(parameter, i)).collect::<Result<Vec<_>>>()?;
    let next = iteration(at, elements[0], &elements[1..])?;
    let counter = at.binary_with(BinaryOp::Add, elements[0], Scalar::Signed(1))?;
    let root = at.tuple(&[&[counter], &next[..]].concat())?;
    at.graph_mut().set_root(root);
    Ok(id)
}
