//! PJRT plugin of the interpreter platform, for tests. It is small because it does not include LLVM.

use xla_service::{PlatformRegistry, interpreter};

fn platforms() -> PlatformRegistry {
    let mut registry = PlatformRegistry::new();
    registry.register(interpreter::platform());
    registry
}

xla_pjrt::plugin!(platforms);
