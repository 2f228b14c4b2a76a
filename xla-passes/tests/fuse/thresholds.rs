//! Tests of the sizes at which costs change a plan, computed by hand for a machine with simple rates.
//!
//! The machine computes one operation per second, on one 32-bit element, and launches a kernel in 1000 seconds. A value
//! `v` that several kernels need is either recomputed in each of them or stored by a separate kernel:
//!
//! ```text
//! again  = repeated work + operands of v in each kernel
//! stored = launch + v written + v read in each kernel + operands of v once
//! ```

use xla_passes::{FusionProfile, TargetProfile};

use crate::plan::{fuse, kernels};

/// Seconds to launch a kernel.
const LAUNCH: f64 = 1000.0;

/// Returns a machine with one 32-bit operation per second, and a bandwidth of all memories in bytes per second.
fn machine(bytes_per_second: f64) -> TargetProfile {
    TargetProfile {
        vector_bytes: 4,
        l1_bytes: usize::MAX,
        l2_bytes: usize::MAX,
        l3_bytes: 0,
        threads: 1,
        clock_hz: 1.0,
        memory_bandwidth: bytes_per_second,
        cache_bandwidth: bytes_per_second,
        launch_seconds: LAUNCH,
        fusion: FusionProfile { reduce_epilogue: true, max_transposed_bytes: 0, ..FusionProfile::loops() },
        ..TargetProfile::generic()
    }
}

/// Returns the kernels for a size.
fn plan(profile: &TargetProfile, text: &dyn Fn(usize) -> String, n: usize) -> String {
    kernels(&fuse(&text(n), "fuse", profile).0)
}

/// Returns the largest size up to 65,536 with the kernels of size 1; 0 if there is none.
fn limit(profile: &TargetProfile, text: &dyn Fn(usize) -> String) -> usize {
    let first = plan(profile, text, 1);
    let (mut same, mut other) = (1, 1 << 16);
    assert_ne!(plan(profile, text, other), first, "the plan does not depend on the size: {first}");
    while same + 1 < other {
        let middle = same.midpoint(other);
        *if plan(profile, text, middle) == first { &mut same } else { &mut other } = middle;
    }
    same
}

fn assert_kernels(profile: &TargetProfile, text: &dyn Fn(usize) -> String, n: usize, count: usize) {
    let kernels = plan(profile, text, n);
    assert_eq!(kernels.split("; ").count(), count, "{kernels}");
}

/// Returns a program of `lines` with results `results`, all of `n` elements.
fn program(ty: &str, n: usize, lines: &str, results: &[&str]) -> String {
    let shape = format!("{ty}[{n}]");
    let shapes = vec![shape.as_str(); results.len()].join(", ");
    let lines = lines.replace("TY", &shape);
    format!(
        "ENTRY main {{\n  x = {shape} parameter(0)\n{lines}\n  ROOT t = ({shapes}) tuple({})\n}}",
        results.join(", ")
    )
}

/// Returns a program with a value that two kernels use; each of them is too expensive to be repeated.
fn two_readers(ty: &'static str, value: &'static str) -> impl Fn(usize) -> String {
    move |n| {
        let lines = format!("  v = TY {value}\n  a = TY divide(v, v)\n  b = TY remainder(v, v)");
        program(ty, n, &lines, &["a", "b"])
    }
}

/// again = n + 8n/B, stored = 1000 + 16n/B: `n <= 1000 + 8n/B`.
#[test]
fn cheap_work_is_repeated_up_to_the_time_of_a_launch() {
    assert_eq!(limit(&machine(16.0), &two_readers("f32", "negate(x)")), 2000);
    assert_eq!(limit(&machine(32.0), &two_readers("f32", "negate(x)")), 1333);
    assert_eq!(limit(&machine(f64::INFINITY), &two_readers("f32", "negate(x)")), 1000);
    // Three instructions: 3n <= 1000 + 8n/B.
    assert_eq!(limit(&machine(8.0), &two_readers("s32", "popcnt(x)")), 500);
    // Both operands are the same array.
    assert_eq!(limit(&machine(16.0), &two_readers("f32", "add(x, x)")), 2000);
}

/// With elements of w bytes and l lanes: `n/l <= 1000 + 2wn/B`.
#[test]
fn vectors_have_lanes_by_the_width_of_elements() {
    let vectors = |bytes, rate| TargetProfile { vector_bytes: bytes, ..machine(rate) };
    assert_eq!(limit(&vectors(16, 64.0), &two_readers("f32", "negate(x)")), 8000);
    assert_eq!(limit(&vectors(16, 64.0), &two_readers("f64", "negate(x)")), 4000);
    assert_eq!(limit(&vectors(4, 16.0), &two_readers("s8", "negate(x)")), 8000);
    // An element wider than a vector takes one operation nevertheless.
    assert_eq!(limit(&vectors(4, 32.0), &two_readers("f64", "negate(x)")), 2000);
    let twice_as_fast = TargetProfile { clock_hz: 2.0, ..machine(32.0) };
    assert_eq!(limit(&twice_as_fast, &two_readers("f32", "negate(x)")), 4000);
}

/// Without launch time: `n / threads <= 8n/B`. Repeated work on more bytes than the L2 cache holds uses all threads.
#[test]
fn threads_share_work_of_many_bytes() {
    let threads = |threads| TargetProfile { threads, l2_bytes: 4000, launch_seconds: 0.0, ..machine(16.0) };
    assert_eq!(limit(&threads(2), &two_readers("f32", "negate(x)")), 1000);
    for (count, kernels) in [(0, 3), (1, 3), (2, 2)] {
        assert_kernels(&threads(count), &two_readers("f32", "negate(x)"), 2000, kernels);
    }
}

/// Without launch time: `n <= 8n/B`. This holds if an array of 4n bytes is read from memory at 8 bytes per second, but
/// not if it is read from a cache at 16.
#[test]
fn arrays_of_less_than_half_the_far_cache_are_read_from_it() {
    let cached = TargetProfile { l3_bytes: 32_000, cache_bandwidth: 16.0, launch_seconds: 0.0, ..machine(8.0) };
    assert_eq!(limit(&cached, &two_readers("f32", "negate(x)")), 3999);
}

/// Work of at least 4 instructions is not repeated, whatever memory costs.
#[test]
fn expensive_work_is_done_once() {
    let slow = machine(0.001);
    for (value, kernels) in [("popcnt(x)", 2), ("mulhi(x, x)", 3), ("divide(x, x)", 3), ("multiply(x, x)", 2)] {
        assert_kernels(&slow, &two_readers("s32", value), 64, kernels);
    }
}

/// For k users: again = (k-1)n + 4kn/B, stored = 1000 + (8 + 4k)n/B: `(k-1)n <= 1000 + 8n/B`.
#[test]
fn each_reader_repeats_the_work() {
    let lines = "  v = TY negate(x)\n  a = TY divide(v, v)\n  b = TY remainder(v, v)\n  c = TY power(v, v)";
    assert_eq!(limit(&machine(16.0), &|n| program("f32", n, lines, &["a", "b", "c"])), 666);
}

/// Operands that a kernel reads in any case cost nothing more.
#[test]
fn operands_of_other_readers_are_shared() {
    // One of the kernels reads x: again = n + 4n/B; half of x for a kernel of v: stored = 1000 + 12n/B + 4n/B.
    let one = "  v = TY negate(x)\n  a = TY divide(v, x)\n  b = TY remainder(v, v)";
    assert_eq!(limit(&machine(16.0), &|n| program("f32", n, one, &["a", "b"])), 4000);
    // Both kernels read x: again = n, stored = 1000 + 12n/B + 4n/B.
    let both = "  v = TY negate(x)\n  a = TY divide(v, x)\n  b = TY remainder(v, x)";
    assert_eq!(limit(&machine(32.0), &|n| program("f32", n, both, &["a", "b"])), 2000);
    // Two other kernels read x: again = n + 8n/B, stored = 1000 + 12n/B + 4n/B.
    let others = "  v = TY negate(x)\n  a = TY divide(v, v)\n  b = TY remainder(v, v)\n  c = TY power(x, x)\n  \
                  d = TY divide(x, x)";
    assert_eq!(limit(&machine(16.0), &|n| program("f32", n, others, &["a", "b", "c", "d"])), 2000);
    // One other kernel reads x. Supplying x to three kernels, two thirds of which are new: again = n + 8n/B; to two
    // kernels, half of which is new: stored = 1000 + 12n/B + 4n/B.
    let other = "  v = TY negate(x)\n  a = TY divide(v, v)\n  b = TY remainder(v, v)\n  c = TY power(x, x)";
    assert_eq!(limit(&machine(16.0), &|n| program("f32", n, other, &["a", "b", "c"])), 2000);
}

/// One kernel that reads v in two orders. If it also reads x: again = n, stored = 1000 + 8n/B + 4n/B. Otherwise: again
/// = n + 4n/B, stored = 1000 + 8n/B + 4n/B.
#[test]
fn a_kernel_may_read_a_value_in_two_orders() {
    let with = "  v = TY negate(x)\n  r = TY reverse(v), dimensions={0}\n  a = TY divide(v, r)\n  b = TY divide(a, x)";
    assert_eq!(limit(&machine(16.0), &|n| program("f32", n, with, &["b"])), 4000);
    let without = "  v = TY negate(x)\n  r = TY reverse(v), dimensions={0}\n  a = TY divide(v, r)";
    assert_eq!(limit(&machine(16.0), &|n| program("f32", n, without, &["a"])), 2000);
}

/// From 17 users on, the kernels of an operand are not examined:
/// again = n, or n + 8n/B with many users; stored = 1000 + 12n/B + 4n/B.
#[test]
fn operands_of_many_users_are_taken_to_be_elsewhere() {
    let users = |count: usize| {
        move |n| {
            let names: Vec<String> = (3..count).map(|i| format!("r{i}")).collect();
            let others: String = names.iter().map(|name| format!("  {name} = TY cosine(x)\n")).collect();
            let lines = format!("  v = TY negate(x)\n  a = TY divide(v, x)\n  b = TY remainder(v, x)\n{others}");
            let results: Vec<&str> = ["a", "b"].into_iter().chain(names.iter().map(String::as_str)).collect();
            program("f32", n, &lines, &results)
        }
    };
    assert_eq!(limit(&machine(32.0), &users(16)), 2000);
    assert_eq!(limit(&machine(32.0), &users(17)), 1333);
}

/// Two kernels that read three quarters of v of 4k elements: again = 2k + 24k/B, stored = 1000 + (16 + 24 + 16)k/B.
#[test]
fn parts_are_evaluated_and_read_in_part() {
    let parts = |k: usize| {
        format!(
            "ENTRY main {{\n  x = f32[{n}] parameter(0)\n  v = f32[{n}] negate(x)\n  \
             s = f32[{m}] slice(v), slice={{[0:{m}]}}\n  r = f32[{m}] slice(v), slice={{[{k}:{n}]}}\n  \
             a = f32[{m}] divide(s, s)\n  b = f32[{m}] remainder(r, r)\n  ROOT t = (f32[{m}], f32[{m}]) tuple(a, b)\n}}",
            n = 4 * k,
            m = 3 * k,
        )
    };
    assert_eq!(limit(&machine(32.0), &parts), 1000);
}

/// A chain of k cheap operations is recomputed from its origin, up to six of them: `kn + 8n/B <= 1000 + 16n/B`. In a
/// longer one a value in the middle would be stored, which takes longer than storing the last value.
#[test]
fn chains_are_followed_back_to_their_origin() {
    let chain = |length: usize| {
        move |n| {
            let steps: String = (1..length)
                .map(|i| format!("  n{i} = TY negate({})\n", if i == 1 { "x".into() } else { format!("n{}", i - 1) }))
                .collect();
            let lines =
                format!("{steps}  v = TY abs(n{})\n  a = TY divide(v, v)\n  b = TY remainder(v, v)", length - 1);
            program("f32", n, &lines, &["a", "b"])
        }
    };
    assert_eq!(limit(&machine(16.0), &chain(2)), 666);
    assert_eq!(limit(&machine(16.0), &chain(6)), 181);
    assert_kernels(&machine(16.0), &chain(7), 100, 3);
}

/// v is computed from u, which is expensive: storing u for two kernels takes as long as storing v, except for `n <=
/// 4n/B`.
#[test]
fn expensive_origins_of_cheap_work_are_stored() {
    let lines = "  u = TY sqrt(x)\n  v = TY negate(u)\n  a = TY divide(v, v)\n  b = TY remainder(v, v)";
    let of_root = |n| program("f32", n, lines, &["a", "b"]);
    for (rate, first) in [(4.0, "u = sqrt(x)"), (4.1, "sqrt_negate = loop[sqrt negate](x)")] {
        let kernels = plan(&machine(rate), &of_root, 64);
        assert_eq!(kernels.split("; ").next(), Some(first), "{kernels}");
    }
}

/// v is computed from u, which is expensive and which another kernel needs as well. Two thirds of the time to store u
/// for three kernels are charged to v's users; half of the time to store it for two kernels is charged to a kernel of
/// v:
/// `n + (1000 + 16n/B) 2/3 <= 1000 + 12n/B + (1000 + 12n/B) / 2`
#[test]
fn the_time_to_store_an_operand_is_shared() {
    let lines = "  u = TY sqrt(x)\n  v = TY negate(u)\n  a = TY divide(v, v)\n  b = TY remainder(v, v)";
    let function = format!("{lines}\n  c = TY power(u, u)");
    assert_eq!(limit(&machine(16.0), &|n| program("f32", n, &function, &["a", "b", "c"])), 1538);
    let update =
        format!("{lines}\n  y = TY parameter(1)\n  i = s32[] parameter(2)\n  c = TY dynamic-update-slice(y, u, i)");
    assert_eq!(limit(&machine(16.0), &|n| program("f32", n, &update, &["a", "b", "c"])), 1538);
}

/// v is computed from u, which a dot needs in memory: again = n + 8n/B, stored = 1000 + 16n/B.
#[test]
fn values_for_dots_are_in_memory() {
    let text = |n| {
        format!(
            "ENTRY main {{\n  x = f32[{n}] parameter(0)\n  u = f32[{n}] sqrt(x)\n  v = f32[{n}] negate(u)\n  \
             a = f32[{n}] divide(v, v)\n  b = f32[{n}] remainder(v, v)\n  d = f32[] dot(u, u), lhs_contracting_dims={{0}}, \
             rhs_contracting_dims={{0}}\n  ROOT t = (f32[{n}], f32[{n}], f32[]) tuple(a, b, d)\n}}"
        )
    };
    assert_eq!(limit(&machine(16.0), &text), 2000);
}

/// Generated operands cost nothing: again = n, stored = 1000 + 12n/B.
#[test]
fn generated_operands_are_free() {
    let lines =
        "  i = TY iota(), iota_dimension=0\n  v = TY negate(i)\n  a = TY divide(v, v)\n  b = TY remainder(v, v)";
    assert_eq!(limit(&machine(16.0), &|n| program("f32", n, lines, &["a", "b"])), 4000);
}

/// Returns a program of `n` sums of `m` elements, and a function of them.
fn sums(m: usize, function: &'static str) -> impl Fn(usize) -> String {
    move |n| {
        format!(
            "add {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }}\nENTRY main {{\n  \
             x = f32[{n},{m}] parameter(0)\n  z = f32[] constant(0)\n  \
             v = f32[{n}] reduce(x, z), dimensions={{1}}, to_apply=add\n  ROOT r = f32[{n}] {function}(v)\n}}"
        )
    }
}

/// With 4 lanes and 16 bytes per second, a function of w instructions takes 3wn/4 seconds longer without lanes. Stored
/// sums take 1000 + 4n/16 + 4n/16 seconds. In addition, an eighth of the time of the sums is allowed, which is (nm/4 +
/// 4nm/16) / 8 = nm/16.
#[test]
fn functions_of_short_sums_have_lanes_of_their_own() {
    let lanes = TargetProfile { vector_bytes: 16, ..machine(16.0) };
    // 11.25n <= 1000 + 0.5n + 0.5n
    assert_eq!(limit(&lanes, &sums(8, "exponential")), 97);
    // 4.5n <= 1000 + 0.5n + 0.5n
    assert_eq!(limit(&lanes, &sums(8, "sqrt")), 285);
    // 11.25n <= 1000 + 0.5n + 6n
    assert_eq!(limit(&lanes, &sums(96, "exponential")), 210);
    // From 172 elements on, the sums take long enough for any number of them.
    for (m, kernels) in [(171, 2), (172, 1)] {
        assert_kernels(&lanes, &sums(m, "exponential"), 50_000, kernels);
    }
}
