//! Recognizes comparators that order elements by one key, in the form that frontends emit for a sort.

use std::collections::{HashMap, HashSet};

use xla_hlo::ops::{BinaryOp, CompareDirection, CompareType, Op, UnaryOp};
use xla_hlo::{CompId, Computation, ElementType, InstrId, Module, Scalar};

use super::Key;

/// Returns the number of the compared array and the key of its elements if the comparator only compares these keys.
///
/// The comparator has the form `f(a) < f(b)` or `f(a) > f(b)` for the elements `a` and `b` of one array. `f` is the
/// identity, except that it may replace zeros of either sign and NaNs by other values. Frontends emit this so that -0
/// equals 0 and NaNs come last. A comparator for which a NaN is neither less nor greater than any element is no total
/// order; its NaNs come last, too.
pub fn key_of_comparator(module: &Module, comparator: CompId) -> Option<(usize, Key)> {
    let graph = &module[comparator];
    let root = &graph[graph.root()];
    let (Op::Compare(compare), [lhs, rhs]) = (root.op(), root.operands()) else { return None };
    let (left, right) = (Function::of(graph, *lhs)?, Function::of(graph, *rhs)?);
    let (first, second) = (left.parameter, right.parameter);
    if first / 2 != second / 2 || first == second || (left.zero, left.nan) != (right.zero, right.nan) {
        return None;
    }
    let ty = graph[*lhs].shape().element_type()?;
    let key = left.key(ty, compare.order_for(ty))?;
    let ascending = match compare.direction {
        CompareDirection::Lt => first < second,
        CompareDirection::Gt => first > second,
        CompareDirection::Eq | CompareDirection::Ne | CompareDirection::Ge | CompareDirection::Le => return None,
    };
    Some((first / 2, if ascending { key } else { key.reversed() }))
}

/// Whether the comparator reads the elements of each array.
pub fn compared(module: &Module, comparator: CompId, arrays: usize) -> Vec<bool> {
    let graph = &module[comparator];
    let mut compared = vec![false; arrays];
    let mut seen: HashSet<InstrId> = HashSet::from([graph.root()]);
    let mut stack = vec![graph.root()];
    while let Some(id) = stack.pop() {
        if let Op::Parameter(parameter) = graph[id].op()
            && let Some(is_compared) = compared.get_mut(parameter.number / 2)
        {
            *is_compared = true;
        }
        stack.extend(graph[id].operands().iter().copied().filter(|&operand| seen.insert(operand)));
    }
    compared
}

/// An identity function except for special float values.
struct Function {
    /// Number of the parameter that is the argument.
    parameter: usize,
    /// Bit patterns returned for zeros and for NaNs, if they differ from the argument.
    zero: Option<u64>,
    nan: Option<u64>,
}

impl Function {
    /// Returns the function of one parameter that an instruction computes; `None` if it is not of this form.
    fn of(graph: &Computation, id: InstrId) -> Option<Function> {
        let ty = graph[id].shape().element_type().filter(|ty| !ty.is_complex())?;
        let Fact::Element(parameter) = *known(graph, None, Case::Ordinary).get(&id)? else { return None };
        let given = |case| match known(graph, Some(parameter), case).get(&id)? {
            Fact::Element(_) => Some(None),
            Fact::Number(number) => Some(Some(number.to_bits(ty))),
            Fact::Truth(_) => None,
        };
        let ordinary: Option<u64> = given(Case::Ordinary)?;
        ordinary.is_none().then_some(Function { parameter, zero: given(Case::Zero)?, nan: given(Case::Nan)? })
    }

    /// Returns the key of the elements if results are compared in the given order.
    fn key(&self, ty: ElementType, order: CompareType) -> Option<Key> {
        let key = Key::total_order(ty)?;
        if order != CompareType::Float {
            return key.replacing(ty, self.zero, self.nan);
        }
        // Zeros of both signs are equal, and NaNs come last.
        let last = (1 << (ty.bit_width() - 1)) - 1;
        let place = |pattern: u64| match Scalar::from_bits(ty, pattern) {
            Scalar::Float(0.0) => 0,
            Scalar::Float(v) if v.is_nan() => last,
            _ => pattern,
        };
        let (zero, nan) = (self.zero.map_or(0, place), self.nan.map_or(last, place));
        match key.replacing(ty, Some(zero), Some(nan)) {
            // A type with one zero and one NaN: patterns are already in numeric order.
            None if self.zero.is_none() && self.nan.is_none() => Some(key),
            key => key,
        }
    }
}

/// Class of a float value; other element types are always ordinary.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Case {
    Nan,
    /// Zero of either sign.
    Zero,
    Ordinary,
}

/// Known fact about a value.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Fact {
    /// The value is the parameter with this number.
    Element(usize),
    Number(Scalar),
    Truth(bool),
}

/// Returns the facts about the values of a computation if a parameter (or each of them) belongs to `case`.
fn known(graph: &Computation, parameter: Option<usize>, case: Case) -> HashMap<InstrId, Fact> {
    let mut facts: HashMap<InstrId, Fact> = HashMap::new();
    for id in graph.post_order() {
        let instruction = &graph[id];
        let fact_of = |i: usize| instruction.operands().get(i).and_then(|operand| facts.get(operand)).copied();
        let fact = match instruction.op() {
            Op::Parameter(p) => parameter.is_none_or(|only| only == p.number).then_some(Fact::Element(p.number)),
            Op::Constant(constant) => match constant.literal.get(0) {
                Scalar::Pred(truth) => Some(Fact::Truth(truth)),
                number => Some(Fact::Number(number)),
            },
            Op::Compare(compare) => {
                let ty = graph[instruction.operand(0)].shape().element_type();
                let is_float = ty.is_some_and(|ty| compare.order_for(ty) == CompareType::Float);
                let equal = fact_of(0).zip(fact_of(1)).filter(|_| is_float).and_then(|(a, b)| are_equal(case, a, b));
                match compare.direction {
                    CompareDirection::Eq => equal.map(Fact::Truth),
                    CompareDirection::Ne => equal.map(|equal| Fact::Truth(!equal)),
                    CompareDirection::Lt | CompareDirection::Gt | CompareDirection::Le | CompareDirection::Ge => None,
                }
            }
            Op::Select(_) => match fact_of(0) {
                Some(Fact::Truth(truth)) => fact_of(if truth { 1 } else { 2 }),
                _ => None,
            },
            Op::Unary(unary) if unary.op == UnaryOp::Not => match fact_of(0) {
                Some(Fact::Truth(truth)) => Some(Fact::Truth(!truth)),
                _ => None,
            },
            Op::Binary(binary) => joined(binary.op, fact_of(0), fact_of(1)),
            Op::Copy(_) | Op::OptBarrier(_) => fact_of(0),
            // Other operations yield no facts.
            _ => None,
        };
        facts.extend(fact.map(|fact| (id, fact)));
    }
    facts
}

/// Whether two floats are equal, if elements of class `case` determine it.
fn are_equal(case: Case, a: Fact, b: Fact) -> Option<bool> {
    match (a, b) {
        (Fact::Element(a), Fact::Element(b)) => (a == b).then_some(case != Case::Nan),
        (Fact::Element(_), Fact::Number(Scalar::Float(v))) | (Fact::Number(Scalar::Float(v)), Fact::Element(_)) => {
            match case {
                Case::Nan => Some(false),
                Case::Zero => Some(v == 0.0),
                Case::Ordinary => (v == 0.0 || v.is_nan()).then_some(false),
            }
        }
        (Fact::Number(Scalar::Float(a)), Fact::Number(Scalar::Float(b))) => Some(a == b),
        _ => None,
    }
}

/// Returns the conjunction or disjunction of two booleans. One operand may determine the result alone.
fn joined(op: BinaryOp, a: Option<Fact>, b: Option<Fact>) -> Option<Fact> {
    let deciding = match op {
        BinaryOp::And => false,
        BinaryOp::Or => true,
        _ => return None,
    };
    let truth = |fact| match fact {
        Some(Fact::Truth(truth)) => Some(truth),
        _ => None,
    };
    match (truth(a), truth(b)) {
        (Some(a), _) if a == deciding => Some(Fact::Truth(deciding)),
        (_, Some(b)) if b == deciding => Some(Fact::Truth(deciding)),
        (Some(_), Some(_)) => Some(Fact::Truth(!deciding)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use xla_hlo::text::parse_module;

    use super::*;

    /// Returns the key of a comparator whose `body` starts with the two scalars `a` and `b` of type `ty` (and two of
    /// s32).
    fn key(ty: &str, body: &str) -> Option<(usize, Key)> {
        let text = format!(
            "HloModule m
            before {{ a = {ty}[] parameter(0)
              b = {ty}[] parameter(1)
              c = s32[] parameter(2)
              d = s32[] parameter(3)
              {body} }}
            ENTRY main {{ x = {ty}[9] parameter(0)
              y = s32[9] parameter(1)
              ROOT r = ({ty}[9], s32[9]) sort(x, y), dimensions={{0}}, to_apply=before }}"
        );
        let module = parse_module(&text).unwrap_or_else(|error| panic!("{error}"));
        let entry = module.entry();
        let Op::Sort(sort) = entry[entry.root()].op() else { panic!("no sort") };
        key_of_comparator(&module, sort.computation)
    }

    fn total(ty: ElementType) -> Key {
        Key::total_order(ty).unwrap()
    }

    #[test]
    fn one_comparison_is_an_order() {
        let cases = [
            ("compare(a, b), direction=LT", 0, true),
            ("compare(b, a), direction=GT", 0, true),
            ("compare(a, b), direction=GT", 0, false),
            ("compare(d, c), direction=LT", 1, false),
        ];
        for (root, array, ascending) in cases {
            let key_of = |ty| if ascending { total(ty) } else { total(ty).reversed() };
            let expected = Some((array, key_of(ElementType::S32)));
            assert_eq!(key("s32", &format!("ROOT r = pred[] {root}")), expected, "{root}");
            if array == 0 {
                let found = key("bf16", &format!("ROOT r = pred[] {root}, type=TOTALORDER"));
                assert_eq!(found, Some((0, key_of(ElementType::BF16))), "{root}");
            }
        }
        let partial = key("f32", "ROOT r = pred[] compare(a, b), direction=LT").unwrap().1;
        assert_eq!(partial.of(0), partial.of(0x8000_0000), "zeros are equal");
    }

    /// Comparison as JAX emits it: all NaNs are equal, all zeros are equal.
    const CANONICAL: &str = "quiet = f32[] constant(nan)
        zero = f32[] constant(0)
        na = pred[] compare(a, a), direction=NE
        za = pred[] compare(a, zero), direction=EQ
        sa = f32[] select(za, zero, a)
        ka = f32[] select(na, quiet, sa)
        nb = pred[] compare(b, b), direction=NE
        zb = pred[] compare(b, zero), direction=EQ
        sb = f32[] select(zb, zero, b)
        kb = f32[] select(nb, quiet, sb)\n";

    #[test]
    fn special_values_may_be_replaced() {
        let expected = total(ElementType::F32).replacing(ElementType::F32, Some(0), Some(0x7fc0_0000));
        let found = key("f32", &format!("{CANONICAL} ROOT r = pred[] compare(ka, kb), direction=LT, type=TOTALORDER"));
        assert_eq!(found, expected.map(|key| (0, key)));
        let otherwise = "zero = f32[] constant(-0)
            ea = pred[] compare(a, a), direction=EQ
            fa = pred[] not(ea)
            za = pred[] compare(zero, a), direction=EQ
            qa = pred[] or(za, fa)
            ka = f32[] select(qa, zero, a)
            eb = pred[] compare(b, b), direction=EQ
            fb = pred[] not(eb)
            zb = pred[] compare(zero, b), direction=EQ
            qb = pred[] or(fb, zb)
            kb = f32[] select(qb, zero, b)
            ROOT r = pred[] compare(kb, ka), direction=LT, type=TOTALORDER";
        let sign = 0x8000_0000;
        let expected = total(ElementType::F32).replacing(ElementType::F32, Some(sign), Some(sign)).unwrap();
        assert_eq!(key("f32", otherwise), Some((0, expected.reversed())));
    }

    #[test]
    fn anything_else_is_left_to_the_comparator() {
        let lopsided = format!("{CANONICAL} ROOT r = pred[] compare(ka, b), direction=LT, type=TOTALORDER");
        let cases = [
            ("f32", "ROOT r = pred[] compare(a, b), direction=LE"),
            ("f32", "ROOT r = pred[] compare(a, a), direction=LT"),
            ("s32", "ROOT r = pred[] compare(a, c), direction=LT"),
            ("f32", "x = f32[] abs(a)\n y = f32[] abs(b)\n ROOT r = pred[] compare(x, y), direction=LT"),
            ("f32", lopsided.as_str()),
            (
                "s32",
                "z = s32[] constant(0)
                five = s32[] constant(5)
                za = pred[] compare(a, z), direction=EQ
                ka = s32[] select(za, five, a)
                zb = pred[] compare(b, z), direction=EQ
                kb = s32[] select(zb, five, b)
                ROOT r = pred[] compare(ka, kb), direction=LT",
            ),
            (
                "f32",
                "z = f32[] constant(0)
                zb = pred[] compare(b, z), direction=EQ
                ka = f32[] select(zb, z, a)
                za = pred[] compare(a, z), direction=EQ
                kb = f32[] select(za, z, b)
                ROOT r = pred[] compare(ka, kb), direction=LT",
            ),
        ];
        for (ty, body) in cases {
            assert_eq!(key(ty, body), None, "{body}");
        }
    }
}
