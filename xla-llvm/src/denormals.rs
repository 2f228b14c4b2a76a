//! Subnormal numbers ("denormals"): their treatment by kernels, and the processor's mode that flushes them to zero.
//!
//! The mode is part of a thread's floating-point environment, and only generated code may run in it: Rust assumes the
//! default environment, and Rust code in another one is undefined behaviour. Therefore, generated code sets the mode,
//! calls kernels, and restores the previous mode before it returns or calls other code. LLVM may move arithmetic across
//! the instructions that set the mode, but never out of a function. Kernels are therefore separate functions, and
//! declare by `denormal-fp-math` that the mode is unknown.

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::module::Linkage;
use inkwell::values::{BasicMetadataValueEnum, BasicValueEnum, FunctionValue};

use crate::emitter::Emitter;

/// Bits of MXCSR: flush to zero (results), and denormals are zeros (operands).
const MXCSR_FTZ_DAZ: u64 = 0x8040;
/// Bit of FPCR: flush to zero (operands and results), for all types but f16.
const FPCR_FZ: u64 = 1 << 24;

/// Treatment of subnormal numbers by a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denormals {
    /// The kernel has no floating-point arithmetic, and the mode does not matter.
    Unaffected,
    /// The kernel may treat them as zeros.
    MayFlush,
    /// The kernel must preserve them: some normal numbers of its element types are subnormal in its arithmetic.
    Preserve,
}

/// Mode of floating-point arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DenormalMode {
    /// Mode of the caller, which is Rust's: subnormals are ordinary numbers.
    Callers,
    /// Subnormal operands and results are treated as zeros with their sign.
    Flush,
}

/// Register values for both modes, derived from the mode in which the function was called.
#[derive(Clone, Copy, Debug)]
pub struct DenormalModes<'ctx> {
    /// Intrinsic that sets a mode.
    set: &'static str,
    callers: BasicValueEnum<'ctx>,
    flush: BasicValueEnum<'ctx>,
}

impl<'ctx> Emitter<'ctx> {
    /// Reads the thread's mode; `None` for processors without another mode, or without a supported one. The builder
    /// must be in the function's entry block.
    pub fn denormal_modes(&self) -> Option<DenormalModes<'ctx>> {
        match self.target().triple().split('-').next()? {
            "x86_64" => self.mxcsr(),
            // Without floating-point registers, there is no mode, and FPCR must not be read.
            "aarch64" | "arm64" if self.target().abilities().vector_bits > 0 => {
                let callers = self.intrinsic("llvm.aarch64.get.fpcr", &[], &[])?;
                let bit = self.int_type(64).const_int(FPCR_FZ, false);
                let flush = self.record(self.builder.build_or(callers.into_int_value(), bit, ""))?;
                Some(DenormalModes { set: "llvm.aarch64.set.fpcr", callers, flush: flush.into() })
            }
            _ => None,
        }
    }

    /// Stores both values of MXCSR to memory, as its instructions require.
    fn mxcsr(&self) -> Option<DenormalModes<'ctx>> {
        let word = self.int_type(32);
        let [callers, flush] =
            ["callers", "flush"].map(|name| self.record(self.builder.build_alloca(word, name)).map(Into::into));
        let (callers, flush): (BasicValueEnum<'ctx>, BasicValueEnum<'ctx>) = (callers?, flush?);
        self.intrinsic("llvm.x86.sse.stmxcsr", &[], &[callers]);
        let found = self.record(self.builder.build_load(word, callers.into_pointer_value(), ""))?;
        let both = word.const_int(MXCSR_FTZ_DAZ, false);
        let flushing = self.record(self.builder.build_or(found.into_int_value(), both, ""))?;
        self.record(self.builder.build_store(flush.into_pointer_value(), flushing))?;
        Some(DenormalModes { set: "llvm.x86.sse.ldmxcsr", callers, flush })
    }

    /// Sets the thread's mode.
    pub fn set_denormal_mode(&self, modes: &DenormalModes<'ctx>, mode: DenormalMode) {
        let value = match mode {
            DenormalMode::Callers => modes.callers,
            DenormalMode::Flush => modes.flush,
        };
        self.intrinsic(modes.set, &[], &[value]);
    }

    /// Prevents inlining of a kernel: LLVM could move inlined arithmetic across a mode switch.
    pub fn keep_apart(&self, kernel: FunctionValue<'ctx>) {
        let noinline = Attribute::get_named_enum_kind_id("noinline");
        kernel.add_attribute(AttributeLoc::Function, self.context.create_enum_attribute(noinline, 0));
    }

    /// Returns a function that calls a kernel without results while subnormals are flushed: for callers that are not
    /// generated code.
    pub fn flushing(&self, kernel: FunctionValue<'ctx>) -> FunctionValue<'ctx> {
        let name = format!("{}.flushing", kernel.get_name().to_string_lossy());
        if let Some(function) = self.module.get_function(&name) {
            return function;
        }
        self.keep_apart(kernel);
        let function = self.module.add_function(&name, kernel.get_type(), Some(Linkage::Internal));
        self.decorate(function);
        let resume = self.builder.get_insert_block();
        self.builder.position_at_end(self.context.append_basic_block(function, "entry"));
        let modes = self.denormal_modes();
        if let Some(modes) = &modes {
            self.set_denormal_mode(modes, DenormalMode::Flush);
        }
        let arguments: Vec<BasicMetadataValueEnum<'ctx>> = function.get_param_iter().map(Into::into).collect();
        self.record(self.builder.build_call(kernel, &arguments, ""));
        if let Some(modes) = &modes {
            self.set_denormal_mode(modes, DenormalMode::Callers);
        }
        self.record(self.builder.build_return(None));
        if let Some(block) = resume {
            self.builder.position_at_end(block);
        }
        function
    }
}
