//! Fourier transforms as plain data.

use serde::{Deserialize, Serialize};
use xla_hlo::{Error, Result};

/// A transform of each array of a batch, over its last one to three dimensions. Arrays are dense; input and output are
/// apart.
///
/// Nothing is divided: an inverse transform must still be multiplied by one over the number of elements of an array.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Fourier {
    /// Kinds of input and output.
    pub kind: FourierKind,
    /// Whether numbers are doubles.
    pub is_double: bool,
    /// Sizes of the dimensions that are transformed, of the side that is not cut in half.
    pub lengths: Vec<usize>,
    /// Arrays.
    pub batch: usize,
}

/// Of what to what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum FourierKind {
    /// Complex to complex.
    Forward,
    /// Complex to complex, with the other sign.
    Inverse,
    /// Real to complex: only the first `n / 2 + 1` of the last dimension's numbers.
    RealForward,
    /// The other way around.
    RealInverse,
}

impl Fourier {
    /// Whether the library takes it; [`Error::Unimplemented`] says why not.
    pub fn check(&self) -> Result<()> {
        let refuse = |why: String| Err(Error::unimplemented(format!("cuFFT does not support this transform: {why}")));
        if self.lengths.is_empty() || self.lengths.len() > 3 {
            return refuse(format!("of {} dimensions", self.lengths.len()));
        }
        if self.lengths.contains(&0) {
            return refuse("of nothing".to_string());
        }
        if self.input_bytes().is_none() || self.elements().is_none_or(|count| i64::try_from(count).is_err()) {
            return refuse(format!("of {:?}, {} times: too large", self.lengths, self.batch));
        }
        Ok(())
    }

    /// Elements of all arrays on the side that is not cut in half.
    fn elements(&self) -> Option<usize> {
        self.lengths.iter().try_fold(self.batch, |count, length| count.checked_mul(*length))
    }

    /// Bytes of the input; `None` if they cannot be counted.
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
        insta::assert_snapshot!(told(&[], 1), @"of 0 dimensions");
        insta::assert_snapshot!(told(&[2; 4], 1), @"of 4 dimensions");
        insta::assert_snapshot!(told(&[2, 0], 1), @"of nothing");
        insta::assert_snapshot!(told(&[usize::MAX], 2), @"of [18446744073709551615], 2 times: too large");
    }
}
