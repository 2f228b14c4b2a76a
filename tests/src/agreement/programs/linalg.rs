//! Programs of Cholesky decompositions and triangular solves.

/// Returns Cholesky decompositions of `x x^H / n + 1`, lower and upper, and of `x`, which has none; `n` rows.
pub fn decompositions(ty: &str, batch: usize, n: usize) -> String {
    let transposed = match ty {
        "c64" | "c128" => {
            let real = if ty == "c64" { "f32" } else { "f64" };
            format!(
                "re = {real}[{batch},{n},{n}] real(x)
                 im = {real}[{batch},{n},{n}] imag(x)
                 ni = {real}[{batch},{n},{n}] negate(im)
                 w = {ty}[{batch},{n},{n}] complex(re, ni)"
            )
        }
        _ => format!("w = {ty}[{batch},{n},{n}] copy(x)"),
    };
    format!(
        "HloModule m
        ENTRY main {{
          x = {ty}[{batch},{n},{n}] parameter(0)
          {transposed}
          p = {ty}[{batch},{n},{n}] dot(x, w), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{2}}, rhs_contracting_dims={{2}}
          s = {ty}[] constant({scale})
          sb = {ty}[{batch},{n},{n}] broadcast(s), dimensions={{}}
          q = {ty}[{batch},{n},{n}] multiply(p, sb)
          i = s32[{batch},{n},{n}] iota(), iota_dimension=1
          j = s32[{batch},{n},{n}] iota(), iota_dimension=2
          e = pred[{batch},{n},{n}] compare(i, j), direction=EQ
          d = {ty}[{batch},{n},{n}] convert(e)
          a = {ty}[{batch},{n},{n}] add(q, d)
          l = {ty}[{batch},{n},{n}] cholesky(a), lower=true
          u = {ty}[{batch},{n},{n}] cholesky(a), lower=false
          nothing = {ty}[{batch},{n},{n}] cholesky(x), lower=true
          ROOT t = ({ty}[{batch},{n},{n}], {ty}[{batch},{n},{n}], {ty}[{batch},{n},{n}]) tuple(l, u, nothing)
        }}",
        scale = match ty {
            "c64" | "c128" => format!("({}, 0)", 1.0 / n.max(1) as f64),
            _ => (1.0 / n.max(1) as f64).to_string(),
        }
    )
}

/// Returns every form of a triangular solve with `n` unknowns and `m` right-hand sides; the matrix has a large
/// diagonal.
pub fn solves(ty: &str, batch: usize, n: usize, m: usize) -> String {
    let (mut forms, mut names, mut shapes) = (String::new(), Vec::new(), Vec::new());
    for form in 0..24 {
        let flag = |bit: usize| form & bit != 0;
        let kind = ["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"][form / 8];
        let (dims, right) = if flag(1) { (format!("{batch},{n},{m}"), "b") } else { (format!("{batch},{m},{n}"), "c") };
        forms += &format!(
            "x{form} = {ty}[{dims}] triangular-solve(a, {right}), left_side={}, lower={}, unit_diagonal={}, transpose_a={kind}\n",
            flag(1),
            flag(2),
            flag(4)
        );
        names.push(format!("x{form}"));
        shapes.push(format!("{ty}[{dims}]"));
    }
    let scalar = |x: f64| if ty.starts_with('c') { format!("({x}, 0)") } else { x.to_string() };
    format!(
        "HloModule m
        ENTRY main {{
          x = {ty}[{batch},{n},{n}] parameter(0)
          b = {ty}[{batch},{n},{m}] parameter(1)
          c = {ty}[{batch},{m},{n}] parameter(2)
          s = {ty}[] constant({small})
          sb = {ty}[{batch},{n},{n}] broadcast(s), dimensions={{}}
          q = {ty}[{batch},{n},{n}] multiply(x, sb)
          i = s32[{batch},{n},{n}] iota(), iota_dimension=1
          j = s32[{batch},{n},{n}] iota(), iota_dimension=2
          e = pred[{batch},{n},{n}] compare(i, j), direction=EQ
          d = {ty}[{batch},{n},{n}] convert(e)
          a = {ty}[{batch},{n},{n}] add(q, d)
          {forms}
          ROOT t = ({}) tuple({})
        }}",
        shapes.join(", "),
        names.join(", "),
        small = scalar(0.2 / n.max(1) as f64),
    )
}
