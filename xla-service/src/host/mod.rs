//! Shared parts of platforms on the host: pooled memory, a synchronous device, layouts, race detection.

mod array;
mod executor;
mod external_memory;
mod layout;
mod machine;
mod memory;
mod pool;
mod race;
mod strided;
mod transfer;

pub use array::{Extent, HostOrder, StridedShape};
pub use executor::{HostExecutor, HostStream};
pub use external_memory::ExternalMemory;
pub use layout::{host_shape, literal_from_bytes, write_literal};
pub use memory::MEMORY_ALIGNMENT;
pub use pool::{HostMemory, MemoryPool, PoolLimits, dirt};
pub use race::{Clock, MemoryAccess, RaceDetector, RaceStream};
pub use transfer::{HostTransfer, StreamTransfer};
