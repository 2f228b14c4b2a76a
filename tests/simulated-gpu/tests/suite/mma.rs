//! Tests of `mma.sync`: the position of each lane's elements in the matrices, by the figures of the PTX ISA.

use super::bench::{Bench, kernel};

/// Packs a lane's elements of 16 bits into registers, two in each, the first one in the lower half.
fn packed(elements: &[u32]) -> Vec<u32> {
    elements.chunks(2).map(|pair| pair[0] | pair[1] << 16).collect()
}

/// Returns a small integer as bfloat16; such integers and sums of their products are exact.
fn brain(value: i32) -> u32 {
    (value as f32).to_bits() >> 16
}

fn value(matrix: u32, row: usize, column: usize) -> i32 {
    (row * 7 + column * 3 + matrix as usize * 5) as i32 % 9 - 4
}

#[test]
fn m16n8k16_of_bf16() {
    let (mut a, mut b, mut c) = (Vec::new(), Vec::new(), Vec::new());
    for lane in 0..32usize {
        let (group, within) = (lane / 4, lane % 4);
        // Figure of A: a0 to a7.
        let places = [(0, 0), (0, 1), (8, 0), (8, 1), (0, 8), (0, 9), (8, 8), (8, 9)];
        let of_a: Vec<u32> = places.iter().map(|(r, k)| brain(value(0, group + r, within * 2 + k))).collect();
        a.extend(packed(&of_a));
        // Figure of B: b0 to b3.
        let of_b: Vec<u32> = [0, 1, 8, 9].iter().map(|k| brain(value(1, within * 2 + k, group))).collect();
        b.extend(packed(&of_b));
        // Figure of C: c0 to c3.
        c.extend([(0, 0), (0, 1), (8, 0), (8, 1)].map(|(r, n)| single(value(2, group + r, within * 2 + n))));
    }
    let found = mma("m16n8k16.row.col.f32.bf16.bf16.f32", ["%r0, %r1, %r2, %r3", "%r4, %r5"], [a, b, c]);
    check(16, &found);
}

#[test]
fn m16n8k8_and_m16n8k4_of_tf32() {
    let (mut a, mut b, mut c) = (Vec::new(), Vec::new(), Vec::new());
    for lane in 0..32usize {
        let (group, within) = (lane / 4, lane % 4);
        // Figure of A: a0 to a3; `m16n8k4` has only a0 and a1.
        a.extend([(0, 0), (8, 0), (0, 4), (8, 4)].map(|(r, k)| single(value(0, group + r, within + k))));
        b.extend([0, 4].map(|k| single(value(1, within + k, group))));
        c.extend([(0, 0), (0, 1), (8, 0), (8, 1)].map(|(r, n)| single(value(2, group + r, within * 2 + n))));
    }
    // The lower 13 bits are ignored.
    a.iter_mut().for_each(|word| *word |= 0x1fff);
    for (shape, depth, registers) in
        [("m16n8k8", 8, ["%r0, %r1, %r2, %r3", "%r4, %r5"]), ("m16n8k4", 4, ["%r0, %r1", "%r4"])]
    {
        let words = [a.clone(), b.clone(), c.clone()];
        check(depth, &mma(&format!("{shape}.row.col.f32.tf32.tf32.f32"), registers, words));
    }
}

fn single(value: i32) -> u32 {
    (value as f32).to_bits()
}

/// Runs an mma and returns the lanes' registers of D, four each. The lanes hold four registers of A, two of B and four
/// of C, of which the instruction takes some.
fn mma(instruction: &str, [of_a, of_b]: [&str; 2], words: [Vec<u32>; 3]) -> Vec<u32> {
    let body = format!(
        "mul.wide.u32 %rd4, %r9, 16; add.s64 %rd5, %rd0, %rd4; ld.global.v4.b32 {{%r0, %r1, %r2, %r3}}, [%rd5];
        mul.wide.u32 %rd6, %r9, 8; add.s64 %rd5, %rd1, %rd6; ld.global.v2.b32 {{%r4, %r5}}, [%rd5];
        add.s64 %rd5, %rd2, %rd4; ld.global.v4.b32 {{%a, %b, %c, %d}}, [%rd5];
        mma.sync.aligned.{instruction} {{%a, %b, %c, %d}}, {{{of_a}}}, {{{of_b}}}, {{%a, %b, %c, %d}};
        add.s64 %rd5, %rd3, %rd4; st.global.v4.b32 [%rd5], {{%a, %b, %c, %d}};"
    );
    let mut bench = Bench::new();
    let [a, b, c] = words.map(|words| bench.words(&words));
    let into = bench.fresh(512);
    bench.run(&kernel(4, ".reg .f32 %a, %b, %c, %d;", &body), 1, 32, &[a, b, c, into]);
    bench.read(into, 128)
}

/// Checks that the result is the product of matrices of [`value`]s, with `depth` columns in A.
fn check(depth: usize, found: &[u32]) {
    for (lane, results) in found.chunks(4).enumerate() {
        for (element, result) in results.iter().enumerate() {
            let (row, column) = (lane / 4 + element / 2 * 8, lane % 4 * 2 + element % 2);
            let sum: i32 = (0..depth).map(|k| value(0, row, k) * value(1, k, column)).sum();
            let expected = (sum + value(2, row, column)) as f32;
            assert_eq!(f32::from_bits(*result), expected, "row {row}, column {column}");
        }
    }
}
