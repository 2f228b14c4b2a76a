//! Kernels whose work items are distributed over threads, by the runtime or by a function of the application.
//!
//! The application's `void parallel_for(ptr pool, size count, ptr task, ptr data)` calls `task(data, number)` once for
//! each number below `count`, on any threads, and returns when all calls have returned. A task's number determines its
//! work items and its scratch memory, so it can run on any thread.

use inkwell::module::Linkage;
use inkwell::types::IntType;
use inkwell::values::{BasicValueEnum, FunctionValue, IntValue, PointerValue};
use inkwell::{AddressSpace, IntPredicate};
use xla_cpu_runtime::{PARALLEL, PARALLEL_WITH_SCRATCH};
use xla_hlo::{Error, Result};
use xla_llvm::emitter::Emitter;
use xla_llvm::fused::Kernel;

use crate::program::refused::refused;

/// Minimum work of a kernel that is distributed over threads, in elementary operations. Smaller kernels finish before
/// other threads wake up.
const PARALLEL_WORK: f64 = 300_000.0;
/// Minimum work of a chunk of a distributed kernel.
const CHUNK_WORK: f64 = 60_000.0;

/// Whether a kernel's work is distributed over this number of threads.
pub(crate) fn is_spread(kernel: &Kernel, threads: usize) -> bool {
    threads > 1 && kernel.work_items > 1 && kernel.work >= PARALLEL_WORK
}

/// Returns the size of a kernel's scratch memory for all of its threads, in bytes.
pub(crate) fn scratch_bytes(kernel: &Kernel, threads: usize) -> u64 {
    let users = if is_spread(kernel, threads) { kernel.work_items.min(threads as u64) } else { 1 };
    kernel.scratch_bytes.saturating_mul(users)
}

/// Returns the minimum number of work items of a chunk.
fn grain(kernel: &Kernel) -> u64 {
    (kernel.work_items as f64 * CHUNK_WORK / kernel.work).ceil().max(1.0) as u64
}

/// Function of the application that distributes work over threads.
#[derive(Clone, Copy)]
pub(crate) struct ParallelFor<'ctx> {
    /// Address of the function; null if the application provides none.
    pub function: PointerValue<'ctx>,
    /// User data of the application, passed to the function.
    pub pool: PointerValue<'ctx>,
}

/// Call of a kernel whose work is distributed.
pub(crate) struct Spread<'a, 'ctx> {
    pub kernel: &'a Kernel,
    /// The kernel, or its wrapper.
    pub callee: FunctionValue<'ctx>,
    /// Address of the arguments and their number; scratch memory, if used, is the last argument.
    pub arguments: (PointerValue<'ctx>, usize),
    /// Maximum number of threads.
    pub threads: usize,
}

impl<'ctx> Spread<'_, 'ctx> {
    /// Emits a call of the runtime, which distributes the work, at the builder's position.
    pub fn by_runtime(&self, e: &Emitter<'ctx>) -> Result<()> {
        let Spread { kernel, callee, arguments: (arguments, count), threads } = *self;
        let long = |value: u64| BasicValueEnum::from(e.int_type(64).const_int(value, false));
        let mut words = vec![callee.as_global_value().as_pointer_value().into(), arguments.into()];
        words.extend([kernel.work_items, grain(kernel), threads as u64].map(long));
        let symbol = if kernel.scratch_bytes > 0 {
            words.extend([count as u64, kernel.scratch_bytes].map(long));
            PARALLEL_WITH_SCRATCH
        } else {
            PARALLEL
        };
        let types: Vec<_> = words.iter().map(|word| word.get_type().into()).collect();
        let known = e.module().get_function(symbol);
        let runtime = known
            .unwrap_or_else(|| e.module().add_function(symbol, e.context().void_type().fn_type(&types, false), None));
        let words: Vec<_> = words.into_iter().map(Into::into).collect();
        e.builder().build_call(runtime, &words, "").map(|_| ()).map_err(refused)
    }

    /// Emits a call of the application's function at the builder's position in `function`, and a direct call of the
    /// kernel for the case that the function is null.
    pub fn by_application(
        &self,
        e: &Emitter<'ctx>,
        function: FunctionValue<'ctx>,
        parallel: ParallelFor<'ctx>,
    ) -> Result<()> {
        let (kernel, (arguments, _)) = (self.kernel, self.arguments);
        let [shared, alone, next] =
            ["shared", "alone", "next"].map(|name| e.context().append_basic_block(function, name));
        let is_there = e.builder().build_is_not_null(parallel.function, "").map_err(refused)?;
        e.builder().build_conditional_branch(is_there, shared, alone).map_err(refused)?;
        e.builder().position_at_end(shared);
        let task = self.task(e)?.as_global_value().as_pointer_value();
        let (pointer, word) = (e.context().ptr_type(AddressSpace::default()), word(e));
        let types = [pointer.into(), word.into(), task.get_type().into(), pointer.into()];
        let ty = e.context().void_type().fn_type(&types, false);
        let tasks = word.const_int(kernel.work_items.div_ceil(self.chunk()), false);
        let given = [parallel.pool.into(), tasks.into(), task.into(), arguments.into()];
        e.builder().build_indirect_call(ty, parallel.function, &given, "").map_err(refused)?;
        e.builder().build_unconditional_branch(next).map_err(refused)?;
        e.builder().position_at_end(alone);
        let items = [0, kernel.work_items].map(|n| e.int_type(64).const_int(n, false));
        e.builder()
            .build_call(self.callee, &[arguments.into(), items[0].into(), items[1].into()], "")
            .map_err(refused)?;
        e.builder().build_unconditional_branch(next).map_err(refused)?;
        e.builder().position_at_end(next);
        Ok(())
    }

    /// Returns the number of work items of one task. The number of tasks is at most the number of threads.
    fn chunk(&self) -> u64 {
        self.kernel.work_items.div_ceil(self.threads.max(1) as u64).max(grain(self.kernel))
    }

    /// Emits `void task(ptr data, size number)` for the kernel; `data` points to its arguments.
    fn task(&self, e: &Emitter<'ctx>) -> Result<FunctionValue<'ctx>> {
        let name = format!("{}.task", self.kernel.name);
        if let Some(task) = e.module().get_function(&name) {
            return Ok(task);
        }
        let (pointer, void) = (e.context().ptr_type(AddressSpace::default()), e.context().void_type());
        let ty = void.fn_type(&[pointer.into(), word(e).into()], false);
        let task = e.module().add_function(&name, ty, Some(Linkage::Internal));
        e.decorate(task);
        let resume = e.builder().get_insert_block();
        e.builder().position_at_end(e.context().append_basic_block(task, "entry"));
        let [Some(BasicValueEnum::PointerValue(data)), Some(BasicValueEnum::IntValue(number))] =
            [0, 1].map(|i| task.get_nth_param(i))
        else {
            return Err(Error::internal("a task lacks its parameters"));
        };
        let number = e.builder().build_int_z_extend(number, e.int_type(64), "number").map_err(refused)?;
        let [begin, end] = self.work_items(e, number)?;
        let arguments = if self.kernel.scratch_bytes > 0 { self.own_arguments(e, data, number)? } else { data };
        e.builder().build_call(self.callee, &[arguments.into(), begin.into(), end.into()], "").map_err(refused)?;
        e.builder().build_return(None).map_err(refused)?;
        if let Some(block) = resume {
            e.builder().position_at_end(block);
        }
        Ok(task)
    }

    /// Emits the range of work items of a task: its first one, and one past its last.
    fn work_items(&self, e: &Emitter<'ctx>, number: IntValue<'ctx>) -> Result<[IntValue<'ctx>; 2]> {
        let long = |value: u64| e.int_type(64).const_int(value, false);
        let begin = e.builder().build_int_mul(number, long(self.chunk()), "begin").map_err(refused)?;
        let end = e.builder().build_int_add(begin, long(self.chunk()), "").map_err(refused)?;
        let all = long(self.kernel.work_items);
        let is_last = e.builder().build_int_compare(IntPredicate::UGT, end, all, "").map_err(refused)?;
        let end = e.builder().build_select(is_last, all, end, "end").map_err(refused)?.into_int_value();
        Ok([begin, end])
    }

    /// Emits a copy of the arguments with the scratch memory of task `number`.
    fn own_arguments(
        &self,
        e: &Emitter<'ctx>,
        data: PointerValue<'ctx>,
        number: IntValue<'ctx>,
    ) -> Result<PointerValue<'ctx>> {
        let (count, pointer_bytes) = (self.arguments.1, u64::from(e.target().pointer_bytes()));
        let ty = e.context().ptr_type(AddressSpace::default()).array_type(count as u32);
        let own = e.builder().build_alloca(ty, "arguments").map_err(refused)?;
        for place in 0..count {
            let mut value = e.load_pointer(data, place)?;
            if place + 1 == count {
                let bytes = e.int_type(64).const_int(self.kernel.scratch_bytes, false);
                let offset = e.builder().build_int_mul(number, bytes, "").map_err(refused)?;
                value = e.byte_address(value, e.lanes(offset))?;
            }
            let place = e.int_type(64).const_int(place as u64 * pointer_bytes, false);
            e.builder().build_store(e.byte_address(own, e.lanes(place))?, value).map_err(refused)?;
        }
        Ok(own)
    }
}

/// Returns the type of the target's `size_t`.
fn word<'ctx>(e: &Emitter<'ctx>) -> IntType<'ctx> {
    e.int_type(8 * e.target().pointer_bytes())
}
