//! Table of API functions that handlers call.
#![expect(unsafe_code, reason = "functions that C calls with pointers")]

use std::ffi::{CStr, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::{LazyLock, OnceLock};

use xla_hlo::{Error, Result, has_thread_pool};

use crate::abi::{
    ApiVersion, Attributes, Bundle, ContextGet, ErrorCreate, ErrorDestroy, ErrorGetDetails, ExtensionFind,
    FutureCreate, FutureSetAvailable, FutureSetError, HandlerRegister, Head, MemoryAllocate, MemoryFree, OptionsGet,
    OrdinalGet, PoolSchedule, PoolThreads, RunIdGet, StateAccess, StreamGet, TypeRegister,
};
use crate::context::CallContext;
use crate::convert::{future, lend_error, lend_future, take_error};
use crate::error::FfiError;
use crate::types;

/// Function of the API: most return an error or null.
#[repr(C)]
union Function {
    returning: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
    silent: unsafe extern "C" fn(*mut c_void),
}

/// `XLA_FFI_Api`: 208 bytes.
#[repr(C)]
struct Api {
    struct_size: usize,
    extensions: usize,
    version: (usize, usize, i32, i32),
    internal: usize,
    functions: [Function; 20],
}

const _: () = assert!(size_of::<Api>() == 208 && std::mem::offset_of!(Api, functions) == 48);

/// Function that registers a handler by its name and platform.
pub(crate) type Registrar = fn(&str, &str, Bundle) -> Result<()>;

/// Address of an empty dictionary.
static NO_OPTIONS: LazyLock<usize> = LazyLock::new(|| {
    let head = Head::new(Attributes::SIZE);
    let none = Attributes { head, len: 0, types: ptr::null(), names: ptr::null(), values: ptr::null() };
    ptr::from_ref(Box::leak(Box::new(none))).expose_provenance()
});

/// Registration function of the registry, a module that depends on this one; set when the registry is first used.
static REGISTRAR: OnceLock<Registrar> = OnceLock::new();

/// Sets the function that registers handlers for C code.
pub(crate) fn set_registrar(registrar: Registrar) {
    REGISTRAR.get_or_init(|| registrar);
}

/// Returns the address of the table.
pub(crate) fn api() -> *const c_void {
    ptr::from_ref(&API).cast()
}

static API: Api = Api {
    struct_size: size_of::<Api>(),
    extensions: 0,
    version: (ApiVersion::SIZE, 0, crate::MAJOR, crate::MINOR),
    internal: 0,
    functions: [
        Function { returning: error_create },
        Function { silent: error_details },
        Function { silent: error_destroy },
        returning::<HandlerRegister>(),
        returning::<StreamGet>(),
        returning::<TypeRegister>(),
        returning::<ContextGet>(),
        returning::<StateSet>(),
        returning::<StateGet>(),
        returning::<MemoryAllocate>(),
        returning::<MemoryFree>(),
        returning::<PoolSchedule>(),
        returning::<PoolThreads>(),
        returning::<FutureCreate>(),
        returning::<FutureSetAvailable>(),
        returning::<FutureSetError>(),
        returning::<RunIdGet>(),
        returning::<OrdinalGet>(),
        returning::<ExtensionFind>(),
        returning::<OptionsGet>(),
    ],
};

/// Argument structure of an API function, with its implementation.
trait Call {
    /// Minimum size in bytes that the caller must state.
    const SIZE: usize;

    /// Runs the function.
    ///
    /// # Safety
    ///
    /// Pointers inside must be valid as the API specifies.
    unsafe fn run(&mut self) -> Result<()>;
}

const fn returning<C: Call>() -> Function {
    Function { returning: guarded::<C> }
}

/// # Safety
///
/// `args` must be null or point to the function's argument structure, whose first field is its size.
unsafe extern "C" fn guarded<C: Call>(args: *mut c_void) -> *mut c_void {
    // SAFETY: the contract is passed on to the caller.
    let outcome = catch_unwind(AssertUnwindSafe(|| unsafe {
        check(args, C::SIZE)?;
        (*args.cast::<C>()).run()
    }));
    let outcome = outcome.unwrap_or_else(|_| Err(Error::internal("a function of the FFI panicked")));
    outcome.err().map_or(ptr::null_mut(), |error| lend_error(error.into()))
}

/// # Safety
///
/// The requirements of [`guarded`].
unsafe fn check(args: *const c_void, expected: usize) -> Result<()> {
    if args.is_null() {
        return Err(Error::invalid_argument("arguments of the FFI must not be null"));
    }
    // SAFETY: every structure begins with its size.
    let size = unsafe { args.cast::<usize>().read() };
    if size < expected {
        return Err(Error::invalid_argument(format!("a structure must have {expected} bytes, but has {size}")));
    }
    Ok(())
}

/// # Safety
///
/// `args` must point to an `ErrorCreate`.
unsafe extern "C" fn error_create(args: *mut c_void) -> *mut c_void {
    // SAFETY: by contract.
    let Some(args) = (unsafe { args.cast::<ErrorCreate>().as_ref() }) else {
        return lend_error(FfiError::new(3, "arguments of the FFI must not be null"));
    };
    let message = match args.message.is_null() {
        true => String::new(),
        // SAFETY: according to the API it is a C string.
        false => unsafe { CStr::from_ptr(args.message) }.to_string_lossy().into_owned(),
    };
    lend_error(FfiError::new(args.code, &message))
}

/// # Safety
///
/// `args` must point to an `ErrorGetDetails` of an error of this library.
unsafe extern "C" fn error_details(args: *mut c_void) {
    // SAFETY: by contract.
    if let Some(args) = unsafe { args.cast::<ErrorGetDetails>().as_mut() } {
        // SAFETY: by contract.
        let error = unsafe { args.error.cast::<FfiError>().as_ref() };
        args.message = error.map_or(c"".as_ptr(), |error| error.message.as_ptr());
        // Handlers of version 0.3 have no field for it.
        if args.head.struct_size >= ErrorGetDetails::SIZE {
            args.code = error.map_or(0, |error| error.code);
        }
    }
}

/// # Safety
///
/// `args` must point to an `ErrorDestroy` of an error of this library that has no further uses.
unsafe extern "C" fn error_destroy(args: *mut c_void) {
    // SAFETY: by contract.
    drop(unsafe { args.cast::<ErrorDestroy>().as_ref().and_then(|args| take_error(args.error)) });
}

/// Returns the context of a call.
///
/// # Safety
///
/// The pointer must be null or belong to a frame of this library whose call has not ended.
unsafe fn context<'a>(context: *const c_void) -> Result<&'a CallContext> {
    let error = || Error::invalid_argument("an execution context must not be null");
    // SAFETY: by contract.
    unsafe { context.cast::<CallContext>().as_ref() }.ok_or_else(error)
}

/// Returns the id of a type.
///
/// # Safety
///
/// The pointer must be null or readable.
unsafe fn type_id(id: *const i64) -> Result<i64> {
    // SAFETY: by contract.
    unsafe { id.as_ref() }.copied().ok_or_else(|| Error::invalid_argument("the id of a type must not be null"))
}

macro_rules! calls {
    ($($(#[$doc:meta])* $ty:ty, $size:expr, |$args:ident| $work:block)*) => {$(
        $(#[$doc])*
        impl Call for $ty {
            const SIZE: usize = $size;

            unsafe fn run(&mut self) -> Result<()> {
                let $args = self;
                // SAFETY: pointers inside are valid as the API specifies, by the contract of `run`.
                unsafe { $work }
            }
        }
    )*};
}

impl Call for FutureCreate {
    /// Callers state the size of the head only.
    const SIZE: usize = 16;

    unsafe fn run(&mut self) -> Result<()> {
        self.future = lend_future();
        Ok(())
    }
}

/// Arguments of `XLA_FFI_State_Set`.
#[repr(transparent)]
struct StateSet(StateAccess);

/// Arguments of `XLA_FFI_State_Get`.
#[repr(transparent)]
struct StateGet(StateAccess);

calls! {
    HandlerRegister, HandlerRegister::SIZE - 4, |args| {
        let (name, platform) = (args.name.text()?, args.platform.text()?);
        let missing = || Error::failed_precondition("no client has subscribed to handlers yet");
        REGISTRAR.get().ok_or_else(missing)?(&name, &platform, args.bundle)
    }
    /// Fails: there is no stream on the host.
    StreamGet, StreamGet::SIZE, |args| {
        context(args.context)?;
        Err(Error::unimplemented("handlers that send work to a stream of the device are not supported"))
    }
    TypeRegister, 40, |args| {
        let wanted = type_id(args.type_id)?;
        let info = if args.head.struct_size >= TypeRegister::SIZE { args.type_info.as_ref() } else { None };
        let deleter = info.and_then(|info| info.deleter);
        let deleter = deleter.map_or(0, |deleter| (deleter as *const c_void).expose_provenance());
        *args.type_id = types::register(&args.name.text()?, wanted, deleter)?;
        Ok(())
    }
    ContextGet, ContextGet::SIZE, |args| {
        let id = type_id(args.type_id)?;
        let found = context(args.context)?.user_data.get(id);
        let missing = || Error::not_found(format!("the execution context has no data of type {id}"));
        args.data = ptr::with_exposed_provenance_mut(found.ok_or_else(missing)?);
        Ok(())
    }
    StateSet, StateAccess::SIZE, |args| {
        let (id, state) = (type_id(args.0.type_id)?, args.0.state.expose_provenance());
        context(args.0.context)?.set_state(args.0.stage, id, state)
    }
    StateGet, StateAccess::SIZE, |args| {
        let state = context(args.0.context)?.state(args.0.stage, type_id(args.0.type_id)?)?;
        args.0.state = ptr::with_exposed_provenance_mut(state);
        Ok(())
    }
    MemoryAllocate, MemoryAllocate::SIZE, |args| {
        let memory = context(args.context)?.allocate(args.size, args.alignment);
        let error =
            || Error::resource_exhausted(format!("cannot allocate {} bytes aligned to {}", args.size, args.alignment));
        args.data = ptr::with_exposed_provenance_mut(memory.ok_or_else(error)?);
        Ok(())
    }
    MemoryFree, MemoryFree::SIZE, |args| {
        let freed = context(args.context)?.free(args.data.expose_provenance());
        if freed { Ok(()) } else { Err(Error::invalid_argument("the memory was not allocated by this call")) }
    }
    PoolSchedule, PoolSchedule::SIZE, |args| {
        let task = args.task.ok_or_else(|| Error::invalid_argument("a task must not be null"))?;
        let data = args.data.expose_provenance();
        // The API specifies that the task may be called once with its data, from any thread.
        let run = move || task(ptr::with_exposed_provenance_mut(data));
        if has_thread_pool() { rayon::spawn(run) } else { run() }
        Ok(())
    }
    PoolThreads, PoolThreads::SIZE, |args| {
        let count = args.count.as_mut().ok_or_else(|| Error::invalid_argument("the count must not be null"))?;
        *count = if has_thread_pool() { rayon::current_num_threads() as i64 } else { 1 };
        Ok(())
    }
    FutureSetAvailable, FutureSetAvailable::SIZE, |args| {
        future(args.future)?.set(Ok(()))
    }
    FutureSetError, FutureSetError::SIZE, |args| {
        let error = take_error(args.error).unwrap_or_else(|| FfiError::new(2, "the future failed without an error"));
        future(args.future)?.set(Err(error.into_error()))
    }
    RunIdGet, RunIdGet::SIZE, |args| {
        args.run_id = context(args.context)?.run_id;
        Ok(())
    }
    /// Returns null: runs have no extensions.
    ExtensionFind, ExtensionFind::SIZE, |args| {
        context(args.context)?;
        args.extension = ptr::null();
        Ok(())
    }
    /// Returns an empty dictionary: runs have no options.
    OptionsGet, OptionsGet::SIZE, |args| {
        context(args.context)?;
        args.options = ptr::with_exposed_provenance(*NO_OPTIONS);
        Ok(())
    }
    OrdinalGet, OrdinalGet::SIZE, |args| {
        args.ordinal = context(args.context)?.ordinal;
        Ok(())
    }
}
