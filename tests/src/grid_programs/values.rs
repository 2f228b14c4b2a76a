//! Arrays of random programs for several devices.

use xla_hlo::{ArrayShape, ElementKind, ElementType, Literal, Scalar};

use crate::generate::Random;

/// Collectives of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kinds {
    /// All collectives in all forms.
    All,
    /// All collectives in all forms. Results do not depend on the order of the members in a reduction: sums of floats
    /// are exact, and there are no products of floats.
    AnyOrder,
    /// Collectives that can be joined for one device: at once, without slices and ragged rows; no products of floats,
    /// which kernels of one device may contract with sums.
    Joined,
}

/// Element types of arrays.
pub const TYPES: &[ElementType] = {
    use ElementType::*;
    &[F32, F32, F32, S32, S32, BF16, F16, F64, Pred, S8, U8, S16, U32, S64, U64, C64, F8E5M2]
};

/// Sizes of dimensions, with many divisors.
const SIZES: &[usize] = &[1, 2, 2, 3, 4, 4, 6, 8, 12, 24];

/// Maximum number of elements of an array.
pub const MOST: usize = 6000;

/// Array of a computation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// Name of the instruction.
    pub name: String,
    pub ty: ElementType,
    pub dims: Vec<usize>,
}

impl Value {
    /// Returns the shape as text.
    pub fn shape(&self) -> String {
        shape(self.ty, &self.dims)
    }

    pub fn count(&self) -> usize {
        self.dims.iter().product()
    }

    /// Whether another array has the same shape.
    pub fn is_like(&self, other: &Value) -> bool {
        self.ty == other.ty && self.dims == other.dims
    }
}

/// Returns a shape as text.
pub fn shape(ty: ElementType, dims: &[usize]) -> String {
    ArrayShape::new(ty, dims).to_string()
}

/// Returns dimensions of a new array: rank 1 to 3.
pub fn dims(random: &mut Random) -> Vec<usize> {
    let rank = random.pick(&[1, 1, 2, 2, 3]);
    (0..rank).map(|_| random.pick(SIZES)).collect()
}

/// Returns an array of random elements: mostly small multiples of a half and, unless their sums must be exact, some of
/// any size and special values.
pub fn literal(random: &mut Random, kinds: Kinds, ty: ElementType, dims: &[usize]) -> Literal {
    let shape = ArrayShape::new(ty, dims);
    let element = |_: usize| match ty.kind() {
        ElementKind::Pred => Scalar::Pred(random.percent(50)),
        ElementKind::Signed | ElementKind::Unsigned => {
            Scalar::from_i64(ty, random.between(0, 250) as i64 - 100).rounded(ty)
        }
        ElementKind::Float => Scalar::Float(float(random, kinds)).rounded(ty),
        ElementKind::Complex => Scalar::Complex(float(random, kinds), float(random, kinds)).rounded(ty),
    };
    Literal::from_fn(&shape, element).expect("a small array")
}

fn float(random: &mut Random, kinds: Kinds) -> f64 {
    match random.below(30) {
        0 if kinds == Kinds::AnyOrder => random.pick(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0]),
        0 => random.pick(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, 1e-30, -3e38]),
        1..=9 if kinds != Kinds::AnyOrder => (random.between(0, 1 << 20) as f64 - 5e5) / 7.0,
        _ => (random.between(0, 24) as f64 - 12.0) / 2.0,
    }
}
