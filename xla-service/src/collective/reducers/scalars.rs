//! Reduction of elements one at a time.

use xla_hlo::{ElementType, Result, Scalar};

/// Reduces the elements of `sources` one at a time. `step` combines an accumulator with an element, both values of the
/// type `accumulator`.
pub(super) fn reduce_scalars(
    types: (ElementType, ElementType),
    sources: &[&[u8]],
    result: &mut [u8],
    mut step: impl FnMut(Scalar, Scalar) -> Result<Scalar>,
) -> Result<()> {
    let (ty, accumulator) = types;
    let width = ty.byte_width();
    let convert = |x: Scalar| if ty == accumulator { x } else { x.rounded(accumulator) };
    for (i, element) in result.chunks_exact_mut(width).enumerate() {
        let mut values = sources.iter().map(|source| convert(Scalar::read(ty, &source[i * width..(i + 1) * width])));
        let Some(mut sum) = values.next() else { continue };
        for value in values {
            sum = step(sum, value)?;
        }
        sum.write(ty, element);
    }
    Ok(())
}
