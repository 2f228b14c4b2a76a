//! Emitter: one LLVM module under construction, and its insertion point.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use inkwell::AddressSpace;
use inkwell::attributes::AttributeLoc;
use inkwell::basic_block::BasicBlock;
use inkwell::builder::{Builder, BuilderError};
use inkwell::context::Context;
use inkwell::module::{Linkage, Module};
use inkwell::targets::TargetTriple;
use inkwell::types::{BasicMetadataTypeEnum, BasicType, BasicTypeEnum};
use inkwell::values::{ArrayValue, BasicValueEnum, FunctionValue, PointerValue};

use crate::simt::TensorMap;
use crate::target::Target;
use xla_hlo::{ElementType, Error, Opcode, Result};
use xla_service::Optimize;

/// Options of emission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EmitOptions {
    /// Allow the code generator to fuse the multiplication and addition of two HLO instructions into one FMA.
    pub contract: bool,
    /// Round f16 and bf16 after each operation, as written in HLO; narrower types are always rounded. `false` keeps f32
    /// results between operations, and rounds at stores and at converts to the narrow type.
    pub round_each_operation: bool,
    /// Whether the code may run in a mode that [flushes subnormals](crate::denormals).
    pub flush_denormals: bool,
    /// Number of threads that may share a kernel's work items; more threads mean more items.
    pub threads: usize,
    /// Prefetch rows of memory: faster if arrays are in main memory, slower if they are in a cache.
    pub prefetch: bool,
    /// Optimization goal: speed or size.
    pub optimize: Optimize,
    /// Maximum stack frame of a function in bytes.
    pub stack_limit: Option<u32>,
    /// For tests: the error of the host's substitutes for approximate GPU instructions.
    pub approximations: Approximations,
    /// For tests: the byte that fills scratch memory, and lanes that masked loads do not read. By default, scratch
    /// memory is uninitialized and the lanes are zero. No result may depend on it.
    pub dirt: Option<u8>,
}

/// Errors of approximate instructions, by group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Approximations {
    /// Error of powers of two, logarithms and hyperbolic tangents.
    pub powers: Side,
    /// Error of reciprocals (also of square roots) and quotients.
    pub reciprocals: Side,
}

/// Sign of an error, which has the documented maximum magnitude.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Side {
    /// Too low.
    Low,
    /// Correctly rounded.
    #[default]
    Exact,
    /// Too high.
    High,
}

impl Default for EmitOptions {
    fn default() -> EmitOptions {
        EmitOptions {
            contract: true,
            round_each_operation: true,
            flush_denormals: false,
            threads: 1,
            prefetch: false,
            optimize: Optimize::Speed,
            stack_limit: None,
            approximations: Approximations::default(),
            dirt: None,
        }
    }
}

/// Alignment of each array in scratch memory.
const SCRATCH_ALIGNMENT: u64 = 64;

/// Scratch memory of the current kernel: memory that it needs in addition to its arrays, such as a row that several
/// loops read.
///
/// The caller allocates it, aligned to 64 bytes; its address follows those of the kernel's arrays. Its size is
/// [`Kernel::scratch_bytes`](crate::fused::Kernel::scratch_bytes). No two threads may share it.
#[derive(Clone, Copy)]
struct CallerScratch<'ctx> {
    /// Array of the kernel's pointers.
    pointers: PointerValue<'ctx>,
    /// Number of the pointer to the scratch memory.
    number: usize,
    /// Bytes of the arrays that are in use.
    bytes: u64,
    /// Maximum of `bytes` so far.
    most: u64,
}

/// Writer of one LLVM module. Instructions are methods of [`Lanes`](crate::lanes::Lanes). Errors, which are always bugs
/// of the emitting code (such as operands of two types), are recorded and returned by [`Emitter::finish`], so that
/// formulas read as formulas.
pub struct Emitter<'ctx> {
    pub(crate) context: &'ctx Context,
    pub(crate) module: Module<'ctx>,
    pub(crate) builder: Builder<'ctx>,
    target: Target,
    options: EmitOptions,
    fault: RefCell<Option<Error>>,
    /// Bytes of shared memory that the current kernel has allocated.
    shared: Cell<u64>,
    /// Bytes of these that a GPU launch must request dynamically.
    dynamic_shared: Cell<u64>,
    /// Number of the current kernel's parameters that are tensor maps.
    map_count: Cell<usize>,
    /// Tensor maps of the current kernel that are in use.
    maps: RefCell<Vec<TensorMap>>,
    /// Scratch memory of the current kernel, if its caller provides it.
    scratch: Cell<Option<CallerScratch<'ctx>>>,
    /// Constant arrays of the module, by content.
    pub(crate) arrays: RefCell<HashMap<ArrayValue<'ctx>, PointerValue<'ctx>>>,
    /// Height of the loop nest in the current loop, as far as it is emitted: 0 if the loop has no inner loops.
    pub(crate) nest_height: Cell<usize>,
    /// Copies of functions in the current kernel, by element type and number of lanes.
    copies: RefCell<HashMap<(Opcode, ElementType, u32), usize>>,
}

impl<'ctx> Emitter<'ctx> {
    /// Creates an emitter for a new, empty module.
    pub fn new(context: &'ctx Context, name: &str, target: &Target, options: EmitOptions) -> Emitter<'ctx> {
        let module = context.create_module(name);
        module.set_triple(&TargetTriple::create(target.triple()));
        let layout = inkwell::targets::TargetData::create(target.data_layout());
        module.set_data_layout(&layout.get_data_layout());
        Emitter {
            context,
            module,
            builder: context.create_builder(),
            target: target.clone(),
            options,
            fault: RefCell::new(None),
            shared: Cell::new(0),
            dynamic_shared: Cell::new(0),
            map_count: Cell::new(0),
            maps: RefCell::default(),
            scratch: Cell::new(None),
            arrays: RefCell::default(),
            nest_height: Cell::new(0),
            copies: RefCell::default(),
        }
    }

    /// Returns the LLVM context.
    pub fn context(&self) -> &'ctx Context {
        self.context
    }

    /// Returns the module under construction.
    pub fn module(&self) -> &Module<'ctx> {
        &self.module
    }

    /// Returns the builder, positioned at the insertion point. It is used for control flow and calls; arithmetic uses
    /// [`Lanes`](crate::lanes::Lanes).
    pub fn builder(&self) -> &Builder<'ctx> {
        &self.builder
    }

    /// Returns the target of the module.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Returns the options of emission.
    pub fn options(&self) -> EmitOptions {
        self.options
    }

    /// Returns the module, or the first recorded error.
    pub fn finish(self) -> Result<Module<'ctx>> {
        match self.fault.into_inner() {
            Some(error) => Err(error),
            None => Ok(self.module),
        }
    }

    /// Fails with the recorded error, if any, and clears it.
    pub fn check(&self) -> Result<()> {
        self.fault.borrow_mut().take().map_or(Ok(()), Err)
    }

    /// Adds a function with `parameters` pointers and no result, and positions the builder in its entry block.
    pub fn kernel(&self, name: &str, parameters: usize) -> FunctionValue<'ctx> {
        let pointer = self.context.ptr_type(AddressSpace::default());
        let parameters = vec![BasicMetadataTypeEnum::from(pointer); parameters];
        let function = self.module.add_function(name, self.context.void_type().fn_type(&parameters, false), None);
        self.decorate(function);
        self.copies.borrow_mut().clear();
        self.builder.position_at_end(self.context.append_basic_block(function, "entry"));
        function
    }

    /// Counts a copy of a function in the current kernel; returns the number of its copies, including this one.
    pub(crate) fn count_copy(&self, function: (Opcode, ElementType, u32)) -> usize {
        let mut copies = self.copies.borrow_mut();
        let count = copies.entry(function).or_default();
        *count += 1;
        *count
    }

    /// Ends the current kernel; fails if an error was recorded in it.
    pub fn end_kernel(&self) -> Result<()> {
        self.record(self.builder.build_return(None));
        self.check()
    }

    /// Adds attributes to a function: the target's CPU, features and vector width, without which LLVM generates
    /// baseline code; `nounwind`; and an unknown denormal mode if subnormals [may be
    /// flushed](EmitOptions::flush_denormals).
    pub fn decorate(&self, function: FunctionValue<'ctx>) {
        let string = |key: &str, value: &str| {
            if !value.is_empty() {
                function.add_attribute(AttributeLoc::Function, self.context.create_string_attribute(key, value));
            }
        };
        string("target-cpu", self.target.cpu());
        string("target-features", self.target.features());
        if self.target.abilities().vector_bits > 0 {
            let bits = self.target.abilities().vector_bits.to_string();
            string("prefer-vector-width", &bits);
            string("min-legal-vector-width", &bits);
        }
        if self.options.flush_denormals {
            string("denormal-fp-math", "dynamic,dynamic");
        }
        if let Some(bytes) = self.options.stack_limit {
            string("warn-stack-size", &bytes.to_string());
        }
        let words = match self.options.optimize {
            Optimize::Speed => &["nounwind"][..],
            Optimize::Size => &["nounwind", "optsize", "minsize"],
        };
        for word in words {
            let kind = inkwell::attributes::Attribute::get_named_enum_kind_id(word);
            function.add_attribute(AttributeLoc::Function, self.context.create_enum_attribute(kind, 0));
        }
    }

    /// Adds attributes so that a function runs on every x86 processor; [`Emitter::decorate`] does so for the target's.
    pub fn decorate_for_all_x86(&self, function: FunctionValue<'ctx>) {
        // A function without feature attributes inherits those of the module's code generator.
        let (cpu, features) = if self.target.is_x86_64() { ("x86-64", "+sse2") } else { ("i586", "+x87") };
        for (key, value) in [("target-cpu", cpu), ("target-features", features)] {
            function.add_attribute(AttributeLoc::Function, self.context.create_string_attribute(key, value));
        }
        for word in ["nounwind", "minsize", "optsize"] {
            let kind = inkwell::attributes::Attribute::get_named_enum_kind_id(word);
            function.add_attribute(AttributeLoc::Function, self.context.create_enum_attribute(kind, 0));
        }
    }

    /// Makes a function internal to this module.
    pub fn make_internal(&self, name: &str) {
        match self.module.get_function(name) {
            Some(function) => function.set_linkage(Linkage::Internal),
            None => self.fail(Error::internal(format!("the module has no function {name}"))),
        }
    }

    /// Returns a helper function of the module with the given types, and emits it by `body` at the first request. The
    /// name must identify all properties that the body depends on.
    pub fn helper(
        &self,
        name: &str,
        parameters: &[BasicTypeEnum<'ctx>],
        result: BasicTypeEnum<'ctx>,
        body: impl FnOnce(&Emitter<'ctx>, &[BasicValueEnum<'ctx>]) -> BasicValueEnum<'ctx>,
    ) -> FunctionValue<'ctx> {
        if let Some(function) = self.module.get_function(name) {
            return function;
        }
        let parameters: Vec<BasicMetadataTypeEnum<'ctx>> = parameters.iter().map(|&t| t.into()).collect();
        let function = self.module.add_function(name, result.fn_type(&parameters, false), Some(Linkage::Internal));
        self.decorate(function);
        let resume = self.builder.get_insert_block();
        self.builder.position_at_end(self.context.append_basic_block(function, "entry"));
        let value = body(self, &function.get_params());
        self.record(self.builder.build_return(Some(&value)));
        if let Some(block) = resume {
            self.builder.position_at_end(block);
        }
        function
    }

    /// Returns the address of a constant table of 64-bit words in this module, which is created at the first request.
    pub fn constant_table(&self, name: &str, words: &[u64]) -> PointerValue<'ctx> {
        if let Some(table) = self.module.get_global(name) {
            return table.as_pointer_value();
        }
        let long = self.context.i64_type();
        let values: Vec<_> = words.iter().map(|&word| long.const_int(word, false)).collect();
        let initial = long.const_array(&values);
        let table = self.module.add_global(initial.get_type(), None, name);
        table.set_initializer(&initial);
        table.set_constant(true);
        table.set_linkage(Linkage::Private);
        table.as_pointer_value()
    }

    /// Fills scratch memory, aligned to 64 bytes, if [requested](EmitOptions::dirt).
    pub(crate) fn make_dirty(&self, memory: PointerValue<'ctx>, bytes: u64) {
        if let Some(byte) = self.options.dirt {
            let byte = self.int_type(8).const_int(byte.into(), false);
            self.record(self.builder.build_memset(memory, 64, byte, self.int_type(64).const_int(bytes, false)));
        }
    }

    /// Returns the bytes of shared memory of the last kernel.
    pub fn shared_bytes(&self) -> u64 {
        self.shared.get()
    }

    /// Returns the bytes of shared memory that a GPU launch must request dynamically; code declares the rest
    /// statically.
    pub fn dynamic_shared_bytes(&self) -> u64 {
        self.dynamic_shared.get()
    }

    /// Returns the tensor maps of the last kernel.
    pub fn maps(&self) -> Vec<TensorMap> {
        self.maps.borrow().clone()
    }

    pub(crate) fn reset_shared(&self) {
        self.shared.set(0);
        self.dynamic_shared.set(0);
    }

    pub(crate) fn reset_maps(&self, count: usize) {
        self.map_count.set(count);
        self.maps.borrow_mut().clear();
    }

    /// Returns the number of the current kernel's parameters that are tensor maps.
    pub(crate) fn map_count(&self) -> usize {
        self.map_count.get()
    }

    /// Assigns the next tensor map parameter and returns its number among those. Fails if none is left.
    pub(crate) fn use_map(&self, map: TensorMap) -> Result<usize> {
        let mut maps = self.maps.borrow_mut();
        if maps.len() == self.map_count.get() {
            return Err(Error::internal(format!(
                "a kernel has {} tensor map parameters but uses one more",
                maps.len()
            )));
        }
        maps.push(map);
        Ok(maps.len() - 1)
    }

    /// Allocates `bytes` of dynamic shared memory and returns its offset.
    pub(crate) fn take_dynamic_shared(&self, bytes: u64) -> u64 {
        self.dynamic_shared.set(self.dynamic_shared.get() + bytes);
        self.take_shared(bytes)
    }

    /// Allocates `bytes` of shared memory and returns its offset.
    pub(crate) fn take_shared(&self, bytes: u64) -> u64 {
        self.shared.replace(self.shared.get() + bytes)
    }

    /// Sets the position of the scratch memory's address among the current kernel's pointers: after its `arrays`.
    pub fn begin_scratch(&self, pointers: PointerValue<'ctx>, arrays: usize) {
        self.scratch.set(Some(CallerScratch { pointers, number: arrays, bytes: 0, most: 0 }));
    }

    /// Allocates `bytes` of the caller's scratch memory. Returns the kernel's pointers, the number of the pointer to
    /// that memory, and the offset in it. `None` outside of kernels.
    pub(crate) fn take_scratch(&self, bytes: u64) -> Option<(PointerValue<'ctx>, usize, u64)> {
        let taken = self.scratch.get()?;
        let end = taken.bytes + bytes.next_multiple_of(SCRATCH_ALIGNMENT);
        self.scratch.set(Some(CallerScratch { bytes: end, most: taken.most.max(end), ..taken }));
        Some((taken.pointers, taken.number, taken.bytes))
    }

    /// Returns the bytes of scratch memory that the caller of the last kernel must provide.
    pub fn scratch_bytes(&self) -> u64 {
        self.scratch.get().map_or(0, |scratch| scratch.most)
    }

    /// Runs `f`, which emits code that alone uses its scratch arrays: later arrays share their memory.
    pub(crate) fn with_scratch<R>(&self, f: impl FnOnce() -> R) -> R {
        let before = self.scratch.get();
        let result = f();
        if let (Some(before), Some(after)) = (before, self.scratch.get()) {
            self.scratch.set(Some(CallerScratch { bytes: before.bytes, ..after }));
        }
        result
    }

    /// Appends a new block to the current function.
    pub fn block(&self, name: &str) -> Option<BasicBlock<'ctx>> {
        let function = self.builder.get_insert_block().and_then(|block| block.get_parent());
        if function.is_none() {
            self.fail(Error::internal(format!("block {name} is appended outside of a function")));
        }
        function.map(|function| self.context.append_basic_block(function, name))
    }

    /// Records an error, unless there is an earlier one.
    pub(crate) fn fail(&self, error: Error) {
        self.fault.borrow_mut().get_or_insert(error);
    }

    /// Unwraps a builder's result, recording its error.
    pub(crate) fn record<T>(&self, result: std::result::Result<T, BuilderError>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(reason) => {
                self.fail(Error::internal(format!("LLVM refuses an instruction: {reason}")));
                None
            }
        }
    }
}
