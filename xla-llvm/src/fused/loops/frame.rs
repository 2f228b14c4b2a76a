//! Function around a kernel: addresses of its arrays, and the work items of a call.

use inkwell::AddressSpace;
use inkwell::values::{BasicValueEnum, FunctionValue, PointerValue};
use xla_hlo::{Error, Result};

use crate::emitter::Emitter;
use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::{Symbol, SymbolId};
use crate::fused::loops::range::Range;
use crate::fused::simt::block_thread::BlockThread;
use crate::fused::value::SymbolValue;
use crate::lanes::Lanes;
use crate::simt::{Register, WARP};

/// Kernel function whose entry block is being emitted.
pub(crate) struct Frame<'e, 'ctx> {
    /// Addresses of the operands, then of the results.
    pub pointers: Vec<PointerValue<'ctx>>,
    pub work_items: WorkItems<'e, 'ctx>,
}

/// Work items that a call or thread executes.
#[derive(Clone, Copy)]
pub(crate) enum WorkItems<'e, 'ctx> {
    /// The range `begin..end`.
    Range { begin: Lanes<'e, 'ctx>, end: Lanes<'e, 'ctx> },
    /// The item with the number of the thread in the launch, if it exists.
    Thread,
    /// The item with the number of the thread's group, which executes it together: a warp, or a block of `threads`
    /// threads.
    Group { threads: u32 },
    /// All items, by a block of `threads` threads, each with a stride of `threads`.
    Block { threads: u32 },
    /// All items, by the groups of a block of `threads` threads: its warps with a stride, or all threads together,
    /// sequentially.
    BlockGroups { threads: u32, group: u32 },
}

impl WorkItems<'_, '_> {
    /// Returns the assignment of work items to groups of `group` threads: groups of one block, or of a launch.
    pub fn for_groups(self, group: u32) -> Self {
        match self {
            WorkItems::Block { threads } => WorkItems::BlockGroups { threads, group },
            WorkItems::Range { .. } | WorkItems::Thread => WorkItems::Group { threads: group },
            WorkItems::Group { .. } | WorkItems::BlockGroups { .. } => self,
        }
    }
}

impl<'e, 'ctx> Frame<'e, 'ctx> {
    /// Adds the function `void name(ptr pointers, i64 begin, i64 end)` or, for a target with threads, a kernel with one
    /// parameter per address.
    pub fn open(emitter: &'e Emitter<'ctx>, name: &str, pointers: usize) -> Result<Frame<'e, 'ctx>> {
        Frame::open_with_maps(emitter, name, [pointers, 0])
    }

    /// Opens a frame with this number of addresses and, on a GPU, of tensor maps for TMA.
    pub fn open_with_maps(
        emitter: &'e Emitter<'ctx>,
        name: &str,
        [pointers, maps]: [usize; 2],
    ) -> Result<Frame<'e, 'ctx>> {
        if emitter.target().simt().is_some() {
            let kernel = emitter.simt_kernel_with_maps(name, [pointers, 0, maps])?;
            return Ok(Frame { pointers: kernel.pointers, work_items: WorkItems::Thread });
        }
        let context = emitter.context();
        let pointer = context.ptr_type(AddressSpace::default());
        let long = context.i64_type();
        let ty = context.void_type().fn_type(&[pointer.into(), long.into(), long.into()], false);
        let function = emitter.module().add_function(name, ty, None);
        emitter.decorate(function);
        emitter.builder().position_at_end(context.append_basic_block(function, "entry"));
        let (begin, end) = (parameter(emitter, function, 1)?, parameter(emitter, function, 2)?);
        let Some(BasicValueEnum::PointerValue(array)) = function.get_nth_param(0) else {
            return Err(Error::internal("a kernel lacks its pointers"));
        };
        emitter.begin_scratch(array, pointers);
        let pointers = (0..pointers).map(|i| emitter.load_pointer(array, i)).collect::<Result<_>>()?;
        Ok(Frame { pointers, work_items: WorkItems::Range { begin, end } })
    }
}

fn parameter<'e, 'ctx>(
    emitter: &'e Emitter<'ctx>,
    function: FunctionValue<'ctx>,
    number: u32,
) -> Result<Lanes<'e, 'ctx>> {
    let value = function.get_nth_param(number).ok_or_else(|| Error::internal("a kernel lacks a parameter"))?;
    Ok(emitter.lanes(value))
}

impl<'e, 'ctx, 'm> FusedEmitter<'e, 'ctx, 'm> {
    /// Runs `body` for each work item of the call, out of `count` in total.
    pub(crate) fn for_work_items(
        &mut self,
        work_items: WorkItems<'e, 'ctx>,
        count: u64,
        body: &mut dyn FnMut(&mut Self, SymbolId) -> Result<()>,
    ) -> Result<()> {
        match work_items {
            WorkItems::Range { begin, end } => {
                let range = Range { start: begin, end, extent: Some(count), width: 1, step: 1, whole: true };
                self.for_each(range, Vec::new(), &mut |s, item, _| body(s, item).map(|()| Vec::new()))?;
            }
            WorkItems::Thread => {
                let number = self.thread_number(count)?;
                self.when(number.ult(count as i64), &[], |s| {
                    s.item_level = s.depth();
                    let item = s.uniform_symbol(number, Some(count));
                    body(s, item).map(|()| Vec::new())
                })?;
            }
            WorkItems::Group { threads: WARP } => {
                let number = self.thread_number(count * u64::from(WARP))?.lshr(i64::from(WARP.ilog2()));
                self.when(number.ult(count as i64), &[], |s| {
                    s.item_level = s.depth();
                    let item = s.uniform_symbol(number, Some(count));
                    body(s, item).map(|()| Vec::new())
                })?;
            }
            WorkItems::Block { threads } => {
                let member = BlockThread::new(self.emitter, threads.into())?;
                member.each(self, count, &mut |s, number| {
                    s.item_level = s.depth();
                    let item = s.uniform_symbol(number.zext(64), Some(count));
                    body(s, item)
                })?;
            }
            WorkItems::BlockGroups { threads, group: WARP } => {
                let member = BlockThread::new(self.emitter, threads.into())?;
                // Warps take items with a stride, as threads do.
                let warp = BlockThread { thread: member.warp, threads: (threads / WARP).into(), ..member };
                warp.each(self, count, &mut |s, number| {
                    s.item_level = s.depth();
                    let item = s.uniform_symbol(number.zext(64), Some(count));
                    body(s, item)
                })?;
            }
            WorkItems::BlockGroups { .. } => {
                let turns = self.full_range(count, 1);
                self.for_each(turns, Vec::new(), &mut |s, item, _| {
                    s.item_level = s.depth();
                    body(s, item)?;
                    // The next item writes to shared memory that other threads may still read.
                    if count > 1 {
                        s.emitter.barrier()?;
                    }
                    Ok(Vec::new())
                })?;
            }
            WorkItems::Group { .. } => {
                let number = self.emitter.register(Register::Block)?.zext(64);
                let item = self.uniform_symbol(number, Some(count));
                body(self, item)?;
            }
        }
        Ok(())
    }

    /// Defines a symbol at the deepest level for a number that is uniform across lanes.
    pub(crate) fn uniform_symbol(&mut self, number: Lanes<'e, 'ctx>, extent: Option<u64>) -> SymbolId {
        let level = self.depth();
        self.define(Symbol { extent, level }, SymbolValue::Uniform(number))
    }

    /// Returns the thread's number among all threads of a launch of about `count`.
    fn thread_number(&self, count: u64) -> Result<Lanes<'e, 'ctx>> {
        let [thread, block, threads] =
            [Register::Thread, Register::Block, Register::Threads].map(|register| self.emitter.register(register));
        let (thread, block, threads) = (thread?, block?, threads?);
        // 32-bit arithmetic is twice as fast on a GPU. The last block exceeds the count by less than its number of
        // threads.
        Ok(match count < 1 << 31 {
            true => (block * threads + thread).zext(64),
            false => block.zext(64) * threads.zext(64) + thread.zext(64),
        })
    }
}
