//! Tests of random numbers, which must equal the evaluator's and advance one state.

use xla_hlo::text::parse_module;
use xla_hlo::{Literal, Scalar, VerifiedModule};
use xla_service::{Client, CompileOptions, FallbackPolicy, OptLevel, PlatformRegistry};

/// Returns the results of several runs of a program without parameters. Host fallbacks are not allowed if the platform
/// runs kernels.
fn runs(text: &str, platform: &str, opt_level: OptLevel) -> Vec<Literal> {
    let module = VerifiedModule::new(parse_module(text).expect("the text parses")).expect("the module is valid");
    let mut registry = PlatformRegistry::new();
    registry.register(backend_gpu_nvptx::emulated_platform());
    registry.register(xla_service::interpreter::platform());
    let client = Client::new(&registry, platform).expect("the platform is registered");
    let options = CompileOptions { host_fallback: FallbackPolicy::Forbid, opt_level, ..CompileOptions::default() };
    let program = client.compile(&module, &options).unwrap_or_else(|e| panic!("{platform}: {e}\n{text}"));
    let results = (0..3).flat_map(|_| program.execute(&[]).unwrap_or_else(|e| panic!("{platform}: {e}\n{text}")));
    results.map(|result| result.to_literal().expect("a download")).collect()
}

/// Whether two scalars are equal up to the rounding of functions.
fn near(a: Scalar, b: Scalar) -> bool {
    match (a, b) {
        (Scalar::Float(a), Scalar::Float(b)) => (a - b).abs() <= 1e-5,
        (a, b) => a == b,
    }
}

fn same_numbers(text: &str) {
    for opt_level in [OptLevel::O0, OptLevel::O2] {
        let expected = runs(text, "interpreter", opt_level);
        let actual = runs(text, backend_gpu_nvptx::EMULATED_NAME, opt_level);
        assert_eq!(actual.len(), expected.len());
        for (a, e) in actual.iter().zip(&expected) {
            assert_eq!(a.shape(), e.shape());
            let differs = (0..e.array_shape().element_count()).find(|&i| !near(a.get(i), e.get(i)));
            let shown = differs.map(|i| (i, a.get(i), e.get(i)));
            assert_eq!(shown, None, "{text}");
        }
    }
}

#[test]
fn the_counter_is_moved_on() {
    for delta in [0, 1, 77, -5, i64::MAX, i64::MIN] {
        same_numbers(&format!(
            "HloModule m
            ENTRY main {{
              a = u64[2] rng-get-and-update-state(), delta={delta}
              b = u64[2] rng-get-and-update-state(), delta=3
              ROOT r = (u64[2], u64[2]) tuple(a, b)
            }}"
        ));
    }
}

#[test]
fn numbers_of_either_distribution() {
    for (ty, dims) in [("f32", "1000"), ("f32", "7,11"), ("f64", "33"), ("bf16", "5"), ("f32", ""), ("f32", "0")] {
        for distribution in ["rng_uniform", "rng_normal"] {
            same_numbers(&format!(
                "HloModule m
                ENTRY main {{
                  a = {ty}[] constant(-1)
                  b = {ty}[] constant(2)
                  ROOT r = {ty}[{dims}] rng(a, b), distribution={distribution}
                }}"
            ));
        }
    }
    same_numbers(
        "HloModule m
        ENTRY main {
          a = s32[] constant(-100)
          b = s32[] constant(1000)
          ROOT r = s32[517] rng(a, b), distribution=rng_uniform
        }",
    );
}

#[test]
fn loops_draw_anew_each_time() {
    same_numbers(include_str!("programs/loops_draw_anew_each_time.hlo"));
}
