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
