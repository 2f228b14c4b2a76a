//! Dots and convolutions as GEMMs for all targets; for CPUs with vectors, register-blocked GEMM kernels.
//!
//! ```text
//! matmul.rs        batch, M, N, K, and the indices of operands and results in terms of them; also used by `simt`
//! tma_layout.rs    TMA layouts of operands on GPUs
//! arrays.rs        positions of the elements in memory, and the loops over K that follow from them
//! axes.rs          merging of dimensions into loops
//! tiling.rs        tile sizes, packing of operands, blocks of columns
//! batch_matmul.rs  one GEMM of the batch: indices of elements, scratch memory
//! blocks.rs        the loop nest: blocks of columns, row tiles, panels
//! panels.rs        packing of operands into scratch memory, ordered as tiles read them
//! groups.rs        dot-product instructions, which multiply groups of neighbouring steps of K
//! group_panels.rs  packing of groups
//! along_k.rs       one tile of operands that are contiguous along K: lanes are steps of K
//! tile.rs          one tile: the loop over K, its accumulators in registers, and its results
//! attention/       two GEMMs with a softmax between them, by blocks of keys
//! ```

mod along_k;
mod arrays;
pub(crate) mod attention;
pub(crate) mod axes;
mod batch_matmul;
mod blocks;
mod group_panels;
pub(crate) mod groups;
pub(crate) mod matmul;
mod panels;
mod tile;
pub(crate) mod tiling;
pub(crate) mod tma_layout;
