//! Tests of matmuls that may use TF32: operands are rounded once, and only if allowed.

use xla_hlo::text::parse_module;
use xla_hlo::{ArrayShape, ElementType, Literal, Scalar, VerifiedModule};
use xla_service::{Client, CompileOptions, FallbackPolicy, PlatformRegistry, interpreter};
use xla_tests::agreement::assert_close;

use super::agrees;

const TF32: &str = "algorithm=dot_tf32_tf32_f32";
const ROWS_BY_COLUMNS: &str = "lhs_contracting_dims={1}, rhs_contracting_dims={0}";

fn program(dims: [&str; 3], operation: &str) -> String {
    let [x, y, r] = dims;
    format!(
        "HloModule m
        ENTRY main {{
          x = f32[{x}] parameter(0)
          y = f32[{y}] parameter(1)
          ROOT r = f32[{r}] {operation}
        }}"
    )
}

/// Returns the result of a program on a platform.
fn run(text: &str, platform: &str, inputs: &[Literal; 2], allow_tf32: bool) -> Literal {
    let module = VerifiedModule::new(parse_module(text).expect("the text parses")).expect("the module is valid");
    let mut registry = PlatformRegistry::new();
    registry.register(backend_gpu_nvptx::emulated_platform());
    registry.register(interpreter::platform());
    let client = Client::new(&registry, platform).expect("the platform is registered");
    let options = CompileOptions { host_fallback: FallbackPolicy::Forbid, allow_tf32, ..CompileOptions::default() };
    let program = client.compile(&module, &options).unwrap_or_else(|e| panic!("{platform}: {e}\n{text}"));
    let buffers = inputs.each_ref().map(|input| client.buffer(input).expect("an upload"));
    let results = program.execute(&buffers.each_ref()).unwrap_or_else(|e| panic!("{platform}: {e}\n{text}"));
    results[0].to_literal().expect("a download")
}

/// Returns the nearest number with 10 bits of fraction, ties away from zero.
fn rounded(value: f64) -> f64 {
    if !value.is_finite() || value == 0.0 {
        return value;
    }
    let unit = 2f64.powi(value.abs().log2().floor().max(-126.0) as i32 - 10);
    f64::from(((value / unit).round() * unit) as f32)
}

fn array(dims: &str, value: impl FnMut(usize) -> f64) -> Literal {
    let mut value = value;
    let dims: Vec<usize> = dims.split(',').map(|size| size.parse().expect("a size")).collect();
    Literal::from_fn(&ArrayShape::new(ElementType::F32, dims), |i| Scalar::Float(value(i))).expect("a small array")
}

fn all_rounded(literal: &Literal) -> Literal {
    let value = |i| match literal.get(i) {
        Scalar::Float(value) => Scalar::Float(rounded(value)),
        other => other,
    };
    Literal::from_fn(literal.array_shape(), value).expect("as large as the other one")
}

/// Returns numbers between -1 and 1 with all 24 bits; some are ties between two TF32 numbers.
fn irregular(salt: usize) -> impl FnMut(usize) -> f64 {
    move |i| {
        let hash = ((i + 1) * 0x9e37_79b9 + salt * 0x85eb_ca6b) as u32;
        let hash = (hash ^ (hash >> 15)).wrapping_mul(0x2c1b_3c6d);
        let fraction = if hash.is_multiple_of(7) { hash & 0x007f_e000 | 0x1000 } else { hash & 0x007f_ffff };
        let magnitude = f32::from_bits(0x3f00_0000 | fraction);
        f64::from(if hash >> 31 == 0 { magnitude } else { -magnitude })
    }
}

/// Returns the evaluator's results for exact and for rounded operands; they differ.
fn both(text: &str, inputs: &[Literal; 2]) -> [Literal; 2] {
    let exact = run(text, interpreter::NAME, inputs, false);
    let with_tf32 = run(text, interpreter::NAME, &inputs.each_ref().map(all_rounded), false);
    let difference = |i| match (exact.get(i), with_tf32.get(i)) {
        (Scalar::Float(a), Scalar::Float(b)) => (a - b).abs(),
        _ => 0.0,
    };
    let largest = (0..exact.array_shape().element_count()).map(difference).fold(0.0, f64::max);
    assert!(largest > 1e-4, "{largest}: {text}");
    [exact, with_tf32]
}

#[test]
fn factors_are_rounded_to_the_nearest_number() {
    let cases = [
        (["72,64", "64,96", "72,96"], format!("dot(x, y), {ROWS_BY_COLUMNS}")),
        (["72,64", "96,64", "72,96"], "dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}".to_string()),
        (["64,72", "64,96", "72,96"], "dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}".to_string()),
        (["63,67", "97,63", "67,97"], "dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={1}".to_string()),
        (
            ["3,40,48", "3,48,56", "3,40,56"],
            "dot(x, y), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}"
                .to_string(),
        ),
        (
            ["2,9,8,12", "3,3,12,24", "2,9,8,24"],
            "convolution(x, y), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f".to_string(),
        ),
        (
            ["2,16,9,8", "24,16,3,3", "2,24,9,8"],
            "convolution(x, y), window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01".to_string(),
        ),
    ];
    for (dims, operation) in cases {
        let inputs = [array(dims[0], irregular(1)), array(dims[1], irregular(2))];
        let text = program(dims, &operation);
        let [exact, with_tf32] = both(&text, &inputs);
        let found = |more: &str, allow_tf32| {
            run(&program(dims, &format!("{operation}{more}")), backend_gpu_nvptx::EMULATED_NAME, &inputs, allow_tf32)
        };
        assert_close(&found(&format!(", {TF32}"), false), &with_tf32, &text);
        assert_close(&found("", true), &with_tf32, &text);
        assert_close(&found("", false), &exact, &text);
        for exactly in
            ["operand_precision={high,high}", "operand_precision={default,highest}", "algorithm=dot_f32_f32_f32"]
        {
            assert_close(&found(&format!(", {exactly}"), true), &exact, exactly);
        }
    }
}

#[test]
fn factors_of_few_bits_are_exact() {
    for dims in [
        ["70,68", "68,72", "70,72"],
        ["67,65", "65,63", "67,63"],
        ["16,1030", "1030,33", "16,33"],
        ["600,24", "24,516", "600,516"],
        ["1024,40", "40,1040", "1024,1040"],
    ] {
        agrees(&program(dims, &format!("dot(x, y), {ROWS_BY_COLUMNS}, {TF32}")));
    }
    // Both operands contiguous along K, which multistage kernels load.
    for dims in [["72,64", "96,64", "72,96"], ["131,36", "67,36", "131,67"], ["300,20", "48,20", "300,48"]] {
        let columns = "lhs_contracting_dims={1}, rhs_contracting_dims={1}";
        agrees(&program(dims, &format!("dot(x, y), {columns}, {TF32}")));
    }
    // Few rows, and none.
    for dims in [["3,512", "512,264", "3,264"], ["0,70", "70,20", "0,20"], ["30,0", "0,20", "30,20"]] {
        agrees(&program(dims, &format!("dot(x, y), {ROWS_BY_COLUMNS}, {TF32}")));
    }
    agrees(&format!(
        "HloModule m
        ENTRY main {{
          x = f32[66,64] parameter(0)
          w = f32[64,70] parameter(1)
          b = f32[70] parameter(2)
          n = f32[66,64] negate(x)
          d = f32[66,70] dot(n, w), {ROWS_BY_COLUMNS}, {TF32}
          bb = f32[66,70] broadcast(b), dimensions={{1}}
          ROOT r = f32[66,70] maximum(d, bb)
        }}"
    ));
}

#[test]
fn what_is_no_ordinary_number() {
    let dims = ["72,64", "64,96", "72,96"];
    let special = [
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        // Rounds to infinity.
        f64::from(f32::MAX),
        // Subnormal, exact and rounded.
        1.5 * 2f64.powi(-130),
        (1.0 + 1023.5 / 1024.0) * 2f64.powi(-127),
        -0.0,
    ];
    // A row of each value; a column of large numbers makes products of subnormal ones normal.
    let x = array(dims[0], |i| special.get(i / 64).copied().unwrap_or(1.0));
    let y = array(dims[1], |i| if i % 96 == 0 { 2f64.powi(120) } else { 1.0 });
    let text = program(dims, &format!("dot(x, y), {ROWS_BY_COLUMNS}, {TF32}"));
    let found = run(&text, backend_gpu_nvptx::EMULATED_NAME, &[x.clone(), y.clone()], false);
    let expected = run(&text, interpreter::NAME, &[all_rounded(&x), y], false);
    assert_close(&found, &expected, &text);
}
