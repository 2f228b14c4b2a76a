//! Builder of computations: each method adds one instruction and infers its shape from the shape rule of the operation.

mod effects;
mod methods;

use crate::ops::{Constant, Op, Parameter, ShapeContext};
use crate::{CompId, Computation, Error, InstrId, Instruction, Literal, Module, Result, Shape, verify::VerifiedModule};

/// Builds a module, one computation at a time.
///
/// ```
/// use xla_hlo::{ElementType, Shape, builder::ModuleBuilder};
///
/// # fn main() -> xla_hlo::Result<()> {
/// let mut module = ModuleBuilder::new("axpy");
/// let mut b = module.computation("main");
/// let a = b.parameter(Shape::scalar(ElementType::F32))?;
/// let x = b.parameter(Shape::array(ElementType::F32, [8]))?;
/// let y = b.parameter(Shape::array(ElementType::F32, [8]))?;
/// let a = b.broadcast(a, [8], [])?;
/// let ax = b.multiply(a, x)?;
/// let sum = b.add(ax, y)?;
/// let main = b.finish(sum);
/// let module = module.finish(main)?;
/// assert_eq!(module.entry().len(), 6);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ModuleBuilder {
    module: Module,
}

impl ModuleBuilder {
    /// Creates an empty module with that name.
    pub fn new(name: impl Into<String>) -> ModuleBuilder {
        ModuleBuilder { module: Module::new(name) }
    }

    /// Begins a computation; end it with [`ComputationBuilder::finish`].
    pub fn computation(&mut self, name: impl Into<String>) -> ComputationBuilder<'_> {
        ComputationBuilder { module: &mut self.module, computation: Computation::new(name) }
    }

    /// Makes `entry` the entry computation, verifies the module and returns it.
    pub fn finish(mut self, entry: CompId) -> Result<VerifiedModule> {
        self.module.set_entry(entry);
        VerifiedModule::new(self.module)
    }
}

/// Adds instructions to one computation.
///
/// Every method infers the result's shape. A violated rule is an [`Error::InvalidArgument`] that names the rule.
#[derive(Debug)]
pub struct ComputationBuilder<'m> {
    module: &'m mut Module,
    computation: Computation,
}

impl ComputationBuilder<'_> {
    /// Adds the next parameter.
    pub fn parameter(&mut self, shape: Shape) -> Result<InstrId> {
        let number = self.computation.parameters().len();
        self.instruction(Parameter { number }, Some(shape), [])
    }

    /// Adds a constant.
    pub fn constant(&mut self, literal: Literal) -> Result<InstrId> {
        let shape = literal.shape().clone();
        self.instruction(Constant { literal }, Some(shape), [])
    }

    /// Adds any operation. `shape` is required if operands and attributes do not determine it; otherwise it is checked.
    pub fn instruction(
        &mut self,
        op: impl Into<Op>,
        shape: Option<Shape>,
        operands: impl Into<Vec<InstrId>>,
    ) -> Result<InstrId> {
        self.checked(op.into(), shape, operands.into())
    }

    /// Adds an operation; not generic, so that it is compiled once.
    fn checked(&mut self, op: Op, shape: Option<Shape>, operands: Vec<InstrId>) -> Result<InstrId> {
        let mut shapes = Vec::with_capacity(operands.len());
        for &operand in &operands {
            let instruction = self.computation.get(operand).ok_or_else(|| {
                Error::invalid_argument(format!("operand {operand} does not belong to {}", self.computation.name()))
            })?;
            shapes.push(instruction.shape());
        }
        let cx = ShapeContext::new(self.module, &shapes, shape.as_ref());
        let inferred = op.rules().infer_shape(&cx).map_err(|e| e.context(op.opcode()))?;
        let shape = match shape {
            Some(written) if written.compatible(&inferred) => written,
            Some(written) => {
                return Err(Error::invalid_argument(format!("{} has shape {inferred}, not {written}", op.opcode())));
            }
            None => inferred,
        };
        Ok(self.computation.add(Instruction::new(op, shape.with_default_layouts(), operands)))
    }

    /// Returns the shape of an instruction added earlier.
    pub fn shape(&self, id: InstrId) -> &Shape {
        self.computation[id].shape()
    }

    /// Renames an instruction added earlier.
    pub fn name(&mut self, id: InstrId, name: &str) {
        self.computation.rename(id, name);
    }

    /// Ends the computation with that root and adds it to the module.
    pub fn finish(mut self, root: InstrId) -> CompId {
        self.computation.set_root(root);
        self.module.add(self.computation)
    }
}
