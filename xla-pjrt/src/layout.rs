//! Shapes and layouts in the representation of the C API.

use xla_hlo::{ArrayShape, Layout};

use crate::abi::kinds;
use crate::abi::transfer::BufferMemoryLayout;
use crate::element_type::element_type;
use crate::ffi::{Field, Head, Image, Kind, List, Pointer};
use crate::status::Status;

impl Kind for kinds::MemoryLayout {
    type Value = Layout;
    const NAME: &'static str = "PJRT_Layouts_MemoryLayout";
}

/// Layout type given by the minor-to-major order of dimensions and by tiles.
const TILED: i32 = 0;
/// Layout type given by the stride of each dimension.
const STRIDES: i32 = 1;

/// Converts dimensions from the caller.
pub(crate) fn dims(dims: &List<i64>) -> Result<Vec<usize>, Status> {
    let dim = |&dim: &i64| {
        usize::try_from(dim).map_err(|_| Status::invalid_argument(format!("the dimension {dim} is negative")))
    };
    dims.get()?.iter().map(dim).collect()
}

/// Converts an array shape from the caller. It has no layout if the caller specifies none.
pub(crate) fn shape(
    number: i32,
    dimensions: &List<i64>,
    layout: &Pointer<BufferMemoryLayout>,
) -> Result<ArrayShape, Status> {
    let shape = ArrayShape::new(element_type(number)?, dims(dimensions)?);
    shape.checked_element_count()?;
    let layout = read(layout, &shape)?;
    Ok(shape.with_layout(layout))
}

/// Converts a layout from the caller; `None` if it specifies none.
pub(crate) fn read(layout: &Pointer<BufferMemoryLayout>, shape: &ArrayShape) -> Result<Option<Layout>, Status> {
    let Some(layout) = layout.read()? else { return Ok(None) };
    let numbers = layout.numbers.get()?;
    let read = match layout.layout_type {
        // Default layout for elements of less than a byte, as jaxlib 0.12 requests it.
        TILED if numbers.is_empty() && layout.num_tiles == 0 => return Ok(None),
        TILED if layout.num_tiles > 0 => {
            return Err(Status::unimplemented("buffers whose layout has tiles are not supported"));
        }
        TILED => order(numbers),
        STRIDES => order_of_strides(numbers, shape),
        other => return Err(Status::invalid_argument(format!("the layout has the unknown type {other}"))),
    };
    let read = read.map(Layout::from_minor_to_major).filter(|layout| layout.is_permutation_of(shape.rank()));
    let error = || Status::invalid_argument(format!("{numbers:?} is not a layout of {shape}"));
    read.map(Some).ok_or_else(error)
}

fn order(numbers: &[i64]) -> Option<Vec<usize>> {
    numbers.iter().map(|&dim| usize::try_from(dim).ok()).collect()
}

/// Returns the minor-to-major order of a dense array with these strides in bytes.
fn order_of_strides(strides: &[i64], shape: &ArrayShape) -> Option<Vec<usize>> {
    let dims = shape.dims();
    if strides.len() != dims.len() {
        return None;
    }
    let mut order: Vec<usize> = (0..dims.len()).rev().collect();
    // Dimensions of extent 1 may have any stride. The sort is stable, so they keep their position among equal strides.
    order.sort_by_key(|&dim| strides[dim]);
    let mut expected = i64::try_from(shape.element_type().byte_width()).ok()?;
    for &dim in order.iter().filter(|&&dim| dims[dim] != 1) {
        if strides[dim] != expected {
            return None;
        }
        expected = expected.checked_mul(i64::try_from(dims[dim]).ok()?)?;
    }
    Some(order)
}

/// Returns the layout of an array for the caller: the order of its dimensions. Tiles are internal to the device, and
/// callers cannot request them.
pub(crate) fn of(shape: &ArrayShape) -> Layout {
    let layout = shape.layout().cloned().unwrap_or_else(|| Layout::row_major(shape.rank()));
    Layout { tiles: Vec::new(), ..layout }
}

/// Returns the minor-to-major order of a shape's dimensions, for the caller.
pub(crate) fn minor_to_major(shape: &ArrayShape) -> Vec<i64> {
    shape.minor_to_major().into_iter().map(|dim| dim as i64).collect()
}

/// Returns the stride of each dimension in bytes, for a dense array of this shape.
pub(crate) fn strides(shape: &ArrayShape) -> Vec<i64> {
    let width = shape.element_type().byte_width();
    xla_hlo::strides(shape.dims(), &shape.minor_to_major()).into_iter().map(|stride| (stride * width) as i64).collect()
}

/// Creates a layout for the caller, which borrows `minor_to_major`.
pub(crate) fn lend(minor_to_major: &[i64]) -> BufferMemoryLayout {
    let head = || Head { struct_size: BufferMemoryLayout::SIZE, extensions: 0 };
    // The nested structure has its own size.
    let tiled_head = Head { struct_size: 56, extensions: 0 };
    let numbers = List::of(minor_to_major);
    BufferMemoryLayout { head: head(), tiled_head, numbers, layout_type: TILED, ..BufferMemoryLayout::NULL }
}

#[cfg(test)]
mod tests {
    use xla_hlo::text::parse_shape;

    use super::of;

    #[test]
    fn callers_see_no_tiles() {
        for (shape, expected) in
            [("f32[3,5]{0,1:T(4,8)}", "{0,1}"), ("f32[3,5]{1,0:T(4,8)S(5)}", "{1,0:S(5)}"), ("f32[3,5]", "{1,0}")]
        {
            let shape = parse_shape(shape).unwrap();
            assert_eq!(of(shape.as_array().unwrap()).to_string(), expected);
        }
    }
}
