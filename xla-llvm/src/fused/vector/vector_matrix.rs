//! Vector-matrix products with a row-major matrix: each row is multiplied by one element of the vector and added to the
//! sums, like the rows of a column reduction.

use xla_hlo::ops::{BinaryOp, Dot, DotOperandDims};
use xla_hlo::{Computation, ElementType, InstrId, Result};

use crate::elemental::{self, Value};
use crate::fused::contraction::matmul::MatmulSide;
use crate::fused::core::reduce::{accumulator, placed};
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::{AffineExpr, Index};
use crate::fused::tuning::vector::{LEAST_COLUMNS, LEAST_ROWS, STREAMED_BYTES};

/// Dot of a batch of vectors and matrices; the innermost matrix dimension is a result dimension.
#[derive(Clone)]
pub(crate) struct VectorMatrix<'m> {
    /// The dot instruction.
    pub id: InstrId,
    dot: &'m Dot,
    side: MatmulSide,
    /// Matrix operand of the dot.
    pub matrix: InstrId,
    vector: InstrId,
    ranks: [usize; 2],
    /// Extents of the matrix's dimensions.
    pub dims: Vec<usize>,
    /// Type of products and their sums.
    pub sum_type: ElementType,
}

impl<'m> VectorMatrix<'m> {
    /// Returns the dot as a vector-matrix product, if it is one and large enough that the read order of the matrix
    /// matters.
    pub fn new(graph: &'m Computation, id: InstrId, dot: &'m Dot) -> Option<VectorMatrix<'m>> {
        [MatmulSide::Right, MatmulSide::Left].into_iter().find_map(|side| VectorMatrix::of(graph, id, dot, side))
    }

    fn of(graph: &'m Computation, id: InstrId, dot: &'m Dot, side: MatmulSide) -> Option<VectorMatrix<'m>> {
        let array = |id: InstrId| graph[id].shape().as_array();
        let operands = [graph[id].operand(0), graph[id].operand(1)];
        let (matrix, vector) = (operands[side as usize], operands[side.other() as usize]);
        let (matrix_shape, vector_shape) = (array(matrix)?, array(vector)?);
        let ranks = [array(operands[0])?.rank(), array(operands[1])?.rank()];
        let dims = matrix_shape.dims().to_vec();
        let sum_type = accumulator(array(id)?.element_type());
        let product = VectorMatrix { id, dot, side, matrix, vector, ranks, dims, sum_type };
        let is_vector = product.roles(side.other()).free.iter().all(|&d| vector_shape.dims()[d] == 1);
        let roles = product.roles(side);
        let rows: usize = roles.contracting.iter().map(|&d| product.dims[d]).product();
        let columns = product.dims.iter().rposition(|&extent| extent > 1).filter(|d| roles.free.contains(d))?;
        let pays =
            rows >= LEAST_ROWS && product.dims[columns] >= LEAST_COLUMNS && matrix_shape.byte_size() >= STREAMED_BYTES;
        (is_vector && pays).then_some(product)
    }

    fn roles(&self, side: MatmulSide) -> DotOperandDims<'_> {
        match side {
            MatmulSide::Left => self.dot.dims.lhs(self.ranks[0]),
            MatmulSide::Right => self.dot.dims.rhs(self.ranks[1]),
        }
    }

    /// Returns the matrix dimensions that are summed.
    pub fn reduced(&self) -> Vec<usize> {
        self.roles(self.side).contracting.to_vec()
    }

    /// Returns the vector's element that corresponds to an element of the matrix.
    pub fn factor<'e, 'ctx>(&self, s: &mut FusedEmitter<'e, 'ctx, 'm>, at: &Index) -> Result<Value<'e, 'ctx>> {
        let (matrix, vector) = (self.roles(self.side), self.roles(self.side.other()));
        let [batch, sums] = [matrix.batch, matrix.contracting].map(|dims| picked(at, dims));
        let index = placed(
            self.ranks[self.side.other() as usize],
            [(vector.batch, &batch), (&[], &[]), (vector.contracting, &sums)],
        );
        let value = s.element(self.vector, &index)?;
        elemental::convert(s.emitter, value, self.sum_type)
    }

    /// Adds the product of `factor` and an element of the matrix to a sum.
    pub fn add<'e, 'ctx>(
        &self,
        s: &mut FusedEmitter<'e, 'ctx, 'm>,
        (sum, factor): (Value<'e, 'ctx>, Value<'e, 'ctx>),
        at: &Index,
    ) -> Result<Value<'e, 'ctx>> {
        let width = sum.width();
        let value = s.element(self.matrix, at)?.splat(width);
        let value = elemental::convert(s.emitter, value, self.sum_type)?;
        let product = elemental::binary(s.emitter, BinaryOp::Multiply, factor.splat(width), value)?;
        elemental::binary(s.emitter, BinaryOp::Add, sum, product)
    }

    /// Returns the index of the result for an element of the matrix.
    pub fn result_index(&self, at: &Index) -> Index {
        let matrix = self.roles(self.side);
        let ones = vec![AffineExpr::default(); self.roles(self.side.other()).free.len()];
        let (batch, free) = (picked(at, matrix.batch), picked(at, &matrix.free));
        match self.side {
            MatmulSide::Left => [batch, free, ones].concat(),
            MatmulSide::Right => [batch, ones, free].concat(),
        }
    }
}

fn picked(at: &Index, dims: &[usize]) -> Vec<AffineExpr> {
    dims.iter().map(|&d| at[d].clone()).collect()
}
