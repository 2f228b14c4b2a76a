//! Matrix multiplication as plain data, and the check whether cuBLASLt takes it.

use serde::{Deserialize, Serialize};
use xla_hlo::{ElementType, Error, Result};

/// Matrix multiplication `result = activation(alpha * lhs x rhs + addend + bias)`, for a batch of row-major matrices.
///
/// The arrays of a call are, in this order: lhs, rhs, the addend if there is one, the bias if there is one, the result.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Matmul {
    /// Number of matrices; equal for all arrays.
    pub batch: usize,
    /// Number of rows of lhs and of the result.
    pub m: usize,
    /// Number of columns of rhs and of the result.
    pub n: usize,
    /// Number of columns of lhs and of rows of rhs.
    pub k: usize,
    /// Layout of the `m x k` matrix, or of `k x m` if it is transposed.
    pub lhs: Operand,
    /// Layout of the `k x n` matrix, or of `n x k` if it is transposed.
    pub rhs: Operand,
    /// Layout of the `m x n` matrix, which is never transposed. The addend has the same layout.
    pub result: Operand,
    /// Precision of f32 operands.
    pub precision: Precision,
    /// Factor of the product, as the bits of an f64.
    pub alpha: u64,
    /// Whether an addend with the result's layout is added, which may be the result itself.
    pub has_addend: bool,
    /// Whether a bias of `n` elements, of the result's element type, is added to each row.
    pub has_bias: bool,
    /// Activation, applied last.
    pub activation: Activation,
}

/// Memory layout of a batch of matrices. Strides are in elements.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Operand {
    /// Element type.
    #[serde(with = "super::element_type")]
    pub element: ElementType,
    /// Whether columns are contiguous instead of rows.
    pub transposed: bool,
    /// Distance between rows (between columns if transposed), at least the length of a row.
    pub row_stride: usize,
    /// Distance between matrices. 0 broadcasts one matrix to the whole batch, which is invalid for a result.
    pub batch_stride: usize,
}

/// Precision of f32 operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub(crate) enum Precision {
    /// Full f32 precision.
    #[default]
    Exact,
    /// Factors rounded to the ten mantissa bits of TF32, on tensor cores.
    Tf32,
}

/// Activation of each element of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub(crate) enum Activation {
    /// No activation.
    #[default]
    None,
    /// `max(x, 0)`, where NaN becomes 0 as in the library.
    Relu,
    /// `gelu`, approximated by `tanh`.
    GeluTanh,
}

/// Types in which a matmul is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    F32,
    Tf32,
    F64,
    C64,
    C128,
    S32,
}

impl Matmul {
    /// Returns the matmul of dense row-major matrices, without an epilogue.
    #[cfg(any(test, feature = "compile"))]
    pub fn dense(batch: usize, [m, k, n]: [usize; 3], elements: [ElementType; 3]) -> Matmul {
        let [lhs, rhs, result] =
            [(m, k), (k, n), (m, n)].map(|(rows, columns)| (columns, rows.saturating_mul(columns)));
        let operand =
            |element, (row_stride, batch_stride)| Operand { element, transposed: false, row_stride, batch_stride };
        Matmul {
            batch,
            m,
            n,
            k,
            lhs: operand(elements[0], lhs),
            rhs: operand(elements[1], rhs),
            result: operand(elements[2], result),
            precision: Precision::Exact,
            alpha: 1f64.to_bits(),
            has_addend: false,
            has_bias: false,
            activation: Activation::None,
        }
    }

    /// Computes the product by its definition, as reference for the libraries and our kernels.
    #[cfg(test)]
    pub fn by_loops(&self, lhs: &[f64], rhs: &[f64], result: &mut [f64]) {
        let at = |operand: &Operand, z: usize, row: usize, column: usize| {
            let (row, column) = if operand.transposed { (column, row) } else { (row, column) };
            z * operand.batch_stride + row * operand.row_stride + column
        };
        for z in 0..self.batch {
            for (i, j) in (0..self.m).flat_map(|i| (0..self.n).map(move |j| (i, j))) {
                let term = |l| lhs[at(&self.lhs, z, i, l)] * rhs[at(&self.rhs, z, l, j)];
                result[at(&self.result, z, i, j)] = (0..self.k).map(term).sum();
            }
        }
    }

    /// Returns the number of arrays of a call.
    pub fn arrays(&self) -> usize {
        3 + usize::from(self.has_addend) + usize::from(self.has_bias)
    }

    /// Whether the result has no elements.
    pub fn is_empty(&self) -> bool {
        self.batch == 0 || self.m == 0 || self.n == 0
    }

    /// Checks that the library takes the matmul on a GPU of this compute capability. [`Error::Unimplemented`] states
    /// the reason otherwise.
    pub fn check(&self, capability: (u32, u32)) -> Result<()> {
        let refuse = |why: String| Err(Error::unimplemented(format!("cuBLASLt does not support this matmul: {why}")));
        let arithmetic = self.arithmetic()?;
        let (major, minor) = self.oldest_capability();
        if capability < (major, minor) {
            return refuse(format!("its element type {} requires sm_{major}{minor}", self.lhs.element));
        }
        if f64::from_bits(self.alpha) == 0.0 {
            return refuse("its factor is 0, for which the library ignores NaN and infinities".to_string());
        }
        if self.result.transposed || (self.result.batch_stride == 0 && self.batch > 1) {
            return refuse("its results are transposed or overlap".to_string());
        }
        if self.k == 0 {
            return refuse("its contracted dimension is empty".to_string());
        }
        if i32::try_from(self.batch).is_err() {
            return refuse(format!("its batch of {} matrices is too large", self.batch));
        }
        let plain = !self.has_bias && self.activation == Activation::None;
        let is_float = matches!(arithmetic, Arithmetic::F32 | Arithmetic::Tf32);
        if !plain && (!is_float || is_f8(self.lhs.element)) {
            return refuse(format!(
                "it has a bias or an activation, which element type {} does not support",
                self.lhs.element
            ));
        }
        let unit = self.unit();
        let tensor_cores_alone = unit > 1;
        if tensor_cores_alone && (self.lhs.transposed || !self.rhs.transposed) {
            return refuse(format!(
                "element type {} requires the contracted dimension last in both operands",
                self.lhs.element
            ));
        }
        let sizes = [self.n, self.m, self.k, self.lhs.row_stride, self.rhs.row_stride, self.result.row_stride];
        let batch_strides = [&self.lhs, &self.rhs, &self.result].map(|operand| operand.batch_stride);
        let is_uneven = |numbers: &[usize]| numbers.iter().any(|number| number % unit != 0);
        if tensor_cores_alone && (is_uneven(&sizes) || self.batch > 1 && is_uneven(&batch_strides)) {
            return refuse(format!(
                "element type {} requires sizes and strides that are multiples of {unit}",
                self.lhs.element
            ));
        }
        if arithmetic == Arithmetic::S32 && f64::from_bits(self.alpha) != 1.0 {
            return refuse("its element type is an integer, for which the library has no factor".to_string());
        }
        Ok(())
    }

    /// Returns the oldest compute capability whose tensor cores support the element type, or that needs none.
    fn oldest_capability(&self) -> (u32, u32) {
        match self.lhs.element {
            element if is_f8(element) => (8, 9),
            ElementType::BF16 => (8, 0),
            ElementType::S8 => (7, 5),
            _ => (7, 0),
        }
    }

    /// Returns the required divisor of all sizes if the library only has tensor core kernels; otherwise 1.
    fn unit(&self) -> usize {
        match self.lhs.element {
            element if is_f8(element) => 16,
            ElementType::S8 => 4,
            _ => 1,
        }
    }

    /// Returns the types in which the matmul is computed.
    pub(crate) fn arithmetic(&self) -> Result<Arithmetic> {
        use ElementType::{BF16, C64, C128, F8E4M3FN, F8E5M2, F16, F32, F64, S8, S32};
        let f32 = if self.precision == Precision::Tf32 { Arithmetic::Tf32 } else { Arithmetic::F32 };
        match (self.lhs.element, self.rhs.element, self.result.element) {
            (F16, F16, F16 | F32) | (BF16, BF16, BF16 | F32) => Ok(Arithmetic::F32),
            (F8E4M3FN, F8E4M3FN | F8E5M2, F16 | BF16 | F32) => Ok(Arithmetic::F32),
            (F8E5M2, F8E4M3FN, F16 | BF16 | F32) => Ok(Arithmetic::F32),
            (F32, F32, F32) => Ok(f32),
            (F64, F64, F64) => Ok(Arithmetic::F64),
            (C64, C64, C64) => Ok(Arithmetic::C64),
            (C128, C128, C128) => Ok(Arithmetic::C128),
            (S8, S8, S32) => Ok(Arithmetic::S32),
            (lhs, rhs, result) => Err(Error::unimplemented(format!(
                "cuBLASLt does not support this matmul: it cannot multiply {lhs} and {rhs} to {result}"
            ))),
        }
    }
}

fn is_f8(element: ElementType) -> bool {
    matches!(element, ElementType::F8E4M3FN | ElementType::F8E5M2)
}

#[cfg(test)]
mod tests {
    use ElementType::{BF16, C64, F8E4M3FN, F8E5M2, F16, F32, F64, S8, S32, U8};

    use super::*;

    #[test]
    fn what_the_library_takes() {
        let dense = |elements| Matmul::dense(2, [16, 32, 48], elements);
        for elements in [[F16; 3], [F16, F16, F32], [BF16; 3], [F32; 3], [F64; 3], [C64; 3]] {
            dense(elements).check((8, 0)).unwrap();
        }
        let told = |matmul: &Matmul| {
            matmul
                .check((9, 0))
                .unwrap_err()
                .message()
                .trim_start_matches("cuBLASLt does not support this matmul: ")
                .to_string()
        };
        insta::assert_snapshot!(told(&dense([U8, U8, S32])), @"it cannot multiply u8 and u8 to s32");
        insta::assert_snapshot!(told(&dense([F8E5M2, F8E5M2, F32])), @"it cannot multiply f8e5m2 and f8e5m2 to f32");
        insta::assert_snapshot!(told(&dense([S8, S8, S32])), @"element type s8 requires the contracted dimension last in both operands");
        let mut whole = dense([S8, S8, S32]);
        whole.rhs.transposed = true;
        whole.check((9, 0)).unwrap();
        whole.k = 31;
        insta::assert_snapshot!(told(&whole), @"element type s8 requires sizes and strides that are multiples of 4");
        let mut small = dense([F8E4M3FN, F8E5M2, BF16]);
        small.rhs.transposed = true;
        small.check((9, 0)).unwrap();
        small.has_bias = true;
        insta::assert_snapshot!(told(&small), @"it has a bias or an activation, which element type f8e4m3fn does not support");
        let mut nothing = dense([F32; 3]);
        nothing.k = 0;
        insta::assert_snapshot!(told(&nothing), @"its contracted dimension is empty");
        let mut over = dense([F32; 3]);
        over.result.batch_stride = 0;
        insta::assert_snapshot!(told(&over), @"its results are transposed or overlap");
        let old = dense([BF16; 3]).check((7, 5)).unwrap_err();
        insta::assert_snapshot!(old, @"cuBLASLt does not support this matmul: its element type bf16 requires sm_80");
        let zero = Matmul { alpha: (-0f64).to_bits(), ..dense([F32; 3]) };
        insta::assert_snapshot!(told(&zero), @"its factor is 0, for which the library ignores NaN and infinities");
    }
}
