//! The conformance suite on this platform: everything in a release build, quick sizes in a debug build.
//!
//! Limits of the hardware stand in `expected-failures.txt`, with the reason.

use xla_service::PlatformRegistry;

#[test]
fn conformance() {
    let mut registry = PlatformRegistry::new();
    registry.register(backend_template::platform());
    xla_tests::conformance::check(&registry, backend_template::NAME, include_str!("../../expected-failures.txt"));
}
