//! Dots and convolutions as matmuls, whatever computes them; on processors with vectors, tiles of sums in registers.
//!
//! ```text
//! matmul.rs    batch, M, N, K, and the elements of operands and result by them; threads have it from here, too
//! bulk.rs      operands as arrays that a GPU copies boxes from
//! axes.rs      which of their dimensions are one loop
//! tiling.rs    the size of tiles, what is packed, blocks of columns
//! job.rs       one matmul of the batch: the indices of elements, scratch memory
//! blocks.rs    the loops: blocks of columns, tiles of rows, panels
//! panels.rs    operands in scratch memory, as tiles read them
//! along_k.rs   one tile of operands that lie along K: lanes are steps of K
//! tile.rs      one tile: the loop over K, its sums in registers, and its results
//! ```

mod along_k;
mod axes;
mod blocks;
pub(crate) mod bulk;
mod job;
pub(crate) mod matmul;
mod panels;
mod tile;
pub(crate) mod tiling;
