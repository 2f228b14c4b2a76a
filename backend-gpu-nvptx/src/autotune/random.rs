//! Random numbers of any element type: operands for measuring candidates.

use xla_hlo::{ArrayShape, ElementType, Literal, Result, Scalar};

/// Number of random elements that are generated; longer arrays repeat them. Not a power of two, so that rows differ.
const PERIOD: usize = 262_139;

/// Returns the bytes of at most `elements` random elements: floats between -1 and 1, integers between -8 and 8. The
/// sequence is fixed.
pub(crate) fn random(element: ElementType, elements: usize) -> Result<Vec<u8>> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = || {
        // xorshift64*
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    };
    let mut unit = || next() as f64 / (1u64 << 52) as f64 - 1.0;
    let literal = Literal::from_fn(&ArrayShape::new(element, [elements.min(PERIOD)]), |_| {
        let number = unit();
        match element {
            ElementType::Pred => Scalar::Pred(number < 0.0),
            element if element.is_complex() => Scalar::Complex(number, unit()),
            element if element.is_float() => Scalar::Float(number),
            element if element.is_signed() => Scalar::Signed((number * 8.0) as i64),
            _ => Scalar::Unsigned((number.abs() * 8.0) as u64),
        }
    })?;
    Ok(literal.bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_of_their_type_and_differ() {
        for element in [ElementType::F32, ElementType::BF16, ElementType::F8E4M3FN, ElementType::S8, ElementType::C64] {
            let bytes = random(element, 1000).unwrap();
            assert_eq!(bytes.len(), 1000 * element.byte_width());
            let literal = Literal::from_bytes(&ArrayShape::new(element, [1000]), bytes).unwrap();
            let mut numbers: Vec<String> = (0..1000).map(|i| format!("{:?}", literal.get(i))).collect();
            assert!(numbers.iter().all(|number| !number.contains("NaN") && !number.contains("inf")));
            numbers.sort();
            numbers.dedup();
            assert!(numbers.len() > 10, "{element}: {numbers:?}");
        }
        assert_eq!(random(ElementType::F32, usize::MAX).unwrap().len(), 4 * PERIOD);
    }
}
