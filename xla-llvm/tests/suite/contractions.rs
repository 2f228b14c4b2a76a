//! Tests of contractions by register tiles against the evaluator, at each x86 level that this machine executes: element
//! types, sizes that are no multiple of a tile, dimensions in any order.

use std::collections::BTreeMap;

use inkwell::context::Context;
use xla_hlo::ElementType;
use xla_hlo::text::parse_module;
use xla_llvm::emitter::{EmitOptions, Emitter};
use xla_llvm::fused::{KernelSource, Overwrite, emit_kernel};
use xla_llvm::target::Target;
use xla_passes::analysis::alias::ReadOrder;

use crate::guarded::check;

/// Returns a dot by the letters of its operands' dimensions: `b` and `c` are batch dimensions, `k` and `l` are
/// contracted.
pub fn dot(letters: &str, extents: &[(char, usize)], types: [ElementType; 3]) -> String {
    let extents: BTreeMap<char, usize> = extents.iter().copied().collect();
    let (left, right) = letters.split_once(',').unwrap();
    let list = |dims: &str| {
        let dims: Vec<String> = dims.chars().map(|letter| extents[&letter].to_string()).collect();
        dims.join(",")
    };
    let places = |of: &str, wanted: &str| {
        let places: Vec<String> = wanted.chars().filter_map(|w| of.find(w)).map(|place| place.to_string()).collect();
        places.join(",")
    };
    let own = |of: &str| of.chars().filter(|letter| !"bckl".contains(*letter)).collect::<String>();
    let batch: String = "bc".chars().filter(|&letter| left.contains(letter)).collect();
    let result = format!("{batch}{}{}", own(left), own(right));
    let [x, y, z] = types;
    format!(
        "HloModule dot\nENTRY main {{\n  x = {x}[{}] parameter(0)\n  y = {y}[{}] parameter(1)\n  ROOT d = {z}[{}] dot(x, y), \
         lhs_batch_dims={{{}}}, rhs_batch_dims={{{}}}, lhs_contracting_dims={{{}}}, rhs_contracting_dims={{{}}}\n}}\n",
        list(left),
        list(right),
        list(&result),
        places(left, &batch),
        places(right, &batch),
        places(left, "kl"),
        places(right, "kl"),
    )
}

/// Sizes that are no multiple of a tile, some of them smaller than a tile.
pub const SHAPES: &[(&str, &[(char, usize)])] = &[
    ("mk,kn", &[('m', 33), ('k', 37), ('n', 45)]),
    ("km,kn", &[('m', 29), ('k', 41), ('n', 19)]),
    ("mk,nk", &[('m', 17), ('k', 23), ('n', 50)]),
    ("km,nk", &[('m', 35), ('k', 13), ('n', 100)]),
    ("mk,kn", &[('m', 2), ('k', 300), ('n', 17)]),
    ("mk,kn", &[('m', 100), ('k', 64), ('n', 3)]),
    ("mk,kn", &[('m', 65), ('k', 2), ('n', 70)]),
    ("mk,kn", &[('m', 90), ('k', 1), ('n', 97)]),
    ("mk,kn", &[('m', 61), ('k', 256), ('n', 201)]),
    ("mk,kn", &[('m', 34), ('k', 768), ('n', 150)]),
    ("km,nk", &[('m', 200), ('k', 801), ('n', 33)]),
    ("mk,nk", &[('m', 29), ('k', 797), ('n', 50)]),
    ("mk,nk", &[('m', 7), ('k', 333), ('n', 43)]),
    ("bmckl,bnckl", &[('b', 2), ('c', 1), ('m', 3), ('k', 9), ('l', 29), ('n', 14)]),
    ("bmk,bnk", &[('b', 2), ('m', 100), ('k', 512), ('n', 40)]),
    ("bmck,bnck", &[('b', 3), ('c', 2), ('m', 9), ('k', 16), ('n', 21)]),
    ("mlk,knol", &[('m', 13), ('k', 5), ('l', 7), ('n', 6), ('o', 11)]),
    ("mokl,klnp", &[('m', 5), ('o', 9), ('k', 3), ('l', 8), ('n', 4), ('p', 12)]),
    ("bkmo,pbkn", &[('b', 2), ('k', 19), ('m', 3), ('o', 14), ('n', 15), ('p', 2)]),
];

#[test]
fn dots_of_any_shape() {
    use ElementType::*;
    for (letters, extents) in SHAPES {
        for ty in [F32, BF16, S32, C64] {
            check(&dot(letters, extents, [ty; 3]), "register-tiles");
        }
    }
}

/// Sums of all rows of several dimensions are kept between the parts of K.
#[test]
fn dots_in_parts_of_rows_in_several_dimensions() {
    for letters in ["mko,kn", "mko,nk"] {
        let text = dot(letters, &[('m', 3), ('k', 768), ('o', 5), ('n', 48)], [ElementType::F32; 3]);
        check(&text, "register-tiles");
    }
}

#[test]
fn dots_of_any_type() {
    // A type with only powers of two cannot represent these numbers.
    for &ty in ElementType::ALL.iter().filter(|&&ty| ty != ElementType::F8E8M0FNU) {
        let is_narrow = !ty.is_float() && !ty.is_complex() && ty.bit_width() < 32;
        let strategy = if is_narrow { "vector-loops" } else { "register-tiles" };
        for (letters, extents) in [SHAPES[0], SHAPES[1]] {
            check(&dot(letters, extents, [ty; 3]), strategy);
        }
    }
}

#[test]
fn dots_into_wider_types() {
    use ElementType::*;
    for types in [[BF16, BF16, F32], [F16, F16, F32], [S8, S8, S32], [U8, U8, U32], [S8, U8, S32], [F32, F32, F64]] {
        for (letters, extents) in [SHAPES[0], SHAPES[3], SHAPES[9], SHAPES[12]] {
            check(&dot(letters, extents, types), "register-tiles");
        }
    }
}

/// Matrix rows are scaled by elements of the vector and summed.
#[test]
fn vectors_times_matrices() {
    use ElementType::*;
    for ty in [F64, F16, F8E5M2, Pred, S8, U16, S32, U64, C128] {
        check(&dot("k,kn", &[('k', 131), ('n', 1003)], [ty; 3]), "vector-matrix");
    }
    let cases: &[(&str, &[(char, usize)])] = &[
        ("mk,kn", &[('m', 1), ('k', 67), ('n', 1100)]),
        ("kn,k", &[('k', 33), ('n', 5000)]),
        ("bk,bkn", &[('b', 3), ('k', 40), ('n', 600)]),
        ("kbn,bkm", &[('b', 2), ('k', 133), ('n', 300), ('m', 1)]),
        ("kl,lkon", &[('k', 9), ('l', 31), ('o', 2), ('n', 130)]),
    ];
    for (letters, extents) in cases {
        for ty in [F32, BF16, C64] {
            check(&dot(letters, extents, [ty, ty, if ty == BF16 { F32 } else { ty }]), "vector-matrix");
        }
    }
}

/// Returns a program with a contraction of `x` and `y` and an epilogue. `[x, y, dims]` are the shapes of the operands
/// and the result, whose dimension `last` has size `extent`.
fn after(contraction: &str, [x, y, dims]: [&str; 3], (last, extent): (usize, usize), ty: ElementType) -> String {
    format!(
        "HloModule after\nENTRY main {{\n  x = {ty}{x} parameter(0)\n  y = {ty}{y} parameter(1)\n  \
         bias = {ty}[{extent}] parameter(2)\n  other = {ty}{dims} parameter(3)\n  sum = {ty}{dims} {contraction}\n  \
         wide = {ty}{dims} broadcast(bias), dimensions={{{last}}}\n  biased = {ty}{dims} add(sum, wide)\n  \
         product = {ty}{dims} multiply(biased, other)\n  ROOT all = {ty}{dims} subtract(product, sum)\n}}\n"
    )
}

const PLAIN: &str = "dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}";
const TURNED: &str = "dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}";

/// Kernels with an epilogue that reads other arrays, at the index of the sum and at others.
#[test]
fn what_follows_a_contraction() {
    use ElementType::*;
    let vector = "dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}";
    let window = "convolution(x, y), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f";
    for ty in [F32, BF16, S32, C64] {
        check(&after(PLAIN, ["[33,37]", "[37,45]", "[33,45]"], (1, 45), ty), "register-tiles");
        check(&after(PLAIN, ["[41,768]", "[768,100]", "[41,100]"], (1, 100), ty), "register-tiles");
        check(&after(TURNED, ["[5,130]", "[45,130]", "[5,45]"], (1, 45), ty), "register-tiles");
        check(&after(window, ["[2,9,11,5]", "[3,3,5,20]", "[2,9,11,20]"], (3, 20), ty), "register-tiles");
        check(&after(vector, ["[67]", "[67,1100]", "[1100]"], (0, 1100), ty), "vector-matrix");
    }
}

/// Overlapping last tiles compute elements twice, which is invalid if a result overwrites an operand.
#[test]
fn results_in_the_place_of_operands_are_computed_once() {
    let module = parse_module(&after(PLAIN, ["[33,37]", "[37,45]", "[33,45]"], (1, 45), ElementType::F32)).unwrap();
    let source = KernelSource::of_computation(&module, module.entry_id(), |_| false).unwrap();
    let over = Overwrite { input: 2, result: 0, order: ReadOrder::Element };
    for (overwrites, strategy) in [(vec![], "register-tiles"), (vec![over], "vector-loops")] {
        let context = Context::create();
        let emitter = Emitter::new(&context, "kernels", &Target::host().unwrap(), EmitOptions::default());
        let kernel = emit_kernel(&emitter, &KernelSource { overwrites, ..source.clone() }, "kernel").unwrap();
        assert!(kernel.strategy.starts_with(strategy), "{}", kernel.strategy);
    }
}

/// Dots that do not profit from tiles, and empty sums, use plain loops.
#[test]
fn dots_that_are_not_tiled() {
    let types = [ElementType::F32; 3];
    check(&dot("mk,kn", &[('m', 4), ('k', 5), ('n', 6)], types), "vector-loops");
    check(&dot("mk,kn", &[('m', 1), ('k', 100), ('n', 300)], types), "vector-loops");
    check(&dot("mk,nk", &[('m', 1), ('k', 200), ('n', 300)], types), "vector-loops");
    check(&dot("mk,kn", &[('m', 300), ('k', 200), ('n', 1)], types), "vector-loops");
    check(&dot("mk,kn", &[('m', 300), ('k', 0), ('n', 300)], types), "vector-loops");
    check(&dot("mk,kn", &[('m', 0), ('k', 30), ('n', 30)], types), "empty");
}

#[test]
fn convolutions() {
    let cases = [
        ("[2,9,11,5]", "[3,3,5,20]", "[2,9,11,20]", "size=3x3 pad=1_1x1_1", "b01f_01io->b01f", ""),
        ("[2,9,11,16]", "[1,1,16,20]", "[2,9,11,20]", "size=1x1", "b01f_01io->b01f", ""),
        ("[1,15,17,3]", "[7,7,3,18]", "[1,8,9,18]", "size=7x7 stride=2x2 pad=3_3x3_3", "b01f_01io->b01f", ""),
        ("[2,8,8,8]", "[3,3,8,20]", "[2,15,15,20]", "size=3x3 pad=1_1x1_1 lhs_dilate=2x2", "b01f_01io->b01f", ""),
        ("[2,8,8,8]", "[3,3,20,8]", "[2,6,6,20]", "size=3x3 rhs_reversal=1x1", "b01f_01oi->b01f", ""),
        (
            "[2,8,9,12]",
            "[3,3,4,30]",
            "[2,8,9,30]",
            "size=3x3 pad=1_1x1_1",
            "b01f_01io->b01f",
            ", feature_group_count=3",
        ),
        ("[4,8,8,16]", "[8,8,4,20]", "[3,3,16,20]", "size=8x8 pad=1_1x1_1", "f01b_01io->01bf", ""),
        ("[4,8,8,16]", "[4,8,8,20]", "[3,3,16,20]", "size=8x8 pad=1_1x1_1", "f01b_i01o->01bf", ""),
        ("[4,9,8,3]", "[4,9,8,20]", "[3,3,3,20]", "size=9x8 pad=1_1x1_1", "f01b_i01o->01bf", ""),
        ("[2,5,9,11]", "[20,5,3,3]", "[2,9,11,20]", "size=3x3 pad=1_1x1_1", "bf01_oi01->b01f", ""),
    ];
    for (x, y, z, window, labels, more) in cases {
        for ty in [ElementType::F32, ElementType::BF16, ElementType::S32, ElementType::C64] {
            let text = format!(
                "HloModule convolution\nENTRY main {{\n  x = {ty}{x} parameter(0)\n  y = {ty}{y} parameter(1)\n  \
                 ROOT c = {ty}{z} convolution(x, y), window={{{window}}}, dim_labels={labels}{more}\n}}\n"
            );
            check(&text, "register-tiles");
        }
    }
}
