//! Loading of programs: checks a program once, so that the core can execute it without checks.

use xla_hlo::{ElementType, Error, Result};

use super::memory::Region;
use super::program::{Affine, Coordinate, Index, Instruction, Program, Register, VectorOp, View};
use super::spec::REGISTERS;
use super::tensor::{Access, TensorDescriptor};

/// Capacity of the core's program memory, in instructions.
const PROGRAM_MEMORY: usize = 1 << 14;
/// Number of index registers of the core.
const INDEX_REGISTERS: usize = 32;

/// Checked program, ready to launch.
#[derive(Debug)]
pub struct Kernel(Program);

impl Kernel {
    /// Checks a program. [`Error::ResourceExhausted`] if it exceeds the core's resources, [`Error::Internal`] if it is
    /// invalid.
    pub fn load(program: Program) -> Result<Kernel> {
        let exhausted = |what: &str, has: usize, needs: usize| {
            let name = &program.name;
            Err(Error::resource_exhausted(format!("kernel {name} needs {needs} {what}, but the core has {has}")))
        };
        if program.registers.len() > REGISTERS {
            return exhausted("registers", REGISTERS, program.registers.len());
        }
        if program.indices > INDEX_REGISTERS {
            return exhausted("index registers", INDEX_REGISTERS, program.indices);
        }
        let length = length(&program.body);
        if length > PROGRAM_MEMORY {
            return exhausted("instructions", PROGRAM_MEMORY, length);
        }
        ProgramChecker(&program).body(&program.body)?;
        Ok(Kernel(program))
    }

    /// Name of the program.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    pub(super) fn program(&self) -> &Program {
        &self.0
    }

    /// Checks that the regions have the sizes of the program's tensors.
    pub(super) fn check_bindings(&self, bindings: &[Region]) -> Result<()> {
        let tensors = &self.0.tensors;
        let sizes: Vec<usize> = bindings.iter().map(Region::size).collect();
        if !tensors.iter().map(TensorDescriptor::byte_size).eq(sizes.iter().copied()) {
            let name = &self.0.name;
            return Err(Error::internal(format!("kernel {name} takes {tensors:?}, but was given {sizes:?} bytes")));
        }
        Ok(())
    }
}

fn length(body: &[Instruction]) -> usize {
    let of = |instruction: &Instruction| match instruction {
        Instruction::Loop { body, .. } => 1 + length(body),
        _ => 1,
    };
    body.iter().map(of).sum()
}

/// Checker of a program's instructions.
struct ProgramChecker<'a>(&'a Program);

impl ProgramChecker<'_> {
    fn body(&self, body: &[Instruction]) -> Result<()> {
        body.iter().try_for_each(|instruction| {
            self.instruction(instruction)?
                .then_some(())
                .ok_or_else(|| Error::internal(format!("kernel {} has an invalid {instruction:?}", self.0.name)))
        })
    }

    /// Whether the instruction is valid.
    fn instruction(&self, instruction: &Instruction) -> Result<bool> {
        Ok(match instruction {
            Instruction::Loop { index, step, body, .. } => {
                self.body(body)?;
                self.has_index(*index) && *step > 0
            }
            Instruction::LoadIndex { index, tensor, at, range } => {
                let fits = |t: &TensorDescriptor| t.dims().len() == at.len() && t.element_type().is_integer();
                let is_right = self.has_index(*index) && !range.is_empty() && at.iter().all(|at| self.affine(at));
                is_right && self.loads_from(*tensor).is_some_and(fits)
            }
            Instruction::Load { to, tensor, view } => self.transfers(*to, self.loads_from(*tensor), view),
            Instruction::Store { from, tensor, view } => self.transfers(*from, self.stores_to(*tensor), view),
            Instruction::Splat { to, value } => {
                let kind = |ty: ElementType| std::mem::discriminant(&xla_hlo::Scalar::zero(ty));
                self.types(&[*to]).is_some_and(|types| kind(types[0]) == std::mem::discriminant(value))
            }
            Instruction::Iota { to, coordinate } => self.has(*to) && self.coordinate(coordinate),
            Instruction::Choose { to, inside, outside, bounds } => {
                self.are_alike(&[*to, *inside, *outside]) && bounds.iter().all(|(c, _)| self.coordinate(c))
            }
            Instruction::Vector { to, op, operands } => self.vector(*to, op, operands)?,
            Instruction::Accumulate { to, op, from } => {
                self.are_alike(&[*to, *from]) && self.vector(*to, &VectorOp::Binary(*op), &[*to, *from])?
            }
            Instruction::Reduce { register, op, .. } => {
                self.vector(*register, &VectorOp::Binary(*op), &[*register, *register])?
            }
            Instruction::MatMul { to, lhs, rhs } => {
                let types = self.types(&[*to, *lhs, *rhs]);
                types.is_some_and(|types| types.iter().all(|ty| ty.kind() == types[0].kind()))
            }
        })
    }

    fn vector(&self, to: Register, op: &VectorOp, operands: &[Register]) -> Result<bool> {
        let (Some(result), Some(types)) = (self.types(&[to]), self.types(operands)) else { return Ok(false) };
        let alike = match op {
            VectorOp::Select => types.len() == 3 && types[0] == ElementType::Pred && types[1] == types[2],
            VectorOp::Unary(_)
            | VectorOp::Binary(_)
            | VectorOp::Compare(_)
            | VectorOp::Clamp
            | VectorOp::Convert
            | VectorOp::BitcastConvert
            | VectorOp::ReducePrecision(_) => types.iter().all(|ty| *ty == types[0]),
        };
        Ok(types.len() == op.arity() && alike && op.function(&types, result[0])?.is_some())
    }

    fn transfers(&self, register: Register, tensor: Option<&TensorDescriptor>, view: &View) -> bool {
        let Some(tensor) = tensor else { return false };
        let fits = match view {
            View::Window(coordinates) => {
                coordinates.len() == tensor.dims().len() && coordinates.iter().all(|c| self.coordinate(c))
            }
            View::Flat(place) => self.coordinate(place),
        };
        fits && self.types(&[register]).is_some_and(|types| types[0] == tensor.element_type())
    }

    fn loads_from(&self, tensor: usize) -> Option<&TensorDescriptor> {
        self.0.tensors.get(tensor)
    }

    fn stores_to(&self, tensor: usize) -> Option<&TensorDescriptor> {
        self.0.tensors.get(tensor).filter(|t| matches!(t.access, Access::Write | Access::Update))
    }

    fn types(&self, registers: &[Register]) -> Option<Vec<ElementType>> {
        registers.iter().map(|r| self.0.registers.get(r.0).copied()).collect()
    }

    fn are_alike(&self, registers: &[Register]) -> bool {
        self.types(registers).is_some_and(|types| types.iter().all(|ty| *ty == types[0]))
    }

    fn has(&self, register: Register) -> bool {
        register.0 < self.0.registers.len()
    }

    fn has_index(&self, index: Index) -> bool {
        index.0 < self.0.indices
    }

    fn coordinate(&self, coordinate: &Coordinate) -> bool {
        self.affine(&coordinate.start)
    }

    fn affine(&self, Affine { terms, .. }: &Affine) -> bool {
        terms.iter().all(|(index, _)| self.has_index(*index))
    }
}
