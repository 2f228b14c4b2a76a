//! Tests of normalization, random numbers, scans and unusual dots against the reference evaluator, without host
//! fallbacks.

use crate::native;

/// Returns a module of one instruction on parameters `p0`, `p1`, ... of given shapes.
fn one(parameters: &[&str], root: &str) -> String {
    let parameters = parameters.iter().enumerate().map(|(i, shape)| format!("p{i} = {shape} parameter({i})\n"));
    format!("HloModule m\nENTRY e {{\n{}ROOT r = {root}\n}}", parameters.collect::<String>())
}

#[test]
fn batch_norms() {
    for (x, features, index) in
        [("4,3,5,5", 3, 1), ("64,100", 100, 1), ("7,33", 7, 0), ("0,3", 3, 1), ("3,0", 0, 1), ("2,3", 3, 1)]
    {
        for ty in ["f32", "f64"] {
            let (x, v) = (format!("{ty}[{x}]"), format!("{ty}[{features}]"));
            let attributes = format!("epsilon=0.5, feature_index={index}");
            let result = format!("({x}, {v}, {v})");
            native(&one(&[&x, &v, &v], &format!("{result} batch-norm-training(p0, p1, p2), {attributes}")));
            let positive = |body: &str| body.replace("ROOT", &format!("v = {v} multiply(p4, p4)\nROOT"));
            let inference = format!("{x} batch-norm-inference(p0, p1, p2, p3, v), {attributes}");
            native(&positive(&one(&[&x, &v, &v, &v, &v], &inference)));
            let grad = format!("{result} batch-norm-grad(p0, p1, p2, v, p3), {attributes}");
            native(&positive(&one(&[&x, &v, &v, &x, &v], &grad)));
        }
    }
}

#[test]
fn random_bits() {
    for algorithm in ["rng_philox", "rng_three_fry", "rng_default"] {
        for shape in
            ["u32[4096]", "u32[3,5]", "u64[7,9]", "u8[33]", "s4[10]", "f32[]", "bf16[6,3]", "f64[0,2]", "u32[1000,3]"]
        {
            let result = format!("(u64[2], {shape}) rng-bit-generator(p0), algorithm={algorithm}");
            native(&one(&["u64[2]"], &result));
        }
    }
    native(&one(&["u64[3]"], "(u64[3], u32[100000]) rng-bit-generator(p0), algorithm=rng_philox"));
}

#[test]
fn random_numbers() {
    for ty in ["f32", "f64", "s32", "u8", "s64", "u64"] {
        let result = format!("{ty}[40,3] rng(p0, p1), distribution=rng_uniform");
        native(&one(&[&format!("{ty}[]"), &format!("{ty}[]")], &result));
    }
    for shape in ["f32[10001]", "f64[3,3]", "f32[]", "f32[0]"] {
        let scalar = format!("{}[]", &shape[..3]);
        native(&one(&[&scalar, &scalar], &format!("{shape} rng(p0, p1), distribution=rng_normal")));
    }
    native("ENTRY e { a = u64[2] rng-get-and-update-state(), delta=8\n ROOT r = u64[2] add(a, a) }");
}

#[test]
fn stochastic_rounding() {
    for (x, random, to) in [("f32", "u32", "s8"), ("f64", "u64", "u16"), ("bf16", "u16", "s32"), ("f16", "u16", "s4")] {
        let result = format!("{to}[100] stochastic-convert(p0, p1)");
        native(&one(&[&format!("{x}[100]"), &format!("{random}[100]")], &result));
    }
}

#[test]
fn scans() {
    let step = "step { x = f32[3] parameter(0)
        c = f32[3] parameter(1)
        h = f32[] constant(0.5)
        hb = f32[3] broadcast(h), dimensions={}
        m = f32[3] multiply(c, hb)
        d = f32[3] add(m, x)
        ROOT r = (f32[3], f32[3]) tuple(m, d) }";
    for (x, dimension) in [("50,3", 0), ("3,50", 1), ("2,3", 0), ("0,3", 0)] {
        for reverse in [false, true] {
            let scan =
                format!("scan(p0, p1), dimensions={{{dimension}}}, num_carries=1, is_reverse={reverse}, to_apply=step");
            let module = one(&[&format!("f32[{x}]"), "f32[3]"], &scan);
            native(&module.replace("ENTRY", &format!("{step}\nENTRY")));
        }
    }
}

#[test]
fn ragged_dots() {
    let attributes = "lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}";
    for ty in ["f32", "f64", "s32"] {
        let (x, w) = (format!("{ty}[40,16]"), format!("{ty}[5,16,24]"));
        native(&one(&[&x, &w, "s32[5]"], &format!("{ty}[40,24] ragged-dot(p0, p1, p2), {attributes}")));
        native(&one(&[&x, &w, "u64[5]"], &format!("{ty}[40,24] ragged-dot(p0, p1, p2), {attributes}")));
    }
    let contracted = "lhs_contracting_dims={0}, rhs_contracting_dims={0}, lhs_ragged_dims={0}";
    native(&one(&["f32[40,6]", "f32[40,7]", "s32[4]"], &format!("f32[4,6,7] ragged-dot(p0, p1, p2), {contracted}")));
}

#[test]
fn scaled_dots() {
    let attributes = "lhs_contracting_dims={1}, rhs_contracting_dims={0}";
    let scaled = |result: &str| format!("{result} scaled-dot(p0, p1, p2, p3), {attributes}");
    let mx = ["f8e4m3fn[16,64]", "f8e4m3fn[64,24]", "f8e4m3fn[16,2]", "f8e4m3fn[2,24]"];
    native(&one(&mx, &scaled("f32[16,24]")));
    native(&one(&["bf16[3,8]", "f8e5m2[8,2]", "bf16[1,1]", "f8e5m2[1,2]"], &scaled("f32[3,2]")));
}

#[test]
fn bitcasts_between_widths() {
    for (from, to) in [
        ("f32[9]", "u8[9,4]"),
        ("u8[9,4]", "f32[9]"),
        ("f64[3,5]", "s32[3,5,2]"),
        ("s16[7,4]", "u64[7]"),
        ("u4[5,2]", "s8[5]"),
        ("bf16[5]", "u2[5,8]"),
        ("u1[3,8]", "u8[3]"),
        ("u8[3]", "pred[3,8]"),
        ("pred[3,8]", "u8[3]"),
        ("s64[]", "u16[4]"),
    ] {
        native(&one(&[from], &format!("{to} bitcast-convert(p0)")));
    }
}

#[test]
fn dots_of_narrow_and_mixed_types() {
    let attributes = "lhs_contracting_dims={1}, rhs_contracting_dims={0}";
    for (lhs, rhs, out) in [
        ("bf16", "bf16", "f32"),
        ("f16", "f16", "f32"),
        ("bf16", "f32", "f32"),
        ("f8e4m3fn", "f8e5m2", "f32"),
        ("s8", "s8", "s32"),
        ("u8", "s8", "s32"),
        ("bf16", "bf16", "f64"),
        ("f32", "f64", "f64"),
    ] {
        // Sums of products of few bits are exact at any length.
        let exact = lhs != "f16" && rhs != "f32" && out != "f64";
        let long: &[_] = if exact { &[(300, 400, 270), (1, 700, 300), (300, 700, 1)] } else { &[] };
        for &(m, k, n) in [(3, 5, 4), (40, 50, 60)].iter().chain(long) {
            let (x, y) = (format!("{lhs}[{m},{k}]"), format!("{rhs}[{k},{n}]"));
            native(&one(&[&x, &y], &format!("{out}[{m},{n}] dot(p0, p1), {attributes}")));
        }
    }
    let batched = "lhs_batch_dims={1}, lhs_contracting_dims={0,3}, rhs_batch_dims={2}, rhs_contracting_dims={1,0}";
    native(&one(&["bf16[4,3,20,5]", "bf16[5,4,3,24]"], &format!("f32[3,20,24] dot(p0, p1), {batched}")));
    // Rounded results: small whole numbers, whose sums are exact.
    let rounded = "x = bf16[64,32] convert(p0)\ny = bf16[32,64] convert(p1)\nROOT";
    let product = one(&["s8[64,32]", "s8[32,64]"], &format!("bf16[64,64] dot(x, y), {attributes}"));
    native(&product.replace("ROOT", rounded));
}

#[test]
fn every_algorithm_is_as_exact_as_the_types() {
    for algorithm in xla_hlo::ops::DotAlgorithm::ALL {
        let attributes =
            format!("lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}, algorithm={}", algorithm.name());
        for (m, k, n) in [(3, 5, 4), (40, 50, 60)] {
            let (x, y) = (format!("f32[{m},{k}]"), format!("f32[{k},{n}]"));
            native(&one(&[&x, &y], &format!("f32[{m},{n}] dot(p0, p1), {attributes}")));
        }
    }
}
