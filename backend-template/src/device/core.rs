//! Core: executes a checked program on locked memory.

use xla_hlo::ops::{BinaryOp, ElementFunction};
use xla_hlo::{ElementKind, ElementType, Error, Result, Scalar};

use super::kernel::Kernel;
use super::locked::Locked;
use super::memory::Region;
use super::program::{Affine, Coordinate, Instruction, Program, Register, VectorOp, View};
use super::spec::{LANES, TILE_COLUMNS, TILE_ROWS};
use super::tensor::TensorDescriptor;

/// Contents of a register: one scalar per lane.
type Tile = [Scalar; LANES];

/// Runs a kernel. The bindings have been checked, and `memory` holds the locks of their blocks.
pub(super) fn run(kernel: &Kernel, bindings: &[Region], memory: &mut Locked<'_>) -> Result<()> {
    let program = kernel.program();
    let registers = program.registers.iter().map(|&ty| [Scalar::zero(ty); LANES]).collect();
    Core { program, bindings, memory, registers, indices: vec![0; program.indices] }.run(&program.body)
}

/// State of one kernel execution.
struct Core<'a, 'm> {
    program: &'a Program,
    bindings: &'a [Region],
    memory: &'a mut Locked<'m>,
    registers: Vec<Tile>,
    indices: Vec<i64>,
}

impl Core<'_, '_> {
    fn run(&mut self, body: &[Instruction]) -> Result<()> {
        body.iter().try_for_each(|instruction| self.execute(instruction))
    }

    fn execute(&mut self, instruction: &Instruction) -> Result<()> {
        match instruction {
            Instruction::Loop { index, extent, step, body } => {
                for count in (0..*extent).step_by(*step) {
                    self.indices[index.0] = count as i64;
                    self.run(body)?;
                }
            }
            Instruction::LoadIndex { index, tensor, at, range } => {
                let number = self.element(*tensor, at).and_then(Scalar::as_i128).unwrap_or_default();
                let (low, high) = (i128::from(*range.start()), i128::from(*range.end()));
                self.indices[index.0] = number.clamp(low, high) as i64;
            }
            Instruction::Load { to, tensor, view } => self.load(*to, *tensor, view),
            Instruction::Store { from, tensor, view } => self.store(*from, *tensor, view),
            Instruction::Splat { to, value } => self.registers[to.0] = [*value; LANES],
            Instruction::Iota { to, coordinate } => {
                let ty = self.ty(*to);
                self.registers[to.0] = self.lanes(coordinate).map(|number| Scalar::from_i64(ty, number).rounded(ty));
            }
            Instruction::Choose { to, inside, outside, bounds } => self.choose(*to, *inside, *outside, bounds),
            Instruction::Vector { to, op, operands } => return self.vector(*to, op, operands),
            Instruction::Accumulate { to, op, from } => {
                let combine = self.combiner(*op, *to)?;
                let from = self.registers[from.0];
                self.registers[to.0].iter_mut().zip(from).for_each(|(to, from)| *to = combine(*to, from));
            }
            Instruction::Reduce { register, op, rows, columns } => return self.reduce(*register, *op, *rows, *columns),
            Instruction::MatMul { to, lhs, rhs } => self.matmul(*to, *lhs, *rhs),
        }
        Ok(())
    }

    fn element(&self, tensor: usize, at: &[Affine]) -> Option<Scalar> {
        let descriptor = &self.program.tensors[tensor];
        let inside = |(at, &size): (&Affine, &usize)| {
            usize::try_from(at.value(&self.indices)).ok().filter(|&number| number < size)
        };
        let element: Vec<usize> = at.iter().zip(descriptor.dims()).map(inside).collect::<Option<_>>()?;
        let bytes = &self.memory.bytes(&self.bindings[tensor])[descriptor.offset(&element)..];
        Some(Scalar::read(descriptor.element_type(), bytes))
    }

    fn load(&mut self, to: Register, tensor: usize, view: &View) {
        let descriptor = &self.program.tensors[tensor];
        let (ty, width) = (descriptor.element_type(), descriptor.element_type().byte_width());
        let outside = Scalar::read(ty, &[0; 16][..width]);
        let offsets = self.offsets(descriptor, view);
        let bytes = self.memory.bytes(&self.bindings[tensor]);
        let lane = |offset: Option<usize>| offset.map_or(outside, |at| Scalar::read(ty, &bytes[at..at + width]));
        self.registers[to.0] = offsets.map(lane);
    }

    fn store(&mut self, from: Register, tensor: usize, view: &View) {
        let descriptor = &self.program.tensors[tensor];
        let (ty, width) = (descriptor.element_type(), descriptor.element_type().byte_width());
        let offsets = self.offsets(descriptor, view);
        let bytes = self.memory.bytes_mut(&self.bindings[tensor]);
        for (offset, lane) in offsets.into_iter().zip(self.registers[from.0]) {
            if let Some(at) = offset {
                lane.write(ty, &mut bytes[at..at + width]);
            }
        }
    }

    /// Returns the byte offset of each lane's element; `None` outside the tensor.
    fn offsets(&self, tensor: &TensorDescriptor, view: &View) -> [Option<usize>; LANES] {
        let coordinates = match view {
            View::Window(coordinates) => coordinates,
            View::Flat(place) => {
                return self.lanes(place).map(|n| usize::try_from(n).ok().and_then(|n| tensor.offset_of_linear(n)));
            }
        };
        let mut offsets = [Some(0); LANES];
        for (dim, coordinate) in coordinates.iter().enumerate() {
            let along = |number: i64| {
                let index = usize::try_from(number).ok().filter(|&index| index < tensor.dims()[dim]);
                index.map(|index| tensor.offset_along(dim, index))
            };
            let start = coordinate.start.value(&self.indices);
            for (row, lanes) in offsets.chunks_mut(TILE_COLUMNS).enumerate() {
                let first = start + row as i64 * coordinate.per_row;
                let mut part = along(first);
                for (column, offset) in lanes.iter_mut().enumerate() {
                    // Most coordinates are equal in all columns of the tile.
                    if column > 0 && coordinate.per_column != 0 {
                        part = along(first + column as i64 * coordinate.per_column);
                    }
                    *offset = offset.zip(part).map(|(offset, part)| offset + part);
                }
            }
        }
        offsets
    }

    /// Evaluates a coordinate in each lane.
    fn lanes(&self, coordinate: &Coordinate) -> [i64; LANES] {
        let start = coordinate.start.value(&self.indices);
        std::array::from_fn(|lane| {
            let (row, column) = ((lane / TILE_COLUMNS) as i64, (lane % TILE_COLUMNS) as i64);
            start + row * coordinate.per_row + column * coordinate.per_column
        })
    }

    fn choose(&mut self, to: Register, inside: Register, outside: Register, bounds: &[(Coordinate, usize)]) {
        let mut is_inside = [true; LANES];
        for (coordinate, bound) in bounds {
            let within = self.lanes(coordinate).map(|number| usize::try_from(number).is_ok_and(|n| n < *bound));
            is_inside.iter_mut().zip(within).for_each(|(all, this)| *all &= this);
        }
        let (inside, outside) = (self.registers[inside.0], self.registers[outside.0]);
        self.registers[to.0] = std::array::from_fn(|i| if is_inside[i] { inside[i] } else { outside[i] });
    }

    fn vector(&mut self, to: Register, op: &VectorOp, operands: &[Register]) -> Result<()> {
        let function = self.function(op, operands, to)?;
        let tiles: Vec<&Tile> = operands.iter().map(|r| &self.registers[r.0]).collect();
        let result: Tile = match tiles[..] {
            [x] => std::array::from_fn(|i| function.apply(&[x[i]])),
            [x, y] => std::array::from_fn(|i| function.apply(&[x[i], y[i]])),
            [x, y, z] => std::array::from_fn(|i| function.apply(&[x[i], y[i], z[i]])),
            _ => return Err(Error::internal("a vector instruction has a wrong number of operands")),
        };
        self.registers[to.0] = result;
        Ok(())
    }

    fn reduce(&mut self, register: Register, op: BinaryOp, rows: bool, columns: bool) -> Result<()> {
        let combine = self.combiner(op, register)?;
        let tile = &mut self.registers[register.0];
        let mut along = |stride: usize, count: usize| {
            let firsts = (0..LANES).filter(|lane| (lane / stride).is_multiple_of(count));
            for first in firsts {
                let line = (first..).step_by(stride).take(count);
                let value = line.clone().skip(1).fold(tile[first], |value, lane| combine(value, tile[lane]));
                line.for_each(|lane| tile[lane] = value);
            }
        };
        if rows {
            along(TILE_COLUMNS, TILE_ROWS);
        }
        if columns {
            along(1, TILE_COLUMNS);
        }
        Ok(())
    }

    fn matmul(&mut self, to: Register, lhs: Register, rhs: Register) {
        let (lhs, rhs) = (self.registers[lhs.0], self.registers[rhs.0]);
        for (lane, sum) in self.registers[to.0].iter_mut().enumerate() {
            let (row, column) = (lane / TILE_COLUMNS, lane % TILE_COLUMNS);
            let terms = (0..TILE_ROWS).map(|k| (lhs[row * TILE_COLUMNS + k], rhs[k * TILE_COLUMNS + column]));
            *sum = terms.fold(*sum, |sum, (x, y)| plus_product(sum, x, y));
        }
    }

    /// Returns the combining function of an accumulator. Floats and complex numbers keep their wide precision; other
    /// kinds follow the element type.
    fn combiner(&self, op: BinaryOp, accumulator: Register) -> Result<impl Fn(Scalar, Scalar) -> Scalar + use<>> {
        let function = self.function(&VectorOp::Binary(op), &[accumulator, accumulator], accumulator)?;
        let is_wide = matches!(self.ty(accumulator).kind(), ElementKind::Float | ElementKind::Complex);
        Ok(move |a, b| if is_wide { function.compute(&[a, b]) } else { function.apply(&[a, b]) })
    }

    fn function(&self, op: &VectorOp, operands: &[Register], to: Register) -> Result<ElementFunction> {
        let types: Vec<ElementType> = operands.iter().map(|&r| self.ty(r)).collect();
        op.function(&types, self.ty(to))?.ok_or_else(|| Error::internal(format!("{op:?} is not a vector operation")))
    }

    fn ty(&self, register: Register) -> ElementType {
        self.program.registers[register.0]
    }
}

/// Computes `sum + x * y` at the accumulator's wide precision; all three have the same kind.
fn plus_product(sum: Scalar, x: Scalar, y: Scalar) -> Scalar {
    match (sum, x, y) {
        (Scalar::Float(sum), Scalar::Float(x), Scalar::Float(y)) => Scalar::Float(sum + x * y),
        (Scalar::Signed(sum), Scalar::Signed(x), Scalar::Signed(y)) => {
            Scalar::Signed(sum.wrapping_add(x.wrapping_mul(y)))
        }
        (Scalar::Unsigned(sum), Scalar::Unsigned(x), Scalar::Unsigned(y)) => {
            Scalar::Unsigned(sum.wrapping_add(x.wrapping_mul(y)))
        }
        (Scalar::Pred(sum), Scalar::Pred(x), Scalar::Pred(y)) => Scalar::Pred(sum || (x && y)),
        (Scalar::Complex(re, im), Scalar::Complex(a, b), Scalar::Complex(c, d)) => {
            Scalar::Complex(re + (a * c - b * d), im + (a * d + b * c))
        }
        // `Kernel::load` checked that all three have the same kind.
        (sum, _, _) => sum,
    }
}
