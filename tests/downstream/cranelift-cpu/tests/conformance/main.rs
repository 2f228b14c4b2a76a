//! The conformance suite on this platform: everything in a release build, quick sizes in a debug build.

use xla::PlatformRegistry;

#[test]
fn conformance() {
    let mut registry = PlatformRegistry::new();
    registry.register(cranelift_cpu::platform());
    xla_tests::conformance::check(&registry, cranelift_cpu::NAME, include_str!("../../expected-failures.txt"));
}
