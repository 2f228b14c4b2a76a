//! Tests of typed attributes: MLIR's text reads back as itself, and unusual text as in MLIR.

use xla_hlo::ops::{FfiAttributes, FfiValue};

fn printed(text: &str) -> String {
    FfiAttributes::parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).to_string()
}

/// Attributes as printed by jaxlib.
#[test]
fn printed_attributes_are_read_and_printed_the_same() {
    for text in [
        "{}",
        r#"{ab = array<i1: true, false>, ae = array<i64>, af = array<f32: 1.000000e+00, 2.500000e+00>}"#,
        r#"{arr = array<i64: 1, 2>, b = true, d = {z = true}, dd = dense<[1, 2]> : tensor<2xi32>, e = {}}"#,
        r#"{f = 1.500000e+00 : f32, g = 1.000000e-10 : f64, h = 1.500000e+00 : bf16, inf = 0x7F800000 : f32}"#,
        r#"{l = [1, "a", 2.500000e+00, 3 : i8], m = -5 : i32, n = 1 : i64, "quoted name" = 1 : i64, u, u8 = 3 : ui8}"#,
        r#"{s = "x\22y\0A\09\\\C3\A9", sym = @foo, two = @outer::@"in ner", ty = f32}"#,
        r#"{bytes = "\FF\00\C3", s = ["\80"]}"#,
        r#"{m = dense<[[1, 2], [3, 4]]> : tensor<2x2xi8>, s = dense<1.500000e+00> : tensor<3xf32>}"#,
        r#"{n = dense<> : tensor<0xi64>, p = dense<[true, false]> : tensor<2xi1>, s = dense<7> : tensor<i32>}"#,
    ] {
        assert_eq!(printed(text), text);
    }
}

/// Floats that need more than six digits are printed as in MLIR.
#[test]
fn floats_are_printed_with_as_many_digits_as_they_need() {
    for (value, expected) in [
        ("0.123456789 : f64", "0.123456789 : f64"),
        ("16777217.0 : f64", "0x4170000010000000 : f64"),
        ("1.2345678e+20 : f64", "1.2345678E+20 : f64"),
        ("-1234.5678901 : f64", "-1234.5678901000001 : f64"),
        ("1.23456789e-20 : f64", "1.2345678899999999E-20 : f64"),
        ("0.001234567891 : f64", "0.0012345678909999999 : f64"),
        ("0.0001234567891 : f64", "1.234567891E-4 : f64"),
        ("0.333 : f16", "3.330080e-01 : f16"),
        ("0.1 : f32", "1.000000e-01 : f32"),
        ("-0.0 : f32", "-0.000000e+00 : f32"),
        ("0x7FC00000 : f32", "0x7FC00000 : f32"),
        ("0xFF800000 : f32", "0xFF800000 : f32"),
    ] {
        assert_eq!(printed(&format!("{{x = {value}}}")), format!("{{x = {expected}}}"));
    }
}

#[test]
fn a_large_tensor_is_read_from_its_bytes_and_printed_so() {
    let bytes: String = (0..101).map(|i| format!("{i:02X}")).collect();
    let text = format!("{{x = dense<\"0x{bytes}\"> : tensor<101xi8>}}");
    assert_eq!(printed(&text), text);
}

#[test]
fn wrong_values_are_named_with_their_place() {
    for (text, message) in [
        ("{x = }", "expected a value at byte 5 of typed attributes, found \"}\""),
        (
            "{x = dense<[1, 2, 3]> : tensor<2xi32>}",
            "a tensor before byte 37 of typed attributes has 3 elements, which does not fit s32[2]",
        ),
        ("{x = 300 : ui8}", "`300` before byte 14 of typed attributes is not of type u8"),
        ("{x = foo}", "expected a number, a string"),
        ("{x = dense<\"0x0\"> : tensor<2xi8>}", "is not a list of bytes"),
    ] {
        let error = FfiAttributes::parse(text).expect_err(text).to_string();
        assert!(error.contains(message), "{text}: {error}");
    }
}

#[test]
fn bytes_of_a_string_are_no_text() {
    let attributes = FfiAttributes::parse(r#"{x = "a\FF"}"#).expect("a dictionary");
    assert_eq!(attributes.get("x"), Some(&FfiValue::Text(b"a\xff".to_vec())));
    let error = attributes.text("x").expect_err("no text").to_string();
    assert!(error.contains("attribute x must be text here, but is not UTF-8 at byte 1"), "{error}");
}
