//! Kernels in executable form: instructions decoded once, registers and constants as numbered slots of 64 bits.
//!
//! A slot's upper bits beyond the width of what was written are not specified; who reads a slot looks at the bits of
//! its own type alone. Constants, addresses of variables and special registers are slots too, so an operand is always a
//! slot.

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

/// The number of a register or of a constant of a thread.
pub type Slot = u32;

/// The function of an instruction without memory, of up to three slots.
pub type Run = fn(u64, u64, u64) -> u64;

/// The slot of instructions that are always done.
pub const ALWAYS: Slot = Slot::MAX;

/// Number of groups of copies that stands for waiting for all copies, those of no group too.
pub const ALL_COPIES: u32 = u32::MAX;

/// The value of a register that nobody has written.
pub const POISON: u64 = 0x7ff4_dead_7fa4_dead;

/// A kernel.
#[derive(Debug)]
pub struct Kernel {
    /// Its symbol.
    pub name: String,
    /// The instructions.
    pub code: Vec<Instruction>,
    /// The line of each instruction in the PTX text.
    pub lines: Vec<u32>,
    /// Initial values of a thread's slots.
    pub image: Vec<u64>,
    /// Slots that depend on the thread.
    pub specials: Vec<(Special, Slot)>,
    /// Slots of instructions that have many: see [`Slots`].
    pub lists: Vec<Slot>,
    /// Collective instructions of the lanes of a warp.
    pub collectives: Vec<Collective>,
    /// Requests to barriers in memory and for bulk copies.
    pub requests: Vec<Request>,
    /// Offset and size of each parameter.
    pub parameters: Vec<(usize, usize)>,
    /// Bytes of shared memory that the kernel declares; dynamic memory follows it.
    pub shared_bytes: usize,
    /// Bytes of local memory of a thread.
    pub local_bytes: usize,
    /// The most threads of a block.
    pub most_threads: u32,
    /// The threads of a block by dimension, if it has no others.
    pub exact_threads: Option<[u32; 3]>,
    /// The smallest element of global and of shared memory that is touched alone: 1, 2 or 4 bytes.
    pub granules: Granules,
    /// Whether threads wait for others.
    pub waits: bool,
    /// Whether it has barriers in memory, bulk copies or products of warp groups, so that its threads are ordered by
    /// more than barriers of the block.
    pub is_asynchronous: bool,
    /// Whether it has products of warp groups.
    pub multiplies: bool,
}

/// The smallest element that a kernel touches alone, as a power of two, by space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granules {
    /// Of global memory.
    pub global: u32,
    /// Of shared memory.
    pub shared: u32,
}

/// Some of [`Kernel::lists`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Slots {
    /// The first one.
    pub start: u32,
    /// Number of slots.
    pub count: u32,
}

/// An instruction.
#[derive(Clone, Copy, Debug)]
pub struct Instruction {
    /// Done where this predicate holds; [`ALWAYS`] for none.
    pub guard: Slot,
    /// Done where it does not hold.
    pub negated: bool,
    /// Operation.
    pub op: Op,
}

/// A place in memory, and how it is touched.
#[derive(Clone, Copy, Debug)]
pub struct MemoryOperand {
    /// The state space.
    pub space: Space,
    /// Bytes of an element.
    pub bytes: u8,
    /// Whether elements are read with their sign.
    pub is_signed: bool,
    /// Whether other threads may change it at the same time by atomics: volatile and relaxed accesses, and those that
    /// an exchange checks again.
    pub is_strong: bool,
    /// The slot of the address.
    pub base: Slot,
    /// Added to it.
    pub offset: i32,
}

/// Operation of an instruction.
#[derive(Clone, Copy, Debug)]
pub enum Op {
    /// `d = run(a, b, c)`.
    Alu {
        /// The function.
        run: Run,
        /// The result.
        d: Slot,
        /// The operands; those that the function does not look at may be any.
        abc: [Slot; 3],
    },
    /// A register's value as it is, which need not be there yet.
    Move {
        /// The result.
        d: Slot,
        /// The value.
        from: Slot,
    },
    /// The same for both halves of registers.
    Packed {
        /// The function.
        run: Run,
        /// The result.
        d: Slot,
        /// The operands.
        abc: [Slot; 3],
        /// Bits of a half.
        bits: u32,
    },
    /// `d = run(a, b, c, number)`: a bitwise function by its table.
    Lop3 {
        /// The result.
        d: Slot,
        /// The operands.
        abc: [Slot; 3],
        /// The table.
        table: u8,
    },
    /// Parts of a slot into slots, the lowest first.
    Split {
        /// The whole.
        from: Slot,
        /// The parts.
        into: Slots,
        /// Bits of a part.
        bits: u32,
    },
    /// Parts put together, the lowest first.
    Join {
        /// The whole.
        into: Slot,
        /// The parts.
        from: Slots,
        /// Bits of a part.
        bits: u32,
    },
    /// Elements of memory, one after another, into slots.
    Load {
        /// Where.
        place: MemoryOperand,
        /// Into which slots.
        into: Slots,
    },
    /// Slots into memory.
    Store {
        /// Where.
        place: MemoryOperand,
        /// Source slots.
        from: Slots,
    },
    /// A change of memory that no other thread sees half done.
    Atomic {
        /// Where.
        place: MemoryOperand,
        /// Function of the value in memory, its first operand.
        run: Run,
        /// Slot for the old value.
        d: Slot,
        /// The other operands.
        ab: [Slot; 2],
    },
    /// Begins a copy into shared memory that is done by the time of a [`Op::WaitForCopies`].
    CopyAsync {
        /// Destination.
        to: MemoryOperand,
        /// Source.
        from: MemoryOperand,
        /// Bytes of the destination.
        bytes: u32,
        /// Slot for the bytes of the source; zeros follow.
        read: Slot,
    },
    /// Ends a group of the thread's copies.
    EndCopyGroup,
    /// Waits until no more than so many of the last groups are under way; [`ALL_COPIES`] for none, ended or not.
    WaitForCopies(u32),
    /// Goes on elsewhere.
    Branch(u32),
    /// Waits for all threads of the block, or for as many as slot `count` says.
    Barrier {
        /// Number of the barrier.
        id: Slot,
        /// Number of threads; zero for all.
        count: Slot,
        /// Whether all threads of a warp must be at the same instruction.
        aligned: bool,
    },
    /// Something that lanes of a warp do together: a number of [`Kernel::collectives`].
    Collective(u32),
    /// Something of barriers in memory or of bulk copies.
    Request {
        /// A number of [`Kernel::requests`].
        number: u32,
        /// Whether it is a copy, whose place depends on what the thread has read.
        copies: bool,
    },
    /// Sets the condition of a loop of a graph: handle and value.
    SetCondition([Slot; 2]),
    /// The thread's end.
    Return,
    /// An end that is a fault.
    Trap,
    /// Nothing.
    Nothing,
}

impl Op {
    /// Whether it may reveal values that the thread has read to other threads or the host.
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

/// A register that says which thread it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    /// Number of the thread in its block, by dimension.
    Thread(usize),
    /// Threads of a block.
    Threads(usize),
    /// Number of the block.
    Block(usize),
    /// Blocks of the grid.
    Blocks(usize),
    /// Number in the warp.
    Lane,
    /// Number of the warp.
    Warp,
    /// Bits of lanes that compare so to this one: `eq`, `lt`, `le`, `gt`, `ge`.
    LaneMask(std::cmp::Ordering, bool),
    /// Bytes of dynamic shared memory.
    DynamicShared,
}

impl Kernel {
    /// Slots of an instruction.
    #[inline]
    pub fn list(&self, slots: Slots) -> &[Slot] {
        &self.lists[slots.start as usize..][..slots.count as usize]
    }
}
