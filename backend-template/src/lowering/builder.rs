//! Program builder: emits instructions with one virtual register per value; `finish` allocates the real registers.

use std::ops::RangeInclusive;

use xla_hlo::ops::BinaryOp;
use xla_hlo::{ElementType, Result, Scalar};
use xla_service::thunks::{ArraySlice, LoweringContext};

use super::registers;
use crate::device::{
    Access, Affine, Coordinate, Index, Instruction, LANES, Program, Register, TILE_COLUMNS, TILE_ROWS,
    TensorDescriptor, VectorOp, View,
};

/// Device program under construction.
pub(super) struct ProgramBuilder {
    program: Program,
    /// Instructions that run once, before all loops.
    prologue: Vec<Instruction>,
    /// Open loops, outermost first: index, extent and step, and the instructions before the loop.
    open: Vec<(Index, usize, usize, Vec<Instruction>)>,
}

impl ProgramBuilder {
    /// Creates a program whose tensors are the instruction's operands, followed by its results.
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

    /// Returns the finished program, its registers allocated. All loops must be closed.
    pub fn finish(mut self) -> Program {
        self.prologue.append(&mut self.program.body);
        self.program.body = self.prologue;
        registers::assign(&mut self.program);
        self.program
    }

    /// Returns the descriptor of tensor number `tensor`.
    pub fn tensor(&self, tensor: usize) -> &TensorDescriptor {
        &self.program.tensors[tensor]
    }

    /// Replaces the access mode that [`ProgramBuilder::new`] chose for a tensor.
    pub fn set_access(&mut self, tensor: usize, access: Access) {
        self.program.tensors[tensor].access = access;
    }

    /// Opens a loop. Instructions emitted until the matching [`ProgramBuilder::end_loop`] are its body.
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

    /// Closes the `count` innermost loops.
    pub fn end_loops(&mut self, count: usize) {
        (0..count).for_each(|_| self.end_loop());
    }

    /// Opens loops that cover an array of these dimensions tile by tile, one loop per dimension. Returns the
    /// coordinates of the lanes, one per dimension.
    pub fn loop_over_tiles(&mut self, dims: &[usize]) -> Vec<Coordinate> {
        (0..dims.len()).map(|d| self.loop_over_dimension(dims, d)).collect()
    }

    /// Opens a loop over dimension `d` of an array, and returns the coordinate of the lanes in that dimension. The two
    /// minor dimensions map to the rows and columns of a tile; a vector fills both.
    pub fn loop_over_dimension(&mut self, dims: &[usize], d: usize) -> Coordinate {
        let (step, per_row, per_column) = match dims.len() - d {
            1 if dims.len() == 1 => (LANES, TILE_COLUMNS as i64, 1),
            1 => (TILE_COLUMNS, 0, 1),
            2 => (TILE_ROWS, 1, 0),
            _ => (1, 0, 0),
        };
        Coordinate::of(self.begin_loop(dims[d], step)).per_row(per_row).per_column(per_column)
    }

    /// Reads the slice start for dimension `d`, clamped to `0..=limit`. It is read once, in the prologue. The tensor is
    /// an integer scalar, or a vector with the starts of all dimensions.
    pub fn load_start(&mut self, tensor: usize, d: usize, limit: usize) -> Coordinate {
        let index = self.new_index();
        let is_scalar = self.tensor(tensor).dims().is_empty();
        let at = if is_scalar { Vec::new() } else { vec![Affine::constant(d as i64)] };
        self.prologue.push(Instruction::LoadIndex { index, tensor, at, range: 0..=limit as i64 });
        Coordinate::of(index)
    }

    /// Reads an element of an integer array and clamps it to `range`.
    pub fn load_index(&mut self, tensor: usize, at: Vec<Affine>, range: RangeInclusive<i64>) -> Coordinate {
        let index = self.new_index();
        self.push(Instruction::LoadIndex { index, tensor, at, range });
        Coordinate::of(index)
    }

    /// Loads the elements of a tensor at coordinates, one per dimension.
    pub fn load(&mut self, tensor: usize, at: &[Coordinate]) -> Register {
        self.load_view(tensor, View::Window(at.to_vec()))
    }

    /// Loads the elements that `view` selects.
    pub fn load_view(&mut self, tensor: usize, view: View) -> Register {
        let to = self.new_register(self.tensor(tensor).element_type());
        self.push(Instruction::Load { to, tensor, view });
        to
    }

    /// Stores to a tensor at coordinates, one per dimension.
    pub fn store(&mut self, from: Register, tensor: usize, at: &[Coordinate]) {
        self.store_view(from, tensor, View::Window(at.to_vec()));
    }

    /// Stores the lanes whose coordinates are within their bounds; elements of the other lanes keep their value.
    pub fn store_within(&mut self, from: Register, tensor: usize, at: &[Coordinate], bounds: Vec<(Coordinate, usize)>) {
        let old = self.load(tensor, at);
        let new = self.choose(from, old, bounds);
        self.store(new, tensor, at);
    }

    /// Stores to the elements that `view` selects.
    pub fn store_view(&mut self, from: Register, tensor: usize, view: View) {
        self.push(Instruction::Store { from, tensor, view });
    }

    /// Broadcasts a constant to all lanes.
    pub fn splat(&mut self, ty: ElementType, value: Scalar) -> Register {
        let to = self.new_register(ty);
        self.push(Instruction::Splat { to, value });
        to
    }

    /// Returns the value of the coordinate in each lane.
    pub fn iota(&mut self, ty: ElementType, coordinate: Coordinate) -> Register {
        let to = self.new_register(ty);
        self.push(Instruction::Iota { to, coordinate });
        to
    }

    /// Selects `inside` in lanes whose coordinates are all within their bounds, otherwise `outside`.
    pub fn choose(&mut self, inside: Register, outside: Register, bounds: Vec<(Coordinate, usize)>) -> Register {
        let to = self.new_register(self.program.registers[inside.0]);
        self.push(Instruction::Choose { to, inside, outside, bounds });
        to
    }

    /// Copies a value to a new register.
    pub fn copied(&mut self, value: Register) -> Register {
        self.choose(value, value, Vec::new())
    }

    /// Copies a value to an existing register.
    pub fn assign(&mut self, to: Register, value: Register) {
        self.push(Instruction::Choose { to, inside: value, outside: value, bounds: Vec::new() });
    }

    /// Applies an elementwise operation to each lane.
    pub fn vector(&mut self, ty: ElementType, op: VectorOp, operands: Vec<Register>) -> Register {
        let to = self.new_register(ty);
        self.push(Instruction::Vector { to, op, operands });
        to
    }

    /// Emits `to = to op from`, lane by lane.
    pub fn accumulate(&mut self, to: Register, op: BinaryOp, from: Register) {
        self.push(Instruction::Accumulate { to, op, from });
    }

    /// Reduces the lanes of an accumulator over its rows, its columns, or both.
    pub fn reduce(&mut self, register: Register, op: BinaryOp, rows: bool, columns: bool) {
        self.push(Instruction::Reduce { register, op, rows, columns });
    }

    /// Emits `to += lhs * rhs` as a matrix product.
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
