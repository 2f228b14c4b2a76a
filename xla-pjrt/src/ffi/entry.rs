//! Entry points: C functions that wrap Rust functions.
//!
//! Callers may use another floating-point environment than Rust: jaxlib compiles and runs programs on threads that
//! flush subnormals. In that mode, Rust code would have undefined behavior, and the constants of a program would be
//! read as zeros. Therefore, a slot is a short assembly function ([`in_default_environment`]) that switches to Rust's
//! environment if the caller's differs, and restores the caller's before it returns. Threads that are started during a
//! call inherit Rust's environment.
#![expect(unsafe_code, reason = "reads the structures that C passes")]

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

use xla_service::panic_message;

use super::failed::Failed;
use super::handle::Handle;
use super::image::{Image, with_image};
use crate::status::Status;

/// Slot of the function table. Its function takes a pointer to its arguments and returns either nothing, or null or an
/// error.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) union Slot {
    function: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
    procedure: unsafe extern "C" fn(*mut c_void),
}

/// Function of the C API.
pub(crate) trait Function {
    /// Argument structure.
    type Args: Image;

    /// Runs the function. Results are written to `Out` fields, which reach the caller only if there is no error.
    fn run(args: &Self::Args) -> Result<(), Status>;
}

/// Function of the C API that cannot report errors.
pub(crate) trait Procedure {
    /// Argument structure.
    type Args: Image;

    /// Runs the function.
    fn run(args: &Self::Args);
}

/// Returns the slot of a function.
pub(crate) const fn entry<F: Function>() -> Slot {
    Slot { function: enter::<F> }
}

/// Returns the slot of a function that returns nothing.
pub(crate) const fn procedure<F: Procedure>() -> Slot {
    Slot { procedure: enter_procedure::<F> }
}

/// Body of a C function that calls `$function` with its argument in Rust's floating-point environment: round to
/// nearest, exceptions masked, no flushing of subnormals.
#[cfg(all(target_arch = "x86_64", not(miri)))]
macro_rules! in_default_environment {
    ($function:path) => {
        std::arch::naked_asm!(
            // 32 bytes of shadow space for the Windows calling convention, two words for MXCSR, and alignment.
            "sub rsp, 40",
            "stmxcsr [rsp + 32]",
            "mov eax, [rsp + 32]",
            // Ignore the exception flags.
            "and eax, 0xffc0",
            "cmp eax, 0x1f80",
            "jne 2f",
            "add rsp, 40",
            "jmp {function}",
            "2:",
            "mov dword ptr [rsp + 36], 0x1f80",
            "ldmxcsr [rsp + 36]",
            "call {function}",
            "ldmxcsr [rsp + 32]",
            "add rsp, 40",
            "ret",
            function = sym $function,
        )
    };
}

/// Body of a C function that calls `$function` with its argument in Rust's floating-point environment, an `fpcr` of
/// zero.
#[cfg(all(target_arch = "aarch64", not(miri)))]
macro_rules! in_default_environment {
    ($function:path) => {
        std::arch::naked_asm!(
            "mrs x9, fpcr",
            "cbnz x9, 2f",
            "b {function}",
            "2:",
            "stp x29, x30, [sp, #-32]!",
            "str x9, [sp, #16]",
            "msr fpcr, xzr",
            "bl {function}",
            "ldr x9, [sp, #16]",
            "msr fpcr, x9",
            "ldp x29, x30, [sp], #32",
            "ret",
            function = sym $function,
        )
    };
}

/// Runs [`call`] in Rust's floating-point environment, whatever the caller's is.
///
/// # Safety
///
/// See [`call`].
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
// SAFETY: the assembly preserves the argument and the result, and restores all state that it changes.
#[unsafe(naked)]
unsafe extern "C" fn enter<F: Function>(args: *mut c_void) -> *mut c_void {
    in_default_environment!(call::<F>)
}

/// Runs [`call_procedure`] in Rust's floating-point environment, whatever the caller's is.
///
/// # Safety
///
/// See [`call_procedure`].
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
// SAFETY: the assembly preserves the argument, and restores all state that it changes.
#[unsafe(naked)]
unsafe extern "C" fn enter_procedure<F: Procedure>(args: *mut c_void) {
    in_default_environment!(call_procedure::<F>)
}

#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
use {call as enter, call_procedure as enter_procedure};

/// # Safety
///
/// As the C API requires: `args` points to the argument structure of the function.
unsafe extern "C" fn call<F: Function>(args: *mut c_void) -> *mut c_void {
    // SAFETY: the caller of this function guarantees it.
    let work = || unsafe { with_image::<F::Args, ()>(args.cast(), F::run) };
    match guarded(<F::Args as Image>::NAME, work) {
        Ok(()) => std::ptr::null_mut(),
        Err(status) => Handle::<Failed>::new(status).address().cast(),
    }
}

/// # Safety
///
/// As the C API requires: `args` points to the argument structure of the function.
unsafe extern "C" fn call_procedure<F: Procedure>(args: *mut c_void) {
    let run = |args: &F::Args| {
        F::run(args);
        Ok(())
    };
    // SAFETY: the caller of this function guarantees it.
    let work = || unsafe { with_image::<F::Args, ()>(args.cast(), run) };
    // This kind of function cannot report an error.
    drop(guarded(<F::Args as Image>::NAME, work));
}

/// Runs the work of function `name` and converts a panic to an error.
pub(super) fn guarded<R>(name: &str, work: impl FnOnce() -> Result<R, Status>) -> Result<R, Status> {
    // Unwind safe: locks recover from poisoning, and partial results of the closure are dropped.
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|panic| Err(Status::internal(format!("{name} panicked: {}", panic_message(&*panic)))))
}

/// Creates the slot of a function: one that returns null or an error, one that returns nothing (`procedure`), or,
/// without a function, one that always returns an `UNIMPLEMENTED` error.
macro_rules! slot {
    ($args:ty: $function:path) => {{
        struct Row;
        impl $crate::ffi::Function for Row {
            type Args = $args;
            fn run(args: &$args) -> Result<(), $crate::status::Status> {
                $function(args)
            }
        }
        $crate::ffi::entry::<Row>()
    }};
    ($args:ty: procedure $function:path) => {{
        struct Row;
        impl $crate::ffi::Procedure for Row {
            type Args = $args;
            fn run(args: &$args) {
                $function(args);
            }
        }
        $crate::ffi::procedure::<Row>()
    }};
    ($args:ty:) => {{
        struct Row;
        impl $crate::ffi::Function for Row {
            type Args = $args;
            fn run(_: &$args) -> Result<(), $crate::status::Status> {
                Err($crate::status::Status::unimplemented(format!(
                    "{} is not implemented",
                    <$args as $crate::ffi::Image>::NAME
                )))
            }
        }
        $crate::ffi::entry::<Row>()
    }};
}
pub(crate) use slot;

#[cfg(test)]
mod tests {
    use super::super::handle::delete;
    use super::*;
    use crate::abi::errors::PluginInitializeArgs;
    use crate::ffi::{Field, code};
    use crate::status::Code;

    struct Panics;

    impl Function for Panics {
        type Args = PluginInitializeArgs;

        fn run(_: &PluginInitializeArgs) -> Result<(), Status> {
            panic!("on purpose")
        }
    }

    fn args() -> PluginInitializeArgs {
        let mut args = PluginInitializeArgs::NULL;
        args.head.struct_size = PluginInitializeArgs::SIZE;
        args
    }

    #[test]
    fn a_panic_is_an_error_of_the_function() {
        // SAFETY: the argument structure that the function takes.
        let error = unsafe { enter::<Panics>(std::ptr::from_mut(&mut args()).cast()) };
        let error = Handle::<Failed>::from_c(error.cast());
        assert_eq!(code(error), Code::Internal);
        assert_eq!(error.get().unwrap().message, "PJRT_Plugin_Initialize panicked: on purpose");
        // SAFETY: an error of this function, which is not used afterward.
        unsafe { delete::<Failed>(error.address()) };
    }

    #[cfg(all(target_arch = "x86_64", unix))]
    struct Halves;

    #[cfg(all(target_arch = "x86_64", unix))]
    impl Function for Halves {
        type Args = PluginInitializeArgs;

        fn run(_: &PluginInitializeArgs) -> Result<(), Status> {
            let half = std::hint::black_box(f64::MIN_POSITIVE) * std::hint::black_box(0.5);
            if half > 0.0 { Ok(()) } else { Err(Status::internal("a subnormal result was flushed")) }
        }
    }

    /// Calls a function with subnormals flushed, and returns its result and the mode after the call.
    #[cfg(all(target_arch = "x86_64", unix))]
    fn called_flushing(function: unsafe extern "C" fn(*mut c_void) -> *mut c_void) -> (*mut c_void, u32) {
        let (mut args, mut modes) = (args(), [0_u32; 3]);
        let result: *mut c_void;
        // SAFETY: the argument structure that the function takes; the environment is changed only during the call.
        unsafe {
            std::arch::asm!(
                "stmxcsr [r12]",
                "mov eax, [r12]",
                "or eax, 0x8040",
                "mov [r12 + 4], eax",
                "ldmxcsr [r12 + 4]",
                "call r13",
                "stmxcsr [r12 + 8]",
                "ldmxcsr [r12]",
                in("r12") modes.as_mut_ptr(),
                in("r13") function,
                in("rdi") std::ptr::from_mut(&mut args),
                lateout("rax") result,
                clobber_abi("C"),
            );
        }
        (result, modes[2] & 0x8040)
    }

    /// Compilation threads of jaxlib flush subnormals, which made subnormal constants read as zeros.
    #[cfg(all(target_arch = "x86_64", unix))]
    #[test]
    fn callers_may_flush_subnormals() {
        let (error, mode) = called_flushing(enter::<Halves>);
        assert!(error.is_null());
        assert_eq!(mode, 0x8040, "the caller's mode is back");
    }
}
