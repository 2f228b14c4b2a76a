//! Algorithms of a matmul, their requirements, and the 64 bytes in which programs keep them.

use super::descriptors::Preference;
use super::matmul::Matmul;
use super::{Blas, Status};
use crate::element::Element;
use crate::refusal::wrong;

/// First word of the bytes of an algorithm.
const MAGIC: u64 = 0x6a09_e667_f3bc_c908;

/// Alignment that the fast algorithms need for vector accesses.
const VECTOR: u32 = 16;

/// Workspace sizes are multiples of this.
const UNIT: u64 = 256;

/// `cublasLtMatmulAlgo_t`.
pub(super) type Bytes = [u64; 8];

/// Algorithm that the heuristic returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Algorithm {
    /// Value of [`Matmul::kind`] that the algorithm was chosen for.
    kind: u64,
    /// Bytes of workspace.
    pub workspace: u64,
    /// Alignments of A, B, C, D and the bias.
    pub alignments: [u32; 5],
}

/// Result of the heuristic: an algorithm, and whether it can be used.
pub(super) type Found = (Algorithm, Status);

impl Algorithm {
    pub fn to_bytes(self) -> Bytes {
        let [a, b, c, d, bias] = self.alignments.map(u64::from);
        [MAGIC, self.kind, self.workspace, a << 32 | b, c << 32 | d, bias, 0, !MAGIC]
    }

    /// Decodes an algorithm.
    pub fn of_bytes(bytes: Bytes) -> Blas<Algorithm> {
        let [magic, kind, workspace, ab, cd, bias, 0, end] = bytes else {
            return wrong(Status::INVALID_VALUE, "an algorithm that no question was answered with");
        };
        if (magic, end) != (MAGIC, !MAGIC) {
            return wrong(Status::INVALID_VALUE, "an algorithm that no question was answered with");
        }
        let halves = |both: u64| [(both >> 32) as u32, both as u32];
        let ([a, b], [c, d]) = (halves(ab), halves(cd));
        Ok(Algorithm { kind, workspace, alignments: [a, b, c, d, bias as u32] })
    }

    /// Checks that the algorithm was chosen for such a matmul.
    pub fn check(&self, matmul: &Matmul) -> Blas {
        match self.kind == matmul.kind() {
            true => Ok(()),
            false => wrong(Status::NOT_SUPPORTED, format!("an algorithm for other matmuls: {matmul:?}")),
        }
    }
}

/// Returns the algorithms for a supported matmul: split-K with partial sums in a workspace, one without a workspace,
/// and one for arrays that are aligned badly. Among them is one with an error state, as the heuristic of cuBLASLt may
/// return too.
pub(super) fn find(matmul: &Matmul, preference: &Preference) -> Blas<Vec<Found>> {
    let [m, n, _] = matmul.sizes()?;
    let kind = matmul.kind();
    let elements = matmul.layouts().map(|layout| layout.element.bytes() as u32);
    let bias_bytes = matmul.bias_element().bytes() as u32;
    let [a, b, c, d] = elements;
    let least = [a, b, c, d, bias_bytes];
    let given = given(matmul, preference);
    let is_enough = |needs: [u32; 5]| needs.iter().zip(given).all(|(needs, given)| *needs <= given);
    let fast = least.map(|bytes| bytes.max(VECTOR));
    let partial = (m * n).saturating_mul(8).saturating_mul(matmul.d.batch as u64);
    let workspace = partial.min(1 << 20).next_multiple_of(UNIT);
    let mut found = Vec::new();
    if is_enough(fast) {
        if workspace <= preference.most_workspace {
            found.push((Algorithm { kind, workspace, alignments: fast }, Status::SUCCESS));
        }
        found.push((Algorithm { kind, workspace: 0, alignments: fast }, Status::NOT_SUPPORTED));
        found.push((Algorithm { kind, workspace: 0, alignments: fast }, Status::SUCCESS));
    }
    let slow = match matmul.a.element {
        Element::F8E4M3 | Element::F8E5M2 => fast,
        Element::S8 => least.map(|bytes| bytes.max(4)),
        _ => least,
    };
    if slow != fast && is_enough(slow) {
        found.push((Algorithm { kind, workspace: 0, alignments: slow }, Status::SUCCESS));
    }
    Ok(found)
}

/// Returns the alignment of pointers and of each column of each matrix: the preferred one, reduced to that of the
/// strides. The bias pointer is part of the descriptor; if it is not set yet, it counts as aligned.
fn given(matmul: &Matmul, preference: &Preference) -> [u32; 5] {
    let power = |number: u64| 1 << number.trailing_zeros().min(8);
    let mut given = [0; 5];
    for (number, layout) in matmul.layouts().into_iter().enumerate() {
        let bytes = layout.element.bytes() as u64;
        let strides = [layout.leading as u64, if layout.batch > 1 { layout.stride as u64 } else { 0 }];
        let columns = strides.map(|stride| power(stride.wrapping_mul(bytes)));
        given[number] = preference.alignments[number].min(columns[0]).min(columns[1]);
    }
    given[4] = if matmul.operation.epilogue.has_bias { power(matmul.operation.bias) } else { 256 };
    given
}
