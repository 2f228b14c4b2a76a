//! Epilogues that libraries compute: after a matmul of cuBLASLt a factor, an addend, a bias, `gelu`; after a
//! convolution of cuDNN a bias, `relu`, `gelu`.
//!
//! ```text
//! gelu(dot(x, y) * c + a + broadcast(b))   ─   Matmul with alpha = c, the addend a, the bias b and an activation
//! relu(convolution(x, w) + broadcast(b))   ─   Convolution with the bias b and an activation
//! ```
//!
//! A fusion with any other operation needs a kernel that reads all results anyway, so absorbing a part of it gains
//! nothing. `relu` after a matmul is not absorbed, because cuBLASLt converts NaN to 0 and HLO's `maximum` does not. The
//! plans of cuDNN state whether they keep NaN.

use xla_hlo::ops::BinaryOp;
use xla_hlo::{Computation, ElementType, InstrId, Op};

use super::gelu::{is_gelu, number};
use crate::program::library_call::LibraryCall;
use crate::program::library_call::convolution::{Convolution, ConvolutionActivation, ConvolutionKind};
use crate::program::library_call::matmul::{Activation, Matmul};

/// Absorbs the whole epilogue of a contraction into its call. Returns the call, and the parameters of the computation
/// that the epilogue reads, in the order of the call's arrays. `None` if the library does not compute the whole
/// epilogue, or rounds less often than the program. A program rounds 16-bit values after each step, and f16 may
/// overflow there; `excess_precision` allows fewer roundings.
pub(crate) fn absorb(
    call: &LibraryCall,
    graph: &Computation,
    contraction: InstrId,
    capability: (u32, u32),
    excess_precision: bool,
) -> Option<(LibraryCall, Vec<usize>)> {
    match call {
        LibraryCall::Matmul(matmul) => {
            let (whole, reads) = into_matmul(matmul, graph, contraction, capability, excess_precision)?;
            Some((LibraryCall::Matmul(whole), reads))
        }
        LibraryCall::Convolution(convolution) => {
            let (whole, reads) = into_convolution(convolution, graph, contraction, capability, excess_precision)?;
            Some((LibraryCall::Convolution(whole), reads))
        }
        LibraryCall::Fourier(_) => None,
    }
}

fn into_matmul(
    matmul: &Matmul,
    graph: &Computation,
    dot: InstrId,
    capability: (u32, u32),
    excess_precision: bool,
) -> Option<(Matmul, Vec<usize>)> {
    let bias = |array| columns(graph, array, matmul.n);
    let epilogue = Epilogue::of(graph, dot, matmul.result.element, excess_precision, bias)?;
    let activation = match epilogue.function {
        None => matmul.activation,
        Some(Function::Relu) => return None,
        Some(Function::GeluTanh) => Activation::GeluTanh,
    };
    let alpha = (f64::from_bits(matmul.alpha) * epilogue.alpha).to_bits();
    let (has_addend, has_bias) = (epilogue.addend.is_some(), epilogue.bias.is_some());
    let whole = Matmul { alpha, has_addend, has_bias, activation, ..matmul.clone() };
    whole.check(capability).ok()?;
    Some((whole, epilogue.reads(graph)?))
}

fn into_convolution(
    convolution: &Convolution,
    graph: &Computation,
    id: InstrId,
    capability: (u32, u32),
    excess_precision: bool,
) -> Option<(Convolution, Vec<usize>)> {
    let Op::Convolution(op) = graph[id].op() else { return None };
    // A bias belongs to the channels of the layer's output, which is the result only in the forward pass.
    if convolution.kind != ConvolutionKind::Forward {
        return None;
    }
    let bias = |array| channels(graph, array, op.dims.output_feature);
    let epilogue = Epilogue::of(graph, id, convolution.element, excess_precision, bias)?;
    if epilogue.alpha != 1.0 || epilogue.addend.is_some() {
        return None;
    }
    let activation = match epilogue.function {
        None => ConvolutionActivation::None,
        Some(Function::Relu) => ConvolutionActivation::Relu,
        Some(Function::GeluTanh) => ConvolutionActivation::GeluTanh,
    };
    let whole = Convolution { has_bias: epilogue.bias.is_some(), activation, ..convolution.clone() };
    whole.check(capability).ok()?;
    Some((whole, epilogue.reads(graph)?))
}

/// Epilogue of a contraction: `function(contraction * alpha + addend + bias)`.
struct Epilogue {
    alpha: f64,
    addend: Option<InstrId>,
    bias: Option<InstrId>,
    function: Option<Function>,
}

/// Last step of an epilogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    Relu,
    GeluTanh,
}

impl Epilogue {
    /// Collects the steps from a contraction of an element type to the root. `bias` returns the parameter that an array
    /// broadcasts in the same manner as the library. `None` for other steps, and for those that the library would round
    /// differently.
    fn of(
        graph: &Computation,
        contraction: InstrId,
        element: ElementType,
        excess_precision: bool,
        bias: impl Fn(InstrId) -> Option<InstrId>,
    ) -> Option<Epilogue> {
        let mut epilogue = Epilogue { alpha: 1.0, addend: None, bias: None, function: None };
        let activates = excess_precision || element == ElementType::F32;
        let mut value = contraction;
        while value != graph.root() {
            if activates && is_gelu(graph, value) {
                epilogue.function = Some(Function::GeluTanh);
                break;
            }
            let &[user] = graph[value].users() else { return None };
            let Op::Binary(binary) = graph[user].op() else { return None };
            let other = match *graph[user].operands() {
                [left, right] if left == value && right != value => right,
                [left, right] if right == value && left != value => left,
                _ => return None,
            };
            let Epilogue { alpha, addend, bias: added, .. } = &mut epilogue;
            match binary.op {
                BinaryOp::Multiply if addend.is_none() && added.is_none() => *alpha *= number(graph, other)?,
                BinaryOp::Add if addend.is_none() && graph.parameters().contains(&other) => *addend = Some(other),
                BinaryOp::Add if added.is_none() => *added = Some(bias(other)?),
                BinaryOp::Maximum if user == graph.root() && number(graph, other)?.to_bits() == 0 => {
                    epilogue.function = Some(Function::Relu);
                }
                _ => return None,
            }
            value = user;
        }
        // The library rounds once, and f16 overflows at most once. `relu` alone does not change the rounding.
        let is_rounded_again = epilogue.alpha != 1.0 || epilogue.addend.or(epilogue.bias).is_some();
        let rounds_less = is_rounded_again && element.bit_width() < 32 && !excess_precision;
        (!rounds_less).then_some(epilogue)
    }

    /// Returns the positions of the parameters that the epilogue reads.
    fn reads(&self, graph: &Computation) -> Option<Vec<usize>> {
        let place = |id: InstrId| graph.parameters().iter().position(|&parameter| parameter == id);
        self.addend.into_iter().chain(self.bias).map(place).collect()
    }
}

/// Returns the parameter that an array repeats in each of its rows.
fn columns(graph: &Computation, array: InstrId, count: usize) -> Option<InstrId> {
    let Op::Broadcast(broadcast) = graph[array].op() else { return None };
    let row = graph[array].operand(0);
    let (shape, rank) = (graph[row].shape().as_array()?, graph[array].shape().as_array()?.rank());
    let is_last = broadcast.dimensions.iter().copied().eq(rank - shape.rank()..rank);
    (is_last && shape.element_count() == count && graph.parameters().contains(&row)).then_some(row)
}

/// Returns the one-dimensional parameter that an array broadcasts along all dimensions except `dimension`.
fn channels(graph: &Computation, array: InstrId, dimension: usize) -> Option<InstrId> {
    let Op::Broadcast(broadcast) = graph[array].op() else { return None };
    let row = graph[array].operand(0);
    let is_there = broadcast.dimensions[..] == [dimension] && graph[row].shape().as_array()?.rank() == 1;
    (is_there && graph.parameters().contains(&row)).then_some(row)
}

#[cfg(test)]
mod tests {
    use xla_hlo::text::parse_module;

    use super::*;

    const PRODUCT: &str = "p = T[2,64,48] dot(x, y), lhs_contracting_dims={2}, rhs_contracting_dims={0}";

    /// Absorbs `lines` after the dot `p`, with type `ty` in place of `T`. Returns alpha and the names of the operands
    /// that the library reads, if it computes all lines.
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
            into_matmul(&Matmul::dense(1, [128, 32, 48], [element; 3]), graph, dot, (9, 0), excess_precision)?;
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
        for (ty, rounds_more) in [("f32", false), ("bf16", true), ("f16", true)] {
            let found = |lines: &[&str]| {
                assert_eq!(absorbed_with(ty, lines, false).is_none(), rounds_more, "{ty} {lines:?}");
                absorbed_with(ty, lines, true).map(|(matmul, reads)| (f64::from_bits(matmul.alpha), reads))
            };
            assert_eq!(found(&[BIAS, "ROOT r = T[2,64,48] add(p, rows)"]), Some((1.0, read(&["b"]))));
            assert_eq!(found(&["ROOT r = T[2,64,48] add(a, p)"]), Some((1.0, read(&["a"]))));
            let all = [
                HALVES[0],
                HALVES[1],
                BIAS,
                "scaled = T[2,64,48] multiply(halves, p)",
                "biased = T[2,64,48] add(rows, scaled)",
                "ROOT r = T[2,64,48] add(biased, a)",
            ];
            assert_eq!(found(&all), Some((0.5, read(&["a", "b"]))));
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
    fn what_the_library_does_otherwise_stays() {
        let stays = |ty: &str, lines: &[&str]| assert_eq!(absorbed(ty, lines), None, "{ty} {lines:?}");
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

    /// Absorbs `lines` after the convolution `p`. Returns whether there is a bias, the activation, and the names of the
    /// operands that are read.
    fn convolved(
        ty: &str,
        lines: &[&str],
        excess_precision: bool,
    ) -> Option<(bool, ConvolutionActivation, Vec<String>)> {
        let parameters = ["x = T[2,9,16]", "w = T[3,16,24]", "a = T[2,7,24]", "b = T[24]", "of_places = T[7]"];
        let parameters = parameters.iter().enumerate().map(|(i, parameter)| format!("{parameter} parameter({i})"));
        let operation = "p = T[2,7,24] convolution(x, w), window={size=3}, dim_labels=b0f_0io->b0f".to_string();
        let lines = lines.iter().map(|line| (*line).to_string());
        let body: Vec<String> = parameters.chain([operation]).chain(lines).collect();
        let text = format!("HloModule m\nENTRY main {{\n{}\n}}", body.join("\n")).replace("T[", &format!("{ty}["));
        let module = parse_module(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let graph = module.entry();
        let id = graph.ids().find(|&id| graph[id].name() == "p").unwrap();
        let Op::Convolution(op) = graph[id].op() else { panic!("{text}") };
        let array = |id: InstrId| graph[id].shape().as_array().unwrap();
        let arrays = [array(graph[id].operand(0)), array(graph[id].operand(1)), array(id)];
        let found = super::super::convolution::recognise(op, arrays, (9, 0)).expect("a layer");
        let (whole, reads) = absorb(&found.call, graph, id, (9, 0), excess_precision)?;
        let LibraryCall::Convolution(whole) = whole else { panic!("{whole:?}") };
        let names = reads.into_iter().map(|place| graph[graph.parameters()[place]].name().to_string());
        Some((whole.has_bias, whole.activation, names.collect()))
    }

    #[test]
    fn a_bias_and_an_activation_after_a_convolution() {
        use ConvolutionActivation::{None as Nothing, Relu};
        const ROWS: &str = "rows = T[2,7,24] broadcast(b), dimensions={2}";
        const ZEROS: [&str; 2] = ["zero = T[] constant(0)", "zeros = T[2,7,24] broadcast(zero), dimensions={}"];
        let biased = [ROWS, "ROOT r = T[2,7,24] add(p, rows)"];
        let both =
            [&[ROWS, "s = T[2,7,24] add(rows, p)"][..], &ZEROS, &["ROOT r = T[2,7,24] maximum(zeros, s)"]].concat();
        let relu = [&ZEROS[..], &["ROOT r = T[2,7,24] maximum(p, zeros)"]].concat();
        let b = || vec!["b".to_string()];
        for (ty, adds) in [("f32", true), ("bf16", false), ("f16", false)] {
            assert_eq!(convolved(ty, &biased, false), adds.then(|| (true, Nothing, b())), "{ty}");
            assert_eq!(convolved(ty, &both, false), adds.then(|| (true, Relu, b())), "{ty}");
            assert_eq!(convolved(ty, &both, true), Some((true, Relu, b())), "{ty}");
            assert_eq!(convolved(ty, &relu, false), Some((false, Relu, Vec::new())), "{ty}");
        }
        let stays = |ty: &str, lines: &[&str]| assert_eq!(convolved(ty, lines, true), None, "{ty} {lines:?}");
        stays("f64", &biased);
        stays("f64", &relu);
        stays("f32", &["ROOT r = T[2,7,24] add(p, a)"]);
        stays("f32", &["rows = T[2,7,24] broadcast(of_places), dimensions={1}", "ROOT r = T[2,7,24] add(p, rows)"]);
        stays("f32", &[&ZEROS[..], &["ROOT r = T[2,7,24] minimum(p, zeros)"]].concat());
        stays(
            "f32",
            &[&ZEROS[..], &[ROWS, "s = T[2,7,24] maximum(p, zeros)", "ROOT r = T[2,7,24] add(s, rows)"]].concat(),
        );
        let minus = ["zero = T[] constant(-0)", ZEROS[1], "ROOT r = T[2,7,24] maximum(p, zeros)"];
        stays("f32", &minus);
    }
}
