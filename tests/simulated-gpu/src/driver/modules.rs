//! Modules and functions: loaded code, and its launches.

use std::sync::Arc;

use super::handle::{DriverResult, Handle, misuse};
use super::objects::{Function, LoadedModule};
use super::work::{KernelCall, StreamWork};
use super::{Driver, Status};
use crate::program::{LoadError, Program};

/// Maximum shared memory of a block, by default and with `cuFuncSetAttribute`, as on compute capability 9.0.
const SHARED_WITHOUT_ASKING: usize = 48 << 10;
pub(crate) const MOST_SHARED: usize = 227 << 10;

/// Configuration of a launch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaunchShape {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared: usize,
}

impl Driver {
    /// Loads PTX; on failure returns the error log as well.
    pub fn load_module(&mut self, text: &str) -> Result<Handle, (Status, String)> {
        let program =
            Program::load(text, &mut self.device.memory, self.options.capability, self.options.approximations);
        let program = program.map_err(|error| {
            let status = match error {
                LoadError::Text(_) => Status::INVALID_PTX,
                LoadError::Target { .. } => Status::NO_BINARY_FOR_GPU,
                LoadError::Memory(_) => Status::OUT_OF_MEMORY,
            };
            (status, format!("simulated-gpu: {error}"))
        })?;
        let handle = self.fresh();
        self.modules.insert(handle, LoadedModule { program: program.into() });
        Ok(handle)
    }

    /// Unloads a module, which no queued work may use.
    pub fn unload_module(&mut self, handle: Handle) -> DriverResult {
        let Some(module) = self.modules.remove(&handle) else {
            return misuse("cuModuleUnload of a module that does not exist, or not any more", Status::INVALID_HANDLE);
        };
        if self.streams.values().any(|stream| stream.queue.iter().any(|work| work.uses_module(handle))) {
            return misuse("cuModuleUnload of a module that queued work uses", Status::INVALID_VALUE);
        }
        self.functions.retain(|_, function| function.module != handle);
        // If a graph still uses the program, its variables stay allocated.
        if let Ok(mut program) = Arc::try_unwrap(module.program) {
            program.unload(&mut self.device.memory);
        }
        Ok(())
    }

    pub fn function(&mut self, module: Handle, name: &str) -> DriverResult<Handle> {
        let Some(found) = self.modules.get(&module) else {
            return misuse("cuModuleGetFunction of a module that does not exist", Status::INVALID_HANDLE);
        };
        let kernel = found.program.kernels().iter().position(|kernel| kernel.name == name).ok_or(Status::NOT_FOUND)?;
        let dynamic_shared = SHARED_WITHOUT_ASKING.saturating_sub(found.program.kernels()[kernel].shared_bytes);
        let handle = self.fresh();
        self.functions.insert(handle, Function { module, kernel, dynamic_shared });
        Ok(handle)
    }

    fn found(&self, handle: Handle) -> DriverResult<(Function, Arc<Program>)> {
        let function = self.functions.get(&handle);
        let found =
            function.and_then(|function| Some((*function, self.modules.get(&function.module)?.program.clone())));
        match found {
            Some(found) => Ok(found),
            None => misuse("a function is used whose module is not loaded", Status::INVALID_HANDLE),
        }
    }

    /// Returns an attribute by its number in the header.
    pub fn function_attribute(&self, handle: Handle, attribute: u32) -> DriverResult<i32> {
        let (function, program) = self.found(handle)?;
        let kernel = &program.kernels()[function.kernel];
        let capability = self.options.capability as i32;
        Ok(match attribute {
            0 => kernel.most_threads as i32,
            1 => kernel.shared_bytes as i32,
            2 => 0,
            3 => kernel.local_bytes as i32,
            4 => 32,
            5 | 6 => capability,
            8 => function.dynamic_shared as i32,
            _ => return misuse(&format!("function attribute {attribute} is not known"), Status::INVALID_VALUE),
        })
    }

    /// Sets the maximum dynamic shared memory, the only attribute that can be set.
    pub fn set_function_attribute(&mut self, handle: Handle, attribute: u32, value: i32) -> DriverResult {
        let (function, program) = self.found(handle)?;
        let declared = program.kernels()[function.kernel].shared_bytes;
        let fits = usize::try_from(value).ok().filter(|value| value + declared <= MOST_SHARED);
        match (attribute, fits) {
            (8, Some(dynamic_shared)) => {
                self.functions.insert(handle, Function { dynamic_shared, ..function });
                Ok(())
            }
            _ => misuse(&format!("function attribute {attribute} cannot be {value}"), Status::INVALID_VALUE),
        }
    }

    /// Returns the offset and size in bytes of each parameter of a function.
    pub fn parameter_sizes(&self, handle: Handle) -> DriverResult<Vec<(usize, usize)>> {
        let (function, program) = self.found(handle)?;
        Ok(program.kernels()[function.kernel].parameters.clone())
    }

    /// Checks the configuration of a launch against the function's limits and returns the launch.
    pub fn call(&self, handle: Handle, shape: LaunchShape, parameters: Vec<u8>) -> DriverResult<Arc<KernelCall>> {
        let (function, program) = self.found(handle)?;
        let kernel = &program.kernels()[function.kernel];
        let told = |message: String, status| misuse(&format!("a launch of {}: {message}", kernel.name), status);
        let LaunchShape { grid, block, shared } = shape;
        let threads = block.iter().try_fold(1u32, |product, size| product.checked_mul(*size)).unwrap_or(u32::MAX);
        if threads == 0
            || threads > 1024
            || block[2] > 64
            || grid.contains(&0)
            || grid[1..].iter().any(|g| *g > 65_535)
            || grid[0] > i32::MAX as u32
        {
            return told(format!("grid {grid:?} of blocks {block:?}"), Status::INVALID_VALUE);
        }
        if kernel.exact_threads.is_some_and(|exact| exact != block) {
            return told(format!("blocks of {block:?}, against its .reqntid"), Status::INVALID_VALUE);
        }
        if threads > kernel.most_threads {
            return told(
                format!("{threads} threads, and it allows {}", kernel.most_threads),
                Status::LAUNCH_OUT_OF_RESOURCES,
            );
        }
        if shared > function.dynamic_shared {
            let message =
                format!("{shared} bytes of dynamic shared memory, and it may ask for {}", function.dynamic_shared);
            return told(message, Status::INVALID_VALUE);
        }
        let (module, kernel) = (function.module, function.kernel);
        Ok(Arc::new(KernelCall { module, program, kernel, grid, block, dynamic_shared: shared, parameters }))
    }

    /// Submits a launch to a stream.
    pub fn launch(
        &mut self,
        function: Handle,
        shape: LaunchShape,
        parameters: Vec<u8>,
        stream: Handle,
    ) -> DriverResult {
        let call = self.call(function, shape, parameters)?;
        self.send(stream, StreamWork::Kernel(call))
    }
}
