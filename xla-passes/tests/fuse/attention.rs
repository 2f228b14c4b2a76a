//! Tests of fusion of attention and its gradients: sizes, types and algorithms on both sides of the limits of a target.

use xla_passes::TargetProfile;

use crate::plan::{fuse, kernels};
use crate::plans::gpu;

/// Attention with two heads, as JAX traces it.
#[derive(Clone, Copy)]
struct Attention {
    queries: usize,
    keys: usize,
    /// Elements of a query and of a key.
    head: usize,
    /// Elements of a value.
    values: usize,
    /// Type of queries, keys, values and results.
    ty: &'static str,
    /// Type of scores.
    scores: &'static str,
    /// Type of the gradients' dots.
    products: &'static str,
    /// Text `, algorithm=...` of all dots.
    algorithm: &'static str,
}

const BF16: Attention = Attention {
    queries: 16,
    keys: 64,
    head: 16,
    values: 16,
    ty: "bf16",
    scores: "f32",
    products: "bf16",
    algorithm: "",
};
const F16: Attention = Attention { ty: "f16", products: "f16", ..BF16 };
const F32: Attention = Attention { ty: "f32", products: "f32", algorithm: ", algorithm=dot_tf32_tf32_f32", ..BF16 };

/// Attributes of dots that contract the columns of both operands, columns with rows, and the rows of both.
const LAST: &str = "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}";
const ROWS: &str = "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}";
const FIRST: &str = "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_contracting_dims={1}";

impl Attention {
    /// Returns the parameters, and everything up to the probabilities in the type of the values.
    fn probabilities(&self) -> String {
        let Attention { queries: m, keys: n, head, values, ty, scores: s, algorithm, .. } = self;
        format!(
            "max {{ a = {s}[] parameter(0)  b = {s}[] parameter(1)  ROOT c = {s}[] maximum(a, b) }}
             sum {{ a = {s}[] parameter(0)  b = {s}[] parameter(1)  ROOT c = {s}[] add(a, b) }}
             ENTRY main {{
               q = {ty}[2,{m},{head}] parameter(0)
               k = {ty}[2,{n},{head}] parameter(1)
               v = {ty}[2,{n},{values}] parameter(2)
               scores = {s}[2,{m},{n}] dot(q, k), {LAST}{algorithm}
               least = {s}[] constant(-inf)
               zero = {s}[] constant(0)
               top = {s}[2,{m}] reduce(scores, least), dimensions={{2}}, to_apply=max
               tops = {s}[2,{m},{n}] broadcast(top), dimensions={{0,1}}
               less = {s}[2,{m},{n}] subtract(scores, tops)
               x = {s}[2,{m},{n}] exponential(less)
               z = {s}[2,{m}] reduce(x, zero), dimensions={{2}}, to_apply=sum
               zs = {s}[2,{m},{n}] broadcast(z), dimensions={{0,1}}
               p = {s}[2,{m},{n}] divide(x, zs)
               weights = {ty}[2,{m},{n}] convert(p)\n"
        )
    }

    fn forward(&self) -> String {
        let Attention { queries, values, ty, algorithm, .. } = self;
        format!("{} ROOT y = {ty}[2,{queries},{values}] dot(weights, v), {ROWS}{algorithm} }}", self.probabilities())
    }

    fn gradients(&self) -> String {
        let Attention { queries: m, keys: n, head, values, ty, scores: s, products: g, algorithm } = self;
        format!(
            "{}
               dy = {ty}[2,{m},{values}] parameter(3)
               dw = {s}[2,{m},{n}] dot(dy, v), {LAST}{algorithm}
               weighted = {s}[2,{m},{n}] multiply(dw, p)
               sums = {s}[2,{m}] reduce(weighted, zero), dimensions={{2}}, to_apply=sum
               sumss = {s}[2,{m},{n}] broadcast(sums), dimensions={{0,1}}
               rest = {s}[2,{m},{n}] subtract(dw, sumss)
               dm = {s}[2,{m},{n}] multiply(rest, p)
               dn = {ty}[2,{m},{n}] convert(dm)
               dq = {g}[2,{m},{head}] dot(dn, k), {ROWS}{algorithm}
               dk = {g}[2,{n},{head}] dot(dn, q), {FIRST}{algorithm}
               dv = {g}[2,{n},{values}] dot(weights, dy), {FIRST}{algorithm}
               ROOT all = ({g}[2,{m},{head}], {g}[2,{n},{head}], {g}[2,{n},{values}]) tuple(dq, dk, dv) }}",
            self.probabilities()
        )
    }
}

/// Returns a GPU without excess precision.
fn exact() -> TargetProfile {
    let mut profile = gpu();
    profile.fusion.attention.excess_precision = false;
    profile
}

fn of_threads(threads: usize) -> TargetProfile {
    TargetProfile { threads, ..gpu() }
}

/// Returns the number of attention kernels.
fn count(text: &str, profile: &TargetProfile) -> usize {
    kernels(&fuse(text, "fuse-attention, fuse-scores, dead-code", profile).0).matches("output[").count()
}

fn is_one_kernel(attention: Attention, profile: &TargetProfile) -> bool {
    match count(&attention.forward(), profile) {
        0 => false,
        1 => true,
        more => panic!("{more} kernels"),
    }
}

/// Whether each statistic and each gradient is one kernel: maximum, sum, sum of weighted gradients, dq, dk, dv.
fn are_kernels(attention: Attention, profile: &TargetProfile) -> bool {
    match count(&attention.gradients(), profile) {
        0 => false,
        6 => true,
        other => panic!("{other} kernels"),
    }
}

#[test]
fn queries_are_few_or_many() {
    for (queries, fused) in [(1, true), (8, true), (9, false), (15, false), (16, true), (17, true)] {
        assert_eq!(is_one_kernel(Attention { queries, ..BF16 }, &gpu()), fused, "{queries} queries");
    }
    for (queries, fused) in [(8, false), (15, false), (16, true)] {
        assert_eq!(are_kernels(Attention { queries, ..BF16 }, &gpu()), fused, "{queries} queries");
    }
}

#[test]
fn keys_are_many() {
    for (keys, fused) in [(63, false), (64, true)] {
        assert_eq!(is_one_kernel(Attention { keys, ..BF16 }, &gpu()), fused, "{keys} keys");
        assert_eq!(is_one_kernel(Attention { queries: 8, keys, ..BF16 }, &gpu()), fused, "{keys} keys");
    }
    // Sums over queries have the keys as rows, so the smaller limit applies to both.
    for (keys, fused) in [(15, false), (16, true)] {
        assert_eq!(are_kernels(Attention { queries: 64, keys, ..BF16 }, &gpu()), fused, "{keys} keys");
    }
}

#[test]
fn heads_are_multiples_up_to_a_limit() {
    for (size, fused) in [(8, false), (16, true), (24, false), (64, true), (80, false)] {
        for attention in [Attention { head: size, ..BF16 }, Attention { values: size, ..BF16 }] {
            assert_eq!(is_one_kernel(attention, &gpu()), fused, "heads of {size}");
            assert_eq!(are_kernels(attention, &gpu()), fused, "heads of {size}");
        }
    }
}

/// Two heads of `queries` are 2 * queries / 64 blocks, which suffice for twice that number of multiprocessors.
#[test]
fn many_keys_need_blocks_for_half_of_the_machine() {
    for (queries, keys, threads, fused) in [
        (64, 1024, 5, true),
        (64, 1025, 4, true),
        (64, 1025, 5, false),
        (65, 1025, 8, true),
        (65, 1025, 9, false),
        (128, 1025, 8, true),
    ] {
        let attention = Attention { queries, keys, ..BF16 };
        let what = format!("{queries} queries, {keys} keys, {threads} threads");
        assert_eq!(is_one_kernel(attention, &of_threads(threads)), fused, "{what}");
        assert_eq!(are_kernels(attention, &of_threads(threads)), fused, "{what}");
        // Sums over queries have blocks of keys.
        let turned = Attention { queries: keys, keys: queries, ..BF16 };
        assert_eq!(are_kernels(turned, &of_threads(threads)), fused, "turned: {what}");
    }
    // Few queries split their keys into parts.
    assert!(is_one_kernel(Attention { queries: 8, keys: 1025, ..BF16 }, &of_threads(132)));
}

#[test]
fn algorithms_round_as_tensor_cores_do() {
    let algorithm = |attention, algorithm| Attention { algorithm, ..attention };
    for (attention, fused) in [
        (BF16, true),
        (algorithm(BF16, ", algorithm=dot_bf16_bf16_f32"), true),
        (F16, true),
        (algorithm(F16, ", algorithm=dot_f16_f16_f32"), true),
        (F32, true),
        (algorithm(F32, ""), false),
        (algorithm(F32, ", algorithm=dot_f32_f32_f32"), false),
        (Attention { ty: "f64", scores: "f64", products: "f64", ..BF16 }, false),
    ] {
        let what = format!("{} {}", attention.ty, attention.algorithm);
        assert_eq!(is_one_kernel(attention, &gpu()), fused, "{what}");
        assert_eq!(are_kernels(attention, &gpu()), fused, "{what}");
    }
    // A kernel of few queries multiplies in f32.
    for name in ["", ", algorithm=dot_f32_f32_f32", ", algorithm=dot_tf32_tf32_f32"] {
        assert!(is_one_kernel(Attention { queries: 8, ..algorithm(F32, name) }, &gpu()), "{name}");
    }
    let bf16 = algorithm(F32, ", algorithm=dot_bf16_bf16_f32");
    assert!(!is_one_kernel(Attention { queries: 8, ..bf16 }, &gpu()));
}

#[test]
fn kernels_of_full_precision_need_no_tf32() {
    let mut cpu = gpu();
    cpu.fusion.attention.full_precision = true;
    for algorithm in ["", ", algorithm=dot_f32_f32_f32", ", algorithm=dot_tf32_tf32_f32"] {
        assert!(is_one_kernel(Attention { algorithm, ..F32 }, &cpu), "{algorithm}");
    }
    assert!(!is_one_kernel(Attention { algorithm: ", algorithm=dot_bf16_bf16_f32", ..F32 }, &cpu));
}

/// Types of 16 bits are rounded if that is asked for; narrower ones always are.
#[test]
fn probabilities_are_rounded_without_excess_precision() {
    for (narrow, kernels) in [("bf16", 1), ("f16", 1), ("f8e4m3fn", 0)] {
        let rounded = format!("n = {narrow}[2,16,64] convert(p)  weights = f32[2,16,64] convert(n)");
        let text = F32.forward().replace("weights = f32[2,16,64] convert(p)", &rounded);
        assert_eq!([count(&text, &exact()), count(&text, &gpu())], [0, kernels], "{narrow}");
    }
}

#[test]
fn probabilities_are_no_values() {
    let text = F32.forward().replace(&format!("dot(weights, v), {ROWS}"), &format!("dot(weights, weights), {LAST}"));
    assert!(text.contains("dot(weights, weights)"));
    assert_eq!(count(&text, &gpu()), 0);
}

#[test]
fn heads_are_contiguous_unless_the_target_packs_them() {
    let text = BF16.forward().replace("k = bf16[2,64,16]", "k = bf16[2,16,64]");
    let text = text.replacen(LAST, ROWS, 1);
    let mut cpu = gpu();
    cpu.fusion.attention.any_head_order = true;
    assert_eq!([count(&text, &gpu()), count(&text, &cpu)], [0, 1]);
}

#[test]
fn what_is_narrow_is_rounded_elsewhere_only_if_it_may_be() {
    assert!(is_one_kernel(F32, &exact()) && are_kernels(F32, &exact()));
    // Probabilities are divided after they are rounded; sums of scores in f32 are exact in either case.
    assert!(!is_one_kernel(BF16, &exact()) && are_kernels(BF16, &exact()));
    let narrow = Attention { scores: "bf16", ..BF16 };
    assert!(is_one_kernel(narrow, &gpu()) && are_kernels(narrow, &gpu()));
    assert!(!is_one_kernel(narrow, &exact()) && !are_kernels(narrow, &exact()));
}

#[test]
fn products_are_of_the_type_of_values_or_of_f32() {
    for (products, fused) in [("bf16", true), ("f32", true), ("f64", false)] {
        assert_eq!(are_kernels(Attention { products, ..BF16 }, &gpu()), fused, "{products}");
    }
}

#[test]
fn targets_without_such_kernels_fuse_none() {
    let mut profile = gpu();
    profile.fusion.attention.head_sizes.clear();
    assert!(!is_one_kernel(BF16, &profile) && are_kernels(BF16, &profile));
    profile.fusion.attention.sum_head_sizes.clear();
    assert!(!are_kernels(BF16, &profile));
}

/// Statistics and results without gradients are one kernel, or are not fused.
#[test]
fn sums_of_scores_alone_stay() {
    let mut profile = gpu();
    profile.fusion.attention.head_sizes.clear();
    assert!(!is_one_kernel(BF16, &profile));
}

/// Another user of a value as large as the scores needs it in memory.
#[test]
fn values_as_large_as_scores_have_no_other_readers() {
    let text = BF16.gradients();
    assert_eq!(count(&text, &gpu()), 6);
    let results = "ROOT all = (bf16[2,16,16], bf16[2,64,16], bf16[2,64,16]) tuple(dq, dk, dv)";
    assert!(text.contains(results), "{text}");
    for (ty, value) in [("f32", "p"), ("bf16", "dn"), ("f32", "scores"), ("f32", "dw")] {
        let more = format!(
            "ROOT all = (bf16[2,16,16], bf16[2,64,16], bf16[2,64,16], {ty}[2,16,64]) tuple(dq, dk, dv, {value})"
        );
        assert_eq!(count(&text.replace(results, &more), &gpu()), 0, "{value} is a result");
        let sum = format!("n = {ty}[2,16,64] negate({value}) o = {ty}[2,64,16] transpose(n), dimensions={{0,2,1}}");
        let more = format!(
            "{sum} ROOT all = (bf16[2,16,16], bf16[2,64,16], bf16[2,64,16], {ty}[2,64,16]) tuple(dq, dk, dv, o)"
        );
        assert_eq!(count(&text.replace(results, &more), &gpu()), 0, "{value} is transposed");
        let wide = format!("w = {ty}[2,16,64,3] broadcast({value}), dimensions={{0,1,2}}");
        let more = format!(
            "{wide} ROOT all = (bf16[2,16,16], bf16[2,64,16], bf16[2,64,16], {ty}[2,16,64,3]) tuple(dq, dk, dv, w)"
        );
        assert_eq!(count(&text.replace(results, &more), &gpu()), 0, "{value} is broadcast");
    }
}

/// Gradients with one instruction replaced, and the number of kernels that remain.
#[test]
fn gradients_are_kernels_only_if_each_sum_is_one() {
    let dot = |operands: &str, algorithm: &str| format!("[2,16,64] dot({operands}), {LAST}{algorithm}");
    let tf32 = ", algorithm=dot_tf32_tf32_f32";
    let others = "dh = f16[2,16,16] convert(dy)  vh = f16[2,64,16] convert(v)  dw = f32";
    let rows = "dk = bf16[2,64,16] dot(dn, q), ";
    let columns = format!(
        "turned = bf16[2,16,64] dot(q, dn), {FIRST}  dk = bf16[2,64,16] transpose(turned), dimensions={{0,2,1}}"
    );
    let cases = [
        // Scores, or their gradients, are dots of another precision or of other types.
        (F32, format!("scores = f32{}", dot("q, k", tf32)), format!("scores = f32{}", dot("q, k", "")), 0),
        (F32, format!("dw = f32{}", dot("dy, v", tf32)), format!("dw = f32{}", dot("dy, v", "")), 0),
        (BF16, format!("dw = f32{}", dot("dy, v", "")), format!("{others}{}", dot("dh, vh", "")), 0),
        // The values are multiplied by numbers that are not rounded to their type.
        (BF16, "dot(weights, dy)".to_owned(), "dot(p, dy)".to_owned(), 0),
        // No maximum of rows; an order that the kernel does not support.
        (
            BF16,
            "reduce(scores, least), dimensions={2}, to_apply=max".to_owned(),
            "reduce(scores, zero), dimensions={2}, to_apply=sum".to_owned(),
            0,
        ),
        (BF16, "exponential(less)".to_owned(), "exponential(less), control-predecessors={scores}".to_owned(), 0),
        // The function of scores is the right operand.
        (BF16, format!("{rows}{FIRST}"), columns, 6),
    ];
    for (attention, from, to, kernels) in cases {
        let text = attention.gradients();
        assert_eq!(count(&text, &gpu()), 6, "{text}");
        assert!(text.contains(&from), "{from} in {text}");
        assert_eq!(count(&text.replace(&from, &to), &gpu()), kernels, "{to}");
    }
}

/// A dot of two functions of scores reads one of them from memory.
#[test]
fn products_of_two_functions_of_scores_stay() {
    let results = "ROOT all = (bf16[2,16,16], bf16[2,64,16], bf16[2,64,16]) tuple(dq, dk, dv)";
    let both = format!(
        "both = bf16[2,64,64] dot(weights, dn), {FIRST}
         ROOT all = (bf16[2,16,16], bf16[2,64,16], bf16[2,64,16], bf16[2,64,64]) tuple(dq, dk, dv, both)"
    );
    assert_eq!(count(&BF16.gradients().replace(results, &both), &gpu()), 0);
}

/// The maximum of narrow scores is exact; sums are in f32.
#[test]
fn a_maximum_needs_no_excess_precision() {
    let from = [
        format!("scores = f32[2,16,64] dot(q, k), {LAST}"),
        "top = f32[2,16] reduce(scores, least), dimensions={2}, to_apply=max".to_owned(),
    ];
    let to = [
        format!("narrow = bf16[2,16,64] dot(q, k), {LAST}  scores = f32[2,16,64] convert(narrow)"),
        "low = bf16[] constant(-inf)  narrow_top = bf16[2,16] reduce(narrow, low), dimensions={2}, to_apply=bmax  \
         top = f32[2,16] convert(narrow_top)"
            .to_owned(),
    ];
    let mut text = BF16.gradients();
    for (from, to) in from.iter().zip(&to) {
        assert!(text.contains(from), "{from} in {text}");
        text = text.replace(from, to);
    }
    let bmax = "bmax { a = bf16[] parameter(0)  b = bf16[] parameter(1)  ROOT c = bf16[] maximum(a, b) }";
    assert_eq!(count(&format!("{bmax} {text}"), &exact()), 6);
}

/// Kernels of dots are tiled, and have no loops or rows that other kernels could share.
#[test]
fn other_kernels_do_not_join_tiles() {
    let attention = BF16.forward().replace("ROOT y", "y").trim_end_matches('}').to_string();
    let both =
        format!("{attention} n = bf16[2,16,16] negate(y) ROOT t = (bf16[2,16,16], bf16[2,16,16]) tuple(y, n) }}");
    let (module, _) = fuse(&both, "fuse-attention, dead-code, fuse, fuse-outputs", &gpu());
    let text = kernels(&module);
    assert!(text.contains("output[") && text.contains("n = negate("), "{text}");
    let rows = format!(
        "bmax {{ a = bf16[] parameter(0)  b = bf16[] parameter(1)  ROOT c = bf16[] maximum(a, b) }} {attention} \
         low = bf16[] constant(-inf) w = bf16[2,16] reduce(y, low), dimensions={{2}}, to_apply=bmax \
         ws = bf16[2,16,16] broadcast(w), dimensions={{0,1}} ROOT n = bf16[2,16,16] subtract(y, ws) }}"
    );
    let (module, _) = fuse(&rows, "fuse-attention, dead-code, fuse, fuse-rows", &gpu());
    let text = kernels(&module);
    assert!(text.contains("output[") && text.contains("broadcast subtract]("), "{text}");
}
