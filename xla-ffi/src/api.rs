//! The table of functions that handlers call.
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
use crate::border::{future, lend_error, lend_future, take_error};
use crate::context::CallContext;
use crate::error::FfiError;
use crate::types;

/// A function of the API: most return an error or null.
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

/// Registers a handler by its name and platform.
pub(crate) type Registrar = fn(&str, &str, Bundle) -> Result<()>;

/// The address of a dictionary without entries.
static NO_OPTIONS: LazyLock<usize> = LazyLock::new(|| {
    let head = Head::new(Attributes::SIZE);
    let none = Attributes { head, len: 0, types: ptr::null(), names: ptr::null(), values: ptr::null() };
    ptr::from_ref(Box::leak(Box::new(none))).expose_provenance()
});

/// The registry's function, which stands above this file; set when the registry is first used.
static REGISTRAR: OnceLock<Registrar> = OnceLock::new();

/// Says how handlers are registered that register others.
pub(crate) fn set_registrar(registrar: Registrar) {
    REGISTRAR.get_or_init(|| registrar);
}

/// The address of the table.
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

/// A function's structure of arguments, and its work.
trait Call {
    /// Bytes that the caller must have.
    const SIZE: usize;

    /// Does the work.
    ///
    /// # Safety
    ///
    /// Pointers inside are what the API says of them.
    unsafe fn run(&mut self) -> Result<()>;
}

const fn returning<C: Call>() -> Function {
    Function { returning: guarded::<C> }
}

/// # Safety
///
/// `args` is null or points to the function's structure of arguments, as large as its first field says.
unsafe extern "C" fn guarded<C: Call>(args: *mut c_void) -> *mut c_void {
    // SAFETY: handed on.
    let outcome = catch_unwind(AssertUnwindSafe(|| unsafe {
        check(args, C::SIZE)?;
        (*args.cast::<C>()).run()
    }));
    let outcome = outcome.unwrap_or_else(|_| Err(Error::internal("a function of the FFI panicked")));
    outcome.err().map_or(ptr::null_mut(), |error| lend_error(error.into()))
}

/// # Safety
///
/// As of [`guarded`].
unsafe fn check(args: *const c_void, expected: usize) -> Result<()> {
    if args.is_null() {
        return Err(Error::invalid_argument("arguments of the FFI must not be null"));
    }
    // SAFETY: every structure begins with its size.
    let size = unsafe { args.cast::<usize>().read() };
    if size < expected {
        return Err(Error::invalid_argument(format!("a structure of {expected} bytes was expected, it has {size}")));
    }
    Ok(())
}

/// # Safety
///
/// `args` points to an `ErrorCreate`.
unsafe extern "C" fn error_create(args: *mut c_void) -> *mut c_void {
    // SAFETY: by contract.
    let Some(args) = (unsafe { args.cast::<ErrorCreate>().as_ref() }) else {
        return lend_error(FfiError::new(3, "arguments of the FFI must not be null"));
    };
    let message = match args.message.is_null() {
        true => String::new(),
        // SAFETY: the API says that it is a text of C.
        false => unsafe { CStr::from_ptr(args.message) }.to_string_lossy().into_owned(),
    };
    lend_error(FfiError::new(args.code, &message))
}

/// # Safety
///
/// `args` points to an `ErrorGetDetails` of an error of this library.
unsafe extern "C" fn error_details(args: *mut c_void) {
    // SAFETY: by contract.
    if let Some(args) = unsafe { args.cast::<ErrorGetDetails>().as_mut() } {
        // SAFETY: by contract.
        let error = unsafe { args.error.cast::<FfiError>().as_ref() };
        args.message = error.map_or(c"".as_ptr(), |error| error.message.as_ptr());
        // Handlers of version 0.3 have no place for it.
        if args.head.struct_size >= ErrorGetDetails::SIZE {
            args.code = error.map_or(0, |error| error.code);
        }
    }
}

/// # Safety
///
/// `args` points to an `ErrorDestroy` of an error of this library that nobody uses any more.
unsafe extern "C" fn error_destroy(args: *mut c_void) {
    // SAFETY: by contract.
    drop(unsafe { args.cast::<ErrorDestroy>().as_ref().and_then(|args| take_error(args.error)) });
}

/// The context of a call.
///
/// # Safety
///
/// The pointer is null or that of a frame of this library whose call has not ended.
unsafe fn context<'a>(context: *const c_void) -> Result<&'a CallContext> {
    let error = || Error::invalid_argument("an execution context must not be null");
    // SAFETY: by contract.
    unsafe { context.cast::<CallContext>().as_ref() }.ok_or_else(error)
}

/// The number of a type.
///
/// # Safety
///
/// The pointer is null or can be read.
unsafe fn type_id(id: *const i64) -> Result<i64> {
    // SAFETY: by contract.
    unsafe { id.as_ref() }.copied().ok_or_else(|| Error::invalid_argument("the number of a type must not be null"))
}

macro_rules! calls {
    ($($(#[$doc:meta])* $ty:ty, $size:expr, |$args:ident| $work:block)*) => {$(
        $(#[$doc])*
        impl Call for $ty {
            const SIZE: usize = $size;

            unsafe fn run(&mut self) -> Result<()> {
                let $args = self;
                // SAFETY: pointers inside are what the API says of them, as the contract of `run` has it.
                unsafe { $work }
            }
        }
    )*};
}

impl Call for FutureCreate {
    /// Callers count no further than the head.
    const SIZE: usize = 16;

    unsafe fn run(&mut self) -> Result<()> {
        self.future = lend_future();
        Ok(())
    }
}

/// `StateAccess` for setting.
#[repr(transparent)]
struct StateSet(StateAccess);

/// `StateAccess` for getting.
#[repr(transparent)]
struct StateGet(StateAccess);

calls! {
    HandlerRegister, HandlerRegister::SIZE - 4, |args| {
        let (name, platform) = (args.name.text()?, args.platform.text()?);
        let missing = || Error::failed_precondition("no client has subscribed to handlers yet");
        REGISTRAR.get().ok_or_else(missing)?(&name, &platform, args.bundle)
    }
    /// There is no stream on the host.
    StreamGet, StreamGet::SIZE, |args| {
        context(args.context)?;
        Err(Error::unimplemented("handlers that send work to a stream of the device"))
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
        let error = || Error::resource_exhausted(format!("no {} bytes aligned to {}", args.size, args.alignment));
        args.data = ptr::with_exposed_provenance_mut(memory.ok_or_else(error)?);
        Ok(())
    }
    MemoryFree, MemoryFree::SIZE, |args| {
        let freed = context(args.context)?.free(args.data.expose_provenance());
        if freed { Ok(()) } else { Err(Error::invalid_argument("the memory is not of this call")) }
    }
    PoolSchedule, PoolSchedule::SIZE, |args| {
        let task = args.task.ok_or_else(|| Error::invalid_argument("a task must not be null"))?;
        let data = args.data.expose_provenance();
        // The API says that the task may be called once with its data, from any thread.
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
    /// Runs have no extensions.
    ExtensionFind, ExtensionFind::SIZE, |args| {
        context(args.context)?;
        args.extension = ptr::null();
        Ok(())
    }
    /// Runs have no options.
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
