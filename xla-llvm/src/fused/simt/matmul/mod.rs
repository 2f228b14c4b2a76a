//! Matmul kernels for SIMT targets: a block per output tile, memory-bound skinny matmuls (GEMV), and split-K.

pub(crate) mod alternatives;
pub(crate) mod cut;
mod mma;
mod multistage;
pub(crate) mod skinny;
pub(crate) mod split_k;
mod tile;
pub(crate) mod tiles;
pub(crate) mod tiling;
mod wgmma;
