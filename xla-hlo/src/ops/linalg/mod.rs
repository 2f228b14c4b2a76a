//! Matrix decompositions and triangular systems of equations.
//!
//! Elements are floats or complex numbers. The last two dimensions are a matrix, the dimensions before them enumerate
//! matrices.

mod attributes;
mod eval;
pub(in crate::ops) mod field;
mod proto;
mod shape;
mod sharding;

pub(in crate::ops) use eval::{lower_factor, triangular_solve as evaluate_triangular_solve};
pub(in crate::ops) use shape::triangular_solve_of as triangular_solve_shape;

use super::{OpRules, Opcode, ReadAttributes, ShapeContext};
use crate::eval::Evaluator;
use crate::text::{AttributeReader, AttributeWriter};
use crate::{Literal, Result, Shape};

/// `cholesky`: the triangular factor of a positive definite matrix: `a = l l^H` with `l` lower triangular, or
/// `a = u^H u` with `u` upper triangular.
///
/// Only the corresponding triangle of the operand is read, and only the real parts of its diagonal. The other triangle
/// of the result is zero. If the matrix is not positive definite, both triangles of the result are NaN.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cholesky {
    /// Whether the factor is lower triangular.
    pub lower: bool,
}

impl ReadAttributes for Cholesky {
    fn read(_: Opcode, r: &mut AttributeReader<'_>) -> Result<Self> {
        Ok(Cholesky { lower: r.optional("lower")?.unwrap_or(false) })
    }
}

impl OpRules for Cholesky {
    fn opcode(&self) -> Opcode {
        Opcode::Cholesky
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::cholesky(cx)
    }

    fn write_attributes(&self, w: &mut AttributeWriter<'_>) {
        if self.lower {
            w.attribute("lower", &self.lower);
        }
    }

    fn evaluate(&self, _: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        eval::cholesky(self, operands, shape)
    }
}

/// Transformation of the matrix of a [`TriangularSolve`] before solving.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TransposeKind {
    /// The matrix is used unchanged.
    NoTranspose,
    /// The matrix is transposed.
    Transpose,
    /// The matrix is transposed and conjugated.
    Adjoint,
}

/// `triangular-solve`: the solution `x` of `op(a) x = b` or `x op(a) = b`, where `a` is triangular.
///
/// Only the corresponding triangle of operand 0, `a`, is read. A zero on its diagonal acts like a division by zero,
/// which results in infinities or NaN.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TriangularSolve {
    /// Whether the equation is `op(a) x = b`, with `op(a)` to the left of `x`.
    pub left_side: bool,
    /// Whether `a` is lower triangular.
    pub lower: bool,
    /// Whether the diagonal of `a` is assumed to be 1; its elements are not read then.
    pub unit_diagonal: bool,
    /// The transformation `op`.
    pub transpose_a: TransposeKind,
}

impl ReadAttributes for TriangularSolve {
    fn read(_: Opcode, r: &mut AttributeReader<'_>) -> Result<Self> {
        Ok(TriangularSolve {
            left_side: r.optional("left_side")?.unwrap_or(false),
            lower: r.optional("lower")?.unwrap_or(false),
            unit_diagonal: r.optional("unit_diagonal")?.unwrap_or(false),
            transpose_a: r.required("transpose_a")?,
        })
    }
}

impl OpRules for TriangularSolve {
    fn opcode(&self) -> Opcode {
        Opcode::TriangularSolve
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::triangular_solve(self, cx)
    }

    fn write_attributes(&self, w: &mut AttributeWriter<'_>) {
        for (name, set) in [("left_side", self.left_side), ("lower", self.lower), ("unit_diagonal", self.unit_diagonal)]
        {
            if set {
                w.attribute(name, &set);
            }
        }
        w.attribute("transpose_a", &self.transpose_a);
    }

    fn evaluate(&self, _: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        eval::triangular_solve(self, operands, shape)
    }
}
