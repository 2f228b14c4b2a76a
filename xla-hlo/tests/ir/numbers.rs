//! Tests of floats as text: constants of every pattern read back as themselves, and numbers out of range are refused.

use xla_hlo::builder::ModuleBuilder;
use xla_hlo::text::{parse_literal, parse_module};
use xla_hlo::{ArrayShape, ElementType, Literal, Op};

/// Returns a module whose root is a constant, as text.
fn module(constant: Literal) -> String {
    let mut module = ModuleBuilder::new("m");
    let mut b = module.computation("e");
    let root = b.constant(constant).unwrap();
    let entry = b.finish(root);
    module.finish(entry).unwrap().to_string()
}

/// Returns the text of the elements in a module's only constant.
fn elements(module: &str) -> &str {
    let (_, constant) = module.split_once(" constant(").expect("the constant is printed");
    constant.lines().next().and_then(|line| line.strip_suffix(')')).expect("nothing follows the constant")
}

fn scalar(ty: ElementType, bits: u64) -> String {
    let bytes = bits.to_le_bytes()[..ty.byte_width()].to_vec();
    elements(&module(Literal::from_bytes(&ArrayShape::new(ty, []), bytes).unwrap())).to_owned()
}

/// Every pattern of every float type of at most 16 bits survives printing and parsing.
#[test]
fn narrow_floats_round_trip() {
    for &ty in ElementType::ALL.iter().filter(|t| t.is_float() && t.bit_width() <= 16) {
        let patterns = 0..1u64 << ty.bit_width();
        let bytes: Vec<u8> =
            patterns.clone().flat_map(|bits| bits.to_le_bytes().into_iter().take(ty.byte_width())).collect();
        let shape = ArrayShape::new(ty, [1 << ty.bit_width()]);
        let text = module(Literal::from_bytes(&shape, bytes.clone()).unwrap());
        let again = parse_module(&text).unwrap_or_else(|error| panic!("{ty}: {error}"));
        let entry = again.entry();
        let Op::Constant(read) = entry[entry.root()].op() else { panic!("{ty}: the root is a constant") };
        let printed = elements(&text).trim_matches(['{', '}']).split(", ");
        let pairs = bytes.chunks(ty.byte_width()).zip(read.literal.bytes().chunks(ty.byte_width()));
        for ((bits, text), (written, read)) in patterns.zip(printed).zip(pairs) {
            assert_eq!(read, written, "{ty} {bits:#x} prints as {text}");
        }
        assert_eq!(read.literal.bytes().len(), bytes.len());
    }
}

#[test]
fn wide_floats_print_as_c_does() {
    let cases: [(f64, &str); 8] = [
        (0.1, "0.1"),
        (1.0 / 3.0, "0.33333333333333331"),
        (1e15, "1e+15"),
        (123456789012345678.0, "1.2345678901234568e+17"),
        (-2.5, "-2.5"),
        (-0.0, "-0.0"),
        (2.2250738585072014e-308, "2.2250738585072014e-308"),
        (1e-5, "1e-05"),
    ];
    for (value, expected) in cases {
        assert_eq!(scalar(ElementType::F64, value.to_bits()), expected);
    }
    assert_eq!(scalar(ElementType::F32, u64::from(std::f32::consts::PI.to_bits())), "3.14159274");
}

#[test]
fn out_of_range_is_refused() {
    for (text, fault) in [
        ("f32[] 3.5e38", "`3.5e38` is out of the range of f32"),
        ("f64[] 1e999", "`1e999` is too large for any type"),
        ("f4e2m1fn[] 7", "`7` is out of the range of f4e2m1fn"),
        ("f4e2m1fn[] nan", "f4e2m1fn has no NaN"),
        ("f8e4m3fn[] inf", "f8e4m3fn has no infinity"),
        ("f8e8m0fnu[] 0", "`0` is out of the range of f8e8m0fnu"),
        ("f32[] nan(0x0)", "the payload of a NaN of f32 is from 0x1 to 0x7fffff"),
        ("f32[] nan(0x800000)", "the payload of a NaN of f32 is from 0x1 to 0x7fffff"),
    ] {
        let error = parse_literal(text).expect_err(text);
        assert!(error.message().contains(fault), "{text}: {error}");
    }
    assert_eq!(parse_literal("f32[] 3.40282347e+38").unwrap().bytes(), f32::MAX.to_le_bytes());
    assert!(parse_literal("f4e2m1fn[] -6.9").is_ok());
}
