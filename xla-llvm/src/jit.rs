//! Object code loaded into this process: LLVM's ORC with JITLink, wrapped in a safe interface.
#![expect(unsafe_code, reason = "ORC has no safe bindings; every call is here")]

use std::ffi::{CStr, CString, c_char, c_void};
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::{Mutex, PoisonError};

use inkwell::llvm_sys::core::LLVMCreateMemoryBufferWithMemoryRangeCopy;
use inkwell::llvm_sys::error::{LLVMDisposeErrorMessage, LLVMErrorRef, LLVMGetErrorMessage};
use inkwell::llvm_sys::orc2::lljit::{
    LLVMOrcCreateLLJIT, LLVMOrcCreateLLJITBuilder, LLVMOrcDisposeLLJIT, LLVMOrcLLJITAddObjectFile,
    LLVMOrcLLJITBuilderSetJITTargetMachineBuilder, LLVMOrcLLJITBuilderSetObjectLinkingLayerCreator,
    LLVMOrcLLJITGetExecutionSession, LLVMOrcLLJITGetMainJITDylib, LLVMOrcLLJITLookup, LLVMOrcLLJITMangleAndIntern,
    LLVMOrcLLJITRef,
};
use inkwell::llvm_sys::orc2::{
    LLVMJITEvaluatedSymbol, LLVMJITSymbolFlags, LLVMJITSymbolGenericFlags, LLVMOrcAbsoluteSymbols,
    LLVMOrcCSymbolMapPair, LLVMOrcDisposeMaterializationUnit, LLVMOrcExecutionSessionRef,
    LLVMOrcExecutionSessionSetErrorReporter, LLVMOrcJITDylibDefine,
    LLVMOrcJITTargetMachineBuilderCreateFromTargetMachine, LLVMOrcObjectLayerRef,
};

use xla_hlo::{Error, Result};

use crate::target::bare_host_machine;

/// Runtime function that generated code may call by name.
#[derive(Clone, Copy, Debug)]
pub struct RuntimeSymbol<'a> {
    /// Name that the code declares.
    pub name: &'a str,
    /// Address of the function.
    pub address: *const c_void,
}

/// Linked code in this process. Functions are looked up by name, and stay valid until this is dropped, which frees the
/// memory.
pub struct LoadedCode {
    jit: LLVMOrcLLJITRef,
    /// Reports of the linker, such as unresolved names. Boxed, since LLVM holds its address.
    reports: Box<Reports>,
}

type Reports = Mutex<Vec<String>>;

// SAFETY: LLJIT and its execution session guard their state with locks of their own; a handle may be used and dropped
// on any thread.
unsafe impl Send for LoadedCode {}
// SAFETY: as above; the one method that takes `&self`, the lookup, locks the session.
unsafe impl Sync for LoadedCode {}

impl LoadedCode {
    /// Links object files (see [`crate::target::Machine::object`]) with each other, with `runtime`, and with the C
    /// library of this process. Unresolved and doubly defined names are errors.
    pub fn link(objects: &[Vec<u8>], runtime: &[RuntimeSymbol<'_>]) -> Result<LoadedCode> {
        let code = LoadedCode { jit: create()?, reports: Box::default() };
        // SAFETY: the session belongs to the JIT handle, which is disposed before the reports are freed.
        unsafe {
            let session = LLVMOrcLLJITGetExecutionSession(code.jit);
            let reports: *const Reports = &*code.reports;
            LLVMOrcExecutionSessionSetErrorReporter(session, report, reports.cast_mut().cast());
        }
        code.define(runtime)?;
        for object in objects {
            code.add(object)?;
        }
        Ok(code)
    }

    /// Returns the address of a function or datum of the linked code; the first call links.
    ///
    /// The address is valid as long as this value lives. The caller must cast it to the correct function type.
    pub fn address(&self, name: &str) -> Result<*const c_void> {
        let name = c_string(name)?;
        let mut address = 0;
        // SAFETY: the JIT handle is alive, the name is a C string that outlives the call, and `address` is written
        // once.
        let error = unsafe { LLVMOrcLLJITLookup(self.jit, &mut address, name.as_ptr()) };
        check(error, "LLVM cannot link the code").map_err(|error| self.with_reports(error))?;
        let address = usize::try_from(address)
            .map_err(|_| Error::internal(format!("JIT address {address:#x} does not fit in a pointer")))?;
        Ok(ptr::with_exposed_provenance(address))
    }

    /// Adds all reports since the last call to the error.
    fn with_reports(&self, error: Error) -> Error {
        let mut reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        reports.drain(..).fold(error, |error, report| error.context(report))
    }

    fn define(&self, runtime: &[RuntimeSymbol<'_>]) -> Result<()> {
        if runtime.is_empty() {
            return Ok(());
        }
        let generic = LLVMJITSymbolGenericFlags::LLVMJITSymbolGenericFlagsExported as u8
            | LLVMJITSymbolGenericFlags::LLVMJITSymbolGenericFlagsCallable as u8;
        let names = runtime.iter().map(|symbol| c_string(symbol.name)).collect::<Result<Vec<_>>>()?;
        let mut pairs: Vec<LLVMOrcCSymbolMapPair> = Vec::with_capacity(runtime.len());
        for (symbol, name) in runtime.iter().zip(&names) {
            // SAFETY: the JIT handle is alive and the name is a C string. The returned reference to the interned string
            // is passed on to the symbol map below.
            let interned = unsafe { LLVMOrcLLJITMangleAndIntern(self.jit, name.as_ptr()) };
            pairs.push(LLVMOrcCSymbolMapPair {
                Name: interned,
                Sym: LLVMJITEvaluatedSymbol {
                    Address: symbol.address.expose_provenance() as u64,
                    Flags: LLVMJITSymbolFlags { GenericFlags: generic, TargetFlags: 0 },
                },
            });
        }
        // SAFETY: `pairs` has the given length and is read only during the call. On success the dylib owns the unit; on
        // failure it is still ours and is disposed.
        unsafe {
            let unit = LLVMOrcAbsoluteSymbols(pairs.as_mut_ptr(), pairs.len());
            let error = LLVMOrcJITDylibDefine(LLVMOrcLLJITGetMainJITDylib(self.jit), unit);
            if !error.is_null() {
                LLVMOrcDisposeMaterializationUnit(unit);
            }
            check(error, "LLVM cannot define runtime symbols")
        }
    }

    fn add(&self, object: &[u8]) -> Result<()> {
        // SAFETY: the range is a valid slice and is copied; the JIT takes ownership of the buffer, even on failure.
        unsafe {
            let buffer =
                LLVMCreateMemoryBufferWithMemoryRangeCopy(object.as_ptr().cast(), object.len(), c"object".as_ptr());
            let dylib = LLVMOrcLLJITGetMainJITDylib(self.jit);
            check(LLVMOrcLLJITAddObjectFile(self.jit, dylib, buffer), "LLVM cannot add object code")
        }
    }
}

impl Drop for LoadedCode {
    fn drop(&mut self) {
        // SAFETY: `create` made the handle, and it is disposed once. If freeing fails, the only remaining action is to
        // consume the error, which `check` does.
        let _ = check(unsafe { LLVMOrcDisposeLLJIT(self.jit) }, "LLVM cannot free JIT code");
    }
}

/// Creates a linker. Its machine is specified explicitly: otherwise it would detect all features of the processor,
/// although it generates no code.
fn create() -> Result<LLVMOrcLLJITRef> {
    let machine = ManuallyDrop::new(bare_host_machine()?);
    let mut jit = ptr::null_mut();
    // SAFETY: the target machine is consumed by its builder, which does not drop it again. The builders are consumed by
    // the functions that they are passed to, even on failure. `jit` is written on success.
    unsafe {
        let builder = LLVMOrcCreateLLJITBuilder();
        let machine = LLVMOrcJITTargetMachineBuilderCreateFromTargetMachine(machine.as_mut_ptr());
        LLVMOrcLLJITBuilderSetJITTargetMachineBuilder(builder, machine);
        LLVMOrcLLJITBuilderSetObjectLinkingLayerCreator(builder, linking_layer, ptr::null_mut());
        check(LLVMOrcCreateLLJIT(&mut jit, builder), "LLVM's JIT linker cannot be started")?;
    }
    Ok(jit)
}

/// Creates a JITLink layer with its in-process memory manager, which on every architecture allocates code, constants
/// and stubs close together.
extern "C" fn linking_layer(
    _context: *mut c_void,
    session: LLVMOrcExecutionSessionRef,
    _triple: *const c_char,
) -> LLVMOrcObjectLayerRef {
    use inkwell::llvm_sys::orc2::ee::LLVMOrcCreateObjectLinkingLayerWithInProcessMemoryManager as create_layer;
    use inkwell::llvm_sys::orc2::ee::LLVMOrcCreateRTDyldObjectLinkingLayerWithSectionMemoryManager as fallback_layer;
    let mut layer = ptr::null_mut();
    // SAFETY: the session is the one under construction; `layer` is written on success.
    unsafe {
        match check(create_layer(&mut layer, session), "JITLink is not available") {
            Ok(()) => layer,
            Err(_) => fallback_layer(session),
        }
    }
}

/// Captures messages that LLVM would otherwise write to standard error.
extern "C" fn report(reports: *mut c_void, error: LLVMErrorRef) {
    // SAFETY: `link` passes the address of its boxed reports, which live as long as the session.
    let reports = unsafe { &*reports.cast_const().cast::<Reports>() };
    reports.lock().unwrap_or_else(PoisonError::into_inner).push(text_of(error));
}

fn c_string(name: &str) -> Result<CString> {
    CString::new(name).map_err(|_| Error::invalid_argument(format!("symbol name {name:?} contains a zero byte")))
}

/// Converts LLVM's error, which is consumed, to ours.
fn check(error: LLVMErrorRef, what: &str) -> Result<()> {
    if error.is_null() {
        return Ok(());
    }
    Err(Error::internal(format!("{what}: {}", text_of(error))))
}

/// Returns the message of a non-null error, which is consumed.
fn text_of(error: LLVMErrorRef) -> String {
    // SAFETY: the error is consumed here, once; the message is a C string until disposed.
    unsafe {
        let message = LLVMGetErrorMessage(error);
        let text = CStr::from_ptr(message).to_string_lossy().into_owned();
        LLVMDisposeErrorMessage(message);
        text
    }
}
