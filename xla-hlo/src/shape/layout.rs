//! Layout of an array in memory: dimension order, tiles, packing and memory space.

use std::fmt;

/// Memory kinds by name, with their [memory spaces](Layout::memory_space) in XLA's numbering. The first one is the
/// default.
pub const MEMORY_KINDS: [(&str, i64); 3] = [("device", 0), ("pinned_host", 5), ("unpinned_host", 6)];

/// Order of an array's dimensions in memory, with device-specific additions.
///
/// `minor_to_major` lists dimensions from fastest to slowest varying; row-major is `{n-1,...,1,0}`.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Layout {
    /// Dimension numbers, fastest varying first; one for each dimension of the array.
    pub minor_to_major: Vec<usize>,
    /// Tilings, outermost first; empty for a plain strided array.
    pub tiles: Vec<Tile>,
    /// `L(n)`: the array is padded at its end to a multiple of `n` elements; 1 for no padding.
    pub tail_padding_alignment: u64,
    /// `#(type)`: element type of sparse index arrays (legacy).
    pub index_type: Option<crate::ElementType>,
    /// `*(type)`: element type of sparse pointer arrays (legacy).
    pub pointer_type: Option<crate::ElementType>,
    /// `E(n)`: bits of one element in memory if that differs from the type's width; 0 for the default.
    pub element_size_in_bits: u32,
    /// `S(n)`: 0 is the device's default memory; [`MEMORY_KINDS`] contains the host's memory spaces.
    pub memory_space: i64,
    /// `SC(dim:idx,...)`: split of the array over memories.
    pub split_configs: Vec<SplitConfig>,
    /// `M(n)`: bytes of dynamic-shape metadata in front of the data.
    pub dynamic_metadata_bytes: u64,
}

/// Tile of one level of tiling. A dimension is a size, or is combined with the next more minor one (`*`).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Tile(pub Vec<TileDim>);

/// Dimension of a [`Tile`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TileDim {
    /// Number of elements along this dimension.
    Size(u64),
    /// `*`: merged with the next more minor dimension.
    Combine,
}

/// `SC(dimension:index,...)`: split of a dimension.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SplitConfig {
    /// Dimension that is split.
    pub dimension: usize,
    /// Indices at which the dimension is split.
    pub indices: Vec<u64>,
}

impl Layout {
    /// Creates a row-major layout: the last dimension varies fastest.
    pub fn row_major(rank: usize) -> Layout {
        Layout::from_minor_to_major((0..rank).rev().collect())
    }

    /// Creates a plain strided layout of that dimension order.
    pub fn from_minor_to_major(minor_to_major: Vec<usize>) -> Layout {
        Layout { minor_to_major, tail_padding_alignment: 1, ..Layout::default() }
    }

    /// Whether dimensions are in row-major order (tiles and packing are ignored).
    pub fn is_row_major(&self) -> bool {
        self.minor_to_major.iter().rev().copied().eq(0..self.minor_to_major.len())
    }

    /// Whether the layout states only a dimension order.
    pub fn is_plain(&self) -> bool {
        let Layout {
            minor_to_major: _,
            tiles,
            tail_padding_alignment,
            index_type,
            pointer_type,
            element_size_in_bits,
            memory_space,
            split_configs,
            dynamic_metadata_bytes,
        } = self;
        tiles.is_empty()
            && *tail_padding_alignment <= 1
            && index_type.is_none()
            && pointer_type.is_none()
            && *element_size_in_bits == 0
            && *memory_space == 0
            && split_configs.is_empty()
            && *dynamic_metadata_bytes == 0
    }

    /// Whether `minor_to_major` names each of `rank` dimensions once.
    pub fn is_permutation_of(&self, rank: usize) -> bool {
        let mut seen = vec![false; rank];
        self.minor_to_major.len() == rank
            && self.minor_to_major.iter().all(|&d| d < rank && !std::mem::replace(&mut seen[d], true))
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        write_list(f, &self.minor_to_major)?;
        if !self.is_plain() {
            f.write_str(":")?;
            self.fmt_items(f)?;
        }
        f.write_str("}")
    }
}

impl Layout {
    fn fmt_items(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.tiles.is_empty() {
            f.write_str("T")?;
            for tile in &self.tiles {
                write!(f, "({tile})")?;
            }
        }
        if self.tail_padding_alignment > 1 {
            write!(f, "L({})", self.tail_padding_alignment)?;
        }
        if let Some(t) = self.index_type {
            write!(f, "#({t})")?;
        }
        if let Some(t) = self.pointer_type {
            write!(f, "*({t})")?;
        }
        if self.element_size_in_bits != 0 {
            write!(f, "E({})", self.element_size_in_bits)?;
        }
        if self.memory_space != 0 {
            write!(f, "S({})", self.memory_space)?;
        }
        if !self.split_configs.is_empty() {
            f.write_str("SC")?;
            for split in &self.split_configs {
                write!(f, "({}:", split.dimension)?;
                write_list(f, &split.indices)?;
                f.write_str(")")?;
            }
        }
        if self.dynamic_metadata_bytes != 0 {
            write!(f, "M({})", self.dynamic_metadata_bytes)?;
        }
        Ok(())
    }
}

impl fmt::Display for Tile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, dim) in self.0.iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            match dim {
                TileDim::Size(n) => write!(f, "{comma}{n}")?,
                TileDim::Combine => write!(f, "{comma}*")?,
            }
        }
        Ok(())
    }
}

fn write_list<T: fmt::Display>(f: &mut fmt::Formatter<'_>, items: &[T]) -> fmt::Result {
    for (i, item) in items.iter().enumerate() {
        let comma = if i > 0 { "," } else { "" };
        write!(f, "{comma}{item}")?;
    }
    Ok(())
}
