//! Instruction set of the core: a program is a tree of loops over tile instructions.

use std::ops::RangeInclusive;

use xla_hlo::ops::{
    Binary, BinaryOp, BitcastConvert, Clamp, Compare, Convert, ElementFunction, Op, ReducePrecision, Select, Unary,
    UnaryOp,
};
use xla_hlo::{ElementType, Result, Scalar};

use super::tensor::TensorDescriptor;

/// Vector register, which holds one tile of elements of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Register(pub usize);

/// Index register, which holds a loop counter or an integer read from memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Index(pub usize);

/// Affine expression over index registers: a constant plus a sum of index registers with coefficients.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Affine {
    /// Constant term.
    pub constant: i64,
    /// Index registers and their coefficients.
    pub terms: Vec<(Index, i64)>,
}

/// Affine value in each lane of a tile: `start + row * per_row + column * per_column`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Coordinate {
    /// Value in the first lane.
    pub start: Affine,
    /// Difference between one row of lanes and the next.
    pub per_row: i64,
    /// Difference between one column of lanes and the next.
    pub per_column: i64,
}

/// Element of a tensor that each lane accesses. Lanes outside the tensor load zero bits and do not store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum View {
    /// One coordinate per dimension.
    Window(Vec<Coordinate>),
    /// Linear index in row-major order.
    Flat(Coordinate),
}

/// Elementwise operation of the vector unit, with the arithmetic of HLO.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is the operation of its name")]
pub enum VectorOp {
    Unary(UnaryOp),
    Binary(BinaryOp),
    Compare(Compare),
    Select,
    Clamp,
    Convert,
    BitcastConvert,
    ReducePrecision(ReducePrecision),
}

/// Instruction of the core. Every register has one element type, which the program declares.
#[derive(Clone, Debug, PartialEq)]
pub enum Instruction {
    /// Runs `body` for each `index` in `0`, `step`, `2 * step`, ... below `extent`.
    Loop {
        /// Loop counter.
        index: Index,
        /// Upper bound of the counter, exclusive.
        extent: usize,
        /// Increment of the counter, at least 1.
        step: usize,
        /// Instructions of one iteration.
        body: Vec<Instruction>,
    },
    /// Reads an integer from memory into an index register; reads 0 outside the tensor.
    LoadIndex {
        /// Destination.
        index: Index,
        /// Number of the source tensor.
        tensor: usize,
        /// Element to read, one coordinate per dimension.
        at: Vec<Affine>,
        /// Range to which the integer is clamped.
        range: RangeInclusive<i64>,
    },
    /// Loads a tile from memory with the DMA unit.
    Load {
        /// Destination.
        to: Register,
        /// Number of the source tensor.
        tensor: usize,
        /// Elements that the lanes access.
        view: View,
    },
    /// Stores a tile to memory with the DMA unit. Values wider than the element type are rounded or wrapped.
    Store {
        /// Source.
        from: Register,
        /// Number of the destination tensor.
        tensor: usize,
        /// Elements that the lanes access.
        view: View,
    },
    /// Writes a constant to every lane.
    Splat {
        /// Destination.
        to: Register,
        /// Constant to write.
        value: Scalar,
    },
    /// Writes the value of a coordinate in each lane.
    Iota {
        /// Destination.
        to: Register,
        /// Coordinate to write.
        coordinate: Coordinate,
    },
    /// Selects `inside` in lanes where every coordinate is at least 0 and below its bound, otherwise `outside`.
    Choose {
        /// Destination.
        to: Register,
        /// Source of the lanes within the bounds.
        inside: Register,
        /// Source of the other lanes.
        outside: Register,
        /// Coordinates and their upper bounds.
        bounds: Vec<(Coordinate, usize)>,
    },
    /// Applies an elementwise operation on the vector unit.
    Vector {
        /// Destination.
        to: Register,
        /// Operation.
        op: VectorOp,
        /// Operands.
        operands: Vec<Register>,
    },
    /// Computes `to = to op from` in each lane. Floats in `to` keep their wide precision, as in
    /// [`Instruction::MatMul`].
    Accumulate {
        /// Accumulator.
        to: Register,
        /// Operation.
        op: BinaryOp,
        /// Second operand.
        from: Register,
    },
    /// Reduces the lanes of the accumulator. Each lane receives the result of its row (`columns`), of its column
    /// (`rows`), or of the whole tile (both).
    Reduce {
        /// Accumulator.
        register: Register,
        /// Operation.
        op: BinaryOp,
        /// Whether lanes are combined across rows.
        rows: bool,
        /// Whether lanes are combined across columns.
        columns: bool,
    },
    /// Computes `to[r][c] += lhs[r][k] * rhs[k][c]` for all `k` below [`TILE_ROWS`](super::TILE_ROWS). The accumulator
    /// is wide: 64-bit floats, integers modulo 2^64. Booleans are combined by or. Operand types may differ from the
    /// accumulator's, but must have the same kind.
    MatMul {
        /// Accumulator.
        to: Register,
        /// Left operand; only its first [`TILE_ROWS`](super::TILE_ROWS) columns are used.
        lhs: Register,
        /// Right operand.
        rhs: Register,
    },
}

/// Program for the core, not yet checked; see [`Kernel::load`](super::Kernel::load).
#[derive(Clone, Debug)]
pub struct Program {
    /// Name, for error messages.
    pub name: String,
    /// Tensors, in the order in which a launch binds them.
    pub tensors: Vec<TensorDescriptor>,
    /// Element type of each register.
    pub registers: Vec<ElementType>,
    /// Number of index registers.
    pub indices: usize,
    /// Instructions.
    pub body: Vec<Instruction>,
}

impl Affine {
    /// Creates the expression of a constant.
    pub fn constant(constant: i64) -> Affine {
        Affine { constant, terms: Vec::new() }
    }

    /// Creates the expression of one index register.
    pub fn of(index: Index) -> Affine {
        Affine { constant: 0, terms: vec![(index, 1)] }
    }

    /// Evaluates the expression for the given values of the index registers.
    pub(super) fn value(&self, indices: &[i64]) -> i64 {
        self.terms
            .iter()
            .fold(self.constant, |sum, &(index, factor)| sum.wrapping_add(indices[index.0].wrapping_mul(factor)))
    }
}

impl Coordinate {
    /// Creates a coordinate with the same constant in every lane.
    pub fn constant(number: i64) -> Coordinate {
        Coordinate { start: Affine::constant(number), ..Coordinate::default() }
    }

    /// Creates a coordinate with the value of an index register in every lane.
    pub fn of(index: Index) -> Coordinate {
        Coordinate { start: Affine::of(index), ..Coordinate::default() }
    }

    /// Sets the difference between one row of lanes and the next.
    #[must_use]
    pub fn per_row(self, per_row: i64) -> Coordinate {
        Coordinate { per_row, ..self }
    }

    /// Sets the difference between one column of lanes and the next.
    #[must_use]
    pub fn per_column(self, per_column: i64) -> Coordinate {
        Coordinate { per_column, ..self }
    }

    /// Returns `self * factor + summand`.
    #[must_use]
    pub fn scaled(mut self, factor: i64, summand: i64) -> Coordinate {
        self.start.constant = self.start.constant.wrapping_mul(factor).wrapping_add(summand);
        self.start.terms.iter_mut().for_each(|term| term.1 = term.1.wrapping_mul(factor));
        self.per_row = self.per_row.wrapping_mul(factor);
        self.per_column = self.per_column.wrapping_mul(factor);
        self
    }

    /// Returns the sum of both coordinates.
    #[must_use]
    pub fn plus(mut self, other: &Coordinate) -> Coordinate {
        self.start.constant = self.start.constant.wrapping_add(other.start.constant);
        self.start.terms.extend(&other.start.terms);
        self.per_row = self.per_row.wrapping_add(other.per_row);
        self.per_column = self.per_column.wrapping_add(other.per_column);
        self
    }
}

impl VectorOp {
    /// Returns the scalar function for these operand and result types; an error if the operation does not support them.
    pub(super) fn function(&self, operands: &[ElementType], result: ElementType) -> Result<Option<ElementFunction>> {
        let op: Op = match self {
            VectorOp::Unary(op) => Unary::from(*op).into(),
            VectorOp::Binary(op) => Binary { op: *op }.into(),
            VectorOp::Compare(compare) => compare.clone().into(),
            VectorOp::Select => Select.into(),
            VectorOp::Clamp => Clamp.into(),
            VectorOp::Convert => Convert.into(),
            VectorOp::BitcastConvert => BitcastConvert.into(),
            VectorOp::ReducePrecision(op) => op.clone().into(),
        };
        ElementFunction::new(&op, operands, result)
    }

    /// Returns the number of operands.
    pub(super) fn arity(&self) -> usize {
        match self {
            VectorOp::Unary(_) | VectorOp::Convert | VectorOp::BitcastConvert | VectorOp::ReducePrecision(_) => 1,
            VectorOp::Binary(_) | VectorOp::Compare(_) => 2,
            VectorOp::Select | VectorOp::Clamp => 3,
        }
    }
}

impl Instruction {
    /// Calls `f` with each register that the instruction itself reads or writes; the body of a loop is not visited.
    pub fn for_each_register_mut(&mut self, f: &mut dyn FnMut(&mut Register)) {
        match self {
            Instruction::Loop { .. } | Instruction::LoadIndex { .. } => {}
            Instruction::Load { to, .. } | Instruction::Splat { to, .. } | Instruction::Iota { to, .. } => f(to),
            Instruction::Store { from, .. } => f(from),
            Instruction::Choose { to, inside, outside, .. } => [inside, outside, to].into_iter().for_each(f),
            Instruction::Vector { to, operands, .. } => operands.iter_mut().chain([to]).for_each(f),
            Instruction::Accumulate { to, from, .. } => [from, to].into_iter().for_each(f),
            Instruction::MatMul { to, lhs, rhs } => [lhs, rhs, to].into_iter().for_each(f),
            Instruction::Reduce { register, .. } => f(register),
        }
    }
}
