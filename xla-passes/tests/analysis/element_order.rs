//! Tests of sort keys, and of comparators that are equivalent to a comparison of keys.

use xla_hlo::text::parse_module;
use xla_hlo::{ElementType, Op};
use xla_passes::analysis::element_order::{Key, key_of_comparator};

fn sorted(key: Key, patterns: &[u64]) -> Vec<u64> {
    let mut sorted = patterns.to_vec();
    sorted.sort_by_key(|&p| key.of(p));
    sorted
}

#[test]
fn integers_come_in_their_order() {
    let key = Key::total_order(ElementType::S8).unwrap();
    assert_eq!(sorted(key, &[0, 127, 0xff, 0x80, 1]), [0x80, 0xff, 0, 1, 127]);
    assert_eq!(sorted(key.reversed(), &[0, 127, 0xff, 0x80, 1]), [127, 1, 0, 0xff, 0x80]);
    let key = Key::total_order(ElementType::U64).unwrap();
    assert_eq!(sorted(key, &[u64::MAX, 0, 1 << 63]), [0, 1 << 63, u64::MAX]);
    let key = Key::total_order(ElementType::S4).unwrap();
    assert_eq!(sorted(key, &[0xff, 0x03, 0xf8]), [0xf8, 0xff, 0x03], "an element takes the lower bits of its byte");
}

#[test]
fn floats_come_in_the_order_of_their_patterns() {
    let key = Key::total_order(ElementType::F16).unwrap();
    let ascending = [0xfe00, 0xfc00, 0xbc00, 0x8000, 0x0000, 0x3c00, 0x7c00, 0x7e00];
    let mut shuffled = ascending;
    shuffled.rotate_left(3);
    assert_eq!(sorted(key, &shuffled), ascending);
    let descending: Vec<u64> = ascending.into_iter().rev().collect();
    assert_eq!(sorted(key.reversed(), &shuffled), descending);
}

#[test]
fn special_values_may_stand_for_each_other() {
    let ty = ElementType::F32;
    let key = Key::total_order(ty).unwrap().replacing(ty, Some(0), Some(0x7fc0_0000)).unwrap();
    assert_eq!(key.of(0x8000_0000), key.of(0));
    assert_eq!(key.of(0xffc0_0001), key.of(0x7f80_0001));
    assert!(key.of(0xffc0_0000) > key.of(0x7f80_0000), "-NaN comes last, too");
    assert!(key.of(0x8000_0001) < key.of(0));
    assert_eq!(
        Key::total_order(ElementType::F8E4M3FNUZ).unwrap().replacing(ElementType::F8E4M3FNUZ, Some(0), None),
        None
    );
}

/// Returns the key of a comparator whose `body` starts with the two scalars `a` and `b` of type `ty` (and two of
/// s32).
fn key(ty: &str, body: &str) -> Option<(usize, Key)> {
    let text = format!(
        "HloModule m
        before {{ a = {ty}[] parameter(0)
          b = {ty}[] parameter(1)
          c = s32[] parameter(2)
          d = s32[] parameter(3)
          {body} }}
        ENTRY main {{ x = {ty}[9] parameter(0)
          y = s32[9] parameter(1)
          ROOT r = ({ty}[9], s32[9]) sort(x, y), dimensions={{0}}, to_apply=before }}"
    );
    let module = parse_module(&text).unwrap_or_else(|error| panic!("{error}"));
    let entry = module.entry();
    let Op::Sort(sort) = entry[entry.root()].op() else { panic!("no sort") };
    key_of_comparator(&module, sort.computation)
}

fn total(ty: ElementType) -> Key {
    Key::total_order(ty).unwrap()
}

#[test]
fn one_comparison_is_an_order() {
    let cases = [
        ("compare(a, b), direction=LT", 0, true),
        ("compare(b, a), direction=GT", 0, true),
        ("compare(a, b), direction=GT", 0, false),
        ("compare(d, c), direction=LT", 1, false),
    ];
    for (root, array, ascending) in cases {
        let key_of = |ty| if ascending { total(ty) } else { total(ty).reversed() };
        let expected = Some((array, key_of(ElementType::S32)));
        assert_eq!(key("s32", &format!("ROOT r = pred[] {root}")), expected, "{root}");
        if array == 0 {
            let found = key("bf16", &format!("ROOT r = pred[] {root}, type=TOTALORDER"));
            assert_eq!(found, Some((0, key_of(ElementType::BF16))), "{root}");
        }
    }
    let partial = key("f32", "ROOT r = pred[] compare(a, b), direction=LT").unwrap().1;
    assert_eq!(partial.of(0), partial.of(0x8000_0000), "zeros are equal");
}

/// Comparison as JAX emits it: all NaNs are equal, all zeros are equal.
const CANONICAL: &str = "quiet = f32[] constant(nan)
    zero = f32[] constant(0)
    na = pred[] compare(a, a), direction=NE
    za = pred[] compare(a, zero), direction=EQ
    sa = f32[] select(za, zero, a)
    ka = f32[] select(na, quiet, sa)
    nb = pred[] compare(b, b), direction=NE
    zb = pred[] compare(b, zero), direction=EQ
    sb = f32[] select(zb, zero, b)
    kb = f32[] select(nb, quiet, sb)\n";

#[test]
fn special_values_may_be_replaced() {
    let expected = total(ElementType::F32).replacing(ElementType::F32, Some(0), Some(0x7fc0_0000));
    let found = key("f32", &format!("{CANONICAL} ROOT r = pred[] compare(ka, kb), direction=LT, type=TOTALORDER"));
    assert_eq!(found, expected.map(|key| (0, key)));
    let otherwise = "zero = f32[] constant(-0)
        ea = pred[] compare(a, a), direction=EQ
        fa = pred[] not(ea)
        za = pred[] compare(zero, a), direction=EQ
        qa = pred[] or(za, fa)
        ka = f32[] select(qa, zero, a)
        eb = pred[] compare(b, b), direction=EQ
        fb = pred[] not(eb)
        zb = pred[] compare(zero, b), direction=EQ
        qb = pred[] or(fb, zb)
        kb = f32[] select(qb, zero, b)
        ROOT r = pred[] compare(kb, ka), direction=LT, type=TOTALORDER";
    let sign = 0x8000_0000;
    let expected = total(ElementType::F32).replacing(ElementType::F32, Some(sign), Some(sign)).unwrap();
    assert_eq!(key("f32", otherwise), Some((0, expected.reversed())));
}

#[test]
fn anything_else_is_left_to_the_comparator() {
    let lopsided = format!("{CANONICAL} ROOT r = pred[] compare(ka, b), direction=LT, type=TOTALORDER");
    let cases = [
        ("f32", "ROOT r = pred[] compare(a, b), direction=LE"),
        ("f32", "ROOT r = pred[] compare(a, a), direction=LT"),
        ("s32", "ROOT r = pred[] compare(a, c), direction=LT"),
        ("f32", "x = f32[] abs(a)\n y = f32[] abs(b)\n ROOT r = pred[] compare(x, y), direction=LT"),
        ("f32", lopsided.as_str()),
        (
            "s32",
            "z = s32[] constant(0)
            five = s32[] constant(5)
            za = pred[] compare(a, z), direction=EQ
            ka = s32[] select(za, five, a)
            zb = pred[] compare(b, z), direction=EQ
            kb = s32[] select(zb, five, b)
            ROOT r = pred[] compare(ka, kb), direction=LT",
        ),
        (
            "f32",
            "z = f32[] constant(0)
            zb = pred[] compare(b, z), direction=EQ
            ka = f32[] select(zb, z, a)
            za = pred[] compare(a, z), direction=EQ
            kb = f32[] select(za, z, b)
            ROOT r = pred[] compare(ka, kb), direction=LT",
        ),
    ];
    for (ty, body) in cases {
        assert_eq!(key(ty, body), None, "{body}");
    }
}
