//! Contractions that NVIDIA's libraries compute where they are installed, and what must be said of them.

use xla_hlo::ArrayShape;
use xla_hlo::ops::{Dot, DotDims};

use crate::cuda::library::LibraryCall;
use crate::cuda::library::matmul::{Matmul, Operand};

/// Multiplications from which on a library is worth its call.
const LEAST_WORK: usize = 1 << 21;
/// Rows, columns and products below which tiles of the libraries' kernels stay empty.
const LEAST_EXTENT: usize = 16;

/// The call that computes a dot of row-major arrays on a GPU of that compute capability, if a library takes it and it is worth it. Its
/// arrays: the two operands and the result.
pub(crate) fn dot(
    dot: &Dot,
    lhs: &ArrayShape,
    rhs: &ArrayShape,
    result: &ArrayShape,
    capability: (u32, u32),
) -> Option<LibraryCall> {
    let d = &dot.dims;
    let left = Side::new(lhs, &d.lhs_batch, &d.lhs_contracting)?;
    let right = Side::new(rhs, &d.rhs_batch, &d.rhs_contracting)?;
    let extents = |shape: &ArrayShape, dims: &[usize]| dims.iter().map(|&d| shape.dims()[d]).product::<usize>();
    let (m, n, k) = (left.free, right.free, left.contracted);
    if m.min(n).min(k) < LEAST_EXTENT || m.checked_mul(n)?.checked_mul(k)? < LEAST_WORK {
        return None;
    }
    let batch = extents(lhs, &d.lhs_batch);
    let elements = [lhs, rhs, result].map(ArrayShape::element_type);
    let mut matmul = Matmul::dense(batch, [m, k, n], elements);
    // As rows of lhs go along what is summed, those of rhs go along its columns.
    matmul.lhs = left.operand(lhs, left.contracts_last);
    matmul.rhs = right.operand(rhs, !right.contracts_last);
    matmul.check(capability).ok()?;
    Some(LibraryCall::Matmul(matmul))
}

/// An operand of a dot whose batch dimensions come first, and whose others are free ones and then contracted ones, or the other way
/// around, each in order.
struct Side {
    free: usize,
    contracted: usize,
    contracts_last: bool,
}

impl Side {
    fn new(shape: &ArrayShape, batch: &[usize], contracting: &[usize]) -> Option<Side> {
        let free = DotDims::free(shape.rank(), batch, contracting);
        let is_run = |dims: &[usize], from: usize| dims.iter().copied().eq(from..from + dims.len());
        let first = batch.len();
        let contracts_last = is_run(&free, first) && is_run(contracting, first + free.len());
        let contracts_first = is_run(contracting, first) && is_run(&free, first + contracting.len());
        if !is_run(batch, 0) || !(contracts_last || contracts_first) {
            return None;
        }
        let extent = |dims: &[usize]| dims.iter().map(|&d| shape.dims()[d]).product();
        Some(Side { free: extent(&free), contracted: extent(contracting), contracts_last })
    }

    /// As the library knows it; `is_plain` if rows follow each other as they should.
    fn operand(&self, shape: &ArrayShape, is_plain: bool) -> Operand {
        Operand {
            element: shape.element_type(),
            transposed: !is_plain,
            row_stride: if self.contracts_last { self.contracted } else { self.free },
            batch_stride: self.free * self.contracted,
        }
    }
}

#[cfg(test)]
mod tests {
    use xla_hlo::ElementType::F32;

    use super::*;

    fn call(lhs: &[usize], rhs: &[usize], dims: [&[usize]; 4]) -> Option<Matmul> {
        let [lhs_batch, rhs_batch, lhs_contracting, rhs_contracting] = dims.map(<[usize]>::to_vec);
        let dims = DotDims { lhs_batch, rhs_batch, lhs_contracting, rhs_contracting };
        let op = Dot { dims, precision: Vec::new(), algorithm: None };
        let shape = |dims: &[usize]| ArrayShape::new(F32, dims);
        match dot(&op, &shape(lhs), &shape(rhs), &shape(&[1]), (9, 0)) {
            Some(LibraryCall::Matmul(matmul)) => Some(matmul),
            _ => None,
        }
    }

    #[test]
    fn either_side_may_be_transposed() {
        let plain = call(&[256, 128], &[128, 512], [&[], &[], &[1], &[0]]).expect("a plain product");
        assert_eq!((plain.m, plain.k, plain.n, plain.batch), (256, 128, 512, 1));
        assert!(!plain.lhs.transposed && !plain.rhs.transposed);
        assert_eq!((plain.lhs.row_stride, plain.rhs.row_stride), (128, 512));
        let turned = call(&[128, 256], &[512, 128], [&[], &[], &[0], &[1]]).expect("both transposed");
        assert_eq!((turned.m, turned.k, turned.n), (256, 128, 512));
        assert!(turned.lhs.transposed && turned.rhs.transposed);
        assert_eq!((turned.lhs.row_stride, turned.rhs.row_stride), (256, 128));
    }

    #[test]
    fn batches_come_first_and_dimensions_are_merged() {
        let matmul = call(&[3, 4, 64, 32], &[3, 32, 2, 1024], [&[0], &[0], &[3], &[1]]).expect("a batch");
        assert_eq!((matmul.batch, matmul.m, matmul.k, matmul.n), (3, 256, 32, 2048));
        assert_eq!((matmul.lhs.batch_stride, matmul.rhs.batch_stride), (8192, 65536));
        assert!(call(&[64, 3, 128], &[3, 128, 512], [&[1], &[0], &[2], &[1]]).is_none(), "a batch in the middle");
    }

    #[test]
    fn small_products_stay_with_kernels() {
        assert!(call(&[64, 64], &[64, 64], [&[], &[], &[1], &[0]]).is_none());
        assert!(call(&[1, 4096], &[4096, 4096], [&[], &[], &[1], &[0]]).is_none());
    }
}
