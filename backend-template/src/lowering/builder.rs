//! Builds programs instruction by instruction; values are numbered as they come, and get registers at the end.

use std::ops::RangeInclusive;

use xla_hlo::ops::BinaryOp;
use xla_hlo::{ElementType, Result, Scalar};
use xla_service::thunks::{ArraySlice, LoweringContext};

use super::registers;
use crate::device::{
    Access, Affine, Coordinate, Index, Instruction, LANES, Program, Register, TILE_COLUMNS, TILE_ROWS,
    TensorDescriptor, VectorOp, View,
};

/// A program that grows.
pub(super) struct ProgramBuilder {
    program: Program,
    /// Run before everything else.
    prologue: Vec<Instruction>,
    /// Open loops, outermost first, with the instructions built before each.
    open: Vec<(Index, usize, usize, Vec<Instruction>)>,
}

impl ProgramBuilder {
    /// A program whose tensors are the instruction's operands, then its results.
    pub fn new(cx: &LoweringContext<'_>) -> Result<ProgramBuilder> {
        let describe =
            |array: &ArraySlice, access| TensorDescriptor::new(array.shape.element_type(), array.shape.dims(), access);
        let operands = cx.operands.iter().map(|array| describe(array, Access::Read));
        let results = cx.results.iter().map(|array| describe(array, Access::Write));
        let tensors = operands.chain(results).collect::<Result<_>>()?;
        let name = cx.instruction().name().to_string();
        let program = Program { name, tensors, registers: Vec::new(), indices: 0, body: Vec::new() };
        Ok(ProgramBuilder { program, prologue: Vec::new(), open: Vec::new() })
    }

    /// The finished program; all loops are closed.
    pub fn finish(mut self) -> Program {
        self.prologue.append(&mut self.program.body);
        self.program.body = self.prologue;
        registers::assign(&mut self.program);
        self.program
    }

    /// The descriptor of tensor number `tensor`.
    pub fn tensor(&self, tensor: usize) -> &TensorDescriptor {
        &self.program.tensors[tensor]
    }

    /// Says how a tensor is used where that is not as [`ProgramBuilder::new`] has it.
    pub fn set_access(&mut self, tensor: usize, access: Access) {
        self.program.tensors[tensor].access = access;
    }

    /// Opens a loop; instructions built from now on are its body.
    pub fn begin_loop(&mut self, extent: usize, step: usize) -> Index {
        let index = self.new_index();
        self.open.push((index, extent, step, std::mem::take(&mut self.program.body)));
        index
    }

    /// Closes the innermost loop.
    pub fn end_loop(&mut self) {
        if let Some((index, extent, step, before)) = self.open.pop() {
            let body = std::mem::replace(&mut self.program.body, before);
            self.program.body.push(Instruction::Loop { index, extent, step, body });
        }
    }

    /// Closes as many loops.
    pub fn end_loops(&mut self, count: usize) {
        (0..count).for_each(|_| self.end_loop());
    }

    /// Loops over an array of those dimensions, a tile at a time; returns the coordinates of the lanes. There are as
    /// many loops as dimensions.
    pub fn loop_over_tiles(&mut self, dims: &[usize]) -> Vec<Coordinate> {
        (0..dims.len()).map(|d| self.loop_over_dimension(dims, d)).collect()
    }

    /// A loop over dimension `d` of an array, and the coordinate of the lanes in it: the two minor dimensions are rows
    /// and columns of a tile, and a vector is both.
    pub fn loop_over_dimension(&mut self, dims: &[usize], d: usize) -> Coordinate {
        let (step, per_row, per_column) = match dims.len() - d {
            1 if dims.len() == 1 => (LANES, TILE_COLUMNS as i64, 1),
            1 => (TILE_COLUMNS, 0, 1),
            2 => (TILE_ROWS, 1, 0),
            _ => (1, 0, 0),
        };
        Coordinate::of(self.begin_loop(dims[d], step)).per_row(per_row).per_column(per_column)
    }

    /// The start along dimension `d`, clamped to `0..=limit`; read once, before anything else. The tensor is an
    /// integer, or a vector with the starts of all dimensions.
    pub fn load_start(&mut self, tensor: usize, d: usize, limit: usize) -> Coordinate {
        let index = self.new_index();
        let is_scalar = self.tensor(tensor).dims().is_empty();
        let at = if is_scalar { Vec::new() } else { vec![Affine::constant(d as i64)] };
        self.prologue.push(Instruction::LoadIndex { index, tensor, at, range: 0..=limit as i64 });
        Coordinate::of(index)
    }

    /// An element of an array of integers, clamped to a range.
    pub fn load_index(&mut self, tensor: usize, at: Vec<Affine>, range: RangeInclusive<i64>) -> Coordinate {
        let index = self.new_index();
        self.push(Instruction::LoadIndex { index, tensor, at, range });
        Coordinate::of(index)
    }

    /// Elements of a tensor at coordinates, one for each dimension.
    pub fn load(&mut self, tensor: usize, at: &[Coordinate]) -> Register {
        self.load_view(tensor, View::Window(at.to_vec()))
    }

    /// Elements of a tensor.
    pub fn load_view(&mut self, tensor: usize, view: View) -> Register {
        let to = self.new_register(self.tensor(tensor).element_type());
        self.push(Instruction::Load { to, tensor, view });
        to
    }

    /// Stores to a tensor at coordinates, one for each dimension.
    pub fn store(&mut self, from: Register, tensor: usize, at: &[Coordinate]) {
        self.store_view(from, tensor, View::Window(at.to_vec()));
    }

    /// Stores the lanes whose coordinates are in their bounds; the others keep the tensor's elements.
    pub fn store_within(&mut self, from: Register, tensor: usize, at: &[Coordinate], bounds: Vec<(Coordinate, usize)>) {
        let old = self.load(tensor, at);
        let new = self.choose(from, old, bounds);
        self.store(new, tensor, at);
    }

    /// Stores to a tensor.
    pub fn store_view(&mut self, from: Register, tensor: usize, view: View) {
        self.push(Instruction::Store { from, tensor, view });
    }

    /// The same number in all lanes.
    pub fn splat(&mut self, ty: ElementType, value: Scalar) -> Register {
        let to = self.new_register(ty);
        self.push(Instruction::Splat { to, value });
        to
    }

    /// The coordinate as a number.
    pub fn iota(&mut self, ty: ElementType, coordinate: Coordinate) -> Register {
        let to = self.new_register(ty);
        self.push(Instruction::Iota { to, coordinate });
        to
    }

    /// One of two values for each lane, by whether coordinates are in their bounds.
    pub fn choose(&mut self, inside: Register, outside: Register, bounds: Vec<(Coordinate, usize)>) -> Register {
        let to = self.new_register(self.program.registers[inside.0]);
        self.push(Instruction::Choose { to, inside, outside, bounds });
        to
    }

    /// The same value in a register of its own.
    pub fn copied(&mut self, value: Register) -> Register {
        self.choose(value, value, Vec::new())
    }

    /// A value put into a register that has one.
    pub fn assign(&mut self, to: Register, value: Register) {
        self.push(Instruction::Choose { to, inside: value, outside: value, bounds: Vec::new() });
    }

    /// A function of each lane.
    pub fn vector(&mut self, ty: ElementType, op: VectorOp, operands: Vec<Register>) -> Register {
        let to = self.new_register(ty);
        self.push(Instruction::Vector { to, op, operands });
        to
    }

    /// `to = to op from`.
    pub fn accumulate(&mut self, to: Register, op: BinaryOp, from: Register) {
        self.push(Instruction::Accumulate { to, op, from });
    }

    /// Lanes of an accumulator put together.
    pub fn reduce(&mut self, register: Register, op: BinaryOp, rows: bool, columns: bool) {
        self.push(Instruction::Reduce { register, op, rows, columns });
    }

    /// `to += lhs * rhs`, as matrices.
    pub fn matmul(&mut self, to: Register, lhs: Register, rhs: Register) {
        self.push(Instruction::MatMul { to, lhs, rhs });
    }

    fn push(&mut self, instruction: Instruction) {
        self.program.body.push(instruction);
    }

    fn new_register(&mut self, ty: ElementType) -> Register {
        self.program.registers.push(ty);
        Register(self.program.registers.len() - 1)
    }

    fn new_index(&mut self) -> Index {
        self.program.indices += 1;
        Index(self.program.indices - 1)
    }
}
