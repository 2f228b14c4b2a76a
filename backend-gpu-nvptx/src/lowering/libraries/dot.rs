//! Dots for cuBLASLt.

use xla_hlo::ArrayShape;
use xla_hlo::ops::{Dot, DotOperandDims};

use super::{LEAST_WORK, RecognizedCall, precision};
use crate::program::library_call::LibraryCall;
use crate::program::library_call::matmul::{Matmul, Operand};

/// Rows, columns and steps of the sum below which tiles of the libraries' kernels stay empty.
const LEAST_EXTENT: usize = 16;

/// The call for lhs, rhs and result, if the library takes it and it is worth it.
pub(super) fn find(dot: &Dot, arrays: [&ArrayShape; 3], capability: (u32, u32)) -> Option<RecognizedCall> {
    let matmul = recognise(dot, arrays, capability)?;
    let Matmul { batch, m, n, k, .. } = matmul;
    let work = batch.checked_mul(m)?.checked_mul(n)?.checked_mul(k)?;
    if m.min(n).min(k) < LEAST_EXTENT || work < LEAST_WORK {
        return None;
    }
    Some(RecognizedCall { call: LibraryCall::Matmul(matmul), arrays: vec![None; 3], scaling: None })
}

/// A dot as a library call, however small; `None` if the library has none.
pub(super) fn recognise(dot: &Dot, [lhs, rhs, result]: [&ArrayShape; 3], capability: (u32, u32)) -> Option<Matmul> {
    let dims = dot.dims.operands([lhs.rank(), rhs.rank()]);
    let (left, right) = (MatmulSide::new(lhs, &dims[0])?, MatmulSide::new(rhs, &dims[1])?);
    let batch = dims[0].batch.iter().map(|&d| lhs.dims()[d]).product();
    let elements = [lhs, rhs, result].map(ArrayShape::element_type);
    let mut matmul = Matmul::dense(batch, [left.free, left.contracted, right.free], elements);
    // As rows of lhs go along what is summed, those of rhs go along its columns.
    matmul.lhs = left.operand(lhs, left.contracts_last);
    matmul.rhs = right.operand(rhs, !right.contracts_last);
    matmul.precision = precision(dot.algorithm, capability);
    matmul.check(capability).ok().map(|()| matmul)
}

/// An operand of a dot whose batch dimensions come first, and whose others are free ones and then contracted ones, or
/// the other way around, each in order.
struct MatmulSide {
    free: usize,
    contracted: usize,
    contracts_last: bool,
}

impl MatmulSide {
    fn new(shape: &ArrayShape, dims: &DotOperandDims<'_>) -> Option<MatmulSide> {
        let DotOperandDims { batch, free, contracting } = dims;
        let is_run = |dims: &[usize], from: usize| dims.iter().copied().eq(from..from + dims.len());
        let first = batch.len();
        let contracts_last = is_run(free, first) && is_run(contracting, first + free.len());
        let contracts_first = is_run(contracting, first) && is_run(free, first + contracting.len());
        if !is_run(batch, 0) || !(contracts_last || contracts_first) {
            return None;
        }
        let extent = |dims: &[usize]| dims.iter().map(|&d| shape.dims()[d]).product();
        Some(MatmulSide { free: extent(free), contracted: extent(contracting), contracts_last })
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
    use proptest::prelude::*;
    use xla_hlo::ElementType::F32;
    use xla_hlo::ops::DotDims;

    use super::*;
    use crate::lowering::libraries::reference::{agrees, program, root};

    fn call(lhs: &[usize], rhs: &[usize], dims: [&[usize]; 4]) -> Option<Matmul> {
        let [lhs_batch, rhs_batch, lhs_contracting, rhs_contracting] = dims.map(<[usize]>::to_vec);
        let dims = DotDims { lhs_batch, rhs_batch, lhs_contracting, rhs_contracting };
        let op = Dot { dims, precision: Vec::new(), algorithm: None };
        let shape = |dims: &[usize]| ArrayShape::new(F32, dims);
        match find(&op, [&shape(lhs), &shape(rhs), &shape(&[1])], (9, 0))?.call {
            LibraryCall::Matmul(matmul) => Some(matmul),
            LibraryCall::Convolution(_) | LibraryCall::Fourier(_) => None,
        }
    }

    #[test]
    fn either_side_may_be_transposed() {
        let plain = call(&[256, 128], &[128, 512], [&[], &[], &[1], &[0]]).expect("a plain matmul");
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
    fn small_matmuls_stay_with_kernels() {
        assert!(call(&[64, 64], &[64, 64], [&[], &[], &[1], &[0]]).is_none());
        assert!(call(&[64, 64, 64], &[64, 64, 64], [&[0], &[0], &[2], &[1]]).is_some(), "many small ones");
        assert!(call(&[1, 4096], &[4096, 4096], [&[], &[], &[1], &[0]]).is_none());
    }

    proptest! {
        /// Every recognised call computes the operation, with batches and several dimensions, too.
        #[test]
        fn the_librarys_matmul_is_the_operations(
            sizes in [1usize..4, 1usize..4, 1usize..4, 1usize..4],
            counts in [0usize..2, 1usize..3, 1usize..3, 1usize..3],
            turned in any::<[bool; 2]>(),
        ) {
            let list = |which: usize| vec![sizes[which]; counts[which]];
            let (batch, contracted) = (list(0), list(1));
            let side = |free: &[usize], contracts_first: bool| {
                let parts = if contracts_first { [&contracted[..], free] } else { [free, &contracted] };
                let first = batch.len() + if contracts_first { 0 } else { free.len() };
                ([&batch, parts[0], parts[1]].concat(), (first..first + contracted.len()).collect::<Vec<_>>())
            };
            let (lhs, rhs) = (side(&list(2), turned[0]), side(&list(3), turned[1]));
            let result = [&batch[..], &list(2), &list(3)].concat();
            let batches: Vec<usize> = (0..batch.len()).collect();
            let text = |dims: &[usize]| dims.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
            let module = program(&format!(
                "HloModule m\nENTRY main {{\n x = f32[{0}] parameter(0)\n w = f32[{1}] parameter(1)\n ROOT r = f32[{2}] dot(x, w), \
                 lhs_batch_dims={{{3}}}, rhs_batch_dims={{{3}}}, lhs_contracting_dims={{{4}}}, rhs_contracting_dims={{{5}}}\n}}",
                text(&lhs.0), text(&rhs.0), text(&result), text(&batches), text(&lhs.1), text(&rhs.1),
            ));
            let (op, arrays) = root(&module);
            let xla_hlo::Op::Dot(op) = op else { panic!("no dot") };
            let matmul = recognise(op, [arrays[0], arrays[1], arrays[2]], (9, 0)).expect("a matmul of matrices");
            let found = RecognizedCall { call: LibraryCall::Matmul(matmul), arrays: vec![None; 3], scaling: None };
            agrees(&module, &found);
        }
    }
}
