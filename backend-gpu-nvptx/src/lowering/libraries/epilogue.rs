//! Epilogues that cuBLASLt computes itself: a factor, an addend, a bias, `gelu`.
//!
//! ```text
//! gelu(dot(x, y) * c + a + broadcast(b))   ─   Matmul with alpha = c, the addend a, the bias b and an activation
//! ```
//!
//! A fusion of which anything else is left needs a kernel that reads all results anyway, so that nothing is gained
//! there. So it is with `relu`, which would be the library's last step: it makes 0 of NaN, and HLO's `maximum` does
//! not.

use xla_hlo::ops::BinaryOp;
use xla_hlo::{Computation, ElementType, InstrId, Op};

use super::gelu::{is_gelu, number};
use crate::program::library_call::matmul::{Activation, Matmul};

/// The dot with all that a computation does to it, and the parameters of the computation that are read for it, in the
/// order of the call's arrays. `None` where the library does not do all of it, or rounds less often than the program
/// says: in f16, where values too large for it are infinite before anything is added, and would not be in the library;
/// and in the many steps of `gelu` in 16 bits. `excess_precision` allows that.
pub(crate) fn absorb(
    matmul: &Matmul,
    graph: &Computation,
    dot: InstrId,
    capability: (u32, u32),
    excess_precision: bool,
) -> Option<(Matmul, Vec<usize>)> {
    if matmul.result.element == ElementType::F16 && !excess_precision {
        return None;
    }
    let activates = excess_precision || matmul.result.element == ElementType::F32;
    let mut alpha = f64::from_bits(matmul.alpha);
    let (mut addend, mut bias, mut activation) = (None, None, matmul.activation);
    let mut value = dot;
    while value != graph.root() {
        if activates && is_gelu(graph, value) {
            activation = Activation::GeluTanh;
            break;
        }
        let &[user] = graph[value].users() else { return None };
        let Op::Binary(binary) = graph[user].op() else { return None };
        let other = match *graph[user].operands() {
            [left, right] if left == value && right != value => right,
            [left, right] if right == value && left != value => left,
            _ => return None,
        };
        match binary.op {
            BinaryOp::Multiply if addend.is_none() && bias.is_none() => alpha *= number(graph, other)?,
            BinaryOp::Add if addend.is_none() && graph.parameters().contains(&other) => addend = Some(other),
            BinaryOp::Add if bias.is_none() => bias = Some(columns(graph, other, matmul.n)?),
            _ => return None,
        }
        value = user;
    }
    let (has_addend, has_bias) = (addend.is_some(), bias.is_some());
    let whole = Matmul { alpha: alpha.to_bits(), has_addend, has_bias, activation, ..matmul.clone() };
    whole.check(capability).ok()?;
    let place = |id: InstrId| graph.parameters().iter().position(|&parameter| parameter == id);
    let reads = addend.into_iter().chain(bias).map(place).collect::<Option<_>>()?;
    Some((whole, reads))
}

/// The parameter that an array of rows repeats in each row.
fn columns(graph: &Computation, array: InstrId, count: usize) -> Option<InstrId> {
    let Op::Broadcast(broadcast) = graph[array].op() else { return None };
    let row = graph[array].operand(0);
    let (shape, rank) = (graph[row].shape().as_array()?, graph[array].shape().as_array()?.rank());
    let is_last = broadcast.dimensions.iter().copied().eq(rank - shape.rank()..rank);
    (is_last && shape.element_count() == count && graph.parameters().contains(&row)).then_some(row)
}

#[cfg(test)]
mod tests {
    use xla_hlo::text::parse_module;

    use super::*;

    const PRODUCT: &str = "p = T[2,64,48] dot(x, y), lhs_contracting_dims={2}, rhs_contracting_dims={0}";

    /// Lowers the dot `p`, in lines with the type `T`; returns alpha and the names of the operands that the library
    /// reads, if it computes them.
    fn absorbed(ty: &str, lines: &[&str]) -> Option<(f64, Vec<String>)> {
        let (matmul, names) = absorbed_with(ty, lines, false)?;
        assert_eq!(matmul.activation, Activation::None);
        Some((f64::from_bits(matmul.alpha), names))
    }

    fn absorbed_with(ty: &str, lines: &[&str], excess_precision: bool) -> Option<(Matmul, Vec<String>)> {
        let parameters = [
            "x = T[2,64,32]",
            "y = T[32,48]",
            "a = T[2,64,48]",
            "b = T[48]",
            "of_rows = T[64]",
            "c = T[]",
            "q = T[64,48]",
        ];
        let parameters = parameters.iter().enumerate().map(|(i, parameter)| format!("{parameter} parameter({i})"));
        let lines = lines.iter().map(|line| (*line).to_string());
        let body: Vec<String> = parameters.chain([PRODUCT.to_string()]).chain(lines).collect();
        let text = format!("HloModule m\nENTRY main {{\n{}\n}}", body.join("\n")).replace("T[", &format!("{ty}["));
        let module = parse_module(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let graph = module.entry();
        let dot = graph.ids().find(|&id| graph[id].name() == "p").unwrap();
        let element = graph[dot].shape().element_type().unwrap();
        let (matmul, reads) =
            absorb(&Matmul::dense(1, [128, 32, 48], [element; 3]), graph, dot, (9, 0), excess_precision)?;
        assert_eq!(matmul.arrays(), 3 + reads.len());
        let names = reads.into_iter().map(|place| graph[graph.parameters()[place]].name().to_string());
        let names = names.collect();
        Some((matmul, names))
    }

    const BIAS: &str = "rows = T[2,64,48] broadcast(b), dimensions={2}";
    const HALVES: [&str; 2] = ["half = T[] constant(0.5)", "halves = T[2,64,48] broadcast(half), dimensions={}"];

    #[test]
    fn a_factor_an_addend_and_a_bias() {
        let read = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
        for ty in ["f32", "bf16"] {
            assert_eq!(absorbed(ty, &[BIAS, "ROOT r = T[2,64,48] add(p, rows)"]), Some((1.0, read(&["b"]))));
            assert_eq!(absorbed(ty, &["ROOT r = T[2,64,48] add(a, p)"]), Some((1.0, read(&["a"]))));
            let all = [
                HALVES[0],
                HALVES[1],
                BIAS,
                "scaled = T[2,64,48] multiply(halves, p)",
                "biased = T[2,64,48] add(rows, scaled)",
                "ROOT r = T[2,64,48] add(biased, a)",
            ];
            assert_eq!(absorbed(ty, &all), Some((0.5, read(&["a", "b"]))));
        }
        let scaled = [HALVES[0], HALVES[1], "ROOT r = T[2,64,48] multiply(p, halves)"];
        assert_eq!(absorbed("f64", &scaled), Some((0.5, Vec::new())));
    }

    const GELU: [&str; 17] = [
        "square = T[2,64,48] multiply(biased, biased)",
        "cube = T[2,64,48] multiply(square, biased)",
        "c3 = T[] constant(0.044715)",
        "c3s = T[2,64,48] broadcast(c3), dimensions={}",
        "third = T[2,64,48] multiply(cube, c3s)",
        "odd = T[2,64,48] add(biased, third)",
        "c1 = T[] constant(0.797884583)",
        "c1s = T[2,64,48] broadcast(c1), dimensions={}",
        "u = T[2,64,48] multiply(odd, c1s)",
        "t = T[2,64,48] tanh(u)",
        "one = T[] constant(1)",
        "ones = T[2,64,48] broadcast(one), dimensions={}",
        "t1 = T[2,64,48] add(t, ones)",
        HALVES[0],
        HALVES[1],
        "cdf = T[2,64,48] multiply(t1, halves)",
        "ROOT r = T[2,64,48] multiply(biased, cdf)",
    ];

    #[test]
    fn gelu_with_and_without_a_bias() {
        let biased = [&[BIAS, "biased = T[2,64,48] add(p, rows)"][..], &GELU].concat();
        let alone = GELU.map(|line| line.replace("biased", "p"));
        let alone = alone.each_ref().map(String::as_str);
        for (lines, reads) in [(&biased[..], &["b"][..]), (&alone, &[])] {
            for (ty, needs_excess) in [("f32", false), ("bf16", true), ("f16", true)] {
                let found = absorbed_with(ty, lines, true).map(|(matmul, reads)| (matmul.activation, reads));
                assert_eq!(found, Some((Activation::GeluTanh, reads.iter().map(ToString::to_string).collect())));
                assert_eq!(absorbed_with(ty, lines, false).is_none(), needs_excess, "{ty}");
            }
            assert!(absorbed_with("f64", lines, true).is_none());
        }
        let first = ["ps = T[2,64,48] multiply(p, p)", "biased = T[2,64,48] add(p, ps)"];
        assert!(absorbed_with("f32", &[&first, &GELU[..]].concat(), true).is_none());
    }

    #[test]
    fn values_too_large_for_f16_are_added_to_where_that_is_allowed() {
        let lines = [BIAS, "ROOT r = T[2,64,48] add(p, rows)"];
        assert_eq!(absorbed("f16", &lines), None);
        assert!(absorbed_with("f16", &lines, true).is_some());
    }

    #[test]
    fn what_the_library_does_otherwise_stays() {
        let stays = |ty: &str, lines: &[&str]| assert_eq!(absorbed(ty, lines), None, "{ty} {lines:?}");
        stays("f16", &["ROOT r = T[2,64,48] add(a, p)"]);
        stays("f64", &[BIAS, "ROOT r = T[2,64,48] add(p, rows)"]);
        stays("f32", &["ROOT r = T[2,64,48] maximum(p, a)"]);
        stays("f32", &["ROOT r = T[2,64,48] subtract(a, p)"]);
        stays("f32", &["ROOT r = T[2,64,48] add(p, p)"]);
        stays("f32", &["n = T[2,64,48] negate(p)", "ROOT r = T[2,64,48] add(p, n)"]);
        stays("f32", &["s = T[2,64,48] add(p, a)", "ROOT r = T[2,64,48] add(s, a)"]);
        stays("f32", &["rows = T[2,64,48] broadcast(of_rows), dimensions={1}", "ROOT r = T[2,64,48] add(p, rows)"]);
        stays("f32", &["rows = T[2,64,48] broadcast(q), dimensions={1,2}", "ROOT r = T[2,64,48] add(p, rows)"]);
        stays("f32", &["cs = T[2,64,48] broadcast(c), dimensions={}", "ROOT r = T[2,64,48] multiply(p, cs)"]);
        let [half, halves] = HALVES;
        stays("f32", &[half, halves, "s = T[2,64,48] add(p, a)", "ROOT r = T[2,64,48] multiply(s, halves)"]);
        let zeros = ["zero = T[] constant(-0)", "zeros = T[2,64,48] broadcast(zero), dimensions={}"];
        stays("f32", &[zeros[0], zeros[1], "ROOT r = T[2,64,48] multiply(p, zeros)"]);
    }
}
