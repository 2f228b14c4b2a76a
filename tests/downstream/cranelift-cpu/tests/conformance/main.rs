//! Conformance suite on this platform: in full in a release build, in quick sizes in a debug build.

use xla::PlatformRegistry;

#[test]
fn conformance() {
    let mut registry = PlatformRegistry::new();
    registry.register(cranelift_cpu::platform());
    xla_tests::conformance::check(&registry, cranelift_cpu::NAME, include_str!("../../expected-failures.txt"));
}
