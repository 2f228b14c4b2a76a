//! Host layouts: elements in whole bytes, dimensions in any order.

use xla_hlo::{ArrayShape, Error, Layout, Literal, Result};

/// The shape as it lies in host memory: the dimension order asked for (row major if none was), no tiles, no packing,
/// one memory space.
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

/// Writes a literal into the bytes of an array of that shape, in its layout. Sizes must agree exactly.
pub fn write_literal(literal: &Literal, shape: &ArrayShape, target: &mut [u8]) -> Result<()> {
    check_size(shape, literal.byte_len())?;
    check_size(shape, target.len())?;
    // The elements of a splat are in every order the same.
    match PhysicalOrder::of(shape).filter(|_| literal.as_splat().is_none()) {
        None => literal.copy_bytes_to(target),
        Some(order) => {
            let source = literal.bytes();
            copy_strided(&order, shape.element_type().byte_width(), source, target, Direction::ToPhysical);
        }
    }
    Ok(())
}

/// Reads a literal from the bytes of an array of that shape, in its layout. The size must agree exactly.
pub fn literal_from_bytes(shape: &ArrayShape, source: &[u8]) -> Result<Literal> {
    check_size(shape, source.len())?;
    let Some(order) = PhysicalOrder::of(shape) else {
        return Literal::from_bytes(shape, source.to_vec());
    };
    let mut literal = Literal::zeros(shape)?;
    copy_strided(&order, shape.element_type().byte_width(), source, literal.bytes_mut(), Direction::ToLogical);
    Ok(literal)
}

fn check_size(shape: &ArrayShape, bytes: usize) -> Result<()> {
    let expected = shape.byte_size();
    if bytes == expected {
        return Ok(());
    }
    Err(Error::internal(format!("{shape} takes {expected} bytes, the memory or literal for it has {bytes}")))
}

/// Physical order of elements in terms of the row-major one.
struct PhysicalOrder {
    /// Sizes of the dimensions, slowest in memory first; without those of size 1.
    sizes: Vec<usize>,
    /// Row-major stride of each, in elements.
    strides: Vec<usize>,
}

impl PhysicalOrder {
    /// `None` where the two orders are the same.
    fn of(shape: &ArrayShape) -> Option<PhysicalOrder> {
        let dims = shape.dims();
        let row_major: Vec<usize> = (0..dims.len()).rev().collect();
        let strides = xla_hlo::strides(dims, &row_major);
        let major_to_minor = shape.minor_to_major().into_iter().rev().filter(|&d| dims[d] != 1);
        let order: Vec<usize> = major_to_minor.collect();
        if order.is_sorted() || shape.element_count() == 0 {
            return None;
        }
        Some(PhysicalOrder {
            sizes: order.iter().map(|&d| dims[d]).collect(),
            strides: order.iter().map(|&d| strides[d]).collect(),
        })
    }
}

#[derive(Clone, Copy)]
enum Direction {
    ToPhysical,
    ToLogical,
}

/// Copies elements of `width` bytes between the physical order (contiguous) and the row-major one (strided).
fn copy_strided(order: &PhysicalOrder, width: usize, source: &[u8], target: &mut [u8], direction: Direction) {
    let Some((&inner, outer)) = order.sizes.split_last() else { return };
    let inner_stride = order.strides[outer.len()];
    let mut index = vec![0; outer.len()];
    for row in 0..outer.iter().product() {
        let base: usize = index.iter().zip(&order.strides).map(|(i, s)| i * s).sum();
        for i in 0..inner {
            let (physical, logical) = ((row * inner + i) * width, (base + i * inner_stride) * width);
            let (from, to) = match direction {
                Direction::ToPhysical => (logical, physical),
                Direction::ToLogical => (physical, logical),
            };
            target[to..to + width].copy_from_slice(&source[from..from + width]);
        }
        for (i, &size) in index.iter_mut().zip(outer).rev() {
            *i += 1;
            if *i < size {
                break;
            }
            *i = 0;
        }
    }
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
