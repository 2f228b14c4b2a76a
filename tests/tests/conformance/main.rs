//! Conformance suite on the platforms of this build: levels 0 to 3, 6 and 7 in quick sizes, with one test for each
//! level and platform.
//!
//! Levels 4 and 5 are the tests `corpus` and `differential`. `cargo xtask test-backend NAME` runs everything in full.

use xla::PlatformRegistry;
use xla::cpu::{CpuOptions, platform_with};
use xla_tests::conformance::{Level, Suite};

/// Returns the platforms of this build. In levels that compare results, uninitialised memory of platform `cpu` is
/// filled with varying values.
fn registry(level: Level) -> PlatformRegistry {
    let mut registry = xla::registry();
    if matches!(level, Level::Operations | Level::Programs) {
        registry.register(platform_with(CpuOptions { dirty: true, ..CpuOptions::default() }));
    }
    registry
}

fn check(platform: &str, level: Level) {
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let suite = Suite::new(&registry(level), platform).levels(&[level]).quick().jobs(jobs);
    let report = suite.run(&mut ()).unwrap();
    assert!(report.passed(), "{}", report.text());
}

#[test]
fn a_filter_that_leaves_no_case_is_an_error() {
    let suite =
        |filter: &str| Suite::new(&xla::registry(), "interpreter").levels(&[Level::Registration]).filter(filter);
    let error = suite("0/nothing").run(&mut ()).unwrap_err().to_string();
    assert!(error.contains("no case of these levels has `0/nothing` in its identifier"), "{error}");
    assert!(suite("0/").run(&mut ()).unwrap().passed());
}

macro_rules! platforms {
    ($($platform:ident)*) => {
        $(mod $platform {
            use super::{Level, check};

            #[test]
            fn registration() {
                check(stringify!($platform), Level::Registration);
            }

            #[test]
            fn device() {
                check(stringify!($platform), Level::Device);
            }

            #[test]
            fn operations() {
                check(stringify!($platform), Level::Operations);
            }

            #[test]
            fn programs() {
                check(stringify!($platform), Level::Programs);
            }

            #[test]
            fn resilience() {
                check(stringify!($platform), Level::Resilience);
            }

            #[test]
            fn devices() {
                check(stringify!($platform), Level::Devices);
            }
        })*
    };
}

platforms! { cpu interpreter }
