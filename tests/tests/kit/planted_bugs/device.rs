//! Device for tests of the suite itself: correct, unless a bug is planted in it.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use xla::{CompileOptions, Error, Module, Platform, Result, VerifiedModule};
use xla_hlo::text::parse_module;
use xla_service::executor::Allocation;
use xla_service::host::StreamTransfer;
use xla_service::{
    Argument, Compiler, CostAnalysis, DeviceDescription, DeviceMemory, Event, Executable, ExecutionContext,
    MemoryAnalysis, MemoryStats, OptimizedModule, Signature, Stream, StreamExecutor, TransferManager, interpreter,
    platform,
};

/// Planted bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// No bug.
    None,
    /// Memory of 256 bytes and more is never freed.
    Leaks,
    /// Programs write to their first argument, although it is shared.
    WritesArgument,
    /// Failing programs return zeros instead of an error.
    LosesErrors,
    /// `floor` is wrong where the device computes it.
    WrongCode,
    /// Passes replace `floor` by `ceil`.
    WrongPasses,
    /// Copies within a memory run in ascending order even if the ranges overlap.
    CopiesForward,
    /// Copies to the host do not check their range.
    Panics,
    /// Synchronization of a stream takes too long.
    Hangs,
}

/// Returns a platform named `bench` with a bug.
pub fn platform(bug: Bug) -> Arc<dyn Platform> {
    let description = DeviceDescription {
        platform: "bench".to_string(),
        ordinal: 0,
        model: "test bench".to_string(),
        cores: 1,
        memory_bytes: None,
        memory_alignment: 1,
        attributes: Vec::new(),
    };
    Arc::new(Bench { bug, executor: Arc::new(BenchExecutor { bug, description, stats: Arc::default() }) })
}

#[derive(Debug)]
struct Bench {
    bug: Bug,
    executor: Arc<BenchExecutor>,
}

impl Platform for Bench {
    fn name(&self) -> &str {
        "bench"
    }

    fn check(&self) -> Result<()> {
        Ok(())
    }

    fn device_count(&self) -> usize {
        1
    }

    fn executor(&self, ordinal: usize) -> Result<Arc<dyn StreamExecutor>> {
        if ordinal == 0 { Ok(self.executor.clone()) } else { Err(platform::no_such_device("bench", ordinal, 1)) }
    }

    fn compiler(&self) -> Arc<dyn Compiler> {
        Arc::new(BenchCompiler(self.bug))
    }

    fn transfer_manager(&self) -> Arc<dyn TransferManager> {
        Arc::new(StreamTransfer)
    }
}

#[derive(Debug)]
struct BenchExecutor {
    bug: Bug,
    description: DeviceDescription,
    stats: Arc<Mutex<MemoryStats>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl StreamExecutor for BenchExecutor {
    fn description(&self) -> &DeviceDescription {
        &self.description
    }

    fn allocate(&self, bytes: usize) -> Result<DeviceMemory> {
        let mut content = Vec::new();
        let refused = |_| Error::resource_exhausted(format!("no memory for {bytes} bytes"));
        content.try_reserve_exact(bytes).map_err(refused)?;
        content.resize(bytes, 0);
        let mut stats = locked(&self.stats);
        stats.allocations += 1;
        stats.bytes_in_use += bytes;
        stats.peak_bytes_in_use = stats.peak_bytes_in_use.max(stats.bytes_in_use);
        let leaks = self.bug == Bug::Leaks && bytes >= 256;
        Ok(DeviceMemory::new(BenchMemory { bytes: Mutex::new(content), size: bytes, leaks, stats: self.stats.clone() }))
    }

    fn memory_stats(&self) -> MemoryStats {
        *locked(&self.stats)
    }

    fn create_stream(&self) -> Result<Box<dyn Stream>> {
        Ok(Box::new(BenchStream(self.bug)))
    }
}

/// Memory with interior mutability, like memory of real devices.
#[derive(Debug)]
struct BenchMemory {
    bytes: Mutex<Vec<u8>>,
    size: usize,
    leaks: bool,
    stats: Arc<Mutex<MemoryStats>>,
}

impl Allocation for BenchMemory {
    fn byte_size(&self) -> usize {
        self.size
    }
}

impl Drop for BenchMemory {
    fn drop(&mut self) {
        if !self.leaks {
            locked(&self.stats).bytes_in_use -= self.size;
        }
    }
}

#[derive(Debug)]
struct BenchStream(Bug);

/// Returns the range of `len` bytes, if it is within the memory.
fn inside(memory: &BenchMemory, offset: usize, len: usize) -> Result<Range<usize>> {
    let end = offset.checked_add(len).filter(|&end| end <= memory.size);
    end.map(|end| offset..end).ok_or_else(|| Error::internal(format!("{len} bytes at {offset} of {}", memory.size)))
}

impl Stream for BenchStream {
    fn copy_to_device(&self, source: &[u8], target: &mut DeviceMemory, offset: usize) -> Result<()> {
        let target = target.downcast::<BenchMemory>()?;
        let range = inside(target, offset, source.len())?;
        locked(&target.bytes)[range].copy_from_slice(source);
        Ok(())
    }

    fn copy_to_host(&self, source: &DeviceMemory, offset: usize, target: &mut [u8]) -> Result<()> {
        let source = source.downcast::<BenchMemory>()?;
        let range = match self.0 {
            Bug::Panics => offset..offset.wrapping_add(target.len()),
            _ => inside(source, offset, target.len())?,
        };
        target.copy_from_slice(&locked(&source.bytes)[range]);
        Ok(())
    }

    fn copy(&self, source: &DeviceMemory, range: Range<usize>, target: &mut DeviceMemory, offset: usize) -> Result<()> {
        let source = source.downcast::<BenchMemory>()?;
        let range = inside(source, range.start, range.len())?;
        let bytes = locked(&source.bytes)[range].to_vec();
        self.copy_to_device(&bytes, target, offset)
    }

    fn copy_within(&self, memory: &mut DeviceMemory, range: Range<usize>, offset: usize) -> Result<()> {
        let memory = memory.downcast::<BenchMemory>()?;
        let (range, _) = (inside(memory, range.start, range.len())?, inside(memory, offset, range.len())?);
        let mut bytes = locked(&memory.bytes);
        match self.0 {
            Bug::CopiesForward => (0..range.len()).for_each(|i| bytes[offset + i] = bytes[range.start + i]),
            _ => bytes.copy_within(range, offset),
        }
        Ok(())
    }

    fn record_event(&self) -> Result<Event> {
        Ok(Event::reached())
    }

    fn wait_for(&self, event: &Event) -> Result<()> {
        event.wait()
    }

    fn synchronize(&self) -> Result<()> {
        if self.0 == Bug::Hangs {
            std::thread::sleep(Duration::from_secs(30));
        }
        Ok(())
    }
}

#[derive(Debug)]
struct BenchCompiler(Bug);

impl Compiler for BenchCompiler {
    fn run_hlo_passes(&self, module: VerifiedModule, _: &CompileOptions) -> Result<OptimizedModule> {
        if self.0 != Bug::WrongPasses {
            return Ok(OptimizedModule::new(module));
        }
        let text = module.to_string().replace(" floor(", " ceil(");
        Ok(OptimizedModule::new(VerifiedModule::new(parse_module(&text)?)?))
    }

    fn run_backend(&self, module: OptimizedModule, options: &CompileOptions) -> Result<Arc<dyn Executable>> {
        let inner = interpreter::platform().compiler().run_backend(module, options)?;
        Ok(Arc::new(BenchExecutable { bug: self.0, inner }))
    }
}

#[derive(Debug)]
struct BenchExecutable {
    bug: Bug,
    inner: Arc<dyn Executable>,
}

/// Changes the first byte.
fn spoil(memory: &DeviceMemory) -> Result<()> {
    if let Some(byte) = locked(&memory.downcast::<BenchMemory>()?.bytes).first_mut() {
        *byte ^= 1;
    }
    Ok(())
}

impl Executable for BenchExecutable {
    fn module(&self) -> &Module {
        self.inner.module()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn execute(&self, context: &ExecutionContext<'_>, arguments: Vec<Argument>) -> Result<Vec<DeviceMemory>> {
        if let (Bug::WritesArgument, Some(Argument::Shared(memory))) = (self.bug, arguments.first()) {
            spoil(memory)?;
        }
        let results = self.inner.execute(context, arguments);
        match self.bug {
            Bug::LosesErrors if results.is_err() => {
                let shapes = self.signature().results().iter();
                shapes.map(|leaf| context.executor.allocate(leaf.shape.byte_size())).collect()
            }
            Bug::WrongCode if self.module().to_string().contains(" floor(") => {
                let results = results?;
                results.first().map_or(Ok(()), spoil)?;
                Ok(results)
            }
            _ => results,
        }
    }

    fn memory_analysis(&self) -> MemoryAnalysis {
        self.inner.memory_analysis()
    }

    fn cost_analysis(&self) -> CostAnalysis {
        self.inner.cost_analysis()
    }
}
