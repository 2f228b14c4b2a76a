//! Instructions of warp groups: `wgmma`.

use super::{Slot, Slots, Type};

/// An instruction of the warps of a warp group, each of which is asked alone.
#[derive(Clone, Copy, Debug)]
pub enum WarpGroup {
    /// Orders registers before products that come.
    Fence,
    /// Ends a group of products.
    Commit,
    /// Waits until no more than so many of the last groups are under way.
    Wait(u32),
    /// A product.
    Multiply(Product),
}

/// A product of 64 rows, a quarter of them a warp's.
#[derive(Clone, Copy, Debug)]
pub struct Product {
    /// Columns.
    pub columns: usize,
    /// The type of the factors: `f16`, `bf16` or `tf32`. Sums are singles.
    pub factors: Type,
    /// Registers of the sums: half as many as columns.
    pub d: Slots,
    /// The left factor.
    pub a: LeftFactor,
    /// The descriptor of the right factor.
    pub b: Slot,
    /// Whether it is added to what is there.
    pub adds: Slot,
    /// Whether the product is negated.
    pub negates: bool,
    /// Whether elements along the rows of the left factor, and along the columns of the right one, are neighbours in
    /// memory.
    pub transposed: [bool; 2],
}

/// The left factor.
#[derive(Clone, Copy, Debug)]
pub enum LeftFactor {
    /// Four registers.
    Registers(Slots),
    /// In shared memory, as a descriptor says.
    Memory(Slot),
}
