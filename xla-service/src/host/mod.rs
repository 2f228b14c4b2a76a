//! Shared parts of platforms on the host: pooled memory, a synchronous device, layouts, race detection.

mod executor;
mod layout;
mod machine;
mod memory;
mod pool;
mod race;
mod transfer;

pub use executor::{HostExecutor, HostStream};
pub use layout::{host_shape, literal_from_bytes, write_literal};
pub use memory::MEMORY_ALIGNMENT;
pub use pool::{HostMemory, MemoryPool, PoolLimits, dirt};
pub use race::{Clock, MemoryAccess, RaceDetector, RaceStream};
pub use transfer::{HostTransfer, StreamTransfer};
