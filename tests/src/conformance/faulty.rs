//! Fault injection for any platform: an allocator that fails on request.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use xla::{Error, Platform, Result};
use xla_service::{
    Compiler, DeviceDescription, DeviceMemory, FaultInjection, MemoryStats, Stream, StreamExecutor, TransferManager,
};

/// Error message of an injected failure.
pub const MESSAGE: &str = "this allocation was made to fail";

/// Platform whose first device is wrapped: all calls are forwarded, except the allocation that is chosen to fail.
///
/// ```
/// use xla_tests::conformance::FaultyPlatform;
///
/// let faulty = FaultyPlatform::new(xla_service::interpreter::platform()).unwrap();
/// let mut registry = xla::PlatformRegistry::new();
/// registry.register(faulty.clone());
/// faulty.fail_after(1);
/// let device = registry.get("interpreter").unwrap().executor(0).unwrap();
/// assert!(device.allocate(8).is_ok());
/// assert!(matches!(device.allocate(8), Err(xla::Error::ResourceExhausted(_))));
/// assert!(device.allocate(8).is_ok());
/// ```
#[derive(Debug)]
pub struct FaultyPlatform {
    inner: Arc<dyn Platform>,
    executor: Arc<FaultyExecutor>,
}

impl FaultyPlatform {
    /// Wraps the platform and its first device.
    pub fn new(inner: Arc<dyn Platform>) -> Result<Arc<FaultyPlatform>> {
        let executor = Arc::new(FaultyExecutor {
            inner: inner.executor(0)?,
            allocations: AtomicU64::new(0),
            fails_at: AtomicU64::new(u64::MAX),
        });
        Ok(Arc::new(FaultyPlatform { inner, executor }))
    }

    /// Makes the allocation after `good` further ones fail. Replaces an earlier request.
    pub fn fail_after(&self, good: u64) {
        let at = self.allocations().saturating_add(good);
        self.executor.fails_at.store(at, Ordering::SeqCst);
    }

    /// Cancels a requested failure. Returns whether it had not occurred yet.
    pub fn relent(&self) -> bool {
        self.executor.fails_at.swap(u64::MAX, Ordering::SeqCst) >= self.allocations()
    }

    /// Returns the number of allocations so far, including failed ones.
    pub fn allocations(&self) -> u64 {
        self.executor.allocations.load(Ordering::SeqCst)
    }
}

impl Platform for FaultyPlatform {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn check(&self) -> Result<()> {
        self.inner.check()
    }

    fn device_count(&self) -> usize {
        self.inner.device_count()
    }

    fn executor(&self, ordinal: usize) -> Result<Arc<dyn StreamExecutor>> {
        if ordinal == 0 { Ok(self.executor.clone()) } else { self.inner.executor(ordinal) }
    }

    fn compiler(&self) -> Arc<dyn Compiler> {
        self.inner.compiler()
    }

    fn transfer_manager(&self) -> Arc<dyn TransferManager> {
        self.inner.transfer_manager()
    }
}

#[derive(Debug)]
struct FaultyExecutor {
    inner: Arc<dyn StreamExecutor>,
    allocations: AtomicU64,
    /// Index of the allocation that fails.
    fails_at: AtomicU64,
}

impl StreamExecutor for FaultyExecutor {
    fn description(&self) -> &DeviceDescription {
        self.inner.description()
    }

    fn allocate(&self, bytes: usize) -> Result<DeviceMemory> {
        if self.allocations.fetch_add(1, Ordering::SeqCst) == self.fails_at.load(Ordering::SeqCst) {
            return Err(Error::resource_exhausted(format!("no memory for {bytes} bytes: {MESSAGE}")));
        }
        self.inner.allocate(bytes)
    }

    fn memory_stats(&self) -> MemoryStats {
        self.inner.memory_stats()
    }

    fn create_stream(&self) -> Result<Box<dyn Stream>> {
        self.inner.create_stream()
    }

    fn fault_injection(&self) -> Option<&dyn FaultInjection> {
        self.inner.fault_injection()
    }
}
