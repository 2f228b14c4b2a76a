//! Instructions of warp groups (`wgmma`).

use super::{Slot, Slots, Type};

/// Instruction of a warp group; each of its warps executes it separately.
#[derive(Clone, Copy, Debug)]
pub enum WarpGroup {
    /// `wgmma.fence`: orders prior register accesses before later wgmma.
    Fence,
    /// `wgmma.commit_group`: ends a group of wgmma.
    Commit,
    /// `wgmma.wait_group`: waits until at most this number of the latest groups are pending.
    Wait(u32),
    /// `wgmma.mma_async`.
    Multiply(Product),
}

/// Matrix multiply-accumulate `D = A B + D` with 64 rows, 16 of them for each warp.
#[derive(Clone, Copy, Debug)]
pub struct Product {
    /// Number of columns `N`.
    pub columns: usize,
    /// Type of A and B: `f16`, `bf16` or `tf32`. D is in single precision.
    pub factors: Type,
    /// Registers of D: half the number of columns.
    pub d: Slots,
    /// Operand A.
    pub a: LeftFactor,
    /// Matrix descriptor of B.
    pub b: Slot,
    /// Predicate: whether to add to D instead of overwriting it (`scale-d`).
    pub adds: Slot,
    /// Whether the product is negated.
    pub negates: bool,
    /// Whether A is M-major and B is N-major (`imm-trans-a`, `imm-trans-b`); otherwise they are K-major.
    pub transposed: [bool; 2],
}

/// Operand A of a wgmma.
#[derive(Clone, Copy, Debug)]
pub enum LeftFactor {
    /// A in four registers of each lane.
    Registers(Slots),
    /// A in shared memory; the slot holds a matrix descriptor.
    Memory(Slot),
}
