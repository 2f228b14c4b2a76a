//! Thunk sequences as native code, including control flow: the common part of all entry functions.
//!
//! Consecutive kernels that may flush subnormals run in flush mode. It is set once before them, and the caller's mode
//! is restored before any other call and before the entry function returns.

use inkwell::values::{
    ArrayValue, BasicMetadataValueEnum, BasicValue, BasicValueEnum, FunctionValue, IntValue, PointerValue,
};
use inkwell::{AddressSpace, IntPredicate};
use xla_cpu_runtime::{BEGIN_THUNK, END_THUNK, HOST_CALL, LibraryCall, LibraryFunction};
use xla_hlo::{Error, Result};
use xla_llvm::denormals::{DenormalMode, DenormalModes, Denormals};
use xla_llvm::emitter::Emitter;
use xla_llvm::fused::Kernel;
use xla_passes::buffers::Slice;
use xla_service::thunks::{ArraySlice, Selector, Thunk, ThunkId, ThunkKind, ThunkSequence};

use crate::program::arguments::{ArgumentTable, ArgumentTableBuilder, ArgumentWord};
use crate::program::copy;
use crate::program::external::{self, ExternalCall, ExternalExit};
use crate::program::random;
use crate::program::refused::refused;
use crate::program::spread::{self, ParallelFor, Spread};

/// Input of the emission of an entry function.
pub(crate) struct Plan {
    pub sequence: ThunkSequence,
    pub kernels: Vec<Kernel>,
    pub library_calls: Vec<LibraryCall>,
    /// Thunks that the host evaluates, indexed by the number that is passed to the runtime.
    pub host_calls: Vec<ThunkId>,
    /// Custom calls that are compiled to calls of external functions.
    pub external_calls: Vec<ExternalCall>,
    /// Number of threads that kernels may use.
    pub threads: usize,
    /// Whether the code must not call functions outside the module.
    pub self_contained: bool,
}

impl Plan {
    /// Returns the size of the kernels' scratch memory in bytes: the maximum over all kernels, for all threads of a
    /// kernel.
    pub fn scratch_bytes(&self) -> u64 {
        self.kernels.iter().map(|kernel| spread::scratch_bytes(kernel, self.threads)).max().unwrap_or_default()
    }

    /// Reads the thread's denormal mode, if kernels may flush subnormals. The builder must be in the function's entry
    /// block.
    pub fn denormal_modes<'ctx>(&self, emitter: &Emitter<'ctx>) -> Option<DenormalModes<'ctx>> {
        let flushes = || self.kernels.iter().any(|kernel| kernel.denormals == Denormals::MayFlush);
        if emitter.options().flush_denormals && flushes() { emitter.denormal_modes() } else { None }
    }
}

/// Values of the function that contains the sequence.
pub(crate) struct Surroundings<'ctx> {
    pub function: FunctionValue<'ctx>,
    /// Address of the address table.
    pub table: PointerValue<'ctx>,
    /// Context of the run, for the runtime.
    pub run: Option<PointerValue<'ctx>>,
    /// Address of a byte that is nonzero after cancellation.
    pub cancel: PointerValue<'ctx>,
    /// Whether the runtime is called at the start and end of each thunk; `None` for a program without runtime.
    pub profiled: Option<IntValue<'ctx>>,
    /// Block that leaves the function, still empty.
    pub failed: inkwell::basic_block::BasicBlock<'ctx>,
    /// User data of external functions and the exit after their errors, if any are called.
    pub external: Option<ExternalExit<'ctx>>,
    /// External function that distributes work over threads, for programs without runtime.
    pub parallel: Option<ParallelFor<'ctx>>,
    /// Result of [`Plan::denormal_modes`].
    pub modes: Option<DenormalModes<'ctx>>,
}

/// Emits the plan's sequence at the builder's position; returns the layout of the table that it takes. The caller's
/// mode is restored at the end, and in the block that leaves the function.
pub(crate) fn emit<'ctx>(
    emitter: &Emitter<'ctx>,
    plan: &Plan,
    Surroundings { function, table, run, cancel, profiled, failed, external, parallel, modes }: Surroundings<'ctx>,
) -> Result<ArgumentTable> {
    let mut writer = Writer {
        e: emitter,
        plan,
        function,
        table,
        words: ArgumentTableBuilder::default(),
        run,
        cancel,
        profiled,
        reports: Vec::new(),
        failed,
        external,
        parallel,
        modes,
        mode: DenormalMode::Callers,
    };
    writer.sequence(&plan.sequence)?;
    writer.move_reports()?;
    writer.set_mode(DenormalMode::Callers);
    let end = emitter.builder().get_insert_block();
    let end = end.ok_or_else(|| Error::internal("a sequence is emitted outside of a function"))?;
    emitter.builder().position_at_end(failed);
    // Loops may jump to this block in either mode.
    writer.mode = DenormalMode::Flush;
    writer.set_mode(DenormalMode::Callers);
    emitter.builder().position_at_end(end);
    Ok(writer.words.finish(plan.scratch_bytes() as usize))
}

struct Writer<'a, 'ctx> {
    e: &'a Emitter<'ctx>,
    plan: &'a Plan,
    function: FunctionValue<'ctx>,
    /// Address of the table, and its entries so far.
    table: PointerValue<'ctx>,
    words: ArgumentTableBuilder,
    run: Option<PointerValue<'ctx>>,
    cancel: PointerValue<'ctx>,
    profiled: Option<IntValue<'ctx>>,
    /// Blocks that report to the profiler.
    reports: Vec<inkwell::basic_block::BasicBlock<'ctx>>,
    failed: inkwell::basic_block::BasicBlock<'ctx>,
    external: Option<ExternalExit<'ctx>>,
    parallel: Option<ParallelFor<'ctx>>,
    /// The thread's modes, if kernels may flush subnormals, and the mode at the current position.
    modes: Option<DenormalModes<'ctx>>,
    mode: DenormalMode,
}

impl<'ctx> Writer<'_, 'ctx> {
    fn sequence(&mut self, sequence: &ThunkSequence) -> Result<()> {
        let mut last: Option<&Thunk> = None;
        for thunk in &sequence.thunks {
            self.report(last, Some(thunk))?;
            self.thunk(thunk)?;
            last = Some(thunk);
        }
        self.report(last, None)
    }

    /// Emits a mode switch if the current mode differs.
    fn set_mode(&mut self, mode: DenormalMode) {
        if let Some(modes) = self.modes.as_ref().filter(|_| self.mode != mode) {
            self.e.set_denormal_mode(modes, mode);
            self.mode = mode;
        }
    }

    /// Returns the mode at the start and end of sequences that run repeatedly (loops) or alternatively (branches). It
    /// avoids switches if all of their calls are kernels of one mode.
    fn mode_around(&self, sequences: &[&ThunkSequence]) -> DenormalMode {
        let mut mode = self.mode;
        for thunk in sequences.iter().flat_map(|sequence| sequence.walk()) {
            let kernel = match &thunk.kind {
                ThunkKind::Kernel(kernel) => self.plan.kernels.get(kernel.index as usize),
                ThunkKind::Copy | ThunkKind::While { .. } | ThunkKind::Conditional { .. } => continue,
                _ => None,
            };
            match kernel.filter(|kernel| !self.is_spread(kernel)).map(|kernel| kernel.denormals) {
                Some(Denormals::Unaffected) => {}
                Some(Denormals::MayFlush) => mode = DenormalMode::Flush,
                Some(Denormals::Preserve) | None => return DenormalMode::Callers,
            }
        }
        mode
    }

    /// Emits calls of the runtime in the caller's mode, for profiled runs, between the end of a thunk and the start of
    /// the next.
    fn report(&mut self, ended: Option<&Thunk>, begun: Option<&Thunk>) -> Result<()> {
        let calls = [(END_THUNK, ended), (BEGIN_THUNK, begun)];
        let calls = calls.into_iter().filter_map(|(symbol, thunk)| Some((symbol, thunk?.id)));
        let Some(profiled) = self.profiled.filter(|_| ended.is_some() || begun.is_some()) else { return Ok(()) };
        let [report, next] = ["report", "next"].map(|name| self.e.context().append_basic_block(self.function, name));
        self.e.builder().build_conditional_branch(profiled, report, next).map_err(refused)?;
        self.e.builder().position_at_end(report);
        self.reports.push(report);
        let flushing = self.modes.as_ref().filter(|_| self.mode == DenormalMode::Flush);
        if let Some(modes) = flushing {
            self.e.set_denormal_mode(modes, DenormalMode::Callers);
        }
        let (pointer, long) = (self.pointer_type(), self.e.context().i64_type());
        let ty = self.e.context().void_type().fn_type(&[pointer.into(), long.into()], false);
        for (symbol, id) in calls {
            self.call(self.declare(symbol, ty), &[self.run()?.into(), self.long(id.0.into()).into()])?;
        }
        if let Some(modes) = flushing {
            self.e.set_denormal_mode(modes, DenormalMode::Flush);
        }
        self.jump(next)
    }

    /// Moves the blocks of [`Writer::report`] to the end of the function, so that runs without profiling fall through.
    fn move_reports(&mut self) -> Result<()> {
        let last = self.function.get_last_basic_block();
        let last = last.ok_or_else(|| Error::internal("the function has no blocks"))?;
        self.reports.drain(..).try_for_each(|report| {
            let moved = if report == last { Ok(()) } else { report.move_after(last) };
            moved.map_err(|()| Error::internal("a block is outside of a function"))
        })
    }

    fn thunk(&mut self, thunk: &Thunk) -> Result<()> {
        match &thunk.kind {
            ThunkKind::Kernel(kernel) => self.kernel(thunk, kernel.index as usize),
            ThunkKind::LibraryCall(call) => self.library_call(thunk, call.index as usize),
            ThunkKind::Copy => self.copy(thunk),
            ThunkKind::While { condition, body, predicate, trip_count: _ } => {
                self.while_loop(condition, body, *predicate)
            }
            ThunkKind::Conditional { selector, slice, branches } => self.conditional(*selector, *slice, branches),
            ThunkKind::Collective(_) | ThunkKind::CustomCall | ThunkKind::HostFallback => {
                match self.plan.external_calls.iter().find(|call| call.thunk == thunk.id) {
                    Some(call) => self.external_call(thunk, call),
                    None => self.host_call(thunk),
                }
            }
        }
    }

    fn kernel(&mut self, thunk: &Thunk, index: usize) -> Result<()> {
        let arrays = thunk.operands.iter().chain(&thunk.results);
        self.run_kernel(index, arrays.map(|array| array.slice.into()).collect())
    }

    /// Returns the context of the run.
    fn run(&self) -> Result<PointerValue<'ctx>> {
        self.run.ok_or_else(|| Error::internal("a program without runtime needs the context of a run"))
    }

    /// Emits the execution of a kernel on arrays, with scratch memory if it needs some.
    fn run_kernel(&mut self, index: usize, mut words: Vec<ArgumentWord>) -> Result<()> {
        let kernel = self.known_kernel(index)?.clone();
        if kernel.work_items == 0 {
            return Ok(());
        }
        if kernel.scratch_bytes > 0 {
            words.push(ArgumentWord::Scratch);
        }
        let count = words.len();
        let arguments = self.place(words)?;
        let function = self.kernel_function(&kernel.name);
        if self.is_spread(&kernel) {
            self.set_mode(DenormalMode::Callers);
            let callee = self.flushing(&kernel, function);
            let spread = Spread { kernel: &kernel, callee, arguments: (arguments, count), threads: self.plan.threads };
            return match self.parallel {
                Some(parallel) => spread.by_application(self.e, self.function, parallel),
                None => spread.by_runtime(self.e),
            };
        }
        if self.modes.is_some() {
            self.e.keep_apart(function);
        }
        match kernel.denormals {
            Denormals::Unaffected => {}
            Denormals::MayFlush => self.set_mode(DenormalMode::Flush),
            Denormals::Preserve => self.set_mode(DenormalMode::Callers),
        }
        self.call(function, &[arguments.into(), self.long(0).into(), self.long(kernel.work_items as i64).into()])
    }

    /// Whether the kernel's work is distributed over threads.
    fn is_spread(&self, kernel: &Kernel) -> bool {
        spread::is_spread(kernel, self.plan.threads)
    }

    /// Returns a function for the runtime to call: the kernel, or a wrapper that runs it in flush mode if it may flush.
    fn flushing(&self, kernel: &Kernel, function: FunctionValue<'ctx>) -> FunctionValue<'ctx> {
        let flushes = self.modes.is_some() && kernel.denormals == Denormals::MayFlush;
        if flushes { self.e.flushing(function) } else { function }
    }

    fn library_call(&mut self, thunk: &Thunk, index: usize) -> Result<()> {
        let missing = || Error::internal(format!("library call {index} is missing"));
        let call = self.plan.library_calls.get(index).ok_or_else(missing)?;
        if self.plan.self_contained {
            return self.self_contained_call(thunk, call);
        }
        let first: &[ArgumentWord] = if call.function.takes_context() { &[ArgumentWord::Context] } else { &[] };
        let places = call.epilogue.as_ref().map_or_else(|| (0..thunk.operands.len()).collect(), |e| e.operands.clone());
        let operands = places.iter().filter_map(|&place| thunk.operands.get(place));
        let taken = self.arguments(first, operands.chain(&thunk.results))?;
        let long = self.e.context().i64_type();
        let numbers: Vec<IntValue<'ctx>> = call.descriptor.iter().map(|&n| self.long(n)).collect();
        let descriptor = self.constant(&format!("call_{index}"), &long.const_array(&numbers));
        let once = call.function != LibraryFunction::Sort;
        let kernels = call.kernels.iter().map(|&kernel| self.kernel_pointer(kernel as usize, once));
        let kernels = self.pointer_type().const_array(&kernels.collect::<Result<Vec<_>>>()?);
        let kernels = self.constant(&format!("kernels_{index}"), &kernels);
        let pointer = self.pointer_type().into();
        let parameters = [pointer, pointer, pointer, long.into(), long.into()];
        let runtime = self.declare(call.function.symbol(), self.e.context().void_type().fn_type(&parameters, false));
        let length = self.long(call.descriptor.len() as i64);
        let arguments = [taken.into(), kernels.into(), descriptor.into(), length.into(), self.threads().into()];
        self.set_mode(DenormalMode::Callers);
        self.call(runtime, &arguments)?;
        let Some(epilogue) = call.epilogue.as_ref().map(|epilogue| epilogue.kernel) else { return Ok(()) };
        let arrays = thunk.operands.iter().chain(&thunk.results).chain(&thunk.results);
        self.run_kernel(epilogue as usize, arrays.map(|array| array.slice.into()).collect())
    }

    /// Emits inline code for a library call in a program without runtime.
    fn self_contained_call(&mut self, thunk: &Thunk, call: &LibraryCall) -> Result<()> {
        match (call.function, &call.descriptor[..], &thunk.results[..]) {
            (LibraryFunction::RandomState, &[delta], [drawn]) => {
                let state = self.words.place(vec![ArgumentWord::RandomState]);
                let (state, drawn) = (self.e.load_pointer(self.table, state)?, self.address(drawn.slice)?);
                random::advance(self.e, state, drawn, delta);
                Ok(())
            }
            (function, ..) => Err(Error::internal(format!("a program without runtime calls {}", function.symbol()))),
        }
    }

    /// Creates or returns the private constant with this name.
    fn constant(&self, name: &str, value: &ArrayValue<'ctx>) -> PointerValue<'ctx> {
        let global = self.e.module().get_global(name).unwrap_or_else(|| {
            let global = self.e.module().add_global(value.get_type(), None, name);
            global.set_initializer(value);
            global.set_constant(true);
            global.set_linkage(inkwell::module::Linkage::Private);
            global
        });
        global.as_pointer_value()
    }

    /// Returns a kernel for a library function to call. Kernels that are called for each of many elements, such as
    /// comparators, do not switch modes, because a switch would take longer than the kernel.
    fn kernel_pointer(&self, index: usize, may_switch: bool) -> Result<PointerValue<'ctx>> {
        let kernel = self.known_kernel(index)?;
        if kernel.scratch_bytes > 0 {
            return Err(Error::internal(format!("the library has no scratch memory for kernel {index}")));
        }
        let function = self.kernel_function(&kernel.name);
        let function = if may_switch { self.flushing(kernel, function) } else { function };
        Ok(function.as_global_value().as_pointer_value())
    }

    fn known_kernel(&self, index: usize) -> Result<&Kernel> {
        self.plan.kernels.get(index).ok_or_else(|| Error::internal(format!("kernel {index} is missing")))
    }

    fn kernel_function(&self, name: &str) -> FunctionValue<'ctx> {
        let (pointer, long) = (self.pointer_type(), self.e.context().i64_type());
        let ty = self.e.context().void_type().fn_type(&[pointer.into(), long.into(), long.into()], false);
        self.declare(name, ty)
    }

    fn copy(&mut self, thunk: &Thunk) -> Result<()> {
        let ([from], [to]) = (&thunk.operands[..], &thunk.results[..]) else {
            return Err(Error::internal("a copy does not have one operand and one result"));
        };
        self.copy_array(from, to)
    }

    fn copy_array(&mut self, from: &ArraySlice, to: &ArraySlice) -> Result<()> {
        let (source, target) = (self.address(from.slice)?, self.address(to.slice)?);
        if let size @ (1 | 2 | 4 | 8) = to.slice.size {
            let word = self.e.int_type(8 * size as u32);
            let value = self.e.builder().build_load(word, source, "").map_err(refused)?;
            let moved = [value.as_instruction_value(), self.e.builder().build_store(target, value).ok()];
            return moved.into_iter().flatten().try_for_each(|access| access.set_alignment(1).map_err(refused));
        }
        if self.plan.self_contained {
            let (function, count) = copy::function(self.e, [from, to])?;
            return self.call(function, &[target.into(), source.into(), self.long(count).into()]);
        }
        let size = self.long(to.slice.size as i64);
        self.e.builder().build_memmove(target, 1, source, 1, size).map(|_| ()).map_err(refused)
    }

    fn host_call(&mut self, thunk: &Thunk) -> Result<()> {
        let number = self.plan.host_calls.iter().position(|&id| id == thunk.id);
        let number = number.ok_or_else(|| Error::internal("a host call has no number"))?;
        let (int, long) = (self.e.context().i32_type(), self.e.context().i64_type());
        let runtime = self.declare(HOST_CALL, int.fn_type(&[self.pointer_type().into(), long.into()], false));
        let arguments = [self.run()?.into(), self.long(number as i64).into()];
        self.set_mode(DenormalMode::Callers);
        let call = self.e.builder().build_call(runtime, &arguments, "").map_err(refused)?;
        let inkwell::values::ValueKind::Basic(BasicValueEnum::IntValue(status)) = call.try_as_basic_value() else {
            return Err(Error::internal("a host call returns no status"));
        };
        let next = self.e.context().append_basic_block(self.function, "next");
        let bad =
            self.e.builder().build_int_compare(IntPredicate::NE, status, int.const_zero(), "").map_err(refused)?;
        self.e.builder().build_conditional_branch(bad, self.failed, next).map_err(refused)?;
        self.e.builder().position_at_end(next);
        Ok(())
    }

    /// Emits a call of an external function. Operands that a result aliases are first copied to the result's memory.
    fn external_call(&mut self, thunk: &Thunk, call: &ExternalCall) -> Result<()> {
        let mut operands = thunk.operands.clone();
        for &(operand, result) in &call.aliases {
            let missing = || Error::internal(format!("%{} lacks an array of an alias", thunk.name));
            let (from, to) = (operands.get_mut(operand), thunk.results.get(result));
            let (from, to) = from.zip(to).ok_or_else(missing)?;
            if from.slice.size == to.slice.size {
                self.copy_array(from, to)?;
                from.slice = to.slice;
            }
        }
        let arrays = [self.arguments(&[], operands.iter())?, self.arguments(&[], thunk.results.iter())?];
        self.set_mode(DenormalMode::Callers);
        let exit = self
            .external
            .as_ref()
            .ok_or_else(|| Error::internal("the program has no exit for a failed external function"))?;
        external::call(self.e, (self.function, exit), call, arrays)
    }

    fn while_loop(&mut self, condition: &ThunkSequence, body: &ThunkSequence, predicate: Slice) -> Result<()> {
        let block = |name| self.e.context().append_basic_block(self.function, name);
        let (test, work, done) = (block("while"), block("do"), block("done"));
        let mode = self.mode_around(&[condition, body]);
        self.set_mode(mode);
        self.jump(test)?;
        self.stop_if_cancelled()?;
        self.sequence(condition)?;
        self.set_mode(mode);
        let holds = self.byte_is_set(predicate)?;
        self.e.builder().build_conditional_branch(holds, work, done).map_err(refused)?;
        self.e.builder().position_at_end(work);
        self.sequence(body)?;
        self.set_mode(mode);
        self.e.builder().build_unconditional_branch(test).map_err(refused)?;
        self.e.builder().position_at_end(done);
        Ok(())
    }

    /// Emits a check that leaves the function if the cancellation flag is set. Another thread may set it at any time,
    /// so the load is volatile.
    fn stop_if_cancelled(&mut self) -> Result<()> {
        let byte = self.e.context().i8_type();
        let flag = self.e.builder().build_load(byte, self.cancel, "cancel").map_err(refused)?.into_int_value();
        if let Some(load) = flag.as_instruction() {
            load.set_volatile(true).map_err(refused)?;
        }
        let set = self.e.builder().build_int_compare(IntPredicate::NE, flag, byte.const_zero(), "").map_err(refused)?;
        let on = self.e.context().append_basic_block(self.function, "on");
        self.e.builder().build_conditional_branch(set, self.failed, on).map_err(refused)?;
        self.e.builder().position_at_end(on);
        Ok(())
    }

    fn conditional(&mut self, selector: Selector, slice: Slice, branches: &[ThunkSequence]) -> Result<()> {
        let done = self.e.context().append_basic_block(self.function, "done");
        let blocks: Vec<_> =
            branches.iter().map(|_| self.e.context().append_basic_block(self.function, "branch")).collect();
        let last = *blocks.last().ok_or_else(|| Error::internal("a conditional has no branches"))?;
        match selector {
            Selector::Predicate => {
                let holds = self.byte_is_set(slice)?;
                let first = blocks[0];
                self.e.builder().build_conditional_branch(holds, first, last).map_err(refused)?;
            }
            Selector::Index => {
                let int = self.e.context().i32_type();
                let address = self.address(slice)?;
                let index = self.e.builder().build_load(int, address, "").map_err(refused)?.into_int_value();
                let cases: Vec<_> =
                    blocks.iter().enumerate().map(|(i, &block)| (int.const_int(i as u64, false), block)).collect();
                self.e.builder().build_switch(index, last, &cases).map_err(refused)?;
            }
        }
        let (before, after) = (self.mode, self.mode_around(&branches.iter().collect::<Vec<_>>()));
        for (branch, block) in branches.iter().zip(blocks) {
            self.e.builder().position_at_end(block);
            self.mode = before;
            self.sequence(branch)?;
            self.set_mode(after);
            self.e.builder().build_unconditional_branch(done).map_err(refused)?;
        }
        self.e.builder().position_at_end(done);
        Ok(())
    }

    fn byte_is_set(&mut self, slice: Slice) -> Result<IntValue<'ctx>> {
        let byte = self.e.context().i8_type();
        let address = self.address(slice)?;
        let value = self.e.builder().build_load(byte, address, "").map_err(refused)?.into_int_value();
        self.e.builder().build_int_compare(IntPredicate::NE, value, byte.const_zero(), "").map_err(refused)
    }

    /// Returns the address in the table of a sequence of words, followed by the addresses of arrays.
    fn arguments<'s>(
        &mut self,
        first: &[ArgumentWord],
        arrays: impl Iterator<Item = &'s ArraySlice>,
    ) -> Result<PointerValue<'ctx>> {
        self.place(first.iter().copied().chain(arrays.map(|array| array.slice.into())).collect())
    }

    /// Returns the address in the table of a sequence of words.
    fn place(&mut self, words: Vec<ArgumentWord>) -> Result<PointerValue<'ctx>> {
        let place = self.words.place(words);
        let offset = self.e.lanes(self.long(place as i64 * i64::from(self.e.target().pointer_bytes())));
        self.e.byte_address(self.table, offset)
    }

    fn address(&mut self, slice: Slice) -> Result<PointerValue<'ctx>> {
        let place = self.words.place(vec![slice.into()]);
        self.e.load_pointer(self.table, place)
    }

    fn declare(&self, name: &str, ty: inkwell::types::FunctionType<'ctx>) -> FunctionValue<'ctx> {
        self.e.module().get_function(name).unwrap_or_else(|| self.e.module().add_function(name, ty, None))
    }

    fn call(&self, function: FunctionValue<'ctx>, arguments: &[BasicMetadataValueEnum<'ctx>]) -> Result<()> {
        self.e.builder().build_call(function, arguments, "").map(|_| ()).map_err(refused)
    }

    fn jump(&self, to: inkwell::basic_block::BasicBlock<'ctx>) -> Result<()> {
        self.e.builder().build_unconditional_branch(to).map_err(refused)?;
        self.e.builder().position_at_end(to);
        Ok(())
    }

    fn long(&self, value: i64) -> IntValue<'ctx> {
        self.e.context().i64_type().const_int(value as u64, true)
    }

    /// Returns the number of threads that a call may use.
    fn threads(&self) -> IntValue<'ctx> {
        self.long(self.plan.threads as i64)
    }

    fn pointer_type(&self) -> inkwell::types::PointerType<'ctx> {
        self.e.context().ptr_type(AddressSpace::default())
    }
}
