//! Recognition of the `tanh` approximation of `gelu` in a computation.
//!
//! ```text
//! gelu(x) = x (1 + tanh(u)) / 2,  u = sqrt(2/pi) (x + 0.044715 x³)
//! ```
//!
//! The operations may be in any order: each value has a [`Form`], which consists of polynomials of `x` with a
//! coefficient for each power. Coefficients of factors and addends are positive, so nothing cancels: if powers
//! overflow, `u` is infinite like `x`, and its `tanh` is 1 or -1 like that of the library. NaN stays NaN. For `-inf`
//! the operations return NaN; according to NVIDIA's documents, the library returns `gelu` of it.

use xla_hlo::ops::{BinaryOp, ResultAccuracy, UnaryOp};
use xla_hlo::{Computation, ElementType, InstrId, Op, Scalar};

/// Number of powers of a polynomial, from 0 on.
const POWERS: usize = 4;

/// Coefficients of a polynomial, by power.
type Polynomial = [f64; POWERS];

/// Relative tolerance of a coefficient, which is a number rounded to f32 or the product of two such numbers.
const NEAR: f64 = 1e-6;

/// Range of factors and addends; others could overflow where the library does not.
const MODERATE: std::ops::RangeInclusive<f64> = 1.0 / 64.0..=64.0;

/// Value of an operation, `plain + of_tanh * tanh(u)`, with polynomials of `x`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Form {
    plain: Polynomial,
    of_tanh: Polynomial,
}

/// Whether the root of a computation is `gelu` of one of its values. The library rounds 16-bit values only once, at the
/// end; the caller ensures that this is allowed.
pub(super) fn is_gelu(graph: &Computation, value: InstrId) -> bool {
    let Some(element) = graph[value].shape().element_type() else { return false };
    let mut forms = vec![(value, Form { plain: [0.0, 1.0, 0.0, 0.0], of_tanh: [0.0; POWERS] })];
    // Operands precede their users.
    let later = graph.post_order().into_iter().filter(|&id| id != value);
    for id in later.filter(|&id| !matches!(graph[id].op(), Op::Parameter(_) | Op::Constant(_) | Op::Broadcast(_))) {
        let operands = graph[id].operands().iter();
        let known = operands.map(|&operand| forms.iter().find(|(of, _)| *of == operand).map(|&(_, form)| form));
        let known: Vec<Option<Form>> = known.collect();
        if known.iter().all(Option::is_none) {
            continue;
        }
        let Some(form) = form(graph, id, &known, element) else { return false };
        forms.push((id, form));
    }
    let half = |polynomial: &Polynomial| is_near(polynomial, &[0.0, 0.5, 0.0, 0.0]);
    forms.last().is_some_and(|(id, form)| *id == graph.root() && half(&form.plain) && half(&form.of_tanh))
}

/// Returns the form of an operation on forms and numbers; `None` if it has none.
fn form(graph: &Computation, id: InstrId, known: &[Option<Form>], element: ElementType) -> Option<Form> {
    let to = graph[id].shape().element_type()?;
    let operand = |place: usize| known[place].or_else(|| Form::constant(graph, graph[id].operand(place)));
    match graph[id].op() {
        // Only the root may convert to fewer bits, since the library rounds its result.
        Op::Convert(_) if to == ElementType::F32 || to == element && id == graph.root() => operand(0),
        Op::Unary(unary) if unary.op == UnaryOp::Tanh && unary.accuracy == ResultAccuracy::Default => {
            let argument = operand(0)?;
            let is_known = argument.is_plain() && is_argument(&argument.plain, element);
            is_known.then_some(Form { plain: [0.0; POWERS], of_tanh: [1.0, 0.0, 0.0, 0.0] })
        }
        Op::Binary(binary) => {
            let (left, right) = (operand(0)?, operand(1)?);
            match binary.op {
                BinaryOp::Add => Some(left.plus(&right)),
                BinaryOp::Multiply => left.times(&right),
                _ => None,
            }
        }
        _ => None,
    }
}

impl Form {
    /// Returns the form of an array of equal numbers in the range [`MODERATE`].
    fn constant(graph: &Computation, array: InstrId) -> Option<Form> {
        let number = number(graph, array).filter(|number| MODERATE.contains(number))?;
        Some(Form { plain: [number, 0.0, 0.0, 0.0], of_tanh: [0.0; POWERS] })
    }

    fn is_plain(&self) -> bool {
        self.of_tanh == [0.0; POWERS]
    }

    fn plus(&self, other: &Form) -> Form {
        let sum = |a: &Polynomial, b: &Polynomial| std::array::from_fn(|power| a[power] + b[power]);
        Form { plain: sum(&self.plain, &other.plain), of_tanh: sum(&self.of_tanh, &other.of_tanh) }
    }

    fn times(&self, other: &Form) -> Option<Form> {
        let (plain, other) = if self.is_plain() { (self, other) } else { (other, self) };
        if !plain.is_plain() {
            return None;
        }
        let [of_plain, of_tanh] = [&other.plain, &other.of_tanh].map(|factor| product(&plain.plain, factor));
        Some(Form { plain: of_plain?, of_tanh: of_tanh? })
    }
}

/// Multiplies polynomials; `None` if the product has higher powers.
fn product(a: &Polynomial, b: &Polynomial) -> Option<Polynomial> {
    let mut product = [0.0; POWERS];
    for (i, j) in (0..POWERS).flat_map(|i| (0..POWERS).map(move |j| (i, j))) {
        match product.get_mut(i + j) {
            Some(coefficient) => *coefficient += a[i] * b[j],
            None if a[i] * b[j] == 0.0 => {}
            None => return None,
        }
    }
    Some(product)
}

/// Whether a polynomial is the argument of `tanh`. Its constants may be rounded to the type of the result.
fn is_argument(polynomial: &Polynomial, element: ElementType) -> bool {
    let either = |number: f64| match Scalar::Float(number).rounded(element) {
        Scalar::Float(rounded) => [number, rounded],
        _ => [number; 2],
    };
    let (factors, cubes) = (either((2.0 / std::f64::consts::PI).sqrt()), either(0.044_715));
    let mut pairs = factors.iter().flat_map(|&factor| cubes.iter().map(move |&cube| (factor, factor * cube)));
    pairs.any(|(first, third)| is_near(polynomial, &[0.0, first, 0.0, third]))
}

fn is_near(found: &Polynomial, wanted: &Polynomial) -> bool {
    found.iter().zip(wanted).all(|(found, wanted)| (found - wanted).abs() <= NEAR * wanted)
}

/// Returns the real number that all elements of an array have.
pub(super) fn number(graph: &Computation, array: InstrId) -> Option<f64> {
    let scalar = match graph[array].op() {
        Op::Broadcast(_) => graph[array].operand(0),
        _ => array,
    };
    match graph[scalar].op() {
        Op::Constant(constant) if constant.literal.array_shape().dims().is_empty() => match constant.literal.get(0) {
            Scalar::Float(number) => Some(number),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use xla_hlo::text::parse_module;

    use super::*;

    /// Operations that JAX emits for `jax.nn.gelu(x)`.
    const JAX: &str = "square = T multiply(x, x)
        cube = T multiply(square, x)
        c3 = T broadcast(CUBE), dimensions={}
        third = T multiply(cube, c3)
        odd = T add(x, third)
        c1 = T broadcast(FACTOR), dimensions={}
        u = T multiply(odd, c1)
        t = T tanh(u)
        ones = T broadcast(one), dimensions={}
        t1 = T add(t, ones)
        halves = T broadcast(half), dimensions={}
        cdf = T multiply(t1, halves)
        ROOT r = T multiply(x, cdf)";

    /// Whether these operations are recognised in an element type, with some lines replaced.
    fn recognised(element: &str, replaced: &[(&str, &str)]) -> bool {
        let numbers = [("FACTOR", "0.797884583"), ("CUBE", "0.044715"), ("one", "1"), ("half", "0.5")];
        let constants = numbers.map(|(name, number)| format!("{name} = E[] constant({number})")).join("\n");
        let body = format!("a = T parameter(0)\nz = T parameter(1)\nx = T sqrt(a)\n{constants}\n{JAX}");
        let body = replaced.iter().fold(body, |body, (old, new)| {
            assert!(body.contains(old), "{old}");
            body.replace(old, new)
        });
        let text = format!("HloModule m\nENTRY main {{\n{body}\n}}")
            .replace("= T ", "= E[8] ")
            .replace("E[", &format!("{element}["));
        let module = parse_module(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let graph = module.entry();
        is_gelu(graph, graph.ids().find(|&id| graph[id].name() == "x").unwrap())
    }

    #[test]
    fn gelu_in_any_order_of_its_operations() {
        for element in ["f32", "bf16", "f16"] {
            assert!(recognised(element, &[]), "{element}");
            let whole = [
                ("cdf = T multiply(t1, halves)", "cdf = T multiply(t1, x)"),
                ("multiply(x, cdf)", "multiply(halves, cdf)"),
            ];
            assert!(recognised(element, &whole), "{element}");
            let halved = [
                ("cdf = T multiply(t1, halves)", "cdf = T multiply(x, halves)"),
                ("multiply(x, cdf)", "multiply(t1, cdf)"),
            ];
            assert!(recognised(element, &halved), "{element}");
            let square = [
                ("cube = T multiply(square, x)", "cube = T multiply(square, c3)"),
                ("third = T multiply(cube, c3)", "third = T add(cube, ones)"),
                ("odd = T add(x, third)", "odd = T multiply(third, x)"),
                ("c3 = T broadcast(CUBE), dimensions={}\n", ""),
                ("ones = T broadcast(one), dimensions={}\n", ""),
                (
                    "square = ",
                    "c3 = T broadcast(CUBE), dimensions={}\nones = T broadcast(one), dimensions={}\nsquare = ",
                ),
            ];
            assert!(recognised(element, &square), "{element}");
        }
    }

    #[test]
    fn constants_are_those_of_the_type_or_rounded_to_it() {
        assert!(recognised("bf16", &[("0.797884583", "0.796875"), ("0.044715", "0.0446777")]));
        assert!(recognised("f16", &[("0.797884583", "0.79785"), ("0.044715", "0.044708")]));
        assert!(!recognised("bf16", &[("0.797884583", "0.80078125")]));
        assert!(!recognised("f32", &[("0.797884583", "0.796875")]));
        assert!(!recognised("f32", &[("0.044715", "0.0447")]));
        assert!(!recognised("f32", &[("constant(0.5)", "constant(0.25)")]));
        assert!(!recognised("f32", &[("constant(1)", "constant(2)")]));
        assert!(!recognised("f32", &[("constant(1)", "constant(-1)")]));
        assert!(!recognised("f32", &[("constant(1)", "constant(nan)")]));
    }

    #[test]
    fn what_is_no_gelu_stays() {
        let stays = |old: &str, new: &str| assert!(!recognised("f32", &[(old, new)]), "{new}");
        stays("t = T tanh(u)", "t = T erf(u)");
        stays("t = T tanh(u)", "t = T tanh(u), result_accuracy={mode=highest}");
        stays("multiply(x, cdf)", "multiply(z, cdf)");
        stays("multiply(x, cdf)", "multiply(a, cdf)");
        stays("multiply(x, cdf)", "subtract(x, cdf)");
        stays("multiply(x, cdf)", "multiply(cdf, cdf)");
        stays("add(x, third)", "add(z, third)");
        stays("add(x, third)", "add(square, third)");
        stays("tanh(u)", "tanh(odd)");
        stays("cube = T multiply(square, x)", "cube = T multiply(square, square)");
        stays("ROOT r = T multiply(x, cdf)", "g = T multiply(x, cdf)\n ROOT r = T add(g, x)");
        stays("ROOT r = T multiply(x, cdf)", "g = T multiply(x, cdf)\n ROOT r = (E[8], E[8]) tuple(g, x)");
        stays("ROOT r = T multiply(x, cdf)", "g = T multiply(x, cdf)\n ROOT r = f64[8] convert(g)");
    }

    #[test]
    fn conversions_that_round_are_the_last_operation() {
        let in_f32 = |last: &str| {
            let body =
                JAX.replace("= T ", "= f32[8] ").replace("(x", "(w").replace(", x)", ", w)").replace("ROOT r", "g");
            let numbers = [("FACTOR", "0.797884583"), ("CUBE", "0.044715"), ("one", "1"), ("half", "0.5")];
            let constants = numbers.map(|(name, number)| format!("{name} = f32[] constant({number})")).join("\n");
            let text = format!(
                "HloModule m\nENTRY main {{\nx = bf16[8] parameter(0)\nw = f32[8] convert(x)\n{constants}\n{body}\n{last}\n}}"
            );
            let module = parse_module(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
            let graph = module.entry();
            is_gelu(graph, graph.parameters()[0])
        };
        assert!(in_f32("ROOT r = bf16[8] convert(g)"));
        assert!(!in_f32("n = bf16[8] convert(g)\nROOT r = f32[8] convert(n)"));
        assert!(!in_f32("ROOT r = f16[8] convert(g)"));
    }
}
