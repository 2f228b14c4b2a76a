//! Tests of ragged and scaled dots.

use xla_hlo::ElementType::{BF16, F8E4M3FN, F8E8M0FNU, F32, S32};
use xla_hlo::{ElementType, Literal};

use crate::testing::{array, assert_near, numbers, printed_root, run_text};

fn counting(ty: ElementType, dims: &[usize]) -> Literal {
    let count: usize = dims.iter().product();
    array(ty, dims, &(0..count).map(|i| (i % 7) as f64 - 2.0).collect::<Vec<_>>())
}

/// Writes a `ragged-dot` with operands of these shapes; element types are `f32` and `s32`.
fn ragged(lhs: &[usize], rhs: &[usize], sizes: &[usize], attributes: &str) -> String {
    format!(
        "ENTRY e {{ x = f32{lhs:?} parameter(0)\n w = f32{rhs:?} parameter(1)\n g = s32{sizes:?} parameter(2)\n \
        ROOT r = ragged-dot(x, w, g), {attributes} }}"
    )
}

const ROWS: &str = "lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}";

#[test]
fn rows_take_the_matrix_of_their_group() {
    let x = counting(F32, &[5, 2]);
    let w = array(F32, &[3, 2, 1], &[1.0, 10.0, 100.0, 1000.0, f64::NAN, f64::INFINITY]);
    let (v, text) = (numbers(&x), ragged(&[5, 2], &[3, 2, 1], &[3], ROWS));
    let row = |i: usize, scale: f64| scale * v[2 * i] + 10.0 * scale * v[2 * i + 1];
    let run = |sizes: &[f64]| numbers(&run_text(&text, &[x.clone(), w.clone(), array(S32, &[3], sizes)]).unwrap());
    assert_eq!(
        run(&[2.0, 2.0, 0.0]),
        [row(0, 1.0), row(1, 1.0), row(2, 100.0), row(3, 100.0), 0.0],
        "the last is in no group"
    );
    assert_eq!(run(&[0.0, 9.0, 1.0]), [0, 1, 2, 3, 4].map(|i| row(i, 100.0)), "too large a group");
    assert_eq!(run(&[-3.0, 1.0, 0.0]), [row(0, 100.0), 0.0, 0.0, 0.0, 0.0], "a negative size is none");
}

#[test]
fn group_sizes_may_differ_by_batch() {
    let attributes = "lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={1}, rhs_contracting_dims={2}, \
        lhs_ragged_dims={1}, rhs_group_dims={0}";
    let text = ragged(&[2, 3, 1], &[2, 2, 1, 1], &[2, 2], attributes);
    let x = array(F32, &[2, 3, 1], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let w = array(F32, &[2, 2, 1, 1], &[1.0, 10.0, 100.0, 1000.0]);
    let sizes = array(S32, &[2, 2], &[1.0, 2.0, 2.0, 0.0]);
    let result = run_text(&text, &[x, w, sizes]).unwrap();
    assert_eq!(numbers(&result), [1.0, 200.0, 300.0, 40.0, 50.0, 0.0]);
}

#[test]
fn contracted_groups_are_summed_apart() {
    let attributes = "lhs_contracting_dims={0}, rhs_contracting_dims={0}, lhs_ragged_dims={0}";
    let text = ragged(&[4, 1], &[4, 2], &[3], attributes);
    let x = array(F32, &[4, 1], &[1.0, 2.0, 3.0, f64::NAN]);
    let w = array(F32, &[4, 2], &[1.0, 10.0, 1.0, 10.0, 1.0, 10.0, 1.0, 10.0]);
    let result = run_text(&text, &[x, w, array(S32, &[3], &[1.0, 0.0, 2.0])]).unwrap();
    assert_eq!(result.array_shape().dims(), [3, 1, 2]);
    assert_eq!(numbers(&result), [1.0, 10.0, 0.0, 0.0, 5.0, 50.0], "NaN is in no group");
}

#[test]
fn ragged_batches_are_a_dot() {
    let attributes = "lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}, \
        lhs_ragged_dims={0}";
    let text = ragged(&[3, 1, 1], &[3, 1, 1], &[2], attributes);
    let x = array(F32, &[3, 1, 1], &[1.0, 2.0, 3.0]);
    let result = run_text(&text, &[x.clone(), x, array(S32, &[2], &[1.0, 1.0])]).unwrap();
    assert_eq!(numbers(&result), [1.0, 4.0, 9.0]);
}

#[test]
fn attributes_print_in_the_order_of_xla() {
    let text = ragged(&[5, 2], &[3, 2, 4], &[3], &format!("operand_precision={{highest,default}}, {ROWS}"));
    let expected = "f32[5,4]{1,0} ragged-dot(x, w, g), lhs_contracting_dims={1}, rhs_contracting_dims={1}, \
        operand_precision={highest,default}, lhs_ragged_dims={0}, rhs_group_dims={0}";
    assert_eq!(printed_root(&text), expected);
}

#[test]
fn broken_ragged_rules_are_named() {
    type Case<'a> = (&'a [usize], &'a [usize], &'a [usize], &'a str, &'a str);
    let cases: &[Case<'_>] = &[
        (&[5, 2], &[3, 2, 4], &[2], ROWS, "there are 2 group sizes, but the right operand"),
        (&[5, 2], &[3, 2, 4], &[5, 3], ROWS, "group sizes are a vector, or dimensions [] of the left operand"),
        (&[5, 2], &[3, 2, 4], &[], ROWS, "group sizes are a vector"),
        (
            &[5, 2],
            &[3, 2, 4],
            &[3],
            "lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}",
            "rhs_group_dims must have 1 dimensions",
        ),
        (
            &[5, 2],
            &[3, 2, 4],
            &[3],
            "lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={7}, rhs_group_dims={0}",
            "names dimension 7",
        ),
        (
            &[5, 2],
            &[3, 2, 4],
            &[2],
            "lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={1}",
            "can be neither batch nor contracting",
        ),
    ];
    for (lhs, rhs, sizes, attributes, message) in cases {
        let error = run_text(&ragged(lhs, rhs, sizes, attributes), &[]).expect_err(message);
        assert!(error.to_string().contains(message), "{error} lacks {message}");
    }
}

/// Writes a `scaled-dot` of matrices with scales of these shapes.
fn scaled(lhs: &str, rhs: &str, lhs_scale: &str, rhs_scale: &str, result: &str) -> String {
    format!(
        "ENTRY e {{ a = {lhs} parameter(0)\n b = {rhs} parameter(1)\n sa = {lhs_scale} parameter(2)\n \
        sb = {rhs_scale} parameter(3)\n \
        ROOT r = {result} scaled-dot(a, b, sa, sb), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}} }}"
    )
}

#[test]
fn blocks_have_their_scales() {
    let text = scaled("f8e4m3fn[2,4]", "bf16[4,1]", "f8e8m0fnu[2,2]", "bf16[1,1]", "f32[2,1]");
    let a = array(F8E4M3FN, &[2, 4], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
    let b = array(BF16, &[4, 1], &[1.0, 1.0, 1.0, 2.0]);
    let scales = array(F8E8M0FNU, &[2, 2], &[1.0, 0.5, 4.0, 0.25]);
    let result = run_text(&text, &[a.clone(), b.clone(), scales, array(BF16, &[1, 1], &[64.0])]).unwrap();
    assert_near("an unscaled side", &numbers(&result), &[3.0 + 5.5, 44.0 + 5.75], 0.0);
    let text = scaled("f8e4m3fn[2,4]", "bf16[4,1]", "f8e8m0fnu[1,1]", "f32[4,1]", "f32[2,1]");
    let scales = array(F32, &[4, 1], &[1.0, 0.0, 0.0, 10.0]);
    let result = run_text(&text, &[a, b, array(F8E8M0FNU, &[1, 1], &[2.0]), scales]).unwrap();
    assert_near("one scale for a whole array", &numbers(&result), &[2.0 * 81.0, 2.0 * 165.0], 0.0);
}

#[test]
fn scaled_attributes_print_as_those_of_dots() {
    let text = scaled("bf16[2,4]", "bf16[4,1]", "bf16[2,2]", "bf16[1,1]", "f32[2,1]");
    let expected = "f32[2,1]{1,0} scaled-dot(a, b, sa, sb), lhs_contracting_dims={1}, rhs_contracting_dims={0}";
    assert_eq!(printed_root(&text), expected);
}

#[test]
fn broken_scaled_rules_are_named() {
    for (lhs, scale, result, message) in [
        ("bf16[2,4]", "bf16[2,3]", "f32[2,1]", "each dimension of the left scale must divide"),
        ("bf16[2,4]", "bf16[2]", "f32[2,1]", "each dimension of the left scale must divide"),
        ("bf16[2,4]", "s8[2,2]", "f32[2,1]", "the left scale must have float elements"),
        ("s8[2,4]", "bf16[2,2]", "f32[2,1]", "the left operand must have float elements"),
        ("bf16[2,4]", "bf16[2,2]", "s32[2,1]", "the result must have float elements"),
    ] {
        let error = run_text(&scaled(lhs, "bf16[4,1]", scale, "bf16[1,1]", result), &[]).expect_err(message);
        assert!(error.to_string().contains(message), "{error} lacks {message}");
    }
}
