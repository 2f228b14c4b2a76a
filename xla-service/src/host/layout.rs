//! Host layouts: elements in whole bytes, dimensions in any order.

use xla_hlo::out_of_memory::fallible;
use xla_hlo::{ArrayShape, Error, Layout, Literal, Result};

use super::array::{self, check_target, dense_strides};

/// Returns the shape with its layout in host memory: the requested dimension order (row-major by default), without
/// tiles or packing, in the default memory space.
pub fn host_shape(shape: &ArrayShape) -> Result<ArrayShape> {
    let layout = match shape.layout() {
        None => Layout::row_major(shape.rank()),
        Some(layout) if layout.is_permutation_of(shape.rank()) => {
            Layout::from_minor_to_major(layout.minor_to_major.clone())
        }
        Some(_) => return Err(Error::invalid_argument(format!("the layout of {shape} does not fit its rank"))),
    };
    Ok(shape.clone().with_layout(Some(layout)))
}

/// Writes a literal to the bytes of an array of this shape, in its layout. Sizes must match exactly.
pub fn write_literal(literal: &Literal, shape: &ArrayShape, target: &mut [u8]) -> Result<()> {
    check_target(shape, literal.byte_len())?;
    check_target(shape, target.len())?;
    // A splat has the same bytes in every order.
    if is_row_major(shape) || literal.as_splat().is_some() {
        literal.copy_bytes_to(target);
    } else {
        array::copy(shape, &row_major_strides(shape), &dense_strides(shape)).run(literal.bytes(), 0, target, 0);
    }
    Ok(())
}

/// Reads a literal from the bytes of an array of this shape, in its layout. The size must match exactly.
pub fn literal_from_bytes(shape: &ArrayShape, source: &[u8]) -> Result<Literal> {
    check_target(shape, source.len())?;
    if is_row_major(shape) {
        let mut bytes = reserved(source.len())?;
        bytes.extend_from_slice(source);
        return Literal::from_bytes(shape, bytes);
    }
    let mut literal = Literal::zeros(shape)?;
    let copy = array::copy(shape, &dense_strides(shape), &row_major_strides(shape));
    copy.run(source, 0, literal.bytes_mut(), 0);
    Ok(literal)
}

/// Like [`literal_from_bytes`], but reuses the bytes for the literal if possible.
pub(super) fn literal_of_bytes(shape: &ArrayShape, bytes: Vec<u8>) -> Result<Literal> {
    match is_row_major(shape) {
        true => Literal::from_bytes(shape, bytes),
        false => literal_from_bytes(shape, &bytes),
    }
}

/// Allocates zeroed bytes; an error if memory is exhausted.
pub(super) fn zeros(bytes: usize) -> Result<Vec<u8>> {
    let mut zeros = reserved(bytes)?;
    zeros.resize(bytes, 0);
    Ok(zeros)
}

fn reserved(bytes: usize) -> Result<Vec<u8>> {
    let mut data = Vec::new();
    fallible(|| data.try_reserve_exact(bytes))
        .map_err(|e| Error::resource_exhausted(format!("no host memory for {bytes} bytes")).with_source(e))?;
    Ok(data)
}

/// Whether elements are in row-major order, ignoring dimensions of size 1.
fn is_row_major(shape: &ArrayShape) -> bool {
    let order = shape.minor_to_major().into_iter().rev().filter(|&d| shape.dims()[d] != 1);
    order.is_sorted() || shape.element_count() == 0
}

fn row_major_strides(shape: &ArrayShape) -> Vec<i64> {
    dense_strides(&shape.clone().with_row_major_layout())
}

#[cfg(test)]
mod tests {
    use xla_hlo::{ElementType, Scalar};

    use super::*;

    fn iota(shape: &ArrayShape) -> Literal {
        Literal::from_fn(shape, |i| Scalar::from_i64(shape.element_type(), i as i64)).unwrap()
    }

    #[test]
    fn column_major_is_the_transpose() {
        let shape =
            ArrayShape::new(ElementType::S16, [2, 3]).with_layout(Some(Layout::from_minor_to_major(vec![0, 1])));
        let literal = iota(&shape);
        let mut bytes = vec![0; shape.byte_size()];
        write_literal(&literal, &shape, &mut bytes).unwrap();
        let elements: Vec<u8> = bytes.chunks(2).map(|c| c[0]).collect();
        assert_eq!(elements, [0, 3, 1, 4, 2, 5]);
        assert_eq!(literal_from_bytes(&shape, &bytes).unwrap(), literal);
    }

    #[test]
    fn every_dimension_order_goes_there_and_back() {
        for ty in [ElementType::Pred, ElementType::S4, ElementType::F32, ElementType::C128] {
            for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
                for dims in [[2, 3, 5], [1, 4, 3], [3, 0, 2], [1, 1, 7]] {
                    let layout = Layout::from_minor_to_major(order.to_vec());
                    let shape = ArrayShape::new(ty, dims).with_layout(Some(layout));
                    let literal = match ty {
                        ElementType::Pred => Literal::splat(&shape, Scalar::Pred(true)).unwrap(),
                        _ => iota(&shape),
                    };
                    let mut bytes = vec![0xee; shape.byte_size()];
                    write_literal(&literal, &shape, &mut bytes).unwrap();
                    assert_eq!(literal_from_bytes(&shape, &bytes).unwrap(), literal, "{shape}");
                }
            }
        }
    }

    #[test]
    fn tiles_and_packing_are_dropped_and_wrong_sizes_refused() {
        let mut layout = Layout::row_major(1);
        layout.element_size_in_bits = 4;
        let shape = host_shape(&ArrayShape::new(ElementType::S4, [8]).with_layout(Some(layout))).unwrap();
        assert_eq!(shape.to_string(), "s4[8]{0}");
        assert!(literal_from_bytes(&shape, &[0; 4]).is_err());
        let bad = ArrayShape::new(ElementType::S4, [8]).with_layout(Some(Layout::row_major(2)));
        assert!(host_shape(&bad).is_err());
    }
}
