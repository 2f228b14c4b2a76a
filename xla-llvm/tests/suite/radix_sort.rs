//! Tests of the choice of the radix sort and of its elements per thread.

use xla_hlo::text::parse_module;
use xla_llvm::fused::{KernelPlan, KernelSource, RadixSortPlan};
use xla_llvm::target::Target;

/// Returns the number of elements per thread of the radix sort, if one is planned, of an array and an `s32` array
/// of equal shape.
fn per_thread(ty: &str, dims: &str, dimension: usize, before: &str) -> Option<u64> {
    let text = format!(
        "HloModule m
        before {{ a = {ty}[] parameter(0)
          b = {ty}[] parameter(1)
          c = s32[] parameter(2)
          d = s32[] parameter(3)
          {before} }}
        ENTRY main {{ x = {ty}[{dims}] parameter(0)
          y = s32[{dims}] parameter(1)
          ROOT r = ({ty}[{dims}], s32[{dims}]) sort(x, y), dimensions={{{dimension}}}, to_apply=before }}"
    );
    let module = parse_module(&text).unwrap();
    let source = KernelSource::of_operation(&module, module.entry_id(), module.entry().root());
    RadixSortPlan::new(&source, &Target::nvptx("sm_90").unwrap()).map(|plan| plan.per_thread)
}

const LESS: &str = "ROOT r = pred[] compare(a, b), direction=LT";

#[test]
fn long_rows_of_narrow_keys_are_sorted_by_digits() {
    let cases = [
        ("u8", "1000", None),
        ("u8", "20000", Some(4)),
        ("bf16", "1000", None),
        ("bf16", "40000", Some(4)),
        ("f32", "40000", None),
        ("f32", "262144", Some(8)),
        ("f32", "1048576", Some(16)),
        ("f32", "512,2048", None),
        ("u8", "10000,4096", None),
        ("s64", "262144", None),
        ("s64", "67108864", Some(16)),
    ];
    for (ty, dims, expected) in cases {
        assert_eq!(per_thread(ty, dims, dims.matches(',').count(), LESS), expected, "{ty}[{dims}]");
    }
}

#[test]
fn other_sorts_are_not() {
    assert_eq!(per_thread("f32", "1048576,2", 0, LESS), None, "elements of a row are apart");
    let by_two = "p = pred[] compare(a, b), direction=LT
        q = pred[] compare(c, d), direction=LT
        ROOT r = pred[] and(p, q)";
    assert_eq!(per_thread("f32", "1048576", 0, by_two), None, "the comparator is more than a key");
}
