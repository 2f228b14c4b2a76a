//! PJRT plugin of the interpreter platform: small, without LLVM, for tests.

use xla_service::{PlatformRegistry, interpreter};

fn platforms() -> PlatformRegistry {
    let mut registry = PlatformRegistry::new();
    registry.register(interpreter::platform());
    registry
}

xla_pjrt::plugin!(platforms);
