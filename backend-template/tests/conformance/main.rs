//! Runs the conformance suite on this platform: all cases in release builds, quick sizes in debug builds.
//!
//! `expected-failures.txt` lists the hardware's limits with their reasons.

use xla_service::PlatformRegistry;

#[test]
fn conformance() {
    let mut registry = PlatformRegistry::new();
    registry.register(backend_template::platform());
    xla_tests::conformance::check(&registry, backend_template::NAME, include_str!("../../expected-failures.txt"));
}
