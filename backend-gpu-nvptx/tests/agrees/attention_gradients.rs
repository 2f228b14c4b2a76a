//! Tests of gradients of attention: each is one kernel that recomputes the scores.

use xla_hlo::ElementType;

use super::attention::{Case, TYPES, agrees_within, error, with_edges};

/// Compares an attention and its gradients, as JAX derives them, with the evaluator's.
fn gradients_agree(text: &str, ty: ElementType) {
    // The limit is the loss of rounding probabilities and gradients of scores to the operands' type, and results to
    // theirs.
    agrees_within(text, |largest| largest * error(ty));
}

/// Returns the program of an attention extended with its gradients; `seen` is the mask of scores, if there is one.
fn with_gradients(text: &str, case: &Case, seen: Option<&str>) -> String {
    let Case { ty, sizes: [b, t, k, d, e], algorithm, .. } = case;
    let text = text.replace("ROOT y", "y");
    let (text, _) = text.rsplit_once('}').expect("the program has an end");
    let masked = match seen {
        None => format!("dl = f32[{b},{t},{k}] multiply(dm, scales)"),
        Some(seen) => format!(
            "nothing = f32[{b},{t},{k}] broadcast(zero), dimensions={{}}
             dl = f32[{b},{t},{k}] select({seen}, dm, nothing)"
        ),
    };
    let batch = "lhs_batch_dims={0}, rhs_batch_dims={0}";
    format!(
        "{text}
        dy = {ty}[{b},{t},{e}] parameter(3)
        dw = {ty}[{b},{t},{k}] dot(dy, v), {batch}, lhs_contracting_dims={{2}}, rhs_contracting_dims={{2}}{algorithm}
        dp = f32[{b},{t},{k}] convert(dw)
        dx = f32[{b},{t},{k}] divide(dp, ss)
        one = f32[] constant(1)
        ones = f32[{b},{t}] broadcast(one), dimensions={{}}
        square = f32[{b},{t}] multiply(s, s)
        inverse = f32[{b},{t}] divide(ones, square)
        inverses = f32[{b},{t},{k}] broadcast(inverse), dimensions={{0,1}}
        part = f32[{b},{t},{k}] multiply(dp, inverses)
        whole = f32[{b},{t},{k}] multiply(part, x)
        sums = f32[{b},{t}] reduce(whole, zero), dimensions={{2}}, to_apply=sum
        ds = f32[{b},{t}] negate(sums)
        dss = f32[{b},{t},{k}] broadcast(ds), dimensions={{0,1}}
        both = f32[{b},{t},{k}] add(dx, dss)
        dm = f32[{b},{t},{k}] multiply(both, x)
        {masked}
        dn = {ty}[{b},{t},{k}] convert(dl)
        dq = {ty}[{b},{t},{d}] dot(dn, k), {batch}, lhs_contracting_dims={{2}}, rhs_contracting_dims={{1}}{algorithm}
        dk = {ty}[{b},{k},{d}] dot(dn, q), {batch}, lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}{algorithm}
        dv = {ty}[{b},{k},{e}] dot(weights, dy), {batch}, lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}{algorithm}
        ROOT all = ({ty}[{b},{t},{e}], {ty}[{b},{t},{d}], {ty}[{b},{k},{d}], {ty}[{b},{k},{e}]) tuple(y, dq, dk, dv)
        }}"
    )
}

#[test]
fn of_all_types_and_ragged_sizes() {
    let sizes = [[1, 17, 65, 16, 32], [2, 66, 40, 16, 16], [1, 64, 64, 16, 16]];
    for ((name, ty), sizes) in TYPES.into_iter().zip(sizes) {
        let case = Case::new(name, sizes);
        gradients_agree(&with_gradients(&case.text(), &case, None), ty);
    }
}

#[test]
fn of_causal_rows() {
    let case = Case::causal("bf16", [1, 70, 70, 64, 32], "-1e9");
    gradients_agree(&with_gradients(&case.text(), &case, Some("seen")), ElementType::BF16);
}

#[test]
fn of_rows_that_are_no_numbers_or_see_nothing() {
    let case = Case::causal("bf16", [1, 70, 99, 16, 16], "-inf");
    gradients_agree(&with_gradients(&with_edges(&case), &case, Some("seen")), ElementType::BF16);
}

/// `jax.nn.dot_product_attention` with a causal mask and its gradients, as JAX 0.10 writes them.
#[test]
fn of_jax() {
    gradients_agree(include_str!("dot_product_attention_gradients.hlo"), ElementType::BF16);
}
