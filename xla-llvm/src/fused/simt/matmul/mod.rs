//! Matmuls by threads: a block for each tile of the result, skinny ones at the pace of memory, K split over launches.

pub(crate) mod alternatives;
pub(crate) mod cut;
mod groups;
mod mma;
pub(crate) mod skinny;
pub(crate) mod split_k;
mod staged;
mod tile;
pub(crate) mod tiles;
pub(crate) mod tiling;
