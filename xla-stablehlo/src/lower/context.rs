//! State of the lowering: the module under construction, and a computation for each open region.

use std::collections::{HashMap, HashSet};

use xla_hlo::ops::{Binary, BinaryOp, Broadcast, Constant, GetTupleElement, Op, Parameter, ShapeContext, Tuple};
use xla_hlo::proto::sanitized;
use xla_hlo::sdy::Meshes;
use xla_hlo::{
    BackendConfig, CompId, Computation, Error, FrontendAttributes, InstrId, Instruction, Literal, Result, Shape,
    Sharding,
};

use super::captures::Captures;
use super::constants::{Constants, scalar_of_splat};
use super::frames::Frames;
use super::{dead, fold, futures, layouts, location, types};
use crate::ir::{AttrId, Module, OpId, RegionId, Type, Value, ValueId};

/// Limit on the calls that are lowered for their own shapes and sizes. Their number can grow exponentially if functions
/// call others several times.
const MOST_CALLS: usize = 1 << 14;

/// Limit on the nesting of regions, which are lowered recursively.
const MAX_DEPTH: usize = 100;

pub(super) struct Lowering<'s> {
    pub source: &'s Module,
    pub hlo: xla_hlo::Module,
    /// Computations of functions, by name.
    pub functions: HashMap<String, CompId>,
    /// Stack frames of source locations.
    pub stack: Frames,
    pub captures: Captures,
    /// State of the refinement, for a program with dynamic dimensions.
    pub refinement: Option<Refinement<'s>>,
    /// Source locations of operation results.
    places: HashMap<ValueId, AttrId>,
    /// Meshes, by name.
    pub meshes: Meshes,
    frames: Vec<Frame>,
    /// Function that lowers one operation.
    lower_operation: fn(&mut Lowering<'s>, OpId) -> Result<()>,
}

/// Argument of a function at a call.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Argument {
    /// Shape without layouts.
    pub shape: Shape,
    /// Value of the argument, if it is a constant that sizes may depend on.
    pub constant: Option<Literal>,
}

/// Function that lowers a function of the program for given arguments.
pub(super) type LowerFunction<'s> = fn(&mut Lowering<'s>, &str, OpId, &[Argument]) -> Result<CompId>;

/// State of the refinement of a program with dynamic dimensions.
pub(super) struct Refinement<'s> {
    /// Functions of the program, by name.
    pub functions: HashMap<String, OpId>,
    /// Names of the functions whose lowering depends on the shapes at the call.
    pub dynamic: HashSet<String>,
    pub lower_function: LowerFunction<'s>,
    /// Lowered computations, by function name and arguments.
    pub lowered: HashMap<(String, Vec<Argument>), CompId>,
    calls: usize,
}

impl<'s> Refinement<'s> {
    pub fn new(
        functions: HashMap<String, OpId>,
        dynamic: HashSet<String>,
        lower_function: LowerFunction<'s>,
    ) -> Refinement<'s> {
        Refinement { functions, dynamic, lower_function, lowered: HashMap::new(), calls: 0 }
    }

    /// Counts a call that is lowered separately; an error above the limit.
    pub fn count(&mut self) -> Result<()> {
        self.calls += 1;
        match self.calls > MOST_CALLS {
            true => Err(Error::resource_exhausted(format!(
                "the program has more than {MOST_CALLS} calls of functions with dynamic dimensions, each lowered for its own shapes"
            ))),
            false => Ok(()),
        }
    }
}

/// Captured values: the constants, and the values that must be passed.
pub(super) type Captured = (Vec<(ValueId, Literal)>, Vec<ValueId>);

/// Computation under construction.
struct Frame {
    computation: Computation,
    values: HashMap<ValueId, InstrId>,
    constants: Constants,
    /// Source location of the operation that is being lowered.
    location: Option<AttrId>,
    /// Frontend attributes of the operation that is being lowered.
    frontend_attributes: FrontendAttributes,
}

impl<'s> Lowering<'s> {
    pub fn new(
        source: &'s Module,
        name: &str,
        lower_operation: fn(&mut Lowering<'s>, OpId) -> Result<()>,
    ) -> Lowering<'s> {
        let hlo = xla_hlo::Module::new(sanitized(name, "main"));
        let (functions, places, frames) = (HashMap::new(), HashMap::new(), Vec::new());
        let (stack, captures, meshes) = (Frames::default(), Captures::new(source), Meshes::default());
        Lowering { source, hlo, functions, stack, captures, refinement: None, places, meshes, frames, lower_operation }
    }

    fn frame(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("instructions are added while there is a computation")
    }

    /// Starts an operation, whose location and frontend attributes the following instructions get.
    pub fn begin_operation(&mut self, op: OpId, frontend_attributes: FrontendAttributes) {
        let operation = &self.source.operations[op];
        let frame = self.frame();
        frame.location = operation.location;
        frame.frontend_attributes = frontend_attributes;
        if let Some(location) = operation.location {
            self.places.extend(operation.results.iter().map(|&result| (result, location)));
        }
    }

    /// Ends the operation: clears its frontend attributes, which do not apply to the following instructions.
    pub fn end_operation(&mut self) {
        self.frame().frontend_attributes.clear();
    }

    /// Returns the number of instructions of the computation so far.
    pub fn len(&mut self) -> usize {
        self.frame().computation.len()
    }

    /// Returns the last instruction of the computation so far.
    pub fn last(&mut self) -> Option<InstrId> {
        self.frame().computation.ids().last()
    }

    /// Adds a frontend attribute to all further instructions of the current operation.
    pub fn annotate(&mut self, name: &str, value: String) {
        self.frame().frontend_attributes.insert(name.to_string(), value);
    }

    /// Builds a computation and adds it to the module. `write` adds the instructions and returns the root.
    pub fn computation(&mut self, name: &str, write: impl FnOnce(&mut Self) -> Result<InstrId>) -> Result<CompId> {
        let computation = self.build(name, write)?;
        Ok(self.hlo.add(computation))
    }

    fn build(&mut self, name: &str, write: impl FnOnce(&mut Self) -> Result<InstrId>) -> Result<Computation> {
        if self.frames.len() >= MAX_DEPTH {
            return Err(Error::resource_exhausted(format!("regions nest deeper than {MAX_DEPTH}")));
        }
        let computation = Computation::new(sanitized(name, "function"));
        let (values, constants, frontend_attributes) =
            (HashMap::new(), Constants::default(), FrontendAttributes::new());
        self.frames.push(Frame { computation, values, constants, location: None, frontend_attributes });
        let root = write(self);
        let mut frame = self.frames.pop().expect("the frame was pushed above");
        frame.computation.set_root(root?);
        futures::end_unused(&mut frame.computation);
        dead::remove(&mut frame.computation)?;
        Ok(frame.computation)
    }

    /// Runs `write` in a temporary computation, which is discarded.
    pub fn discarded(&mut self, write: impl FnOnce(&mut Self) -> Result<InstrId>) -> Result<()> {
        self.build("sizes", write).map(|_| ())
    }

    /// Returns the computation of a function that an operation refers to by name.
    pub fn called_computation(&mut self, name: &str) -> Result<CompId> {
        if self.refinement.is_some() {
            return self.computation_as_written(name);
        }
        let computation = self.functions.get(name).copied();
        computation.ok_or_else(|| Error::invalid_argument(format!("the called function {name} does not exist")))
    }

    /// Adds an instruction of this shape, which must agree with the inferred one. Unbounded dimensions are inferred
    /// from the operands.
    pub fn add(&mut self, op: impl Into<Op>, shape: Shape, operands: impl Into<Vec<InstrId>>) -> Result<InstrId> {
        let (op, operands) = (op.into(), operands.into());
        if let Op::Constant(constant) = op {
            return self.constant(constant.literal);
        }
        let shape = if types::is_unbounded(&shape) { self.bounded(&op, &shape, &operands)? } else { shape };
        let frame = self.frames.last_mut().expect("instructions are added while there is a computation");
        let shapes: Vec<&Shape> = operands.iter().map(|&operand| frame.computation[operand].shape()).collect();
        let cx = ShapeContext::new(&self.hlo, &shapes, Some(&shape));
        let inferred = op.rules().infer_shape(&cx)?;
        let shape = if types::is_less_dynamic(&shape, &inferred) { inferred.clone() } else { shape };
        if !shape.compatible(&inferred) {
            return Err(Error::invalid_argument(format!("{} returns {inferred}, not {shape}", op.opcode())));
        }
        let shape = layouts::inherited(&op, shape, &shapes).with_default_layouts();
        let mut instruction = Instruction::new(op, shape, operands);
        if let Some(location) = frame.location {
            let metadata = location::metadata(self.source, &mut self.stack, location);
            if metadata != xla_hlo::Metadata::default() {
                instruction.annotations_mut().metadata = metadata;
            }
        }
        if !frame.frontend_attributes.is_empty() {
            instruction.annotations_mut().frontend_attributes.clone_from(&frame.frontend_attributes);
        }
        Ok(frame.computation.add(instruction))
    }

    /// Returns the instruction for a constant, added once for equal literals. It has no metadata because several
    /// operations may share it.
    pub fn constant(&mut self, literal: Literal) -> Result<InstrId> {
        if let Some(id) = self.frame().constants.id(&literal) {
            return Ok(id);
        }
        let shape = literal.shape().with_default_layouts();
        let instruction = match scalar_of_splat(&literal) {
            // This scalar instruction is not shared with other constants.
            Some(literal) => {
                let scalar =
                    Instruction::new(Constant { literal: literal.clone() }.into(), literal.shape().clone(), []);
                let scalar = self.frame().computation.add(scalar);
                Instruction::new(Broadcast { dimensions: Vec::new() }.into(), shape, [scalar])
            }
            None => Instruction::new(Constant { literal: literal.clone() }.into(), shape, []),
        };
        let frame = self.frame();
        let id = frame.computation.add(instruction);
        frame.constants.insert(literal, id);
        Ok(id)
    }

    /// Returns the literal of an instruction, if it is a constant.
    pub fn literal(&mut self, id: InstrId) -> Option<Literal> {
        self.frame().constants.literal(id).cloned()
    }

    /// Returns the literal of a value, if it is a constant.
    pub fn literal_of(&mut self, value: ValueId) -> Option<Literal> {
        let value = self.captures.resolve(value);
        let frame = self.frame();
        match frame.values.get(&value) {
            Some(&id) => frame.constants.literal(id).cloned(),
            None => frame.constants.of_value(value).cloned(),
        }
    }

    /// Records a constant value. Its instruction is added when it is first used.
    pub fn set_constant(&mut self, value: ValueId, literal: Literal) {
        self.frame().constants.insert_value(value, literal);
    }

    /// Infers the shape of an instruction whose declared shape has unbounded dimensions.
    fn bounded(&mut self, op: &Op, written: &Shape, operands: &[InstrId]) -> Result<Shape> {
        let frame = self.frames.last_mut().expect("instructions are added while there is a computation");
        let shapes: Vec<&Shape> = operands.iter().map(|&operand| frame.computation[operand].shape()).collect();
        let inferred = match (op, &shapes[..]) {
            // The inference rule reads the element type from the declared shape.
            (Op::Convert(_), &[Shape::Array(operand)]) => {
                let ty = written.expect_array()?.element_type();
                Some(Shape::array(ty, operand.dims().to_vec())).filter(|_| operand.is_static())
            }
            (Op::BitcastConvert(_), &[Shape::Array(operand)]) => {
                types::bitcast(operand, written.expect_array()?.element_type()).map(Shape::Array)
            }
            _ => match op.rules().infer_shape(&ShapeContext::new(&self.hlo, &shapes, None)) {
                Ok(inferred) => Some(inferred),
                // The operands do not fit together.
                Err(error) if self.refinement.is_some() => return Err(error),
                Err(_) => None,
            },
        };
        match inferred {
            Some(inferred) if types::fits(written, &inferred) => Ok(inferred),
            Some(inferred) if self.refinement.is_some() && !types::is_unbounded(&inferred) => {
                Err(Error::invalid_argument(format!("{} returns {inferred}, not {written}", op.opcode())))
            }
            _ => Err(Error::unimplemented(format!("{written} has a dynamic dimension without a bound"))),
        }
    }

    /// Adds an instruction of the inferred shape.
    pub fn infer(&mut self, op: impl Into<Op>, operands: impl Into<Vec<InstrId>>) -> Result<InstrId> {
        let (op, operands) = (op.into(), operands.into());
        let frame = self.frame();
        let shapes: Vec<Shape> = operands.iter().map(|&operand| frame.computation[operand].shape().clone()).collect();
        let shapes: Vec<&Shape> = shapes.iter().collect();
        let shape = op.rules().infer_shape(&ShapeContext::new(&self.hlo, &shapes, None))?;
        self.add(op, shape, operands)
    }

    pub fn shape(&mut self, id: InstrId) -> Shape {
        self.frame().computation[id].shape().clone()
    }

    /// Evaluates an instruction whose value is constant; `None` for another one.
    pub fn evaluated(&mut self, id: InstrId) -> Option<Literal> {
        fold::constant(&self.frame().computation, id)
    }

    /// Returns the operands of an addition.
    pub fn summands(&mut self, id: InstrId) -> Option<[InstrId; 2]> {
        let instruction = &self.frame().computation[id];
        match instruction.op() {
            Op::Binary(Binary { op: BinaryOp::Add }) => instruction.operands().try_into().ok(),
            _ => None,
        }
    }

    pub fn op(&mut self, id: InstrId) -> &Op {
        self.frame().computation[id].op()
    }

    /// Adds an instruction with additional frontend attributes.
    pub fn add_annotated(
        &mut self,
        op: impl Into<Op>,
        shape: Shape,
        operands: impl Into<Vec<InstrId>>,
        annotations: &[(&str, String)],
    ) -> Result<InstrId> {
        let id = self.add(op, shape, operands)?;
        if !annotations.is_empty() {
            let own = annotations.iter().map(|(name, value)| ((*name).to_string(), value.clone()));
            self.frame().computation.annotations_mut(id).frontend_attributes.extend(own);
        }
        Ok(id)
    }

    /// Sets the sharding of an instruction.
    pub fn set_sharding(&mut self, id: InstrId, sharding: Sharding) {
        self.frame().computation.annotations_mut(id).sharding = Some(sharding);
    }

    /// Sets the frontend attributes of an instruction.
    pub fn set_frontend_attributes(&mut self, id: InstrId, attributes: FrontendAttributes) {
        if !attributes.is_empty() {
            self.frame().computation.annotations_mut(id).frontend_attributes = attributes;
        }
    }

    /// Adds the next parameter of the computation.
    pub fn parameter(&mut self, shape: Shape) -> Result<InstrId> {
        let number = self.frame().computation.parameters().len();
        self.add(Parameter { number }, shape, [])
    }

    /// Adds the next parameter of the computation, for `value`, whose name becomes metadata.
    pub fn parameter_of(&mut self, value: ValueId) -> Result<InstrId> {
        let shape = self.shape_of(value)?;
        self.parameter_of_shape(value, shape)
    }

    /// Adds the parameter for `value` with another shape; see [`Lowering::parameter_of`].
    pub fn parameter_of_shape(&mut self, value: ValueId, shape: Shape) -> Result<InstrId> {
        let parameter = self.parameter(shape)?;
        if let Some(location) = self.source.values[value].location.or_else(|| self.places.get(&value).copied()) {
            let metadata = location::of_argument(self.source, location);
            if !metadata.op_name.is_empty() {
                self.frame().computation.annotations_mut(parameter).metadata = metadata;
            }
        }
        Ok(parameter)
    }

    /// Sets the backend configuration of a custom call.
    pub fn set_backend_config(&mut self, id: InstrId, config: BackendConfig) {
        if !config.is_empty() {
            self.frame().computation.annotations_mut(id).backend_config = config;
        }
    }

    pub fn tuple(&mut self, elements: Vec<InstrId>) -> Result<InstrId> {
        let shape = Shape::Tuple(elements.iter().map(|&element| self.shape(element)).collect());
        self.add(Tuple, shape, elements)
    }

    /// Combines values: a single value is returned unchanged, several become a tuple.
    pub fn packed(&mut self, values: Vec<InstrId>) -> Result<InstrId> {
        match values[..] {
            [one] => Ok(one),
            _ => self.tuple(values),
        }
    }

    /// Returns the values that were combined by [`Lowering::packed`].
    pub fn unpacked(&mut self, value: InstrId, count: usize) -> Result<Vec<InstrId>> {
        self.unpacked_first(value, count, count)
    }

    /// Returns the first values that were combined by [`Lowering::packed`].
    pub fn unpacked_first(&mut self, value: InstrId, first: usize, count: usize) -> Result<Vec<InstrId>> {
        if count == 1 {
            return Ok(vec![value]);
        }
        let shape = self.shape(value);
        let element = |index| {
            let shape = match &shape {
                Shape::Tuple(elements) => elements.get(index).cloned(),
                _ => None,
            };
            let shape =
                shape.ok_or_else(|| Error::invalid_argument(format!("value {index} of {count} does not exist")))?;
            self.add(GetTupleElement { index }, shape, [value])
        };
        (0..first).map(element).collect()
    }

    /// Returns the tuple whose elements are exactly these values, in order.
    pub fn tuple_of(&mut self, values: &[InstrId]) -> Option<InstrId> {
        let computation = &self.frame().computation;
        let element = |value: InstrId| match computation[value].op() {
            Op::GetTupleElement(element) => Some((computation[value].operand(0), element.index)),
            _ => None,
        };
        let (tuple, _) = element(*values.first()?)?;
        let is_whole = computation[tuple].shape().as_tuple().is_some_and(|elements| elements.len() == values.len());
        let is_in_order = values.iter().enumerate().all(|(i, &value)| element(value) == Some((tuple, i)));
        (is_whole && is_in_order).then_some(tuple)
    }

    /// Returns the instruction of a value of this computation.
    pub fn value(&mut self, value: ValueId) -> Result<InstrId> {
        let value = self.captures.resolve(value);
        let frame = self.frame();
        if let Some(&instruction) = frame.values.get(&value) {
            return Ok(instruction);
        }
        let outer = frame.constants.of_value(value).cloned();
        let literal = outer.ok_or_else(|| {
            Error::unimplemented("the region captures a value of the region around it, which it may not")
        })?;
        self.constant(literal)
    }

    /// Returns the instruction of a value as an operand. A future as an operand ends its asynchronous operation, so
    /// this returns the result.
    pub fn operand(&mut self, value: ValueId) -> Result<InstrId> {
        let value = self.captures.resolve(value);
        let id = self.value(value)?;
        if !matches!(self.source.types[self.source.values[value].ty], Type::Future(_)) {
            return Ok(id);
        }
        let shape = self.shape(id);
        let Some((op, shape)) = futures::end(self.op(id), &shape) else { return Ok(id) };
        let result = self.add(op, shape, [id])?;
        self.set_value(value, result);
        Ok(result)
    }

    pub fn set_value(&mut self, value: ValueId, instruction: InstrId) {
        self.frame().values.insert(value, instruction);
    }

    /// Returns the shape of a value's type.
    pub fn shape_of(&self, value: ValueId) -> Result<Shape> {
        let Value { ty, .. } = self.source.values[value];
        types::shape(self.source, ty)
    }

    /// Lowers a region on `arguments`, which exclude loop-invariant ones. `root` creates the root from the returned
    /// values.
    pub fn region(
        &mut self,
        region: RegionId,
        arguments: &[InstrId],
        root: impl FnOnce(&mut Self, Vec<InstrId>) -> Result<InstrId>,
    ) -> Result<InstrId> {
        let source = self.source;
        let &[block] = &source.regions[region].blocks[..] else {
            return Err(Error::invalid_argument("a region must have one block"));
        };
        let block = &source.blocks[block];
        let own = block.arguments.iter().copied().filter(|&argument| !self.captures.is_replaced(argument));
        let own: Vec<ValueId> = own.collect();
        if own.len() != arguments.len() {
            let (has, gets) = (own.len(), arguments.len());
            return Err(Error::invalid_argument(format!("a region has {has} arguments, but gets {gets} values")));
        }
        for (argument, &value) in own.into_iter().zip(arguments) {
            self.set_value(argument, value);
        }
        let Some((&last, operations)) = block.operations.split_last() else {
            return Err(Error::invalid_argument("a region has no return"));
        };
        for &op in operations {
            (self.lower_operation)(self, op)?;
        }
        let returned = &source.operations[last].operands;
        let values = returned.iter().map(|&value| self.operand(value)).collect::<Result<Vec<InstrId>>>()?;
        self.frame().location = None;
        root(self, values)
    }

    /// Lowers a region that captures only constants to a computation with a parameter for each argument.
    pub fn closed_region(&mut self, name: &str, region: RegionId) -> Result<CompId> {
        self.closed_region_on(name, region, Self::parameter_of)
    }

    /// Lowers a region as [`Lowering::closed_region`] does, but `argument` adds each parameter and computes the
    /// argument from it.
    pub fn closed_region_on(
        &mut self,
        name: &str,
        region: RegionId,
        argument: impl FnMut(&mut Self, ValueId) -> Result<InstrId>,
    ) -> Result<CompId> {
        let computation = self.computation_on(name, region, argument)?;
        Ok(self.hlo.add(computation))
    }

    /// Builds the computation of [`Lowering::closed_region`] without adding it to the module.
    pub fn closed_computation(&mut self, name: &str, region: RegionId) -> Result<Computation> {
        self.computation_on(name, region, Self::parameter_of)
    }

    fn computation_on(
        &mut self,
        name: &str,
        region: RegionId,
        mut argument: impl FnMut(&mut Self, ValueId) -> Result<InstrId>,
    ) -> Result<Computation> {
        let source = self.source;
        let &[block] = &source.regions[region].blocks[..] else {
            return Err(Error::invalid_argument("a region must have one block"));
        };
        let (constants, others) = self.captured(self.captures.of_regions(source, &[region]))?;
        if !others.is_empty() {
            return Err(Error::unimplemented("a region that is a function captures a value"));
        }
        self.build(name, |lowering| {
            let arguments = source.blocks[block].arguments.iter();
            let parameters = arguments.map(|&value| argument(lowering, value)).collect::<Result<Vec<_>>>()?;
            constants.into_iter().for_each(|(value, literal)| lowering.set_constant(value, literal));
            lowering.region(region, &parameters, Self::packed)
        })
    }

    /// Splits captured values into constants and values that must be passed.
    pub fn captured(&mut self, values: Vec<ValueId>) -> Result<Captured> {
        let (mut constants, mut others) = (Vec::new(), Vec::new());
        for value in values {
            match self.literal_of(value) {
                Some(literal) => constants.push((value, literal)),
                None => match self.captured_size(value)? {
                    Some(literal) => constants.push((value, literal)),
                    None => others.push(value),
                },
            }
        }
        Ok((constants, others))
    }
}
