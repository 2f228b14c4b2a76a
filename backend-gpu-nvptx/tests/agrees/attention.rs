//! Tests of attention: scores, softmax and the product with the values in one kernel.

use std::sync::Arc;

use xla_hlo::{ElementType, Literal, Scalar, VerifiedModule, text::parse_module};
use xla_service::{Client, CompileOptions, FallbackPolicy, Platform, PlatformRegistry, interpreter};
use xla_tests::agreement::input;

/// Compares results of tensor cores. The limit is the loss of rounding probabilities to the values' type, times the
/// largest value, 4.
fn agrees(text: &str, ty: ElementType) {
    agrees_within(text, |_| 2.0 * error(ty));
}

/// Returns the maximum rounding error of numbers of magnitude 4.
pub(crate) fn error(ty: ElementType) -> f64 {
    4.0 * if ty == ElementType::BF16 { 2f64.powi(-9) } else { 2f64.powi(-12) }
}

/// Compares results of CUDA cores.
fn agrees_of_few(text: &str, ty: ElementType) {
    let bits = match ty {
        ElementType::BF16 => 9,
        ElementType::F16 => 12,
        _ => 20,
    };
    agrees_within(text, |_| 8.0 * 2f64.powi(-bits));
}

/// Compares the program's results on `gpu-emulated` with the evaluator's.
pub(super) fn agrees_within(text: &str, limit: impl Fn(f64) -> f64) {
    agrees_on(backend_gpu_nvptx::emulated_platform(), text, limit);
}

/// Compares the program's results on a platform with the evaluator's: NaNs must agree, and other differences must be
/// within `limit`, a function of the largest result.
pub(crate) fn agrees_on(platform: Arc<dyn Platform>, text: &str, limit: impl Fn(f64) -> f64) {
    let name = platform.name().to_string();
    let module = VerifiedModule::new(parse_module(text).expect("the text parses")).expect("the module is valid");
    let mut registry = PlatformRegistry::new();
    registry.register(platform);
    registry.register(interpreter::platform());
    let entry = module.entry();
    let inputs: Vec<Literal> =
        entry.parameters().iter().enumerate().map(|(i, &p)| input(entry[p].shape(), i)).collect();
    let [found, expected] = [name.as_str(), interpreter::NAME].map(|platform| {
        let client = Client::new(&registry, platform).expect("the platform is registered");
        let options = CompileOptions {
            host_fallback: FallbackPolicy::Forbid,
            excess_precision: true,
            ..CompileOptions::default()
        };
        let program = client.compile(&module, &options).unwrap_or_else(|e| panic!("{platform}: {e}\n{text}"));
        let buffers: Vec<_> = inputs.iter().map(|i| client.buffer(i).expect("an upload")).collect();
        let results = program.execute(&buffers.iter().collect::<Vec<_>>());
        let results = results.unwrap_or_else(|e| panic!("{platform}: {e}\n{text}"));
        results.iter().map(|result| result.to_literal().expect("a download")).collect::<Vec<_>>()
    });
    assert_eq!(found.len(), expected.len());
    for (number, (found, expected)) in found.iter().zip(&expected).enumerate() {
        let [found, expected] = [found, expected].map(floats);
        let finite = expected.iter().filter(|x| x.is_finite());
        let limit = limit(finite.fold(0.0, |largest: f64, x| largest.max(x.abs())));
        for (i, (found, expected)) in found.into_iter().zip(expected).enumerate() {
            let close = (found - expected).abs() <= limit || found.is_nan() && expected.is_nan();
            assert!(close, "result {number}, element {i}: {found} expected {expected}, limit {limit}: {text}");
        }
    }
}

fn floats(literal: &Literal) -> Vec<f64> {
    let float = |i| match literal.get(i) {
        Scalar::Float(x) => x,
        other => panic!("results are floats, not {other:?}"),
    };
    (0..literal.array_shape().element_count()).map(float).collect()
}

/// Shapes of an attention, and the operations between its dots.
pub(crate) struct Case {
    pub ty: &'static str,
    /// Batch, queries, keys, elements of a head, elements of a value.
    pub sizes: [usize; 5],
    pub algorithm: &'static str,
    /// Instructions that compute `logits` from `scores`.
    logits: String,
    extra: &'static str,
}

impl Case {
    pub(crate) fn new(ty: &'static str, sizes: [usize; 5]) -> Case {
        let [b, t, k, ..] = sizes;
        let algorithm = if ty == "f32" { ", algorithm=dot_tf32_tf32_f32" } else { "" };
        // In ragged tiles all keys weigh alike, so that one that does not exist would be seen.
        let scale = if k.is_multiple_of(64) { 0.25 } else { 0.01 };
        let logits = format!(
            "scale = f32[] constant({scale})
             scales = f32[{b},{t},{k}] broadcast(scale), dimensions={{}}
             logits = f32[{b},{t},{k}] multiply(scores, scales)"
        );
        Case { ty, sizes, algorithm, logits, extra: "" }
    }

    pub(crate) fn causal(ty: &'static str, sizes: [usize; 5], masked: &str) -> Case {
        let [b, t, k, ..] = sizes;
        let logits = format!(
            "rows = s32[{b},{t},{k}] iota(), iota_dimension=1
             columns = s32[{b},{t},{k}] iota(), iota_dimension=2
             seen = pred[{b},{t},{k}] compare(rows, columns), direction=GE
             none = f32[] constant({masked})
             nones = f32[{b},{t},{k}] broadcast(none), dimensions={{}}
             logits = f32[{b},{t},{k}] select(seen, scores, nones)"
        );
        Case { logits, ..Case::new(ty, sizes) }
    }

    /// Returns the program, which computes `y` from `weights` and `v`.
    pub(crate) fn text(&self) -> String {
        let Case { ty, sizes: [b, t, k, d, e], algorithm, logits, extra } = self;
        format!(
            "HloModule m
            max {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] maximum(a, b) }}
            sum {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }}
            ENTRY main {{
              q = {ty}[{b},{t},{d}] parameter(0)
              k = {ty}[{b},{k},{d}] parameter(1)
              v = {ty}[{b},{k},{e}] parameter(2)
              {extra}
              scores = f32[{b},{t},{k}] dot(q, k), lhs_batch_dims={{0}}, lhs_contracting_dims={{2}}, rhs_batch_dims={{0}}, rhs_contracting_dims={{2}}{algorithm}
              {logits}
              least = f32[] constant(-inf)
              zero = f32[] constant(0)
              m = f32[{b},{t}] reduce(logits, least), dimensions={{2}}, to_apply=max
              ms = f32[{b},{t},{k}] broadcast(m), dimensions={{0,1}}
              less = f32[{b},{t},{k}] subtract(logits, ms)
              x = f32[{b},{t},{k}] exponential(less)
              s = f32[{b},{t}] reduce(x, zero), dimensions={{2}}, to_apply=sum
              ss = f32[{b},{t},{k}] broadcast(s), dimensions={{0,1}}
              p = f32[{b},{t},{k}] divide(x, ss)
              weights = {ty}[{b},{t},{k}] convert(p)
              ROOT y = {ty}[{b},{t},{e}] dot(weights, v), lhs_batch_dims={{0}}, lhs_contracting_dims={{2}}, rhs_batch_dims={{0}}, rhs_contracting_dims={{1}}{algorithm}
            }}"
        )
    }
}

/// Returns the program with a NaN in row 3 of the queries, infinities in row 7, and fully masked rows from row 50 on.
pub(crate) fn with_edges(case: &Case) -> String {
    let Case { ty, sizes: [b, t, k, d, _], .. } = case;
    let edges = format!(
        "qr = s32[{b},{t},{d}] iota(), iota_dimension=1
              three = s32[] constant(3)
              threes = s32[{b},{t},{d}] broadcast(three), dimensions={{}}
              is_three = pred[{b},{t},{d}] compare(qr, threes), direction=EQ
              seven = s32[] constant(7)
              sevens = s32[{b},{t},{d}] broadcast(seven), dimensions={{}}
              is_seven = pred[{b},{t},{d}] compare(qr, sevens), direction=EQ
              no_number = {ty}[] constant(nan)
              no_numbers = {ty}[{b},{t},{d}] broadcast(no_number), dimensions={{}}
              large = {ty}[] constant(inf)
              larges = {ty}[{b},{t},{d}] broadcast(large), dimensions={{}}
              q1 = {ty}[{b},{t},{d}] select(is_three, no_numbers, q0)
              q = {ty}[{b},{t},{d}] select(is_seven, larges, q1)"
    );
    let blind = format!(
        "fifty = s32[] constant(50)
             fifties = s32[{b},{t},{k}] broadcast(fifty), dimensions={{}}
             low = pred[{b},{t},{k}] compare(rows, fifties), direction=LT
             seen = pred[{b},{t},{k}] and(seen0, low)"
    );
    let text = case.text().replace("q = ", "q0 = ").replace("seen = ", "seen0 = ");
    let (first, rest) = text.split_once("scores = ").expect("the program has scores");
    let (second, rest) = rest.split_once("none = ").expect("the program has a mask");
    format!("{first}{edges}\n scores = {second}{blind}\n none = {rest}")
}

pub(super) const TYPES: [(&str, ElementType); 3] =
    [("bf16", ElementType::BF16), ("f16", ElementType::F16), ("f32", ElementType::F32)];

#[test]
fn of_all_types_and_ragged_sizes() {
    for (name, ty) in TYPES {
        for sizes in [[2, 64, 64, 16, 16], [1, 17, 65, 32, 48], [3, 100, 130, 64, 32], [1, 129, 200, 128, 128]] {
            agrees(&Case::new(name, sizes).text(), ty);
        }
    }
    agrees(&Case::new("bf16", [1, 40, 70, 256, 240]).text(), ElementType::BF16);
}

#[test]
fn of_causal_rows() {
    for (name, ty) in TYPES {
        agrees(&Case::causal(name, [2, 128, 128, 64, 64], "-1e9").text(), ty);
        agrees(&Case::causal(name, [1, 70, 150, 32, 16], "-inf").text(), ty);
    }
}

#[test]
fn of_rows_that_are_no_numbers_or_see_nothing() {
    for (name, ty) in TYPES {
        for sizes in [[2, 64, 128, 32, 32], [1, 70, 99, 16, 16]] {
            agrees(&with_edges(&Case::causal(name, sizes, "-inf")), ty);
        }
    }
}

/// Groups of queries share keys, a bias is added, and the values are the second dot's left operand.
#[test]
fn of_grouped_queries_in_other_orders() {
    let text = include_str!("programs/of_grouped_queries_in_other_orders.hlo");
    agrees(text, ElementType::BF16);
}

/// `jax.nn.dot_product_attention` with a causal mask, as JAX 0.10 writes it: with equal numbers of query and key heads,
/// and with a third of key heads.
#[test]
fn of_jax() {
    agrees(include_str!("dot_product_attention.hlo"), ElementType::BF16);
    agrees(include_str!("dot_product_attention_of_groups.hlo"), ElementType::BF16);
}

/// Few queries, as for one new token, in full precision, with a group's and a part's numbers of keys.
#[test]
fn of_few_queries() {
    for (name, ty) in TYPES {
        // The last case is split over keys, and a second launch combines the parts.
        for sizes in [[2, 1, 64, 16, 16], [3, 5, 99, 48, 80], [1, 8, 130, 128, 32], [1, 2, 2049, 64, 64]] {
            let case = Case { algorithm: "", ..Case::new(name, sizes) };
            agrees_of_few(&case.text(), ty);
        }
        let case = Case { algorithm: "", ..Case::causal(name, [2, 8, 150, 32, 16], "-inf") };
        agrees_of_few(&with_edges(&case), ty);
    }
    agrees_of_few(&Case::new("bf16", [1, 8, 70, 256, 240]).text(), ElementType::BF16);
}

/// `jax.nn.dot_product_attention` of one query, with sequence lengths and with groups of queries for each key, and
/// hand-written decoders without a dimension of queries.
#[test]
fn of_one_token_in_jax() {
    agrees_of_few(include_str!("one_token_of_groups.hlo"), ElementType::BF16);
    agrees_of_few(include_str!("one_token.hlo"), ElementType::F32);
}
