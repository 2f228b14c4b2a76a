//! Dots as calls of cuBLASLt.

use xla_hlo::ArrayShape;
use xla_hlo::ops::{Dot, DotOperandDims};

use super::{LEAST_WORK, RecognizedCall, precision};
use crate::program::library_call::LibraryCall;
use crate::program::library_call::matmul::{Matmul, Operand};

/// Minimum value of `M`, `N` and `K`. Below it, tiles of the library's kernels stay empty.
const LEAST_EXTENT: usize = 16;

/// Returns the call for lhs, rhs and result, if the library takes it and it pays off.
pub(super) fn find(dot: &Dot, arrays: [&ArrayShape; 3], capability: (u32, u32)) -> Option<RecognizedCall> {
    let matmul = recognise(dot, arrays, capability)?;
    let Matmul { batch, m, n, k, .. } = matmul;
    let work = batch.checked_mul(m)?.checked_mul(n)?.checked_mul(k)?;
    if m.min(n).min(k) < LEAST_EXTENT || work < LEAST_WORK {
        return None;
    }
    Some(RecognizedCall { call: LibraryCall::Matmul(matmul), arrays: vec![None; 3], scaling: None })
}

/// Recognises a dot of any size as a library call; `None` if the library has none.
pub(super) fn recognise(dot: &Dot, [lhs, rhs, result]: [&ArrayShape; 3], capability: (u32, u32)) -> Option<Matmul> {
    let dims = dot.dims.operands([lhs.rank(), rhs.rank()]);
    let (left, right) = (MatmulSide::new(lhs, &dims[0])?, MatmulSide::new(rhs, &dims[1])?);
    let elements = [lhs, rhs, result].map(ArrayShape::element_type);
    let extents = [left.free.extent, left.contracted.extent, right.free.extent];
    let mut matmul = Matmul::dense(left.batch.extent, extents, elements);
    // Without transposition, a row of lhs runs along `K`, and a row of rhs along `N`.
    matmul.lhs = left.operand(lhs, left.contracts_last);
    matmul.rhs = right.operand(rhs, !right.contracts_last);
    matmul.precision = precision(dot.algorithm, capability);
    matmul.check(capability).ok().map(|()| matmul)
}

/// Operand of a dot as a batch of matrices, in which either rows or columns are contiguous.
struct MatmulSide {
    batch: Run,
    free: Run,
    contracted: Run,
    contracts_last: bool,
}

/// Dimensions of an array that can be merged into one.
#[derive(Clone, Copy)]
struct Run {
    extent: usize,
    /// Distance between consecutive positions, in elements.
    stride: usize,
}

impl MatmulSide {
    fn new(shape: &ArrayShape, dims: &DotOperandDims<'_>) -> Option<MatmulSide> {
        let [batch, free, contracted] = [dims.batch, &dims.free, dims.contracting].map(|dims| Run::new(shape, dims));
        let (batch, free, contracted) = (batch?, free?, contracted?);
        let contracts_last = contracted.stride == 1 || contracted.extent == 1;
        let is_matrix = contracts_last || free.stride == 1 || free.extent == 1;
        is_matrix.then_some(MatmulSide { batch, free, contracted, contracts_last })
    }

    /// Describes the operand to the library; `is_plain` means that it is not transposed.
    fn operand(&self, shape: &ArrayShape, is_plain: bool) -> Operand {
        let (minor, major) = match self.contracts_last {
            true => (self.contracted, self.free),
            false => (self.free, self.contracted),
        };
        Operand {
            element: shape.element_type(),
            transposed: !is_plain,
            // The stride of a single row is unused, but must not be less than its length.
            row_stride: major.stride.max(minor.extent),
            batch_stride: self.batch.stride,
        }
    }
}

impl Run {
    /// Merges dimensions; `None` if another dimension is between them, or if their order differs.
    fn new(shape: &ArrayShape, dims: &[usize]) -> Option<Run> {
        let stride =
            |d: usize| shape.dims()[d + 1..].iter().fold(1, |product: usize, &size| product.saturating_mul(size));
        let mut run = Run { extent: 1, stride: 1 };
        for &d in dims.iter().rev().filter(|&&d| shape.dims()[d] != 1) {
            if run.extent == 1 {
                run.stride = stride(d);
            } else if stride(d) != run.extent.saturating_mul(run.stride) {
                return None;
            }
            run.extent = run.extent.saturating_mul(shape.dims()[d]);
        }
        Some(run)
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
    fn batches_lie_anywhere_but_in_rows_and_dimensions_are_merged() {
        let matmul = call(&[3, 4, 64, 32], &[3, 32, 2, 1024], [&[0], &[0], &[3], &[1]]).expect("a batch");
        assert_eq!((matmul.batch, matmul.m, matmul.k, matmul.n), (3, 256, 32, 2048));
        assert_eq!((matmul.lhs.batch_stride, matmul.rhs.batch_stride), (8192, 65536));
        let heads = call(&[64, 3, 128], &[128, 3, 512], [&[1], &[1], &[2], &[0]]).expect("batches in the middle");
        assert_eq!((heads.batch, heads.m, heads.k, heads.n), (3, 64, 128, 512));
        assert_eq!((heads.lhs.row_stride, heads.lhs.batch_stride), (384, 128));
        assert_eq!((heads.rhs.row_stride, heads.rhs.batch_stride), (1536, 512));
        assert!(call(&[64, 128, 3], &[3, 128, 512], [&[2], &[0], &[1], &[1]]).is_none(), "a batch in rows");
        assert!(call(&[2, 64, 3, 128], &[3, 2, 128, 512], [&[2, 0], &[0, 1], &[3], &[2]]).is_none(), "apart");
    }

    #[test]
    fn small_matmuls_stay_with_kernels() {
        assert!(call(&[64, 64], &[64, 64], [&[], &[], &[1], &[0]]).is_none());
        assert!(call(&[64, 64, 64], &[64, 64, 64], [&[0], &[0], &[2], &[1]]).is_some(), "many small ones");
        assert!(call(&[1, 4096], &[4096, 4096], [&[], &[], &[1], &[0]]).is_none());
    }

    proptest! {
        /// Every recognised call computes the operation, also with batches and several dimensions.
        #[test]
        fn the_librarys_matmul_is_the_operations(
            sizes in [1usize..4, 1usize..4, 1usize..4, 1usize..4],
            counts in [0usize..2, 1usize..3, 1usize..3, 1usize..3],
            order in [0usize..4, 0usize..4],
        ) {
            let list = |which: usize| vec![sizes[which]; counts[which]];
            let (batch, contracted) = (list(0), list(1));
            // Dimensions of one operand in some order, and the positions of its batch and contracting dimensions.
            let side = |free: &[usize], order: usize| {
                let (b, f, c) = (&batch[..], free, &contracted[..]);
                let (dims, first, contracting) = match order {
                    0 => ([b, f, c], 0, b.len() + f.len()),
                    1 => ([b, c, f], 0, b.len()),
                    2 => ([f, b, c], f.len(), f.len() + b.len()),
                    _ => ([c, b, f], c.len(), 0),
                };
                (dims.concat(), [first..first + b.len(), contracting..contracting + c.len()].map(Vec::from_iter))
            };
            let (lhs, rhs) = (side(&list(2), order[0]), side(&list(3), order[1]));
            let result = [&batch[..], &list(2), &list(3)].concat();
            let text = |dims: &[usize]| dims.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
            let module = program(&format!(
                "HloModule m\nENTRY main {{\n x = f32[{0}] parameter(0)\n w = f32[{1}] parameter(1)\n \
                 ROOT r = f32[{2}] dot(x, w), \
                 lhs_batch_dims={{{3}}}, rhs_batch_dims={{{4}}}, lhs_contracting_dims={{{5}}}, rhs_contracting_dims={{{6}}}\n}}",
                text(&lhs.0), text(&rhs.0), text(&result),
                text(&lhs.1[0]), text(&rhs.1[0]), text(&lhs.1[1]), text(&rhs.1[1]),
            ));
            let (op, arrays) = root(&module);
            let xla_hlo::Op::Dot(op) = op else { panic!("no dot") };
            let matmul = recognise(op, [arrays[0], arrays[1], arrays[2]], (9, 0)).expect("a matmul of matrices");
            let found = RecognizedCall { call: LibraryCall::Matmul(matmul), arrays: vec![None; 3], scaling: None };
            agrees(&module, &found);
        }
    }
}
