//! Matrix decompositions and triangular systems of equations.
//!
//! Elements are floats or complex numbers; the last two dimensions are a matrix, those before them number matrices.

mod attributes;
mod eval;
pub(in crate::ops) mod field;
mod proto;
mod shape;
#[cfg(test)]
mod tests;

pub(in crate::ops) use eval::{lower_factor, triangular_solve as evaluate_triangular_solve};
pub(in crate::ops) use shape::triangular_solve_of as triangular_solve_shape;

use super::{OpRules, Opcode, ReadAttributes, ShapeContext};
use crate::eval::Evaluator;
use crate::text::{AttributeReader, AttributeWriter};
use crate::{Literal, Result, Shape};

/// The triangular factor of a positive definite matrix: `a = l l^H` with `l` lower triangular, or `a = u^H u` with `u`
/// upper triangular.
///
/// Only that triangle of the operand is read, and of its diagonal only the real parts; the other triangle of the result
/// is zero. The result for a matrix that is not positive definite is NaN in both triangles.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cholesky {
    /// Whether the lower triangle is meant.
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
    /// Nothing.
    NoTranspose,
    /// It is transposed.
    Transpose,
    /// It is transposed and conjugated.
    Adjoint,
}

/// The `x` with `op(a) x = b`, or `x op(a) = b`, where `a` is triangular.
///
/// Only that triangle of operand 0, `a`, is read. A zero on its diagonal acts as in a division: infinities,
/// NaN.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TriangularSolve {
    /// Whether `op(a)` stands left of `x`.
    pub left_side: bool,
    /// Whether `a` is lower triangular.
    pub lower: bool,
    /// Whether the diagonal of `a` is taken to be 1, whatever stands there.
    pub unit_diagonal: bool,
    /// The `op` of `op(a)`.
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
