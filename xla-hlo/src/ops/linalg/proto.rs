//! Matrix decompositions and triangular solves in protobuf.

use super::{Cholesky, TransposeKind, TriangularSolve};
use crate::proto::messages::{CholeskyOptions, TriangularSolveOptions};
use crate::proto::numbers::required;
use crate::proto::{ProtoAttributes, ProtoNumber, ProtoReader, ProtoWriter, proto_numbers};
use crate::{Opcode, Result};

proto_numbers! { TransposeKind: 1 => NoTranspose, 2 => Transpose, 3 => Adjoint }

impl ProtoAttributes for Cholesky {
    fn read_proto(_: Opcode, r: &mut ProtoReader<'_>) -> Result<Self> {
        Ok(Cholesky { lower: r.message.cholesky_options.as_ref().is_some_and(|options| options.lower) })
    }

    fn write_proto(&self, w: &mut ProtoWriter<'_>) -> Result<()> {
        w.message.cholesky_options = Some(CholeskyOptions { lower: self.lower });
        Ok(())
    }
}

impl ProtoAttributes for TriangularSolve {
    fn read_proto(_: Opcode, r: &mut ProtoReader<'_>) -> Result<Self> {
        let options = required("triangular_solve_options", r.message.triangular_solve_options.as_ref())?;
        Ok(TriangularSolve {
            left_side: options.left_side,
            lower: options.lower,
            unit_diagonal: options.unit_diagonal,
            transpose_a: ProtoReader::number("transpose_a", options.transpose_a)?,
        })
    }

    fn write_proto(&self, w: &mut ProtoWriter<'_>) -> Result<()> {
        w.message.triangular_solve_options = Some(TriangularSolveOptions {
            left_side: self.left_side,
            lower: self.lower,
            unit_diagonal: self.unit_diagonal,
            transpose_a: self.transpose_a.number(),
        });
        Ok(())
    }
}
