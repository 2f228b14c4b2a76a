//! Fourier transforms as plain data.

use serde::{Deserialize, Serialize};
use xla_hlo::{Error, Result};

/// Fourier transforms of a batch of arrays, over their last one to three dimensions. Arrays are dense; input and output
/// do not overlap.
///
/// Results are not scaled: those of an inverse transform must still be divided by the number of elements of an array.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Fourier {
    /// Kind of transform: C2C, R2C or C2R.
    pub kind: FourierKind,
    /// Whether numbers are f64 instead of f32.
    pub is_double: bool,
    /// Sizes of the transformed dimensions, on the side with the full last dimension.
    pub lengths: Vec<usize>,
    /// Number of arrays.
    pub batch: usize,
}

/// Kind of transform: C2C, R2C or C2R.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum FourierKind {
    /// Complex to complex.
    Forward,
    /// Complex to complex, with the opposite sign of the exponent.
    Inverse,
    /// Real to complex: only the first `n / 2 + 1` elements of the last dimension.
    RealForward,
    /// Complex to real, from the first `n / 2 + 1` elements of the last dimension.
    RealInverse,
}

impl Fourier {
    /// Checks that the library takes the transform. [`Error::Unimplemented`] states the reason otherwise.
    pub fn check(&self) -> Result<()> {
        let refuse = |why: String| Err(Error::unimplemented(format!("cuFFT does not support this transform: {why}")));
        if self.lengths.is_empty() || self.lengths.len() > 3 {
            return refuse(format!("it has {} dimensions", self.lengths.len()));
        }
        if self.lengths.contains(&0) {
            return refuse("one of its lengths is 0".to_string());
        }
        if self.input_bytes().is_none() || self.elements().is_none_or(|count| i64::try_from(count).is_err()) {
            return refuse(format!("its lengths {:?} with a batch of {} are too large", self.lengths, self.batch));
        }
        Ok(())
    }

    /// Returns the number of elements of all arrays, on the side with the full last dimension.
    fn elements(&self) -> Option<usize> {
        self.lengths.iter().try_fold(self.batch, |count, length| count.checked_mul(*length))
    }

    /// Returns the size of the input in bytes; `None` on overflow.
    pub fn input_bytes(&self) -> Option<usize> {
        let float = if self.is_double { 8 } else { 4 };
        match self.kind {
            FourierKind::Forward | FourierKind::Inverse => self.elements()?.checked_mul(2 * float),
            FourierKind::RealForward => self.elements()?.checked_mul(float),
            FourierKind::RealInverse => {
                let (last, rest) = self.lengths.split_last()?;
                let rest = rest.iter().try_fold(self.batch, |count, length| count.checked_mul(*length))?;
                rest.checked_mul(last / 2 + 1)?.checked_mul(2 * float)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fourier(kind: FourierKind, lengths: &[usize], batch: usize) -> Fourier {
        Fourier { kind, is_double: false, lengths: lengths.to_vec(), batch }
    }

    #[test]
    fn inputs_are_measured() {
        assert_eq!(fourier(FourierKind::Forward, &[4, 5], 3).input_bytes(), Some(480));
        assert_eq!(fourier(FourierKind::RealForward, &[4, 5], 3).input_bytes(), Some(240));
        assert_eq!(fourier(FourierKind::RealInverse, &[4, 5], 3).input_bytes(), Some(3 * 4 * 3 * 8));
        assert_eq!(fourier(FourierKind::RealInverse, &[4, 6], 3).input_bytes(), Some(3 * 4 * 4 * 8));
    }

    #[test]
    fn what_the_library_takes() {
        fourier(FourierKind::Forward, &[4, 5, 7], 0).check().unwrap();
        let told = |lengths: &[usize], batch| {
            let error = fourier(FourierKind::Inverse, lengths, batch).check().unwrap_err();
            error.message().trim_start_matches("cuFFT does not support this transform: ").to_string()
        };
        insta::assert_snapshot!(told(&[], 1), @"it has 0 dimensions");
        insta::assert_snapshot!(told(&[2; 4], 1), @"it has 4 dimensions");
        insta::assert_snapshot!(told(&[2, 0], 1), @"one of its lengths is 0");
        insta::assert_snapshot!(told(&[usize::MAX], 2), @"its lengths [18446744073709551615] with a batch of 2 are too large");
    }
}
