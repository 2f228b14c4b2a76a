//! Matmul: its descriptor with the layouts of its matrices, and checks that they match.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::descriptors::{MatmulDescriptor, MatrixLayout, Transpose};
use super::{Blas, Status};
use crate::element::Element;
use crate::refusal::wrong;

/// Batched matmul: `D = epilogue(alpha op(A) op(B) + beta C)`.
#[derive(Clone, Debug)]
pub(super) struct Matmul {
    pub operation: MatmulDescriptor,
    pub a: MatrixLayout,
    pub b: MatrixLayout,
    pub c: MatrixLayout,
    pub d: MatrixLayout,
}

/// Largest dimension of a matrix that the library's kernels support.
const LARGEST: u64 = i32::MAX as u64;

impl Matmul {
    pub fn layouts(&self) -> [&MatrixLayout; 4] {
        [&self.a, &self.b, &self.c, &self.d]
    }

    /// Returns `m`, `n` and `k`, if all matrices agree on them.
    pub fn sizes(&self) -> Blas<[u64; 3]> {
        let turned = |layout: &MatrixLayout, turn| match turn {
            Transpose::None => (layout.rows, layout.columns),
            Transpose::Transposed | Transpose::Conjugated => (layout.columns, layout.rows),
        };
        let ((m, k), (inner, n)) = (turned(&self.a, self.operation.turn_a), turned(&self.b, self.operation.turn_b));
        let result = |layout: &MatrixLayout| (layout.rows, layout.columns) == (m, n);
        if k != inner || !result(&self.c) || !result(&self.d) {
            return wrong(Status::INVALID_VALUE, format!("sizes of matrices do not fit to each other: {self:?}"));
        }
        Ok([m, n, k])
    }

    /// Checks that the matmul is valid, whether or not the library supports it.
    pub fn check(&self) -> Blas {
        let sizes = self.sizes()?;
        let bad = |why: &str| wrong(Status::INVALID_VALUE, format!("{why}: {self:?}"));
        if sizes.contains(&0) {
            return bad("an empty matmul");
        }
        if sizes.iter().any(|size| *size > LARGEST) {
            return wrong(Status::NOT_SUPPORTED, format!("a matrix that is too large: {self:?}"));
        }
        for layout in self.layouts() {
            if u64::try_from(layout.leading).is_ok_and(|leading| leading < layout.rows) || layout.leading < 1 {
                return bad("a leading dimension that is less than the rows");
            }
            if layout.batch != self.d.batch {
                return bad("batches of different sizes");
            }
            if layout.stride < 0 {
                return bad("a negative stride of a batch");
            }
        }
        // Columns of results may be interleaved, but results must not overlap.
        if self.d.batch > 1 && (self.d.stride as u64) < self.d.rows {
            return bad("results that overlap");
        }
        Ok(())
    }

    /// Returns the type of the bias's elements.
    pub fn bias_element(&self) -> Element {
        let same = self.d.element;
        self.operation.bias_element.unwrap_or(if same == Element::S8 { self.operation.scale } else { same })
    }

    /// Returns a hash of the properties that an algorithm was chosen for: all but sizes and pointers.
    pub fn kind(&self) -> u64 {
        let MatmulDescriptor { compute, scale, turn_a, turn_b, epilogue, .. } = self.operation;
        let mut hasher = DefaultHasher::new();
        (compute, scale, turn_a, turn_b, epilogue, self.layouts().map(|layout| layout.element)).hash(&mut hasher);
        hasher.finish()
    }
}
