//! Tests of sorts: in one block, of merged runs, along any dimension.

use xla_tests::agreement::programs::{BY_SIZE_THEN_PLACE, sort_of};

use super::agrees;

const LESS: &str = "ROOT r = pred[] compare(a, b), direction=LT";

#[test]
fn sorts_of_every_element_type() {
    let types = ["pred", "s4", "u8", "s16", "u32", "s64", "f8e5m2", "bf16", "f16", "f32", "f64"];
    for ty in types {
        agrees(&sort_of(ty, "3,11,5", 1, LESS));
    }
    let by_part = "p = f64[] imag(a)
          q = f64[] imag(b)
          ROOT r = pred[] compare(p, q), direction=GT";
    agrees(&sort_of("c128", "90", 0, by_part));
}

#[test]
fn sorts_of_every_size() {
    for (dims, dimension) in [("1", 0), ("0,3", 1), ("3,0", 0), ("2", 0), ("1023", 0), ("1025", 0), ("40,33", 1)] {
        agrees(&sort_of("s32", dims, dimension, LESS));
    }
    agrees(&sort_of("s32", "2500", 0, LESS));
    agrees(&sort_of("f32", "2,1100,3", 1, "ROOT r = pred[] compare(a, b), direction=GT"));
}

#[test]
fn sorts_by_any_comparator() {
    agrees(&sort_of("f32", "4,70,3", 1, BY_SIZE_THEN_PLACE));
    let all_alike = "ROOT r = pred[] constant(false)";
    agrees(&sort_of("f32", "1500", 0, all_alike));
}

#[test]
fn nan_that_the_comparator_says_nothing_of_cost_no_element() {
    let of_one = "sorted = f32[2100] sort(odd), dimensions={0}, to_apply=before";
    let of_second = "places = s32[2100] iota(), iota_dimension=0
          pairs = (s32[2100], f32[2100]) sort(places, odd), dimensions={0}, to_apply=before_of_second
          sorted = f32[2100] get-tuple-element(pairs), index=1";
    for (less, sort) in
        [("(a, b), direction=LT", of_one), ("(b, a), direction=GT", of_one), ("(a, b), direction=LT", of_second)]
    {
        // NaNs are replaced by zeros and sorted again, so that the positions of NaNs do not matter.
        agrees(&format!(
            "HloModule m
            before {{
              a = f32[] parameter(0)
              b = f32[] parameter(1)
              ROOT r = pred[] compare{less}
            }}
            before_of_second {{
              i = s32[] parameter(0)
              j = s32[] parameter(1)
              a = f32[] parameter(2)
              b = f32[] parameter(3)
              ROOT r = pred[] compare{less}
            }}
            ENTRY main {{
              x = f32[2100] parameter(0)
              zero = f32[] constant(0)
              zeros = f32[2100] broadcast(zero), dimensions={{}}
              missing = f32[2100] divide(zeros, zeros)
              negative = pred[2100] compare(x, zeros), direction=LT
              odd = f32[2100] select(negative, missing, x)
              {sort}
              number = pred[2100] compare(sorted, sorted), direction=EQ
              numbers = f32[2100] select(number, sorted, zeros)
              ROOT again = f32[2100] sort(numbers), dimensions={{0}}, to_apply=before
            }}"
        ));
    }
}

#[test]
fn long_rows_are_sorted_by_digits() {
    // One digit and two, with several tiles, the last of which is partial.
    for (ty, count) in [("pred", 9000), ("s4", 5000), ("u8", 12_289), ("f8e5m2", 4097), ("bf16", 40_001)] {
        agrees(&sort_of(ty, &count.to_string(), 0, LESS));
    }
    agrees(&sort_of("s16", "3,33001", 1, "ROOT r = pred[] compare(b, a), direction=LT"));
    agrees(&sort_of("f16", "2,1,30000", 2, "ROOT r = pred[] compare(a, b), direction=GT, type=TOTALORDER"));
}

#[test]
fn wide_keys_are_sorted_by_digits() {
    agrees(&sort_of("u32", "140001", 0, "ROOT r = pred[] compare(a, b), direction=GT"));
    agrees(&sort_of("s64", "1200001", 0, "ROOT r = pred[] compare(a, b), direction=GT"));
}

#[test]
fn elements_of_several_arrays_are_moved_by_digits() {
    // Complex numbers move in two parts; the keys are in the second array.
    agrees(include_str!("programs/sort_of_four_arrays_by_the_second.hlo"));
}

/// Returns a program that sorts floats with given bits (special, sorted or random) together with their indices.
fn sort_of_patterns(bits: &str, direction: &str, order: &str) -> String {
    format!(
        "HloModule m
        before {{
          a = f32[] parameter(0)
          b = f32[] parameter(1)
          i = s32[] parameter(2)
          j = s32[] parameter(3)
          ROOT r = pred[] compare(a, b), direction={direction}{order}
        }}
        ENTRY main {{
          random = s32[140000] parameter(0)
          places = s32[140000] iota(), iota_dimension=0
          {bits}
          x = f32[140000] bitcast-convert(bits)
          ROOT r = (f32[140000], s32[140000]) sort(x, places), dimensions={{0}}, is_stable=true, to_apply=before
        }}"
    )
}

#[test]
fn special_floats_are_sorted_by_digits() {
    // Few different values of every kind: zeros, subnormal numbers, infinities and NaNs of either sign with payloads.
    let special = "mask = s32[] constant(-2139095037)
          masks = s32[140000] broadcast(mask), dimensions={}
          bits = s32[140000] and(random, masks)";
    for direction in ["LT", "GT"] {
        agrees(&sort_of_patterns(special, direction, ", type=TOTALORDER"));
    }
    // Zeros of both signs, which are equal; no NaN.
    let zeros = "mask = s32[] constant(-1879048192)
          masks = s32[140000] broadcast(mask), dimensions={}
          bits = s32[140000] and(random, masks)";
    agrees(&sort_of_patterns(zeros, "LT", ""));
    agrees(&sort_of_patterns("bits = s32[140000] copy(places)", "LT", ""));
    agrees(&sort_of_patterns("bits = s32[140000] copy(places)", "GT", ""));
}
