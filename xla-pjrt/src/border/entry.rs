//! Entry points: functions of C around functions of Rust.
#![expect(unsafe_code, reason = "reads the structures that C passes")]

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::failed::Failed;
use super::handle::Handle;
use super::image::{Image, with_image};
use crate::status::Status;

/// A slot of the table of functions: what takes a pointer to its arguments, and returns null or an error, or nothing.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) union Slot {
    function: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
    procedure: unsafe extern "C" fn(*mut c_void),
}

/// A function of the C API.
pub(crate) trait Function {
    /// The structure that holds its arguments.
    type Args: Image;

    /// Does the work. Results go into the `Out` fields; they reach the caller only if there is no error.
    fn run(args: &Self::Args) -> Result<(), Status>;
}

/// A function of the C API that cannot report errors.
pub(crate) trait Procedure {
    /// The structure that holds its arguments.
    type Args: Image;

    /// Does the work.
    fn run(args: &Self::Args);
}

/// The slot for a function.
pub(crate) const fn entry<F: Function>() -> Slot {
    Slot { function: call::<F> }
}

/// The slot for a function that returns nothing.
pub(crate) const fn procedure<F: Procedure>() -> Slot {
    Slot { procedure: call_procedure::<F> }
}

/// # Safety
///
/// As the C API says: `args` points to the function's structure of arguments.
unsafe extern "C" fn call<F: Function>(args: *mut c_void) -> *mut c_void {
    // SAFETY: handed on.
    let work = || unsafe { with_image::<F::Args, ()>(args.cast(), F::run) };
    match guarded(<F::Args as Image>::NAME, work) {
        Ok(()) => std::ptr::null_mut(),
        Err(status) => Handle::<Failed>::new(status).address().cast(),
    }
}

/// # Safety
///
/// As the C API says: `args` points to the function's structure of arguments.
unsafe extern "C" fn call_procedure<F: Procedure>(args: *mut c_void) {
    let run = |args: &F::Args| {
        F::run(args);
        Ok(())
    };
    // SAFETY: handed on.
    let work = || unsafe { with_image::<F::Args, ()>(args.cast(), run) };
    // Nobody can be told of an error.
    drop(guarded(<F::Args as Image>::NAME, work));
}

/// Runs the work of a function; its panic is an error of that name.
pub(super) fn guarded<R>(name: &str, work: impl FnOnce() -> Result<R, Status>) -> Result<R, Status> {
    // Locks recover from poison, and whatever the closure leaves half done is dropped.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        Err(Status::internal(format!("{name} panicked: {}", text.unwrap_or("without a message"))))
    })
}

/// A slot for a function: one that returns an error or null, one that returns nothing (`procedure`), or, for a name
/// alone, one whose error says that there is no such function here.
macro_rules! slot {
    ($args:ty: $function:path) => {{
        struct Row;
        impl $crate::border::Function for Row {
            type Args = $args;
            fn run(args: &$args) -> Result<(), $crate::status::Status> {
                $function(args)
            }
        }
        $crate::border::entry::<Row>()
    }};
    ($args:ty: procedure $function:path) => {{
        struct Row;
        impl $crate::border::Procedure for Row {
            type Args = $args;
            fn run(args: &$args) {
                $function(args);
            }
        }
        $crate::border::procedure::<Row>()
    }};
    ($args:ty:) => {{
        struct Row;
        impl $crate::border::Function for Row {
            type Args = $args;
            fn run(_: &$args) -> Result<(), $crate::status::Status> {
                Err($crate::status::Status::unimplemented(format!(
                    "{} is not implemented",
                    <$args as $crate::border::Image>::NAME
                )))
            }
        }
        $crate::border::entry::<Row>()
    }};
}
pub(crate) use slot;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::errors::PluginInitializeArgs;
    use crate::border::{Field, code};
    use crate::status::Code;

    struct Panics;

    impl Function for Panics {
        type Args = PluginInitializeArgs;

        fn run(_: &PluginInitializeArgs) -> Result<(), Status> {
            panic!("on purpose")
        }
    }

    #[test]
    fn a_panic_is_an_error_of_the_function() {
        let mut args = PluginInitializeArgs::NULL;
        args.head.struct_size = PluginInitializeArgs::SIZE;
        // SAFETY: the structure that the function takes.
        let error = unsafe { call::<Panics>(std::ptr::from_mut(&mut args).cast()) };
        let error = Handle::<Failed>::from_c(error.cast());
        assert_eq!(code(error), Code::Internal);
        assert_eq!(error.get().unwrap().message, "PJRT_Plugin_Initialize panicked: on purpose");
    }
}
