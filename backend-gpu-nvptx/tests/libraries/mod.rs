//! Tests of programs large enough for NVIDIA's libraries, against the evaluator. Without the libraries they use this
//! backend's kernels, and without a GPU they do nothing.

use xla_hlo::eval::evaluate;
use xla_hlo::text::parse_module;
use xla_hlo::{ArrayShape, ElementType, Literal, Scalar, VerifiedModule};
use xla_service::{Client, CompileOptions, PlatformRegistry};
use xla_tests::agreement::{assert_agrees, input};

use crate::log::Log;

/// Runs a program on a GPU and compares it with the evaluator.
fn agrees(text: &str) {
    let platform = backend_gpu_nvptx::platform();
    if platform.check().is_ok() {
        assert_agrees(platform, text);
    }
}

fn dot(types: [&str; 3], dims: [&str; 3], attributes: &str) -> String {
    let ([a, b, r], [x, y, z]) = (types, dims);
    format!(
        "HloModule m
        ENTRY main {{
          x = {a}[{x}] parameter(0)
          y = {b}[{y}] parameter(1)
          ROOT r = {r}[{z}] dot(x, y), {attributes}
        }}"
    )
}

const ROWS_BY_COLUMNS: &str = "lhs_contracting_dims={1}, rhs_contracting_dims={0}";
const ROWS_BY_ROWS: &str = "lhs_contracting_dims={1}, rhs_contracting_dims={1}";

/// Layer with a dilated filter, bias and activation.
const LAYER_WITH_HOLES: &str = include_str!("programs/dilated_convolution_with_bias_and_relu.hlo");

/// A call that was lowered for a library but is computed by kernels is logged once; nothing is logged if the library
/// computes it.
#[test]
fn no_fallback_is_silent() {
    let platform = backend_gpu_nvptx::platform();
    if platform.check().is_err() {
        return;
    }
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone()).finish();
    // If another test of this process has set the subscriber, nothing can be checked.
    if tracing::subscriber::set_global_default(subscriber).is_err() {
        return;
    }
    let libraries = {
        let mut registry = PlatformRegistry::new();
        registry.register(platform);
        Client::for_device(&registry, "gpu", 0, Default::default()).unwrap().first_device().libraries()
    };
    let product = dot(["f32"; 3], ["128,130", "130,128", "128,128"], ROWS_BY_COLUMNS);
    let transform = "HloModule m
        ENTRY main {
          x = c64[4,32] parameter(0)
          ROOT y = c64[4,32] fft(x), fft_type=FFT, fft_length={32}
        }";
    for text in [&product, &product, transform, transform, LAYER_WITH_HOLES, LAYER_WITH_HOLES] {
        agrees(text);
    }
    let log = log.text();
    // The simulated library has no plan for a dilated filter with a bias; a real one may have.
    let found = &libraries.iter().find(|(library, _)| library == "cuDNN").unwrap().1;
    let told =
        log.matches("a library call runs without its epilogue, which a kernel of this compiler computes").count();
    let is_simulated = found.as_ref().is_ok_and(|place| place.contains("simulated"));
    assert!(told == 1 || told == 0 && !is_simulated, "cuDNN: {found:?}, told {told} times\n{log}");
    for name in ["cuBLASLt", "cuDNN", "cuFFT"] {
        let (_, found) = libraries.iter().find(|(library, _)| library == name).unwrap();
        let told = log.matches(&format!("{name} is not used")).count();
        assert_eq!(told, usize::from(found.is_err()), "{name}: {found:?}\n{log}");
    }
}

#[test]
fn products() {
    for types in [["f32"; 3], ["f64"; 3], ["c64"; 3], ["bf16", "bf16", "f32"], ["f16", "f16", "f32"]] {
        agrees(&dot(types, ["128,130", "130,128", "128,128"], ROWS_BY_COLUMNS));
    }
    for types in [["s8", "s8", "s32"], ["f8e4m3fn", "f8e5m2", "f32"]] {
        agrees(&dot(types, ["128,144", "128,144", "128,128"], ROWS_BY_ROWS));
    }
    agrees(&dot(["f32"; 3], ["131,128", "129,131", "128,129"], "lhs_contracting_dims={0}, rhs_contracting_dims={1}"));
    agrees(&dot(
        ["f32"; 3],
        ["3,130,136", "3,136,128", "3,130,128"],
        "lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}",
    ));
    let exact_enough = format!("{ROWS_BY_COLUMNS}, algorithm=dot_tf32_tf32_f32");
    agrees(&dot(["f32"; 3], ["128,128", "128,128", "128,128"], &exact_enough));
}

#[test]
fn a_matmul_and_what_becomes_of_it() {
    agrees(include_str!("programs/matmul_of_128_with_bias_and_relu.hlo"));
}

#[test]
fn a_matmul_with_a_factor_an_addend_and_a_bias() {
    agrees(include_str!("programs/matmul_scaled_with_bias_and_addend.hlo"));
    agrees(include_str!("programs/batch_matmul_with_addend.hlo"));
}

/// Returns `gelu` of a dot, as JAX writes it, with or without a bias.
fn gelu(ty: &str, bias: bool) -> String {
    let biased = if bias { "add(product, rows)" } else { "copy(product)" };
    format!(
        "HloModule m
        ENTRY main {{
          x = T[128,136] parameter(0)
          y = T[136,128] parameter(1)
          bias = T[128] parameter(2)
          small = T[] constant(0.015625)
          smalls = T[128,128] broadcast(small), dimensions={{}}
          dot = T[128,128] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
          product = T[128,128] multiply(dot, smalls)
          rows = T[128,128] broadcast(bias), dimensions={{1}}
          v = T[128,128] {biased}
          square = T[128,128] multiply(v, v)
          cube = T[128,128] multiply(square, v)
          c3 = T[] constant(0.044715)
          c3s = T[128,128] broadcast(c3), dimensions={{}}
          third = T[128,128] multiply(cube, c3s)
          odd = T[128,128] add(v, third)
          c1 = T[] constant(0.797884583)
          c1s = T[128,128] broadcast(c1), dimensions={{}}
          u = T[128,128] multiply(odd, c1s)
          t = T[128,128] tanh(u)
          one = T[] constant(1)
          ones = T[128,128] broadcast(one), dimensions={{}}
          t1 = T[128,128] add(t, ones)
          half = T[] constant(0.5)
          halves = T[128,128] broadcast(half), dimensions={{}}
          cdf = T[128,128] multiply(t1, halves)
          ROOT r = T[128,128] multiply(v, cdf)
        }}"
    )
    .replace("T[", &format!("{ty}["))
}

/// Runs a program on a GPU, on the inputs of agreement tests with some elements of the first one replaced.
fn run(text: &str, excess_precision: bool, others: &[(usize, f64)]) -> Option<(Vec<Literal>, Literal)> {
    let platform = backend_gpu_nvptx::platform();
    platform.check().ok()?;
    let mut registry = PlatformRegistry::new();
    registry.register(platform);
    let client = Client::new(&registry, "gpu").unwrap();
    let module = VerifiedModule::new(parse_module(text).unwrap()).unwrap();
    let entry = module.entry();
    let parameters = entry.parameters().iter().enumerate();
    let mut inputs: Vec<Literal> = parameters.map(|(salt, &id)| input(entry[id].shape(), salt)).collect();
    others.iter().for_each(|&(place, number)| inputs[0].set(place, Scalar::Float(number)));
    let options = CompileOptions { excess_precision, ..CompileOptions::default() };
    let program = client.compile(&module, &options).unwrap();
    let buffers: Vec<_> = inputs.iter().map(|input| client.buffer(input).unwrap()).collect();
    let results = program.execute(&buffers.iter().collect::<Vec<_>>()).unwrap();
    Some((inputs, results[0].to_literal().unwrap()))
}

/// In 16 bits the library rounds once: the result is that of f32, rounded.
#[test]
fn gelu_of_a_matmul() {
    for bias in [true, false] {
        agrees(&gelu("f32", bias));
        for (ty, bits) in [("bf16", 8), ("f16", 11)] {
            let Some((inputs, found)) = run(&gelu(ty, bias), true, &[]) else { return };
            let same = parse_module(&gelu("f32", bias)).unwrap();
            let wide = inputs.iter().map(|input| {
                Literal::from_fn(&input.array_shape().clone().with_element_type(ElementType::F32), |i| input.get(i))
                    .unwrap()
            });
            let expected = evaluate(&same, wide.collect()).unwrap();
            for i in 0..128 * 128 {
                let (Scalar::Float(found), Scalar::Float(expected)) = (found.get(i), expected.get(i)) else { panic!() };
                // Half a unit in the last place, constants rounded to the type, and products of them.
                let most = 2f64.powi(-bits) * 4.0 * expected.abs() + 1e-3;
                assert!((found - expected).abs() <= most, "{ty} {i}: {found} instead of {expected}");
            }
        }
    }
}

/// -inf is not tested, since NVIDIA's documentation does not specify its result.
#[test]
fn gelu_of_infinite_and_undefined_numbers() {
    let number = |scalar| if let Scalar::Float(number) = scalar { number } else { panic!("{scalar:?}") };
    for ty in ["f32", "bf16", "f16"] {
        for first in [f64::NAN, f64::INFINITY] {
            let Some((inputs, found)) = run(&gelu(ty, true), true, &[(0, first)]) else { return };
            for i in 0..128 {
                let (x, factor) = (number(found.get(i)), number(inputs[1].get(i)));
                let is_right = if first * factor == f64::INFINITY { x == f64::INFINITY } else { x.is_nan() };
                assert!(is_right || first * factor == f64::NEG_INFINITY, "{ty} {first} times {factor}: {x}");
                assert!(number(found.get(128 + i)).is_finite());
            }
        }
    }
}

#[test]
fn matmuls_in_a_row_and_in_a_loop() {
    agrees(include_str!("programs/two_matmuls_in_a_row.hlo"));
    agrees(include_str!("programs/matmuls_in_a_loop.hlo"));
}

/// Layer with some NaN inputs and an epilogue: NaNs must not spread to other results.
#[test]
fn a_layer_with_a_bias_and_an_activation() {
    // In 16 bits the library rounds once and a kernel twice; these cases have `relu` only.
    for (ty, sum) in [("f32", "add(c, bias)"), ("bf16", "copy(c)"), ("f16", "copy(c)")] {
        for (channels, dims) in [("{3}", "b01f_01io->b01f"), ("{3}", "b01f_o01i->b01f")] {
            let filter = if dims.contains("o01i") { "32,3,3,16" } else { "3,3,16,32" };
            agrees(&format!(
                "HloModule m
                ENTRY main {{
                  x = {ty}[2,16,16,16] parameter(0)
                  w = {ty}[{filter}] parameter(1)
                  b = {ty}[32] parameter(2)
                  position = s32[2,16,16,16] iota(), iota_dimension=2
                  seven = s32[] constant(7)
                  sevens = s32[2,16,16,16] broadcast(seven), dimensions={{}}
                  holes = pred[2,16,16,16] compare(position, sevens), direction=EQ
                  undefined = {ty}[] constant(nan)
                  nans = {ty}[2,16,16,16] broadcast(undefined), dimensions={{}}
                  image = {ty}[2,16,16,16] select(holes, nans, x)
                  c = {ty}[2,16,16,32] convolution(image, w), window={{size=3x3 pad=1_1x1_1}}, dim_labels={dims}
                  bias = {ty}[2,16,16,32] broadcast(b), dimensions={channels}
                  sum = {ty}[2,16,16,32] {sum}
                  zero = {ty}[] constant(0)
                  zeros = {ty}[2,16,16,32] broadcast(zero), dimensions={{}}
                  ROOT r = {ty}[2,16,16,32] maximum(sum, zeros)
                }}"
            ));
        }
    }
}

#[test]
fn convolutions_and_their_gradients() {
    let convolution = |ty: &str, dims: [&str; 3], attributes: &str| {
        let [x, y, r] = dims;
        agrees(&format!(
            "HloModule m
            ENTRY main {{
              x = {ty}[{x}] parameter(0)
              y = {ty}[{y}] parameter(1)
              ROOT r = {ty}[{r}] convolution(x, y), {attributes}
            }}"
        ));
    };
    let window = "window={size=3x3 pad=1_1x1_1}, dim_labels=";
    for ty in ["f32", "f64"] {
        convolution(ty, ["2,16,16,16", "32,16,3,3", "2,32,16,16"], &format!("{window}bf01_oi01->bf01"));
        convolution(ty, ["2,16,16,16", "3,3,16,32", "2,16,16,32"], &format!("{window}b01f_01io->b01f"));
    }
    convolution(
        "f32",
        ["2,32,9,9", "32,16,3,3", "2,16,17,17"],
        "window={size=3x3 pad=1_1x1_1 lhs_dilate=2x2 rhs_reversal=1x1}, dim_labels=bf01_io01->bf01",
    );
    convolution(
        "f32",
        ["2,16,17,17", "2,32,17,17", "32,16,3,3"],
        "window={size=17x17 pad=1_1x1_1}, dim_labels=fb01_io01->fb01",
    );
}

#[test]
fn transforms() {
    for (types, dims, attributes) in [
        (["c64", "c64"], ["3,16", "3,16"], "fft_type=FFT, fft_length={16}"),
        (["c64", "c64"], ["3,6,10", "3,6,10"], "fft_type=IFFT, fft_length={6,10}"),
        (["f64", "c128"], ["2,5,12", "2,5,7"], "fft_type=RFFT, fft_length={12}"),
        (["c64", "f32"], ["2,4,5", "2,4,9"], "fft_type=IRFFT, fft_length={4,9}"),
    ] {
        let ([from, to], [x, r]) = (types, dims);
        agrees(&format!(
            "HloModule m\nENTRY main {{\n x = {from}[{x}] parameter(0)\n ROOT r = {to}[{r}] fft(x), {attributes}\n}}"
        ));
    }
}

#[test]
fn the_fastest_way_is_looked_for_and_kept() {
    let platform = backend_gpu_nvptx::platform();
    if platform.check().is_err() {
        return;
    }
    let mut registry = PlatformRegistry::new();
    registry.register(platform);
    let client = Client::new(&registry, "gpu").unwrap();
    let text = dot(["f32"; 3], ["128,128", "128,128", "128,128"], ROWS_BY_COLUMNS);
    let module = VerifiedModule::new(parse_module(&text).unwrap()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let options = CompileOptions { autotune: true, cache_dir: Some(folder.path().into()), ..CompileOptions::default() };
    let array = |number: fn(usize) -> f64| {
        let shape = ArrayShape::new(ElementType::F32, [128, 128]);
        client.buffer(&Literal::from_fn(&shape, |i| Scalar::Float(number(i))).unwrap()).unwrap()
    };
    // A matrix times a permutation that reverses its columns.
    let turned = |i: usize| if i / 128 + i % 128 == 127 { 1.0 } else { 0.0 };
    let (x, y) = (array(|i| i as f64), array(turned));
    for _ in 0..2 {
        let program = client.compile(&module, &options).unwrap();
        let results = program.execute(&[&x, &y]).unwrap();
        let result = results[0].to_literal().unwrap();
        for i in [0, 1, 127, 128, 16_383] {
            assert_eq!(result.get(i), Scalar::Float((i / 128 * 128 + 127 - i % 128) as f64));
        }
    }
    let kept = std::fs::read_dir(folder.path().join("autotune")).map(Iterator::count);
    assert!(kept.is_ok_and(|files| files <= 1), "the autotune cache is one file for each kind of GPU");
}
