//! Loaded modules of a program, and launches of their kernels.
#![expect(unsafe_code, reason = "the driver is a C library")]

use std::ffi::{CString, c_int, c_uint, c_void};
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys::{self, CUfunction, CUfunction_attribute as Attribute, CUjit_option, CUmodule, CUtensorMap};
use xla_hlo::{Error, Result, ResultExt};

use super::api::driver::{self as api, CUresult};
use super::context::Context;
use super::driver::{self, Driver, dotted};
use super::stream::queue::Queue;
use super::tensor_map::MapEncoder;
use crate::program::compiled_for::own_architecture;
use crate::program::image::{CodeObject, KernelFunction, ModuleImage};

/// Shared memory in bytes that a block may use without opt-in (`CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`).
const SHARED_WITHOUT_ASKING: u32 = 48 << 10;

/// Maximum number of blocks of one launch.
const GREATEST_GRID: u32 = i32::MAX as u32;

/// Size in bytes of each log buffer that the driver fills when it assembles PTX.
pub(crate) const LOG_BYTES: usize = 16 << 10;

/// Loaded code of one program on one device.
pub(crate) struct CudaModule {
    context: Arc<Context>,
    modules: Vec<CUmodule>,
    functions: Vec<CudaFunction>,
    /// Queues that its kernels were sent to, directly or in graphs.
    queues: Mutex<Vec<Arc<Queue>>>,
}

struct CudaFunction {
    raw: CUfunction,
    name: Arc<str>,
    function: KernelFunction,
    maps: Vec<MapEncoder>,
}

/// Validated launch of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KernelLaunch {
    /// Symbol of the kernel.
    pub(crate) name: Arc<str>,
    /// Driver handle of the kernel; valid as long as the module that created the launch.
    pub(crate) function: CUfunction,
    /// Number of blocks of the grid.
    pub(crate) blocks: u32,
    /// Number of threads of a block.
    pub(crate) threads: u32,
    /// Dynamic shared memory of a block, in bytes.
    pub(crate) shared_bytes: u32,
    /// Kernel arguments, 64 bits each.
    pub(crate) arguments: Vec<u64>,
    /// Tensor maps: the arguments after those of 64 bits. Their type has the alignment that the driver requires.
    pub(crate) maps: Vec<CUtensorMap>,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for CudaModule {}
// SAFETY: as above.
unsafe impl Sync for CudaModule {}
// SAFETY: as above.
unsafe impl Send for KernelLaunch {}
// SAFETY: as above.
unsafe impl Sync for KernelLaunch {}

impl CudaModule {
    /// Loads the code of a program. The driver assembles PTX (JIT); its messages are part of the error.
    pub fn load(context: &Arc<Context>, image: &ModuleImage) -> Result<CudaModule> {
        let mut module = CudaModule {
            context: context.clone(),
            modules: Vec::new(),
            functions: Vec::new(),
            queues: Mutex::default(),
        };
        image.functions.iter().try_for_each(encodes_maps)?;
        for (number, object) in image.objects.iter().enumerate() {
            let loaded = module.load_object(object).context(|| format!("code object {number} of the program"))?;
            module.modules.push(loaded);
        }
        for function in &image.functions {
            let found = module.find(function).context(|| format!("kernel {}", function.name))?;
            module.functions.push(found);
        }
        Ok(module)
    }

    /// Records that its kernels are sent to a queue: the code stays loaded until that work is done.
    pub fn used_by(&self, queue: &Arc<Queue>) {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        if !queues.iter().any(|known| Arc::ptr_eq(known, queue)) {
            queues.push(queue.clone());
        }
    }

    fn load_object(&self, object: &CodeObject) -> Result<CUmodule> {
        match object {
            CodeObject::Ptx(text) => {
                let text = CString::new(text.as_str());
                let text = text.map_err(|_| Error::internal("the PTX contains a zero byte"))?;
                self.load_image(text.as_bytes_with_nul())
            }
            CodeObject::Cubin(bytes) if bytes.starts_with(b"\x7fELF") => self.load_image(bytes),
            CodeObject::Cubin(_) => Err(Error::invalid_argument("the machine code is corrupt: it is not an ELF file")),
            CodeObject::HostObject(_) => {
                Err(Error::invalid_argument("the program was compiled for gpu-emulated; compile it for gpu"))
            }
        }
    }

    /// `cuModuleLoadDataEx`: loads PTX that ends with a zero, which the driver assembles, or an ELF file (cubin).
    fn load_image(&self, image: &[u8]) -> Result<CUmodule> {
        let (mut info, mut errors) = (vec![0u8; LOG_BYTES], vec![0u8; LOG_BYTES]);
        let mut options = [
            CUjit_option::CU_JIT_INFO_LOG_BUFFER,
            CUjit_option::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
            CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
            CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        ];
        // Option values are pointers; numbers are passed as pointer values.
        let size = std::ptr::without_provenance_mut::<c_void>(LOG_BYTES);
        let mut values = [info.as_mut_ptr().cast(), size, errors.as_mut_ptr().cast(), size];
        let mut module = std::ptr::null_mut();
        let status = self.context.query("cuModuleLoadDataEx", || {
            let count = options.len() as c_uint;
            // SAFETY: there is one value for each option; the buffers have the sizes that are passed and outlive the
            // call, as does the image, which ends with a zero or contains its size.
            unsafe {
                api::cuModuleLoadDataEx(
                    &mut module,
                    image.as_ptr().cast(),
                    count,
                    options.as_mut_ptr(),
                    values.as_mut_ptr(),
                )
            }
        })?;
        let log = log_text(&info);
        if !log.is_empty() {
            tracing::debug!(%log, "the driver assembled PTX");
        }
        if status == CUresult::CUDA_SUCCESS { Ok(module) } else { Err(self.not_loaded(status, &log_text(&errors))) }
    }

    fn not_loaded(&self, status: CUresult, log: &str) -> Error {
        let (major, minor) = self.context.info().capability;
        let error = match status {
            CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION => {
                let version = Driver::get().map_or("of unknown version".to_string(), |driver| dotted(driver.version));
                Error::failed_precondition(format!(
                    "the driver (CUDA {version}) is too old for this PTX: install a newer driver, or install ptxas to assemble the PTX"
                ))
            }
            CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU => Error::failed_precondition(format!(
                "the program was compiled for another GPU; this GPU is sm_{major}{minor}: compile it with `--target {}`",
                own_architecture((major, minor))
            )),
            CUresult::CUDA_ERROR_JIT_COMPILER_NOT_FOUND => Error::failed_precondition(
                "the driver has no PTX JIT compiler: install libnvidia-ptxjitcompiler.so of the driver's version, or install ptxas",
            ),
            status => driver::failed("cuModuleLoadDataEx", status),
        };
        if log.is_empty() { error } else { error.note(log) }
    }

    /// `cuModuleGetFunction`: looks up a function, and checks that it can be launched as described.
    fn find(&self, function: &KernelFunction) -> Result<CudaFunction> {
        let module = self
            .modules
            .get(function.object)
            .ok_or_else(|| Error::internal(format!("code object {} of the kernel is missing", function.object)))?;
        let name = CString::new(function.name.as_str())
            .map_err(|_| Error::internal("the kernel's name contains a zero byte"))?;
        let mut raw = std::ptr::null_mut();
        self.context.call("cuModuleGetFunction", || {
            // SAFETY: the module is loaded, the name ends with a zero, the pointer is to a live pointer.
            unsafe { api::cuModuleGetFunction(&mut raw, *module, name.as_ptr()) }
        })?;
        let most = self.attribute(raw, Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?;
        if function.threads == 0 || i64::from(function.threads) > i64::from(most) {
            return Err(Error::internal(format!(
                "the kernel has blocks of {} threads, but its registers allow 1 to {most}",
                function.threads
            )));
        }
        if function.shared_bytes > 0 {
            let declared = self.attribute(raw, Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?;
            self.raise_shared_limit(raw, function.shared_bytes, declared.max(0) as u32)?;
        }
        let maps = function.maps.iter().map(MapEncoder::new).collect();
        Ok(CudaFunction { raw, name: function.name.as_str().into(), function: function.clone(), maps })
    }

    fn attribute(&self, function: CUfunction, attribute: Attribute) -> Result<c_int> {
        let mut value = 0;
        self.context.call("cuFuncGetAttribute", || {
            // SAFETY: the function is of a loaded module, the pointer is to a live integer.
            unsafe { api::cuFuncGetAttribute(&mut value, attribute, function) }
        })?;
        Ok(value)
    }

    /// `cuFuncSetAttribute`: allows launches with `bytes` of dynamic shared memory, in addition to the `declared`
    /// static ones.
    fn raise_shared_limit(&self, function: CUfunction, bytes: u32, declared: u32) -> Result<()> {
        let all = bytes.saturating_add(declared);
        if all <= SHARED_WITHOUT_ASKING {
            return Ok(());
        }
        let most =
            self.context.attribute(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
        let fits = c_int::try_from(bytes).ok().filter(|_| i64::from(all) <= i64::from(most));
        let bytes = fits.ok_or_else(|| {
            Error::failed_precondition(format!(
                "a block needs {all} bytes of shared memory, but this GPU has at most {most} per block"
            ))
        })?;
        let attribute = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the function is of a loaded module.
        self.context.call("cuFuncSetAttribute", || unsafe { api::cuFuncSetAttribute(function, attribute, bytes) })
    }

    /// Prepares a launch of function `number` of the image, with `blocks` blocks and these arguments.
    pub fn call(&self, number: usize, blocks: u32, arguments: &[u64]) -> Result<KernelLaunch> {
        let found =
            self.functions.get(number).ok_or_else(|| Error::internal(format!("the module has no kernel {number}")))?;
        let function = &found.function;
        if blocks == 0 || blocks > GREATEST_GRID || arguments.len() != function.parameters {
            return Err(Error::internal(format!(
                "kernel {} of {} parameters cannot be launched in {blocks} blocks with {} arguments",
                function.name,
                function.parameters,
                arguments.len()
            )));
        }
        let maps = found.maps.iter().map(|map| map.encode(&self.context, arguments));
        Ok(KernelLaunch {
            name: found.name.clone(),
            function: found.raw,
            blocks,
            threads: function.threads,
            shared_bytes: function.shared_bytes,
            arguments: arguments.to_vec(),
            maps: maps.collect::<Result<_>>().context(|| format!("kernel {}", function.name))?,
        })
    }
}

impl KernelLaunch {
    /// `cuLaunchKernel`: sends the launch. The queue must be of the device of the module that prepared the launch.
    pub fn send(self, queue: &Queue) -> Result<()> {
        let mut parameters = self.parameters();
        let (function, blocks, threads, shared) = (self.function, self.blocks, self.threads, self.shared_bytes);
        let launched = queue.send("cuLaunchKernel", |stream| {
            let (parameters, none) = (parameters.as_mut_ptr(), std::ptr::null_mut());
            // SAFETY: function and stream are alive and of one context; for each of the kernel's parameters, in order,
            // there is a pointer to a 64-bit word or to a map, whichever the parameter is, and the driver copies them
            // before it returns.
            unsafe { api::cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, shared, stream, parameters, none) }
        });
        launched.context(|| format!("kernel {}", self.name))
    }

    /// Returns a pointer to each argument, which the driver dereferences: first the 64-bit words, then the maps.
    pub fn parameters(&self) -> Vec<*mut c_void> {
        let words = self.arguments.iter().map(|argument| std::ptr::from_ref(argument).cast_mut().cast());
        let maps = self.maps.iter().map(|map| std::ptr::from_ref(map).cast_mut().cast());
        words.chain(maps).collect()
    }
}

/// Returns an error for a kernel with tensor maps if the driver cannot encode them.
fn encodes_maps(function: &KernelFunction) -> Result<()> {
    if function.maps.is_empty() || Driver::get()?.has_maps() {
        return Ok(());
    }
    Err(Error::failed_precondition(format!(
        "kernel {} copies arrays with TMA, but the driver lacks cuTensorMapEncodeTiled: install a driver of version 525 \
         or newer, or compile with `--target sm_90`, whose kernels do not use TMA",
        function.name
    )))
}

/// Returns the text of a log, which ends at the first zero.
pub(crate) fn log_text(bytes: &[u8]) -> String {
    let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).trim().to_string()
}

impl Drop for CudaModule {
    /// Waits for the queues whose work may still run the code, and for no others.
    fn drop(&mut self) {
        let queues = self.queues.get_mut().unwrap_or_else(PoisonError::into_inner);
        // The device is lost. Keep the code loaded, since it may still run.
        if queues.iter().any(|queue| queue.synchronize().is_err()) {
            return;
        }
        for module in self.modules.drain(..) {
            // SAFETY: the module was loaded here, and no work uses it any more. It is unloaded once.
            let _ = self.context.call("cuModuleUnload", || unsafe { api::cuModuleUnload(module) });
        }
    }
}

impl std::fmt::Debug for CudaModule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CudaModule({} kernels for GPU {})", self.functions.len(), self.context.ordinal())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_ends_at_its_zero() {
        assert_eq!(log_text(b"ptxas error : line 3\n\0\0rest"), "ptxas error : line 3");
        assert_eq!(log_text(b"no zero"), "no zero");
        assert_eq!(log_text(b""), "");
    }

    #[test]
    fn parameters_are_pointers_to_words_then_to_maps() {
        let map = |word| CUtensorMap { opaque: [word; 16] };
        let launch = KernelLaunch {
            name: "k".into(),
            function: std::ptr::null_mut(),
            blocks: 1,
            threads: 1,
            shared_bytes: 0,
            arguments: vec![3, 4],
            maps: vec![map(5), map(6)],
        };
        let (words, maps) = (launch.arguments.as_ptr(), launch.maps.as_ptr());
        let expected: [*const c_void; 4] =
            [words.cast(), words.wrapping_add(1).cast(), maps.cast(), maps.wrapping_add(1).cast()];
        assert_eq!(launch.parameters().iter().map(|pointer| pointer.cast_const()).collect::<Vec<_>>(), expected);
        assert_eq!((maps.addr() % 64, size_of::<CUtensorMap>()), (0, 128));
        let other = KernelLaunch { maps: vec![map(5), map(7)], ..launch.clone() };
        assert_ne!(launch, other);
    }
}
