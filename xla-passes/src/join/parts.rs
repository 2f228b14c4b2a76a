//! Parts of an array on the devices of a program, cut from the whole array.

use xla_hlo::sdy::Reduction;
use xla_hlo::{ArrayShape, Error, LeafSharding, Literal, Result, ShardingKind, multi_index};

use super::spread::Tiles;

/// Array of a program for several devices, and the part of it that each device has.
#[derive(Clone, Debug)]
pub struct ArrayParts {
    whole: ArrayShape,
    part: ArrayShape,
    /// Index of the first element of each partition's part.
    starts: Vec<Vec<usize>>,
}

impl ArrayParts {
    /// Computes the whole array from its sharding and the shape of a part.
    ///
    /// Errors: those of the sharding, and `Error::InvalidArgument` if the devices have operands of a reduction
    /// (`unreduced`) instead of parts.
    pub fn new(sharding: &LeafSharding, part: &ArrayShape, partitions: usize) -> Result<ArrayParts> {
        let counts = match &sharding.kind {
            ShardingKind::Tiled(tiled) => &tiled.tile_dims[..],
            _ => &[],
        };
        let count = |d: usize| counts.get(d).map_or(Some(1), |&count| usize::try_from(count).ok());
        let size = |(d, &size): (usize, &usize)| count(d).and_then(|count| size.checked_mul(count));
        let dims = part.dims().iter().enumerate().map(size).collect::<Option<Vec<usize>>>();
        let dims = dims.ok_or_else(|| Error::invalid_argument("the whole of a split array is too large"))?;
        let whole = ArrayShape::new(part.element_type(), dims);
        let tiles = Tiles::new(sharding, Reduction::Sum, &whole, partitions)?;
        if tiles.grid.operands > 1 {
            let message = "the devices have operands of a sum, not parts of an array: each needs an array of its own";
            return Err(Error::invalid_argument(message));
        }
        let start = |&number: &usize| {
            let place = multi_index(&tiles.grid.dims, number);
            place.iter().zip(part.dims()).map(|(place, size)| place * size).collect()
        };
        let starts = tiles.of_partition.iter().map(start).collect();
        Ok(ArrayParts { whole, part: part.clone().with_layout(None), starts })
    }

    /// Returns the shape of the whole array, without a layout.
    pub fn whole(&self) -> &ArrayShape {
        &self.whole
    }

    /// Returns the first partition with the part of a partition.
    pub fn owner(&self, partition: usize) -> usize {
        let own = self.starts.get(partition);
        self.starts.iter().position(|start| Some(start) == own).unwrap_or(partition)
    }

    /// Cuts the part of a partition from an array of the shape [`ArrayParts::whole`].
    pub fn cut(&self, whole: &Literal, partition: usize) -> Result<Literal> {
        if self.whole.dims() == self.part.dims() {
            return Ok(whole.clone());
        }
        let start = self.starts.get(partition).ok_or_else(|| Error::internal("a device has no part of an array"))?;
        let mut part = Literal::zeros(&self.part)?;
        let count = self.part.element_count();
        if count == 0 {
            return Ok(part);
        }
        let width = part.byte_len() / count;
        // The elements of a row are contiguous in the whole array and in the part.
        let (row, outer) = self.part.dims().split_last().map_or((1, &[][..]), |(&row, outer)| (row, outer));
        for (number, target) in part.bytes_mut().chunks_exact_mut(row * width).enumerate() {
            let mut index = multi_index(outer, number);
            index.push(0);
            let at = index.iter().zip(start).zip(self.whole.dims());
            let first = at.fold(0, |linear, ((index, start), size)| linear * size + index + start);
            target.copy_from_slice(&whole.bytes()[first * width..][..row * width]);
        }
        Ok(part)
    }
}
