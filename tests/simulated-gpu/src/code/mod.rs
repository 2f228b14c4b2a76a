//! Executable form of kernels: instructions are decoded once; registers and constants are numbered 64-bit slots.
//!
//! The bits of a slot above the width of the last write are unspecified, so an instruction reads only the bits of its
//! own type. Constants, addresses of variables and special registers are slots too, so an operand is always a slot.

mod alu;
mod approximate;
mod asynchronous;
mod collective;
mod convert;
mod decode;
mod expected;
mod float;
mod integer;
pub mod round;
mod slots;
mod types;
mod warp_group;

use crate::ptx::Space;

pub use approximate::Approximations;
pub use asynchronous::{Address, Phase, Request};
pub use collective::{Collective, Fragments, MatrixLoad, ShuffleMode, VoteMode};
pub use decode::decode;
pub use types::{Type, TypeKind};
pub use warp_group::{LeftFactor, Product, WarpGroup};

/// Index of a register or constant of a thread.
pub type Slot = u32;

/// Function of an arithmetic instruction, of up to three slots.
pub type Run = fn(u64, u64, u64) -> u64;

/// Guard of instructions that always execute.
pub const ALWAYS: Slot = Slot::MAX;

/// Operand of [`Op::WaitForCopies`] that waits for all copies, including those without a group (`cp.async.wait_all`).
pub const ALL_COPIES: u32 = u32::MAX;

/// Value of a register that was never written.
pub const POISON: u64 = 0x7ff4_dead_7fa4_dead;

/// Decoded kernel.
#[derive(Debug)]
pub struct Kernel {
    /// Symbol name.
    pub name: String,
    /// Instructions of the kernel.
    pub code: Vec<Instruction>,
    /// Line of each instruction in the PTX text.
    pub lines: Vec<u32>,
    /// Initial values of a thread's slots.
    pub image: Vec<u64>,
    /// Special registers, which depend on the thread, and their slots.
    pub specials: Vec<(Special, Slot)>,
    /// Slots of instructions with many operands; see [`Slots`].
    pub lists: Vec<Slot>,
    /// Collective instructions of warps.
    pub collectives: Vec<Collective>,
    /// Operations on mbarriers, and bulk copies.
    pub requests: Vec<Request>,
    /// Offset and size of each parameter.
    pub parameters: Vec<(usize, usize)>,
    /// Bytes of static shared memory; dynamic shared memory follows it.
    pub shared_bytes: usize,
    /// Bytes of local memory per thread.
    pub local_bytes: usize,
    /// Maximum number of threads of a block.
    pub most_threads: u32,
    /// Required block dimensions, if the kernel specifies them.
    pub exact_threads: Option<[u32; 3]>,
    /// Granularity of race detection, by space.
    pub granules: Granules,
    /// Whether threads wait for others.
    pub waits: bool,
    /// Whether the kernel uses mbarriers, bulk copies or wgmma, so that barriers of the block are not the only order of
    /// its threads.
    pub is_asynchronous: bool,
    /// Whether the kernel uses wgmma.
    pub multiplies: bool,
}

/// Smallest element that a kernel accesses individually, as log2 of its bytes, by space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granules {
    /// Granularity of global memory.
    pub global: u32,
    /// Granularity of shared memory.
    pub shared: u32,
}

/// Range of [`Kernel::lists`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Slots {
    /// Index of the first slot.
    pub start: u32,
    /// Number of slots.
    pub count: u32,
}

/// Instruction.
#[derive(Clone, Copy, Debug)]
pub struct Instruction {
    /// Predicate that guards the instruction; [`ALWAYS`] if there is none.
    pub guard: Slot,
    /// Whether the guard is negated.
    pub negated: bool,
    /// Operation.
    pub op: Op,
}

/// Memory operand: address, and kind of access.
#[derive(Clone, Copy, Debug)]
pub struct MemoryOperand {
    /// State space of the address.
    pub space: Space,
    /// Size of an element in bytes.
    pub bytes: u8,
    /// Whether loads sign-extend.
    pub is_signed: bool,
    /// Whether other threads may change the element concurrently by atomics: volatile and relaxed accesses, and loads
    /// of the expected value of a compare-and-swap.
    pub is_strong: bool,
    /// Slot of the base address.
    pub base: Slot,
    /// Constant offset from the base.
    pub offset: i32,
}

/// Operation of an instruction.
#[derive(Clone, Copy, Debug)]
pub enum Op {
    /// `d = run(a, b, c)`.
    Alu {
        /// Function to apply.
        run: Run,
        /// Slot for the result.
        d: Slot,
        /// Operands; those that the function ignores are arbitrary slots.
        abc: [Slot; 3],
    },
    /// Copies a register without reading its value, which may still be pending.
    Move {
        /// Slot for the copy.
        d: Slot,
        /// Slot to copy.
        from: Slot,
    },
    /// Applies a function to both halves of registers.
    Packed {
        /// Function to apply to each half.
        run: Run,
        /// Slot for the result.
        d: Slot,
        /// Operands of the function.
        abc: [Slot; 3],
        /// Bits of a half.
        bits: u32,
    },
    /// `lop3`: `d = table(a, b, c)`, a bitwise function by its truth table.
    Lop3 {
        /// Slot for the result.
        d: Slot,
        /// Operands, whose bits select an entry of the table.
        abc: [Slot; 3],
        /// Truth table.
        table: u8,
    },
    /// Splits a slot into parts, the lowest first.
    Split {
        /// Source slot.
        from: Slot,
        /// Slots of the parts.
        into: Slots,
        /// Width of a part in bits.
        bits: u32,
    },
    /// Joins parts to one slot, the lowest first.
    Join {
        /// Destination slot.
        into: Slot,
        /// Slots of the parts.
        from: Slots,
        /// Width of a part in bits.
        bits: u32,
    },
    /// Loads consecutive elements of memory into slots.
    Load {
        /// Address and kind of access.
        place: MemoryOperand,
        /// Destination slots.
        into: Slots,
    },
    /// Stores slots to consecutive elements of memory.
    Store {
        /// Address and kind of access.
        place: MemoryOperand,
        /// Source slots.
        from: Slots,
    },
    /// Atomic read-modify-write of memory.
    Atomic {
        /// Address and kind of access.
        place: MemoryOperand,
        /// Function that returns the new value; its first operand is the value in memory.
        run: Run,
        /// Slot for the old value.
        d: Slot,
        /// Other operands of the function.
        ab: [Slot; 2],
    },
    /// `cp.async`: starts a copy into shared memory, which is complete after a [`Op::WaitForCopies`].
    CopyAsync {
        /// Destination.
        to: MemoryOperand,
        /// Source.
        from: MemoryOperand,
        /// Size of the destination in bytes.
        bytes: u32,
        /// Slot with the number of bytes to read from the source; the rest is filled with zeros.
        read: Slot,
    },
    /// `cp.async.commit_group`: ends a group of the thread's copies.
    EndCopyGroup,
    /// `cp.async.wait_group`: waits until at most this number of the latest groups are pending; [`ALL_COPIES`] waits
    /// for all copies, committed or not.
    WaitForCopies(u32),
    /// Jumps to an instruction.
    Branch(u32),
    /// `bar.sync`: waits for all threads of the block, or for the number in slot `count`.
    Barrier {
        /// Index of the barrier.
        id: Slot,
        /// Number of threads; zero for all.
        count: Slot,
        /// Whether all threads of a warp must execute the same instruction.
        aligned: bool,
    },
    /// Collective instruction of a warp: an index into [`Kernel::collectives`].
    Collective(u32),
    /// Operation on an mbarrier, or a bulk copy.
    Request {
        /// Index into [`Kernel::requests`].
        number: u32,
        /// Whether this is a copy, whose address may depend on values that the thread has read.
        copies: bool,
    },
    /// Sets the condition of a conditional graph node: handle and value.
    SetCondition([Slot; 2]),
    /// `ret`, `exit`: ends the thread.
    Return,
    /// `trap`: ends the thread with an error.
    Trap,
    /// No operation.
    Nothing,
}

impl Op {
    /// Whether the operation may reveal values that the thread has read to other threads or to the host.
    #[inline]
    pub fn tells_others(self) -> bool {
        matches!(
            self,
            Op::Store { .. }
                | Op::Atomic { .. }
                | Op::CopyAsync { .. }
                | Op::Collective(_)
                | Op::Request { copies: true, .. }
                | Op::SetCondition(_)
        )
    }
}

/// Special register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    /// `%tid`: index of the thread in its block, by dimension.
    Thread(usize),
    /// `%ntid`: block dimensions.
    Threads(usize),
    /// `%ctaid`: index of the block, by dimension.
    Block(usize),
    /// `%nctaid`: grid dimensions.
    Blocks(usize),
    /// `%laneid`: index of the lane in its warp.
    Lane,
    /// `%warpid`: index of the warp.
    Warp,
    /// `%lanemask_eq`, `_lt`, `_le`, `_gt`, `_ge`: mask of the lanes that compare so to this one.
    LaneMask(std::cmp::Ordering, bool),
    /// `%dynamic_smem_size`: bytes of dynamic shared memory.
    DynamicShared,
}

impl Kernel {
    /// Returns the slots of a range.
    #[inline]
    pub fn list(&self, slots: Slots) -> &[Slot] {
        &self.lists[slots.start as usize..][..slots.count as usize]
    }
}
