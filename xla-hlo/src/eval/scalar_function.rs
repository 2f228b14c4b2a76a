//! Scalar functions: called computations over scalars, such as reducers, comparators and the bodies of map and scatter.

use std::collections::HashMap;

use super::Evaluator;
use super::parallel::ELEMENT;
use crate::ops::{ElementFunction, Op};
use crate::{CompId, Computation, ElementType, Error, InstrId, Literal, Module, Result, Scalar, Shape};

/// Maximum number of registers of a program, with calls expanded inline. Larger computations run in the evaluator.
const MAX_REGISTERS: usize = 4096;

/// Maximum depth of nested calls. Deeper ones run in the evaluator too.
const MAX_DEPTH: usize = 32;

/// Computation whose parameters are scalars and whose result is a scalar or a tuple of scalars, prepared for repeated
/// calls, one for each element.
///
/// A computation of elementwise operations, constants, tuples and calls of such computations is compiled to a program
/// over registers. All others (with loops, branches or arrays inside) run through [`Evaluator::call`]. The results are
/// the same.
#[derive(Clone)]
pub struct ScalarFunction {
    computation: CompId,
    parameters: Vec<ElementType>,
    result_types: Vec<ElementType>,
    program: Option<Program>,
    results: Vec<Scalar>,
}

impl ScalarFunction {
    /// Prepares a computation. An error names the parameter or result that is not a scalar.
    pub fn new(module: &Module, computation: CompId) -> Result<ScalarFunction> {
        let callee =
            module.get(computation).ok_or_else(|| Error::invalid_argument("the called computation does not exist"))?;
        let scalar = |what: String, shape: &Shape| {
            scalar_type(shape).ok_or_else(|| {
                let (name, shape) = (callee.name(), shape.without_layout());
                Error::invalid_argument(format!("{what} of computation {name} must be a scalar, it is {shape}"))
            })
        };
        let mut parameters = Vec::new();
        for (i, &parameter) in callee.parameters().iter().enumerate() {
            parameters.push(scalar(format!("parameter {i}"), callee[parameter].shape())?);
        }
        let mut result_types = Vec::new();
        for (_, leaf) in callee.result_shape().leaves() {
            result_types.push(scalar("the result".to_string(), leaf)?);
        }
        let program = Program::compile(module, callee, parameters.len());
        Ok(ScalarFunction { computation, parameters, result_types, program, results: Vec::new() })
    }

    /// Returns the element types of the parameters.
    pub fn parameter_types(&self) -> &[ElementType] {
        &self.parameters
    }

    /// Returns the element types of the results: several if the computation returns a tuple.
    pub fn result_types(&self) -> &[ElementType] {
        &self.result_types
    }

    /// Returns the approximate cost of a call in nanoseconds; `None` if only the evaluator can make it, on its own
    /// thread.
    pub(crate) fn work(&self) -> Option<usize> {
        self.program.as_ref().map(|program| 2 * ELEMENT * (program.steps.len() + 1))
    }

    /// Returns the results for `arguments`: one for each parameter, a value of its type.
    pub fn call(&mut self, evaluator: &mut Evaluator<'_>, arguments: &[Scalar]) -> Result<&[Scalar]> {
        if arguments.len() != self.parameters.len() {
            return Err(Error::internal(format!(
                "a scalar function has {} parameters, but {} arguments were given",
                self.parameters.len(),
                arguments.len()
            )));
        }
        self.results.clear();
        match &mut self.program {
            Some(program) => {
                evaluator.spend_steps(program.steps.len() as u64)?;
                program.run(arguments, &mut self.results);
            }
            None => {
                let literals = self.parameters.iter().zip(arguments).map(|(&ty, &x)| Literal::scalar(ty, x)).collect();
                let result = evaluator.call(self.computation, literals)?;
                self.results.extend(result.leaves().into_iter().map(|leaf| leaf.get(0)));
            }
        }
        Ok(&self.results)
    }
}

fn scalar_type(shape: &Shape) -> Option<ElementType> {
    shape.as_array().filter(|array| array.is_scalar()).map(|array| array.element_type())
}

/// Straight-line code over registers; the first registers are the parameters.
#[derive(Clone)]
struct Program {
    registers: Vec<Scalar>,
    steps: Vec<Step>,
    results: Vec<usize>,
}

#[derive(Clone)]
struct Step {
    function: ElementFunction,
    /// Registers of the operands; elementwise operations have at most three.
    operands: [usize; 3],
    count: usize,
    result: usize,
}

impl Program {
    /// Compiles a computation; `None` if a value is not a scalar or an operation is not elementwise.
    fn compile(module: &Module, callee: &Computation, parameters: usize) -> Option<Program> {
        let mut program =
            Program { registers: vec![Scalar::Pred(false); parameters], steps: Vec::new(), results: vec![] };
        let arguments: Vec<Vec<usize>> = (0..parameters).map(|i| vec![i]).collect();
        program.results = program.add_computation(module, callee, &arguments, 0)?;
        Some(program)
    }

    /// Appends a computation's steps; a value is represented by the registers of its leaves.
    fn add_computation(
        &mut self,
        module: &Module,
        computation: &Computation,
        arguments: &[Vec<usize>],
        depth: usize,
    ) -> Option<Vec<usize>> {
        let mut values: HashMap<InstrId, Vec<usize>> = HashMap::new();
        for id in computation.sequence() {
            let instruction = &computation[id];
            let operands: Vec<&Vec<usize>> =
                instruction.operands().iter().map(|operand| values.get(operand)).collect::<Option<_>>()?;
            let value = match instruction.op() {
                Op::Parameter(p) => arguments.get(p.number)?.clone(),
                Op::Constant(constant) => {
                    scalar_type(constant.literal.shape())?;
                    vec![self.add_register(constant.literal.get(0))?]
                }
                Op::Tuple(_) => operands.into_iter().flatten().copied().collect(),
                Op::GetTupleElement(get) => {
                    let shapes = computation[instruction.operand(0)].shape().as_tuple()?;
                    let start: usize = shapes.get(..get.index)?.iter().map(|s| s.leaves().len()).sum();
                    let size = shapes.get(get.index)?.leaves().len();
                    operands[0].get(start..start + size)?.to_vec()
                }
                Op::OptBarrier(_) => operands[0].clone(),
                Op::Copy(_) | Op::Reshape(_) | Op::Broadcast(_) | Op::Transpose(_) => {
                    scalar_type(instruction.shape())?;
                    operands[0].clone()
                }
                Op::Call(call) => self.add_call(module, call.computation, operands, depth)?,
                Op::Fusion(fusion) => self.add_call(module, fusion.computation, operands, depth)?,
                op => {
                    let types =
                        computation.operand_shapes(id).into_iter().map(scalar_type).collect::<Option<Vec<_>>>()?;
                    let function = ElementFunction::new(op, &types, scalar_type(instruction.shape())?).ok()??;
                    let operands: Vec<usize> = operands.into_iter().flatten().copied().collect();
                    vec![self.add_step(function, &operands)?]
                }
            };
            values.insert(id, value);
        }
        values.remove(&computation.root_if_set()?)
    }

    fn add_call(
        &mut self,
        module: &Module,
        callee: CompId,
        operands: Vec<&Vec<usize>>,
        depth: usize,
    ) -> Option<Vec<usize>> {
        if depth == MAX_DEPTH {
            return None;
        }
        // Take one register for the call itself, so that calls of empty computations count against the limit too.
        self.add_register(Scalar::Pred(false))?;
        let arguments: Vec<Vec<usize>> = operands.into_iter().cloned().collect();
        self.add_computation(module, module.get(callee)?, &arguments, depth + 1)
    }

    fn add_register(&mut self, value: Scalar) -> Option<usize> {
        self.registers.push(value);
        (self.registers.len() <= MAX_REGISTERS).then_some(self.registers.len() - 1)
    }

    fn add_step(&mut self, function: ElementFunction, from: &[usize]) -> Option<usize> {
        let mut operands = [0; 3];
        operands.get_mut(..from.len())?.copy_from_slice(from);
        let result = self.add_register(Scalar::Pred(false))?;
        self.steps.push(Step { function, operands, count: from.len(), result });
        Some(result)
    }

    fn run(&mut self, arguments: &[Scalar], results: &mut Vec<Scalar>) {
        self.registers[..arguments.len()].copy_from_slice(arguments);
        for step in &self.steps {
            let operands = step.operands.map(|register| self.registers[register]);
            self.registers[step.result] = step.function.apply(&operands[..step.count]);
        }
        results.extend(self.results.iter().map(|&register| self.registers[register]));
    }
}
