//! Generated inputs: a counter-based random number generator whose values depend only on seed, parameter number and
//! element number.
//!
//! All integers are unsigned 64-bit words with wrapping arithmetic. `mix64` is the finalizer of SplitMix64 (Steele, Lea
//! and Flood, "Fast splittable pseudorandom number generators", 2014). Floating-point distributions are computed in
//! `f64` without fused operations, rounded to `f32` (except for `f64` arrays) and from there to the element type. The
//! bits are identical on every machine.

use serde::Deserialize;
use serde_json::Number;
use xla::hlo::{ArrayShape, ElementKind, ElementType, Error, Literal, Result, Scalar};

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
/// Standard deviation of the sum of four uniform 16-bit numbers: sqrt((2^32 - 1) / 3).
const NORMAL_DEVIATION: f64 = 37837.227;

/// Distribution of generated values. `z` denotes the 64 random bits of an element.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Generator {
    /// `u * (hi - lo) + lo`, where `u` in [0, 1) is formed from the upper 24 bits of `z`.
    Uniform { lo: f64, hi: f64 },
    /// [`Generator::Uniform`], with `diag` added where the last two indices are equal (the last two dimensions of a
    /// square matrix).
    UniformDiag { lo: f64, hi: f64, diag: f64 },
    /// Approximately normal: the scaled sum of the four 16-bit fields of `z`.
    Normal { mean: f64, std: f64 },
    /// Integers with `lo <= value < hi`.
    Int { lo: i64, hi: i64 },
    /// The upper 32 bits of `z`.
    Bits,
    /// Constant.
    Const { value: Number },
    /// Values of another distribution for an array of `period` elements, repeated. For large arrays, because copying is
    /// faster than generation.
    Tiled { period: usize, of: Box<Generator> },
}

/// Value before it is rounded or wrapped to its element type.
#[derive(Clone, Copy)]
enum Value {
    Float(f64),
    Integer(i64),
}

const fn mix64(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Returns `GOLDEN` times `i + 1`.
const fn step(i: u64) -> u64 {
    GOLDEN.wrapping_mul(i.wrapping_add(1))
}

fn uniform(z: u64, lo: f64, hi: f64) -> f64 {
    let u = (z >> 40) as f64 * (1.0 / 16_777_216.0);
    u * (hi - lo) + lo
}

impl Generator {
    /// Returns the default generator of an element type: floats (and the parts of complex numbers) from [-1, 1),
    /// integers from [0, 8) as far as the type can represent them, both booleans, and powers of two from [1/2, 2) for
    /// `f8e8m0fnu`, which has no sign.
    pub fn for_type(ty: ElementType) -> Generator {
        match ty.kind() {
            ElementKind::Pred => Generator::Int { lo: 0, hi: 2 },
            ElementKind::Signed => Generator::Int { lo: 0, hi: 1 << (ty.bit_width() - 1).min(3) },
            ElementKind::Unsigned => Generator::Int { lo: 0, hi: 1 << ty.bit_width().min(3) },
            ElementKind::Float if !ty.is_signed() => Generator::Uniform { lo: 0.5, hi: 2.0 },
            ElementKind::Float | ElementKind::Complex => Generator::Uniform { lo: -1.0, hi: 1.0 },
        }
    }

    /// Generates array number `parameter` (from 0) of the inputs for a seed.
    ///
    /// A complex array is generated like a real array of twice the size. Errors: bounds out of order, out of memory.
    pub fn literal(&self, shape: &ArrayShape, seed: u64, parameter: usize) -> Result<Literal> {
        self.check()?;
        if let Generator::Tiled { period, of } = self {
            return tiled(shape, *period, |tile| of.literal(tile, seed, parameter));
        }
        let key = mix64(seed.wrapping_add(step(parameter as u64)));
        let columns = shape.dims().last().map_or(1, |&d| d as u64).max(1);
        let element = |i: usize| self.value(mix64(key.wrapping_add(step(i as u64))), i as u64, columns);
        let ty = shape.element_type();
        let (part, width) = (ty.real_part(), ty.real_part().byte_width());
        let mut literal = Literal::zeros(shape)?;
        for (i, chunk) in literal.bytes_mut().chunks_exact_mut(width).enumerate() {
            match element(i) {
                // Fast path for the common case of a large array.
                Value::Float(v) if part == ElementType::F32 => chunk.copy_from_slice(&(v as f32).to_le_bytes()),
                value => value.of(part).write(part, chunk),
            }
        }
        Ok(literal)
    }

    fn check(&self) -> Result<()> {
        match self {
            Generator::Int { lo, hi } if lo >= hi => {
                Err(Error::invalid_argument(format!("the range of integers from {lo} to {hi} (exclusive) is empty")))
            }
            Generator::Uniform { .. } | Generator::UniformDiag { .. } | Generator::Normal { .. } => Ok(()),
            Generator::Int { .. } | Generator::Bits | Generator::Const { .. } => Ok(()),
            Generator::Tiled { period: 0, .. } => {
                Err(Error::invalid_argument("the period of repeated values must not be 0"))
            }
            Generator::Tiled { of, .. } if matches!(**of, Generator::Tiled { .. }) => {
                Err(Error::invalid_argument("repeated values must not consist of repeated values"))
            }
            Generator::Tiled { of, .. } => of.check(),
        }
    }

    fn value(&self, z: u64, i: u64, columns: u64) -> Value {
        match self {
            Generator::Uniform { lo, hi } => Value::Float(uniform(z, *lo, *hi)),
            Generator::UniformDiag { lo, hi, diag } => {
                let v = uniform(z, *lo, *hi);
                Value::Float(if (i / columns) % columns == i % columns { v + diag } else { v })
            }
            Generator::Normal { mean, std } => {
                let sum = (z & 0xFFFF) + ((z >> 16) & 0xFFFF) + ((z >> 32) & 0xFFFF) + (z >> 48);
                Value::Float((sum as f64 - 131_070.0) * (std / NORMAL_DEVIATION) + mean)
            }
            Generator::Int { lo, hi } => {
                let scaled = (z >> 32).wrapping_mul(hi.wrapping_sub(*lo) as u64) >> 32;
                Value::Integer((scaled as i64).wrapping_add(*lo))
            }
            Generator::Bits => Value::Integer((z >> 32) as i64),
            Generator::Const { value } => {
                let float = || Value::Float(value.as_f64().unwrap_or(f64::NAN));
                value.as_i64().map_or_else(float, Value::Integer)
            }
            Generator::Tiled { of, period } => of.value(z, i % (*period).max(1) as u64, columns),
        }
    }
}

/// Returns an array that repeats a sequence of at most `period` elements, which `of` generates.
fn tiled(shape: &ArrayShape, period: usize, of: impl FnOnce(&ArrayShape) -> Result<Literal>) -> Result<Literal> {
    let tile = of(&ArrayShape::new(shape.element_type(), [period.min(shape.element_count())]))?;
    let mut literal = Literal::zeros(shape)?;
    for chunk in literal.bytes_mut().chunks_mut(tile.bytes().len().max(1)) {
        chunk.copy_from_slice(&tile.bytes()[..chunk.len()]);
    }
    Ok(literal)
}

impl Value {
    /// Converts to a real element type: floats via `f32`, and floats to integers by truncation.
    fn of(self, ty: ElementType) -> Scalar {
        match (ty.kind(), self) {
            (ElementKind::Pred, Value::Float(v)) => Scalar::Pred(v != 0.0),
            (ElementKind::Pred, Value::Integer(v)) => Scalar::Pred(v != 0),
            (ElementKind::Signed, Value::Float(v)) => Scalar::Signed(v as i64),
            (ElementKind::Signed, Value::Integer(v)) => Scalar::Signed(v),
            (ElementKind::Unsigned, Value::Float(v)) => Scalar::Unsigned(v as i64 as u64),
            (ElementKind::Unsigned, Value::Integer(v)) => Scalar::Unsigned(v as u64),
            (ElementKind::Float | ElementKind::Complex, Value::Float(v)) if ty == ElementType::F64 => Scalar::Float(v),
            (ElementKind::Float | ElementKind::Complex, Value::Float(v)) => Scalar::Float(f64::from(v as f32)),
            (ElementKind::Float | ElementKind::Complex, Value::Integer(v)) => Scalar::Float(v as f64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value as Json;

    /// Bit patterns from an independent implementation of this generator, for every kind.
    const VECTORS: &str = include_str!("generator-vectors.json");

    fn shape_of(param: &Json) -> ArrayShape {
        let ty = ElementType::from_name(param["dtype"].as_str().unwrap()).unwrap();
        let dims: Vec<usize> = serde_json::from_value(param["shape"].clone()).unwrap();
        ArrayShape::new(ty, dims)
    }

    #[test]
    fn values_are_those_of_the_other_implementation() {
        let cases: Vec<Json> = serde_json::from_str(VECTORS).unwrap();
        assert_eq!(cases.len(), 16);
        for case in cases {
            let shape = shape_of(&case["param"]);
            let generator: Generator = serde_json::from_value(case["param"]["gen"].clone()).unwrap();
            let index = case["index"].as_u64().unwrap() as usize;
            let literal = generator.literal(&shape, case["seed"].as_u64().unwrap(), index).unwrap();
            let bits = |at: &Json| {
                let bytes = literal.element_bytes(at.as_u64().unwrap() as usize);
                bytes.iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte))
            };
            let found: Vec<u64> = case["at"].as_array().unwrap().iter().map(bits).collect();
            assert_eq!(serde_json::json!(found), case["bits"], "{case}");
        }
    }

    #[test]
    fn every_type_has_values_of_its_own() {
        for &ty in ElementType::ALL {
            let shape = ArrayShape::new(ty, [64]);
            let literal = Generator::for_type(ty).literal(&shape, 0, 0).unwrap();
            let values: Vec<Scalar> = (0..64).map(|i| literal.get(i)).collect();
            assert!(values.iter().any(|v| *v != values[0]) || ty == ElementType::S1, "{ty}");
            let sane = |v: &Scalar| match *v {
                Scalar::Pred(_) => true,
                Scalar::Signed(v) => (0..8).contains(&v),
                Scalar::Unsigned(v) => v < 8,
                Scalar::Float(v) => v.abs() <= 2.0,
                Scalar::Complex(re, im) => re.abs() <= 1.0 && im.abs() <= 1.0 && re != im,
            };
            assert!(values.iter().all(sane), "{ty}");
        }
    }

    #[test]
    fn bounds_must_be_in_order() {
        let error = Generator::Int { lo: 3, hi: 3 }.literal(&ArrayShape::new(ElementType::S32, [2]), 0, 0).unwrap_err();
        assert_eq!(error.message(), "the range of integers from 3 to 3 (exclusive) is empty");
        let tiled = |period, of: &Generator| Generator::Tiled { period, of: Box::new(of.clone()) };
        let refused = |generator: Generator| {
            generator.literal(&ArrayShape::new(ElementType::S32, [2]), 0, 0).unwrap_err().message().to_string()
        };
        assert_eq!(refused(tiled(0, &Generator::Bits)), "the period of repeated values must not be 0");
        assert_eq!(
            refused(tiled(2, &Generator::Int { lo: 3, hi: 3 })),
            "the range of integers from 3 to 3 (exclusive) is empty"
        );
        assert!(refused(tiled(2, &tiled(2, &Generator::Bits))).contains("must not consist of repeated values"));
    }

    #[test]
    fn values_repeat() {
        let of = Box::new(Generator::Normal { mean: 0.0, std: 1.0 });
        for (ty, dims, period) in [
            (ElementType::F32, [5, 7], 11),
            (ElementType::BF16, [4, 8], 16),
            (ElementType::C64, [3, 3], 100),
            (ElementType::S4, [3, 5], 4),
            (ElementType::F64, [0, 3], 4),
        ] {
            let shape = ArrayShape::new(ty, dims);
            let found = Generator::Tiled { period, of: of.clone() }.literal(&shape, 1, 2).unwrap();
            let whole = of.literal(&shape, 1, 2).unwrap();
            for i in 0..shape.element_count() {
                assert_eq!(found.get(i), whole.get(i % period), "{ty} {i}");
            }
        }
    }
}
