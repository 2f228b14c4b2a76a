//! State of a lowering: the module that is built, and a computation for each region that is being read.

use std::collections::{BTreeSet, HashMap, HashSet};

use xla_hlo::ops::{GetTupleElement, Op, Parameter, ShapeContext, Tuple};
use xla_hlo::{CompId, Computation, Error, InstrId, Instruction, Result, Shape};

use super::types;
use crate::ir::{Module, OpId, RegionId, Value, ValueId};

/// Regions nest no deeper than this; lowering them recurses.
const MAX_DEPTH: usize = 100;

pub(super) struct Lowering<'s> {
    pub source: &'s Module,
    pub hlo: xla_hlo::Module,
    /// Computations of functions by name.
    pub functions: HashMap<String, CompId>,
    frames: Vec<Frame>,
    /// Lowers one operation.
    lower_operation: fn(&mut Lowering<'s>, OpId) -> Result<()>,
}

/// A computation that is being built.
struct Frame {
    computation: Computation,
    values: HashMap<ValueId, InstrId>,
    /// Operation whose instructions are added.
    op: Option<OpId>,
}

impl<'s> Lowering<'s> {
    pub fn new(
        source: &'s Module,
        name: &str,
        lower_operation: fn(&mut Lowering<'s>, OpId) -> Result<()>,
    ) -> Lowering<'s> {
        let hlo = xla_hlo::Module::new(name);
        Lowering { source, hlo, functions: HashMap::new(), frames: Vec::new(), lower_operation }
    }

    fn frame(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("instructions are added while there is a computation")
    }

    /// Sets the operation whose instructions are added.
    pub fn begin_operation(&mut self, op: OpId) {
        self.frame().op = Some(op);
    }

    /// Builds a computation: `write` adds its instructions and returns the root.
    pub fn computation(&mut self, name: &str, write: impl FnOnce(&mut Self) -> Result<InstrId>) -> Result<CompId> {
        if self.frames.len() >= MAX_DEPTH {
            return Err(Error::resource_exhausted(format!("regions nest deeper than {MAX_DEPTH}")));
        }
        self.frames.push(Frame { computation: Computation::new(name), values: HashMap::new(), op: None });
        let root = write(self);
        let mut frame = self.frames.pop().expect("the frame from above");
        frame.computation.set_root(root?);
        Ok(self.hlo.add(frame.computation))
    }

    /// Adds an instruction of that shape, which must be the one that its rule infers.
    pub fn add(&mut self, op: impl Into<Op>, shape: Shape, operands: impl Into<Vec<InstrId>>) -> Result<InstrId> {
        let (op, operands) = (op.into(), operands.into());
        let frame = self.frames.last_mut().expect("instructions are added while there is a computation");
        let shapes: Vec<&Shape> = operands.iter().map(|&operand| frame.computation[operand].shape()).collect();
        let cx = ShapeContext::new(&self.hlo, &shapes, Some(&shape));
        let inferred = op.rules().infer_shape(&cx)?;
        if !shape.compatible(&inferred) {
            return Err(Error::invalid_argument(format!("{} gives {inferred}, not {shape}", op.opcode())));
        }
        let mut instruction = Instruction::new(op, shape.with_default_layouts(), operands);
        if let Some(metadata) = frame.op.and_then(|op| super::location::metadata(self.source, op)) {
            instruction.annotations_mut().metadata = metadata;
        }
        Ok(frame.computation.add(instruction))
    }

    /// Adds an instruction of the shape that its rule infers.
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

    /// The next parameter of the computation.
    pub fn parameter(&mut self, shape: Shape) -> Result<InstrId> {
        let number = self.frame().computation.parameters().len();
        self.add(Parameter { number }, shape, [])
    }

    /// Sets the text for the handler of a custom call.
    pub fn set_backend_config(&mut self, id: InstrId, config: String) {
        if !config.is_empty() {
            self.frame().computation.annotations_mut(id).backend_config = config;
        }
    }

    pub fn tuple(&mut self, elements: Vec<InstrId>) -> Result<InstrId> {
        self.infer(Tuple, elements)
    }

    /// One value as it is, others as a tuple.
    pub fn packed(&mut self, values: Vec<InstrId>) -> Result<InstrId> {
        match values[..] {
            [one] => Ok(one),
            _ => self.tuple(values),
        }
    }

    /// The values of [`Lowering::packed`].
    pub fn unpacked(&mut self, value: InstrId, count: usize) -> Result<Vec<InstrId>> {
        if count == 1 {
            return Ok(vec![value]);
        }
        (0..count).map(|index| self.infer(GetTupleElement { index }, [value])).collect()
    }

    /// The instruction of a value of this computation.
    pub fn value(&mut self, value: ValueId) -> Result<InstrId> {
        self.frame()
            .values
            .get(&value)
            .copied()
            .ok_or_else(|| Error::unimplemented("a value of the region around it, which this region may not capture"))
    }

    pub fn set_value(&mut self, value: ValueId, instruction: InstrId) {
        self.frame().values.insert(value, instruction);
    }

    /// The shape of a value's type.
    pub fn shape_of(&self, value: ValueId) -> Result<Shape> {
        let Value { ty, .. } = self.source.values[value];
        types::shape(self.source, ty)
    }

    /// Values that a region uses and that are defined outside of it, in the order of their ids.
    pub fn captures(&self, region: RegionId) -> Vec<ValueId> {
        let source = self.source;
        let mut inside: HashSet<ValueId> = HashSet::new();
        let mut used: BTreeSet<ValueId> = BTreeSet::new();
        let mut regions = vec![region];
        while let Some(region) = regions.pop() {
            for &block in &source.regions[region].blocks {
                inside.extend(&source.blocks[block].arguments);
                for &op in &source.blocks[block].operations {
                    let operation = &source.operations[op];
                    inside.extend(&operation.results);
                    used.extend(operation.operands.iter().copied());
                    regions.extend(&operation.regions);
                }
            }
        }
        used.into_iter().filter(|value| !inside.contains(value)).collect()
    }

    /// Lowers a region whose arguments are these values; `root` makes the root of what the region returns.
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
        if block.arguments.len() != arguments.len() {
            let (has, gets) = (block.arguments.len(), arguments.len());
            return Err(Error::invalid_argument(format!("a region of {has} arguments gets {gets} values")));
        }
        for (&argument, &value) in block.arguments.iter().zip(arguments) {
            self.set_value(argument, value);
        }
        let Some((&last, operations)) = block.operations.split_last() else {
            return Err(Error::invalid_argument("a region without a return"));
        };
        for &op in operations {
            (self.lower_operation)(self, op)?;
        }
        let returned = &source.operations[last].operands;
        let values = returned.iter().map(|&value| self.value(value)).collect::<Result<Vec<InstrId>>>()?;
        root(self, values)
    }

    /// Lowers a region that captures nothing but constants to a computation with a parameter for each argument.
    pub fn closed_region(&mut self, name: &str, region: RegionId) -> Result<CompId> {
        let captures = self.captures(region);
        let source = self.source;
        let &[block] = &source.regions[region].blocks[..] else {
            return Err(Error::invalid_argument("a region must have one block"));
        };
        let constants = self.constants(&captures)?;
        self.computation(name, |lowering| {
            let mut parameters = Vec::new();
            for &argument in &source.blocks[block].arguments {
                let shape = lowering.shape_of(argument)?;
                parameters.push(lowering.parameter(shape)?);
            }
            for (value, constant) in constants {
                let shape = lowering.shape_of(value)?;
                let constant = lowering.add(constant, shape, [])?;
                lowering.set_value(value, constant);
            }
            lowering.region(region, &parameters, Self::packed)
        })
    }

    /// The constants that captured values are; an error for another value.
    fn constants(&mut self, captures: &[ValueId]) -> Result<Vec<(ValueId, Op)>> {
        let mut constants = Vec::new();
        for &value in captures {
            let instruction = self.value(value)?;
            match self.frame().computation[instruction].op() {
                op @ Op::Constant(_) => constants.push((value, op.clone())),
                other => {
                    let opcode = other.opcode();
                    return Err(Error::unimplemented(format!("a {opcode} captured by a region that is a function")));
                }
            }
        }
        Ok(constants)
    }
}
