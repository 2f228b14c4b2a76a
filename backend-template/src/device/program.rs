//! Instruction set of the core.

use std::ops::RangeInclusive;

use xla_hlo::ops::{
    Binary, BinaryOp, BitcastConvert, Clamp, Compare, Convert, ElementFunction, Op, ReducePrecision, Select, Unary,
    UnaryOp,
};
use xla_hlo::{ElementType, Result, Scalar};

use super::tensor::TensorDescriptor;

/// A register: one tile of elements of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Register(pub usize);

/// An index register: the counter of a loop, or a number read from memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Index(pub usize);

/// A sum of index registers with coefficients, and a constant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Affine {
    /// The constant.
    pub constant: i64,
    /// Index registers and their factors.
    pub terms: Vec<(Index, i64)>,
}

/// A number for each lane of a tile: `start + row * per_row + column * per_column`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Coordinate {
    /// At the first lane.
    pub start: Affine,
    /// From one row of lanes to the next.
    pub per_row: i64,
    /// From one column of lanes to the next.
    pub per_column: i64,
}

/// Element of a tensor for each lane. Lanes outside of the tensor load zero bits, and are not stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum View {
    /// A coordinate for each dimension.
    Window(Vec<Coordinate>),
    /// An index in row-major order.
    Flat(Coordinate),
}

/// A function of the vector unit, lane by lane, with the arithmetic of HLO.
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

/// One instruction. Every register has one element type, which the program declares.
#[derive(Clone, Debug, PartialEq)]
pub enum Instruction {
    /// Runs `body` with `index` 0, `step`, 2 `step` ... below `extent`.
    Loop {
        /// The counter.
        index: Index,
        /// One past the last.
        extent: usize,
        /// At least 1.
        step: usize,
        /// The body.
        body: Vec<Instruction>,
    },
    /// Reads an integer from memory; 0 from outside of the tensor.
    LoadIndex {
        /// Destination.
        index: Index,
        /// From which tensor.
        tensor: usize,
        /// Element, a coordinate for each dimension.
        at: Vec<Affine>,
        /// Bounds that the number is clamped to.
        range: RangeInclusive<i64>,
    },
    /// DMA from memory.
    Load {
        /// Destination.
        to: Register,
        /// From which tensor.
        tensor: usize,
        /// Elements.
        view: View,
    },
    /// DMA to memory. Numbers wider than the element type are rounded or wrapped.
    Store {
        /// Source.
        from: Register,
        /// To which tensor.
        tensor: usize,
        /// Elements.
        view: View,
    },
    /// The same number in every lane.
    Splat {
        /// Destination.
        to: Register,
        /// The number.
        value: Scalar,
    },
    /// The coordinate as a number.
    Iota {
        /// Destination.
        to: Register,
        /// The numbers.
        coordinate: Coordinate,
    },
    /// Lanes of `inside` where every coordinate is at least 0 and below its bound, else of `outside`.
    Choose {
        /// Destination.
        to: Register,
        /// Taken in the bounds.
        inside: Register,
        /// Taken elsewhere.
        outside: Register,
        /// Coordinates and bounds.
        bounds: Vec<(Coordinate, usize)>,
    },
    /// The vector unit.
    Vector {
        /// Destination.
        to: Register,
        /// The operation.
        op: VectorOp,
        /// Operands.
        operands: Vec<Register>,
    },
    /// `to = to op from`, lane by lane. Floats in `to` are kept wide, as [`Instruction::MatMul`] keeps them.
    Accumulate {
        /// The accumulator.
        to: Register,
        /// The operation.
        op: BinaryOp,
        /// The summand.
        from: Register,
    },
    /// The accumulator's lanes put together: each lane gets the value of its row (`columns`), of its column (`rows`),
    /// or of all.
    Reduce {
        /// The accumulator.
        register: Register,
        /// The operation.
        op: BinaryOp,
        /// Whether rows are put together.
        rows: bool,
        /// Whether columns are put together.
        columns: bool,
    },
    /// `to[r][c] += lhs[r][k] * rhs[k][c]` for `k` below [`TILE_ROWS`](super::TILE_ROWS). The accumulator is wide:
    /// 64-bit floats, integers modulo 2^64; truth values are or-ed. Operands may have other types of the accumulator's
    /// kind.
    MatMul {
        /// The accumulator.
        to: Register,
        /// Left; of its columns the first [`TILE_ROWS`](super::TILE_ROWS) are used.
        lhs: Register,
        /// Right.
        rhs: Register,
    },
}

/// A program for the core, not yet checked.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// Tensors bound at launch, in this order.
    pub tensors: Vec<TensorDescriptor>,
    /// The element type of each register.
    pub registers: Vec<ElementType>,
    /// Number of index registers.
    pub indices: usize,
    /// The instructions.
    pub body: Vec<Instruction>,
}

impl Affine {
    /// A number.
    pub fn constant(constant: i64) -> Affine {
        Affine { constant, terms: Vec::new() }
    }

    /// The value of an index register.
    pub fn of(index: Index) -> Affine {
        Affine { constant: 0, terms: vec![(index, 1)] }
    }

    /// The value, given those of the index registers.
    pub(super) fn value(&self, indices: &[i64]) -> i64 {
        self.terms
            .iter()
            .fold(self.constant, |sum, &(index, factor)| sum.wrapping_add(indices[index.0].wrapping_mul(factor)))
    }
}

impl Coordinate {
    /// The same number in every lane.
    pub fn constant(number: i64) -> Coordinate {
        Coordinate { start: Affine::constant(number), ..Coordinate::default() }
    }

    /// The value of an index register in every lane.
    pub fn of(index: Index) -> Coordinate {
        Coordinate { start: Affine::of(index), ..Coordinate::default() }
    }

    /// From one row of lanes to the next, so much more.
    #[must_use]
    pub fn per_row(self, per_row: i64) -> Coordinate {
        Coordinate { per_row, ..self }
    }

    /// From one column of lanes to the next, so much more.
    #[must_use]
    pub fn per_column(self, per_column: i64) -> Coordinate {
        Coordinate { per_column, ..self }
    }

    /// `self * factor + summand`.
    #[must_use]
    pub fn scaled(mut self, factor: i64, summand: i64) -> Coordinate {
        self.start.constant = self.start.constant.wrapping_mul(factor).wrapping_add(summand);
        self.start.terms.iter_mut().for_each(|term| term.1 = term.1.wrapping_mul(factor));
        self.per_row = self.per_row.wrapping_mul(factor);
        self.per_column = self.per_column.wrapping_mul(factor);
        self
    }

    /// The sum of both.
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
    /// The function for operands of those types; an error where it has none.
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

    /// Number of operands.
    pub(super) fn arity(&self) -> usize {
        match self {
            VectorOp::Unary(_) | VectorOp::Convert | VectorOp::BitcastConvert | VectorOp::ReducePrecision(_) => 1,
            VectorOp::Binary(_) | VectorOp::Compare(_) => 2,
            VectorOp::Select | VectorOp::Clamp => 3,
        }
    }
}

impl Instruction {
    /// Calls `f` with each register that it reads and writes itself.
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
