//! Interpreter of a module that computes error bounds with each array.

use std::collections::HashMap;

use xla::{Error, Result};
use xla_hlo::eval::Evaluator;
use xla_hlo::ops::{Op, While};
use xla_hlo::{CompId, ElementType, InstrId, Literal, Module, Shape};

use super::{Measured, Value, elementwise, movement, number, sums, unknown};

/// Maximum number of iterations of a loop.
const MOST_ITERATIONS: usize = 10_000;

/// Interpreter of a module.
pub(super) struct Interpreter<'m> {
    module: &'m Module,
    evaluator: Evaluator<'m>,
}

impl<'m> Interpreter<'m> {
    pub(super) fn new(module: &'m Module) -> Interpreter<'m> {
        Interpreter { module, evaluator: Evaluator::new(module) }
    }

    /// Evaluates a computation. Calls in modules of tests are nested only a few levels deep.
    pub(super) fn call(&mut self, id: CompId, arguments: Vec<Value>) -> Result<Value> {
        let missing = || Error::internal("error analysis: a called computation does not exist");
        let computation = self.module.get(id).ok_or_else(missing)?;
        let mut values: HashMap<InstrId, Value> = HashMap::new();
        for instruction in computation.post_order() {
            let operands = computation[instruction].operands().iter().map(|operand| values[operand].clone()).collect();
            let value = self.step(id, instruction, &arguments, operands);
            values.insert(instruction, value.map_err(|error| error.context(computation[instruction].name()))?);
        }
        values.remove(&computation.root()).ok_or_else(missing)
    }

    fn step(&mut self, id: CompId, instruction: InstrId, arguments: &[Value], operands: Vec<Value>) -> Result<Value> {
        match self.module[id][instruction].op() {
            Op::Parameter(parameter) => Ok(arguments[parameter.number].clone()),
            Op::Tuple(_) => Ok(Value::Tuple(operands)),
            Op::GetTupleElement(element) => match operands.into_iter().next() {
                Some(Value::Tuple(mut elements)) => Ok(elements.swap_remove(element.index)),
                _ => Err(Error::internal("error analysis: an element is taken of an array")),
            },
            Op::OptBarrier(_) | Op::Copy(_) => {
                operands.into_iter().next().ok_or_else(|| Error::internal("error analysis: a copy has no operand"))
            }
            Op::Call(call) => self.call(call.computation, operands),
            Op::Fusion(fusion) => self.call(fusion.computation, operands),
            Op::While(op) => self.repeat(op, operands),
            Op::Conditional(op) => {
                let branch = branch(operands[0].array()?, op.branches.len(), op.by_predicate)?;
                self.call(op.branches[branch], vec![operands[branch + 1].clone()])
            }
            op => {
                let operands: Vec<Measured> = operands.iter().map(|v| v.array().cloned()).collect::<Result<_>>()?;
                let is_real = |v: &Measured| v.value.shape().element_type().is_some_and(|ty| !ty.is_complex());
                if !operands.iter().all(is_real) {
                    return Err(unknown(format!("{} of tokens or complex numbers", op.opcode())));
                }
                let literals = operands.iter().map(|operand| operand.value.clone()).collect();
                let value = self.evaluator.evaluate(id, instruction, literals)?;
                self.measured(op, &operands, value)
            }
        }
    }

    fn repeat(&mut self, op: &While, operands: Vec<Value>) -> Result<Value> {
        let mut state = operands;
        for _ in 0..MOST_ITERATIONS {
            let condition = self.call(op.condition, state.clone())?;
            if branch(condition.array()?, 2, true)? == 1 {
                return state.pop().ok_or_else(|| Error::internal("error analysis: a loop has no state"));
            }
            state = vec![self.call(op.body, state)?];
        }
        Err(unknown(format!("loops of more than {MOST_ITERATIONS} iterations")))
    }

    /// Evaluates an operation on arrays with its error bounds.
    fn measured(&self, op: &Op, operands: &[Measured], value: Literal) -> Result<Value> {
        match value.shape() {
            Shape::Tuple(_) => return self.several(op, operands, value),
            shape if shape.element_type().is_none_or(ElementType::is_complex) => {
                return Err(unknown(format!("{} with a result of {shape}", op.opcode())));
            }
            _ => {}
        }
        let measured = match op {
            Op::Constant(_) | Op::Iota(_) => Measured::exact(value),
            Op::Unary(_)
            | Op::Binary(_)
            | Op::Compare(_)
            | Op::Select(_)
            | Op::Clamp(_)
            | Op::Convert(_)
            | Op::ReducePrecision(_) => elementwise::measured(op, operands, value)?,
            Op::Dot(_) | Op::Convolution(_) => sums::product(op, operands, value)?,
            Op::Reduce(_) | Op::ReduceWindow(_) | Op::SelectAndScatter(_) | Op::Scatter(_) | Op::Sort(_) => {
                sums::combined(self.module, op, operands, value)?
            }
            op => movement::measured(op, operands, value)?,
        };
        Ok(Value::of(measured))
    }

    /// Evaluates an operation with several results.
    fn several(&self, op: &Op, operands: &[Measured], value: Literal) -> Result<Value> {
        let first = operands.first().ok_or_else(|| unknown(op.opcode()))?;
        let greatest = (0..first.count()).map(|i| first.error(i)).fold(0.0, f64::max);
        let is_exact = operands.iter().all(|operand| operand.error.is_none());
        let elements = value.into_elements().into_iter().enumerate();
        let elements = elements.map(|(i, value)| match op {
            op if value.shape().element_type().is_none_or(ElementType::is_complex) => Err(unknown(op.opcode())),
            Op::Reduce(_) | Op::Sort(_) | Op::TopK(_) | Op::RngBitGenerator(_) if is_exact => {
                Ok(Value::of(Measured::exact(value)))
            }
            // The error of the k-th greatest value is at most the greatest error of all values.
            Op::TopK(_) => Measured::new(value, |_| if i == 0 { greatest } else { f64::INFINITY }).map(Value::of),
            op => Err(unknown(format!("{} with several results of rounded operands", op.opcode()))),
        });
        Ok(Value::Tuple(elements.collect::<Result<_>>()?))
    }
}

/// Returns the branch that a selector chooses.
fn branch(selector: &Measured, branches: usize, by_predicate: bool) -> Result<usize> {
    if selector.error.is_some() {
        return Err(Error::invalid_argument("rounding decides a branch; the program takes other arguments"));
    }
    let value = number(&selector.value, 0);
    Ok(match by_predicate {
        true => usize::from(value == 0.0),
        false if value < 0.0 || value as usize >= branches => branches - 1,
        false => value as usize,
    })
}
