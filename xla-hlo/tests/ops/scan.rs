//! Tests of scans.

use xla_hlo::ElementType::S32;

use crate::testing::{array, numbers, printed_root, run_text};

/// Step computations, named after their operands and results; x and c are vectors of 3 elements.
const STEPS: &str = "
    digits { x = s32[3] parameter(0)
        c = s32[3] parameter(1)
        ten = s32[] constant(10)
        t = s32[3] broadcast(ten), dimensions={}
        m = s32[3] multiply(c, t)
        d = s32[3] add(m, x)
        ROOT r = (s32[3], s32[3]) tuple(c, d) }
    sum { x = s32[3] parameter(0)
        c = s32[3] parameter(1)
        ROOT d = s32[3] add(c, x) }
    wrapped { x = s32[3] parameter(0)
        c = s32[3] parameter(1)
        d = s32[3] add(c, x)
        ROOT r = (s32[3]) tuple(d) }
    count { c = s32[] parameter(0)
        one = s32[] constant(1)
        d = s32[] add(c, one)
        ROOT r = (s32[], s32[]) tuple(c, d) }
    double { x = s32[3] parameter(0)
        ROOT d = s32[3] add(x, x) }
    columns { x = s32[2] parameter(0)
        c = s32[2] parameter(1)
        d = s32[2] add(c, x)
        ROOT r = (s32[2], s32[2]) tuple(d, d) }
";

fn module(scan: &str) -> String {
    format!(
        "HloModule m\n{STEPS}\nENTRY e {{ x = s32[2,3] parameter(0)\n c = s32[3] parameter(1)\n \
        n = s32[] parameter(2)\n k = s32[2] parameter(3)\n none = s32[0,3] slice(x), slice={{[0:0], [0:3]}}\n ROOT r = {scan} }}"
    )
}

fn scanned(scan: &str) -> Vec<Vec<f64>> {
    let operands = [
        array(S32, &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
        array(S32, &[3], &[7.0, 8.0, 9.0]),
        array(S32, &[], &[5.0]),
        array(S32, &[2], &[0.0, 100.0]),
    ];
    let result = run_text(&module(scan), &operands).unwrap_or_else(|e| panic!("{scan}: {e}"));
    result.leaves().into_iter().map(numbers).collect()
}

#[test]
fn steps_run_in_order() {
    let forward = scanned("scan(x, c), dimensions={0}, num_carries=1, to_apply=digits");
    assert_eq!(forward, [vec![7.0, 8.0, 9.0, 71.0, 82.0, 93.0], vec![714.0, 825.0, 936.0]]);
    let backward = scanned("scan(x, c), dimensions={0}, num_carries=1, is_reverse=true, to_apply=digits");
    assert_eq!(backward, [vec![74.0, 85.0, 96.0, 7.0, 8.0, 9.0], vec![741.0, 852.0, 963.0]]);
    let columns = scanned("scan(x, k), dimensions={1}, num_carries=1, to_apply=columns");
    assert_eq!(columns, [vec![1.0, 3.0, 6.0, 104.0, 109.0, 115.0], vec![6.0, 115.0]]);
}

#[test]
fn inputs_and_carries_may_be_missing() {
    assert_eq!(scanned("s32[3] scan(x, c), dimensions={0}, num_carries=1, to_apply=sum"), [[12.0, 15.0, 18.0]]);
    assert_eq!(scanned("(s32[3]) scan(x, c), dimensions={0}, num_carries=1, to_apply=wrapped"), [[12.0, 15.0, 18.0]]);
    let counted = scanned("(s32[4], s32[]) scan(n), dimensions={0}, num_carries=1, to_apply=count");
    assert_eq!(counted, [vec![5.0, 6.0, 7.0, 8.0], vec![9.0]]);
    let doubled = scanned("scan(x), dimensions={0}, num_carries=0, to_apply=double");
    assert_eq!(doubled, [[2.0, 4.0, 6.0, 8.0, 10.0, 12.0]]);
    let nothing = scanned("scan(none, c), dimensions={0}, num_carries=1, to_apply=digits");
    assert_eq!(nothing, [vec![], vec![7.0, 8.0, 9.0]]);
}

#[test]
fn attributes_print_in_the_order_of_xla() {
    let root = printed_root(&module("scan(x, c), dimensions={0}, num_carries=1, to_apply=digits"));
    let expected =
        "(s32[2,3]{1,0}, s32[3]{0}) scan(x, c), dimensions={0}, num_carries=1, is_associative=false, to_apply=digits";
    assert_eq!(root, expected);
    let attributes = "dimensions={0}, num_carries=1, is_reverse=true, is_associative=true, to_apply=digits";
    let root = printed_root(&module(&format!("scan(x, c), {attributes}")));
    assert!(root.ends_with(attributes), "{root}");
}

#[test]
fn broken_rules_are_named() {
    for (scan, message) in [
        ("scan(x, c), dimensions={0,1}, num_carries=1, to_apply=digits", "exactly one dimension"),
        ("scan(x, c), dimensions={2}, num_carries=1, to_apply=digits", "over dimension 2, which input 0"),
        ("scan(x, c), dimensions={0}, num_carries=3, to_apply=digits", "of which 3 cannot be carries"),
        ("scan(x, c), dimensions={1}, num_carries=1, to_apply=digits", "is called with (s32[2], s32[3])"),
        ("scan(x, x), dimensions={0}, num_carries=1, to_apply=sum", "is called with (s32[3], s32[2,3])"),
        ("scan(x, none), dimensions={0}, num_carries=0, to_apply=sum", "must be equally long in dimension 0"),
        ("scan(c, c), dimensions={0}, num_carries=1, to_apply=digits", "is called with (s32[], s32[3])"),
        ("scan(n), dimensions={0}, num_carries=1, to_apply=count", "the result shape must be written"),
        ("s32[] scan(n), dimensions={0}, num_carries=1, to_apply=count", "an output with dimension 0"),
    ] {
        let error = run_text(&module(scan), &[]).map(|v| v.shape().to_string()).expect_err(scan);
        assert!(error.to_string().contains(message), "{scan}: {error}");
    }
}
