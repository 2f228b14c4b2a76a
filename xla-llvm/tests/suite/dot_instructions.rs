//! Tests of dot-product instructions (`vdpbf16ps`, `vpdpbusd`): values against the evaluator on processors that have
//! them, and the matmuls that use them.

use std::collections::BTreeSet;
use std::fmt::Write;

use xla_hlo::text::parse_module;
use xla_hlo::{ElementType, Literal, Scalar};
use xla_llvm::emitter::EmitOptions;
use xla_llvm::target::{CodeGenerators, Target, TargetSpec};

use crate::contractions::{SHAPES, dot};
use crate::guarded::check_on;
use crate::strategies::emitted_with;
use ElementType::{BF16, F32, S8, S16, S32, U8, U32};

/// Operands and results of 8-bit matmuls.
const BYTES: &[[ElementType; 3]] =
    &[[S8, S8, S32], [U8, U8, U32], [S8, U8, S32], [U8, S8, S32], [S8, S8, S8], [U8, S8, S16]];

/// Further sizes: all columns in one vector of 128 and 256 bits, and few rows.
const FURTHER: &[(&str, &[(char, usize)])] = &[
    ("mk,kn", &[('m', 60), ('k', 35), ('n', 5)]),
    ("mk,kn", &[('m', 40), ('k', 35), ('n', 12)]),
    ("mk,kn", &[('m', 4), ('k', 128), ('n', 100)]),
    ("mk,kn", &[('m', 3), ('k', 131), ('n', 64)]),
    ("mk,nk", &[('m', 4), ('k', 260), ('n', 50)]),
    ("mk,nk", &[('m', 2), ('k', 1031), ('n', 5)]),
    ("bmk,bkn", &[('b', 3), ('m', 17), ('k', 66), ('n', 33)]),
    ("mk,kn", &[('m', 30), ('k', 1536), ('n', 70)]),
];

/// Returns a processor with the instructions, without those that this machine lacks.
fn targets() -> [Target; 1] {
    [Target::host_as("znver4").unwrap()]
}

fn flushing() -> EmitOptions {
    EmitOptions { flush_denormals: true, ..EmitOptions::default() }
}

fn is_equal(found: &[u8], expected: &Literal) -> bool {
    let found = Literal::from_bytes(expected.array_shape(), found.to_vec()).unwrap();
    let both_nan = |pair| matches!(pair, (Scalar::Float(x), Scalar::Float(y)) if x.is_nan() && y.is_nan());
    (0..expected.array_shape().element_count())
        .map(|i| (found.get(i), expected.get(i)))
        .all(|pair| pair.0 == pair.1 || both_nan(pair))
}

/// Compares a program with the evaluator, and requires groups of a size on targets that have the instruction.
fn check(text: &str, groups: usize) {
    check_on(text, &targets(), flushing(), |chosen, target, results| {
        let dots = target.abilities().dots;
        let has = if groups == 2 { dots.bf16 } else { dots.bytes.mixed };
        let is_grouped = chosen.contains(&format!("groups of {groups}"));
        assert!(is_grouped == has, "{chosen} on {}: {text}", target.cpu());
        results.iter().all(|(found, expected)| is_equal(found, expected))
    });
}

/// Whether the groups of K save enough steps, and the columns fill a register.
fn fits(letters: &str, extents: &[(char, usize)], groups: usize) -> bool {
    let extent = |letter: char| extents.iter().find(|(l, _)| *l == letter).map_or(1, |(_, extent)| *extent);
    let inner = if letters.contains('l') { return false } else { extent('k') };
    4 * inner.div_ceil(groups) <= 3 * inner && extent('n') >= 4
}

/// Each shape has some of the types, to save time.
#[test]
fn dots_of_any_shape() {
    for (number, (letters, extents)) in SHAPES.iter().chain(FURTHER).enumerate() {
        if fits(letters, extents, 2) {
            check(&dot(letters, extents, [BF16, BF16, [BF16, F32][number % 2]]), 2);
        }
        for &types in [number, number + 3].map(|first| &BYTES[first % BYTES.len()]) {
            if fits(letters, extents, 4) {
                check(&wide(&dot(letters, extents, types)), 4);
            }
        }
    }
}

/// Renames the operands, so that they have all values of their types.
fn wide(text: &str) -> String {
    text.replace("x = ", "wide_x = ").replace("y = ", "wide_y = ").replace("(x, y)", "(wide_x, wide_y)")
}

/// Several dimensions of K, which are one loop if they are contiguous in both operands.
#[test]
fn dots_of_several_contracted_dimensions() {
    for (letters, extents) in SHAPES.iter().filter(|(letters, _)| letters.contains('l')) {
        for types in [[BF16; 3], [S8, S8, S32], [U8, S8, S32]] {
            check_on(&dot(letters, extents, types), &targets(), flushing(), |_, _, results| {
                results.iter().all(|(found, expected)| is_equal(found, expected))
            });
        }
    }
}

/// Zeros that fill the last group are not multiplied by infinities of neighbouring elements.
#[test]
fn infinities_beside_the_last_group() {
    for letters in ["mk,kn", "mk,nk", "km,kn", "km,nk"] {
        for (m, k, n) in [(33, 37, 45), (3, 131, 64), (120, 2, 40), (4, 66, 33)] {
            let text = dot(letters, &[('m', m), ('k', k), ('n', n)], [BF16, BF16, F32]);
            check(&text.replace("x = ", "infinite_x = ").replace("(x, y)", "(infinite_x, y)"), 2);
        }
    }
}

/// Operands that the kernel computes, and results that it computes from the sums.
#[test]
fn operands_and_results_are_computed_in_the_kernel() {
    check(include_str!("../data/dot_instructions/scaled_pairs.hlo"), 2);
    check(include_str!("../data/dot_instructions/widened_bytes.hlo"), 4);
    check(include_str!("../data/dot_instructions/rounded_operands.hlo"), 2);
    check(include_str!("../data/dot_instructions/exact_operands.hlo"), 2);
    check(include_str!("../data/dot_instructions/convolution_of_pairs.hlo"), 2);
    check(include_str!("../data/dot_instructions/convolution_of_bytes.hlo"), 4);
}

/// Returns a processor, on any machine.
fn whole(cpu: &str) -> Target {
    let is_arm = ["cortex-a76", "neoverse-v1"].contains(&cpu);
    let triple = Some(if is_arm { "aarch64-unknown-linux-gnu" } else { "x86_64-unknown-linux-gnu" }.to_string());
    let spec = TargetSpec { triple, cpu: Some(cpu.to_string()), ..TargetSpec::default() };
    Target::of(&spec, CodeGenerators::all()).unwrap()
}

/// The instruction depends on features, types, precision and the permission to flush subnormals.
#[test]
fn matmuls_with_the_instructions() {
    let mut table = String::new();
    let extents = [('m', 64), ('k', 256), ('n', 64)];
    let plain = |types| dot("mk,kn", &extents, types);
    let with = |attribute: &str| plain([BF16; 3]).replace("rhs_contracting", &format!("{attribute}, rhs_contracting"));
    let programs = [
        ("bf16", plain([BF16; 3]), true),
        ("bf16 with subnormals", plain([BF16; 3]), false),
        ("bf16 of high precision", with("operand_precision={high,default}"), true),
        ("bf16 of the highest precision", with("operand_precision={highest,highest}"), true),
        ("bf16 by an algorithm", with("algorithm=dot_bf16_bf16_f32"), true),
        ("bf16 by an algorithm in f32", with("algorithm=dot_f32_f32_f32"), true),
        ("f32", plain([F32; 3]), true),
        ("s8", plain([S8, S8, S32]), false),
        ("u8 x s8", plain([U8, S8, S32]), false),
        ("u8", plain([U8, U8, U32]), false),
        ("s8 to s8", plain([S8; 3]), false),
        ("s8 to f32", plain([S8, S8, F32]), false),
        ("s16", plain([S16, S16, S32]), false),
    ];
    for (name, text, flush_denormals) in programs {
        writeln!(table, "{name}").unwrap();
        for cpu in [
            "x86-64-v4",
            "cascadelake",
            "znver4",
            "alderlake",
            "arrowlake",
            "diamondrapids",
            "cortex-a76",
            "neoverse-v1",
        ] {
            let options = EmitOptions { flush_denormals, ..EmitOptions::default() };
            let module = parse_module(&text).unwrap();
            let (kernel, ir) = emitted_with(name, &module, &whole(cpu), options);
            let calls = ir.lines().filter_map(|line| line.split_once(" call ")?.1.split(['@', '(']).nth(1));
            let dots: BTreeSet<&str> = calls.filter(|name| name.contains("dp") || name.contains("dot")).collect();
            writeln!(table, "  {cpu:13} {}; {dots:?}", kernel.strategy).unwrap();
        }
    }
    insta::assert_snapshot!("dot-instructions", table);
}

/// Attention whose last block of keys may be narrower than the instruction's narrowest vector.
#[test]
fn attention_with_any_number_of_keys() {
    let program =
        include_str!("../data/strategies/attention.hlo").replace("[2,128,", "[2,20,").replace("[2,128]", "[2,20]");
    for keys in [129, 256, 385, 513, 515, 769, 1027] {
        let text = program.replace("256", &keys.to_string());
        check_on(&text, &targets(), flushing(), |chosen, target, results| {
            let groups = chosen.matches("groups of 2").count();
            assert!(chosen.starts_with("register-attention"), "{chosen}");
            // Scores and results; scores of a block of fewer keys than the narrowest vector have no groups.
            assert_eq!(groups >= 2, target.abilities().dots.bf16, "{chosen} on {}", target.cpu());
            results.iter().all(|(found, expected)| is_near(found, expected))
        });
    }
}

/// Whether results of attention agree: probabilities and results are rounded to bf16.
fn is_near(found: &[u8], expected: &Literal) -> bool {
    let found = Literal::from_bytes(expected.array_shape(), found.to_vec()).unwrap();
    (0..expected.array_shape().element_count()).all(|i| match (found.get(i), expected.get(i)) {
        (Scalar::Float(x), Scalar::Float(y)) => (x - y).abs() <= 0.03 * y.abs().max(1.0) || x.is_nan() && y.is_nan(),
        (x, y) => x == y,
    })
}
