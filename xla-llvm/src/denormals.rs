//! Subnormal numbers ("denormals"): what a kernel does with them, and the processor's mode that takes them for zeros.
//!
//! The mode belongs to a thread's floating-point environment, and nobody but generated code may run in it: Rust takes
//! the default environment for granted, and Rust code that runs in another one is undefined behaviour. So generated
//! code sets the mode, calls kernels, and sets back what it found, before it returns or calls anything else. LLVM may
//! move arithmetic past the instructions that set the mode; it never moves it out of a function. Kernels are therefore
//! functions of their own, which say by `denormal-fp-math` that nothing may be assumed of the mode.

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::module::Linkage;
use inkwell::values::{BasicMetadataValueEnum, BasicValueEnum, FunctionValue};

use crate::emitter::Emitter;

/// MXCSR: flush to zero (results), and denormals are zeros (operands).
const MXCSR_FTZ_DAZ: u64 = 0x8040;
/// FPCR: flush to zero (both), of all types but halves.
const FPCR_FZ: u64 = 1 << 24;

/// Treatment of subnormal numbers by a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denormals {
    /// It computes with no floating-point numbers, and the mode does not matter.
    Unaffected,
    /// It may take them for zeros.
    MayFlush,
    /// It must see them: numbers that are normal in their element type are subnormal in its arithmetic.
    Preserve,
}

/// Mode of floating-point arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DenormalMode {
    /// The one that the caller runs in: Rust's, in which subnormals are numbers like others.
    Callers,
    /// Subnormal operands and results are zeros of their sign.
    Flush,
}

/// The modes of a function's thread, as the function found them when it was called.
#[derive(Clone, Copy, Debug)]
pub struct DenormalModes<'ctx> {
    /// Intrinsic that sets a mode.
    set: &'static str,
    callers: BasicValueEnum<'ctx>,
    flush: BasicValueEnum<'ctx>,
}

impl<'ctx> Emitter<'ctx> {
    /// Reads the thread's mode; `None` for processors that have no other mode, or none that is known here. The builder
    /// must be in the function's entry.
    pub fn denormal_modes(&self) -> Option<DenormalModes<'ctx>> {
        match self.target().triple().split('-').next()? {
            "x86_64" => self.mxcsr(),
            // Without floating-point registers there is no mode, and its register may not be read.
            "aarch64" | "arm64" if self.target().abilities().vector_bits > 0 => {
                let callers = self.intrinsic("llvm.aarch64.get.fpcr", &[], &[])?;
                let bit = self.int_type(64).const_int(FPCR_FZ, false);
                let flush = self.record(self.builder.build_or(callers.into_int_value(), bit, ""))?;
                Some(DenormalModes { set: "llvm.aarch64.set.fpcr", callers, flush: flush.into() })
            }
            _ => None,
        }
    }

    /// Both values of the register, in memory, where its instructions want them.
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

    /// Keeps a kernel a function of its own: in its callers, LLVM could move its arithmetic past a switch of modes.
    pub fn keep_apart(&self, kernel: FunctionValue<'ctx>) {
        let noinline = Attribute::get_named_enum_kind_id("noinline");
        kernel.add_attribute(AttributeLoc::Function, self.context.create_enum_attribute(noinline, 0));
    }

    /// A function that calls a kernel, one that returns nothing, while subnormals are flushed: for callers that are not
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
