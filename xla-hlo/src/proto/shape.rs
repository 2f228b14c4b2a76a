//! Shapes and layouts in protobuf.

use super::element_type::{self, BUFFER, OPAQUE, TOKEN, TUPLE};
use super::messages::{LayoutProto, ProgramShapeProto, ShapeProto, SplitConfigProto, TileProto};
use super::numbers::{fit, index, indices, longs, required};
use crate::{ArrayShape, Dynamism, Error, Layout, ProgramShape, Result, ResultExt, Shape, SplitConfig, Tile, TileDim};

/// Size that marks an unbounded dimension, and a tile dimension that is merged with the next one.
const OPEN: i64 = i64::MIN;

/// Maximum nesting of tuples that is written: deeper messages would exceed the limit of protobuf readers.
const MAX_NESTING: usize = 90;

/// Reads a shape. Arrays of rank 1 and above always have a layout afterwards.
pub(crate) fn read(proto: &ShapeProto) -> Result<Shape> {
    match proto.element_type {
        TUPLE => proto.tuple_shapes.iter().map(read).collect::<Result<_>>().map(Shape::Tuple),
        TOKEN => Ok(Shape::Token),
        OPAQUE => Ok(Shape::Opaque),
        BUFFER => match &proto.tuple_shapes[..] {
            [inner] => Ok(Shape::Buffer(Box::new(read_array(inner)?))),
            other => Err(Error::invalid_argument(format!("a buffer must contain one shape, not {}", other.len()))),
        },
        _ => read_array(proto).map(Shape::Array),
    }
}

/// Reads an array's shape.
pub(super) fn read_array(proto: &ShapeProto) -> Result<ArrayShape> {
    let ty = element_type::element_type("element_type", proto.element_type)?;
    let rank = proto.dimensions.len();
    let dynamic = &proto.is_dynamic_dimension;
    if !dynamic.is_empty() && dynamic.len() != rank {
        let message = format!("is_dynamic_dimension has {} entries, dimensions has {rank}", dynamic.len());
        return Err(Error::invalid_argument(message));
    }
    let mut dims = Vec::with_capacity(rank);
    let mut dynamism = Vec::with_capacity(rank);
    for (d, &size) in proto.dimensions.iter().enumerate() {
        let (size, kind) = match dynamic.get(d) {
            Some(true) if size == OPEN => (0, Dynamism::Unbounded),
            Some(true) => (index("dimensions", size)?, Dynamism::Bounded),
            Some(false) | None => (index("dimensions", size)?, Dynamism::Static),
        };
        dims.push(size);
        dynamism.push(kind);
    }
    let shape = ArrayShape::new(ty, dims).with_dynamism(dynamism);
    shape.checked_element_count()?;
    let layout = match &proto.layout {
        Some(layout) => Some(read_layout(layout, rank).context(|| "layout")?),
        None => Some(Layout::row_major(rank)),
    };
    // As in text, a scalar has a layout only if it states more than the (empty) order of dimensions.
    Ok(shape.with_layout(layout.filter(|layout| rank > 0 || !layout.is_plain())))
}

fn read_layout(proto: &LayoutProto, rank: usize) -> Result<Layout> {
    let ty = |field, number| if number == 0 { Ok(None) } else { element_type::element_type(field, number).map(Some) };
    let tile_dim = |&size: &i64| match size {
        OPEN => Ok(TileDim::Combine),
        size => fit("tiles", size).map(TileDim::Size),
    };
    let layout = Layout {
        minor_to_major: indices("minor_to_major", &proto.minor_to_major)?,
        tiles: proto
            .tiles
            .iter()
            .map(|tile| tile.dimensions.iter().map(tile_dim).collect::<Result<_>>().map(Tile))
            .collect::<Result<_>>()?,
        tail_padding_alignment: fit::<_, u64>(
            "tail_padding_alignment_in_elements",
            proto.tail_padding_alignment_in_elements,
        )?
        .max(1),
        index_type: ty("index_primitive_type", proto.index_primitive_type)?,
        pointer_type: ty("pointer_primitive_type", proto.pointer_primitive_type)?,
        element_size_in_bits: fit("element_size_in_bits", proto.element_size_in_bits)?,
        memory_space: proto.memory_space,
        split_configs: proto.split_configs.iter().map(read_split).collect::<Result<_>>()?,
        dynamic_metadata_bytes: fit("dynamic_shape_metadata_prefix_bytes", proto.dynamic_shape_metadata_prefix_bytes)?,
    };
    if !layout.is_permutation_of(rank) {
        return Err(Error::invalid_argument(format!("minor_to_major must name each of {rank} dimensions once")));
    }
    Ok(layout)
}

fn read_split(proto: &SplitConfigProto) -> Result<SplitConfig> {
    let split_indices = proto.split_indices.iter().map(|&i| fit("split_indices", i)).collect::<Result<_>>()?;
    Ok(SplitConfig { dimension: index("dimension", proto.dimension)?, indices: split_indices })
}

/// Writes a shape with its layouts.
pub(crate) fn write(shape: &Shape) -> Result<ShapeProto> {
    write_nested(shape, 0)
}

fn write_nested(shape: &Shape, depth: usize) -> Result<ShapeProto> {
    if depth > MAX_NESTING {
        let message = format!("a tuple nests deeper than the {MAX_NESTING} levels that protobuf readers allow");
        return Err(Error::invalid_argument(message));
    }
    let kind = |element_type, tuple_shapes| ShapeProto { element_type, tuple_shapes, ..ShapeProto::default() };
    match shape {
        Shape::Array(array) => write_array(array),
        Shape::Buffer(array) => Ok(kind(BUFFER, vec![write_array(array)?])),
        Shape::Tuple(elements) => {
            let elements = elements.iter().map(|e| write_nested(e, depth + 1)).collect::<Result<_>>()?;
            Ok(kind(TUPLE, elements))
        }
        Shape::Token => Ok(kind(TOKEN, Vec::new())),
        Shape::Opaque => Ok(kind(OPAQUE, Vec::new())),
    }
}

/// Writes an array's shape; one without a layout is written as row-major.
pub(super) fn write_array(array: &ArrayShape) -> Result<ShapeProto> {
    let size = |(d, &size): (usize, &usize)| match array.dynamism(d) {
        Dynamism::Unbounded => Ok(OPEN),
        Dynamism::Static | Dynamism::Bounded => fit("the size of a dimension", size),
    };
    let row_major = Layout::row_major(array.rank());
    Ok(ShapeProto {
        element_type: element_type::number(array.element_type()),
        dimensions: array.dims().iter().enumerate().map(size).collect::<Result<_>>()?,
        tuple_shapes: Vec::new(),
        layout: Some(Box::new(write_layout(array.layout().unwrap_or(&row_major))?)),
        is_dynamic_dimension: (0..array.rank()).map(|d| array.dynamism(d) != Dynamism::Static).collect(),
    })
}

fn write_layout(layout: &Layout) -> Result<LayoutProto> {
    let Layout {
        minor_to_major,
        tiles,
        tail_padding_alignment,
        index_type,
        pointer_type,
        element_size_in_bits,
        memory_space,
        split_configs,
        dynamic_metadata_bytes,
    } = layout;
    let tile_dim = |dim: &TileDim| match *dim {
        TileDim::Combine => Ok(OPEN),
        TileDim::Size(size) => fit("a tile size", size),
    };
    let tile = |tile: &Tile| Ok(TileProto { dimensions: tile.0.iter().map(tile_dim).collect::<Result<_>>()? });
    let split = |split: &SplitConfig| {
        Ok(SplitConfigProto {
            dimension: fit("the dimension of a split", split.dimension)?,
            split_indices: split.indices.iter().map(|&i| fit("the index of a split", i)).collect::<Result<_>>()?,
        })
    };
    Ok(LayoutProto {
        minor_to_major: longs("a dimension of a layout", minor_to_major)?,
        tiles: tiles.iter().map(tile).collect::<Result<_>>()?,
        element_size_in_bits: i64::from(*element_size_in_bits),
        memory_space: *memory_space,
        index_primitive_type: index_type.map_or(0, element_type::number),
        pointer_primitive_type: pointer_type.map_or(0, element_type::number),
        dynamic_shape_metadata_prefix_bytes: fit("the size of a layout's metadata", *dynamic_metadata_bytes)?,
        tail_padding_alignment_in_elements: fit("the alignment of a layout", *tail_padding_alignment)?,
        split_configs: split_configs.iter().map(split).collect::<Result<_>>()?,
    })
}

/// Reads a program's shape.
pub(super) fn read_program(proto: &ProgramShapeProto) -> Result<ProgramShape> {
    Ok(ProgramShape {
        parameters: proto.parameters.iter().map(read).collect::<Result<_>>().context(|| "parameters")?,
        result: read(required("result", proto.result.as_ref())?).context(|| "result")?,
    })
}

/// Writes a program's shape.
pub(super) fn write_program<'s>(
    parameters: impl Iterator<Item = (String, &'s Shape)>,
    result: &Shape,
) -> Result<ProgramShapeProto> {
    let mut proto = ProgramShapeProto { result: Some(write(result)?), ..ProgramShapeProto::default() };
    for (name, shape) in parameters {
        proto.parameters.push(write(shape)?);
        proto.parameter_names.push(name);
    }
    Ok(proto)
}
