//! Property of each factor's kind, checked with the reference evaluator.
//!
//! A pass-through factor: the operation on parts of the operands computes the parts of the results. A reduction factor:
//! the sum of the results of all parts is the whole result. Any other kind: neither holds. So each factor fails with
//! another kind.

use xla_hlo::eval::Evaluator;
use xla_hlo::ops::{Convolution, DynamicSlice, Gather, ShapeContext, Slice, SliceRange};
use xla_hlo::sdy::{FactorKind, ShardingRule, TensorFactors};
use xla_hlo::{ArrayShape, Literal, Op, Scalar, Shape, multi_index};

use super::rules::{Case, cases};

/// Operation of a case, its operands and its whole result, split along one factor into `parts` parts.
struct Split<'a> {
    case: &'a Case,
    rule: &'a ShardingRule,
    operands: &'a [Literal],
    whole: &'a Literal,
    factor: usize,
    parts: usize,
}

/// Returns the part of an element, if the dimension is split; `None` if it is not the product of its factors.
fn part_of(split: &Split<'_>, factors: &[usize], size: usize, index: usize) -> Option<Option<usize>> {
    let sizes = factors.iter().map(|&f| split.rule.factors[f].size);
    if !factors.contains(&split.factor) {
        return Some(None);
    }
    if sizes.clone().product::<usize>() != size {
        return None;
    }
    let at = factors.iter().position(|&f| f == split.factor)?;
    let inner: usize = sizes.skip(at + 1).product();
    let whole = split.rule.factors[split.factor].size;
    Some(Some(index / inner % whole / (whole / split.parts)))
}

/// Elements of an array that belong to part `part`, by their linear indices.
fn members(split: &Split<'_>, factors: &TensorFactors, array: &ArrayShape, part: usize) -> Option<Vec<usize>> {
    let mut found = Vec::new();
    for linear in 0..array.element_count() {
        let index = multi_index(array.dims(), linear);
        let mut is_member = true;
        for (d, list) in factors.iter().enumerate() {
            is_member &= part_of(split, list, array.dims()[d], index[d])?.is_none_or(|p| p == part);
        }
        if is_member {
            found.push(linear);
        }
    }
    Some(found)
}

fn has(split: &Split<'_>, factors: &TensorFactors) -> bool {
    factors.iter().any(|dim| dim.contains(&split.factor))
}

/// Takes part `part` of an array.
fn take(split: &Split<'_>, factors: &TensorFactors, literal: &Literal, part: usize) -> Option<Literal> {
    let array = literal.array_shape();
    let members = members(split, factors, array, part)?;
    let cut = |(d, &size): (usize, &usize)| {
        if factors[d].contains(&split.factor) { size / split.parts } else { size }
    };
    let dims: Vec<usize> = array.dims().iter().enumerate().map(cut).collect();
    Literal::from_fn(&ArrayShape::new(array.element_type(), dims), |i| literal.get(members[i])).ok()
}

/// Operation on parts: sizes that are attributes shrink with the arrays.
fn local_op(split: &Split<'_>, op: &Op, operands: &[Literal], result: &Shape) -> Op {
    let before = |i: usize| split.operands[i].array_shape().dims();
    let after = |i: usize| operands[i].array_shape().dims();
    match op {
        Op::Slice(slice) => {
            let shrunk = |(d, range): (usize, &SliceRange)| {
                let is_whole = (range.start, range.limit) == (0, before(0)[d]);
                SliceRange { limit: if is_whole { after(0)[d] } else { range.limit }, ..*range }
            };
            Slice { ranges: slice.ranges.iter().enumerate().map(shrunk).collect() }.into()
        }
        Op::DynamicSlice(_) => {
            DynamicSlice { sizes: result.as_array().map_or(Vec::new(), |array| array.dims().to_vec()) }.into()
        }
        Op::Gather(gather) => {
            let shrunk = |(d, &size): (usize, &usize)| if size == before(0)[d] { after(0)[d] } else { size };
            let slice_sizes = gather.slice_sizes.iter().enumerate().map(shrunk).collect();
            Gather { slice_sizes, ..gather.clone() }.into()
        }
        Op::Convolution(conv) => {
            let shrinks = |tensor: &TensorFactors, d: usize| tensor[d].contains(&split.factor);
            let dims = &conv.dims;
            let is_group = shrinks(&split.rule.operands[1], dims.kernel_output_feature);
            let groups = |count: usize, d: usize| {
                if is_group && shrinks(&split.rule.operands[0], d) { count / split.parts } else { count }
            };
            Convolution {
                feature_group_count: groups(conv.feature_group_count, dims.input_feature),
                batch_group_count: groups(conv.batch_group_count, dims.input_batch),
                ..conv.clone()
            }
            .into()
        }
        op => op.clone(),
    }
}

fn evaluate(split: &Split<'_>, op: &Op, operands: Vec<Literal>, result: &Shape) -> Option<Literal> {
    let shapes: Vec<&Shape> = operands.iter().map(Literal::shape).collect();
    let context = ShapeContext::new(&split.case.module, &shapes, Some(result));
    let inferred = op.rules().infer_shape(&context).ok()?;
    if !inferred.compatible(result) {
        return None;
    }
    op.rules().evaluate(&mut Evaluator::new(&split.case.module), operands, result).ok()
}

/// Result of the operation on part `part` of its operands.
fn on_slices(split: &Split<'_>, part: usize) -> Option<Literal> {
    let operands: Option<Vec<Literal>> =
        split.operands.iter().zip(&split.rule.operands).map(|(operand, f)| take(split, f, operand, part)).collect();
    let operands = operands?;
    let leaves = parts_of_result(split, part)?;
    let mut shapes = leaves.iter().map(|leaf| leaf.shape().clone());
    let result = match split.whole.shape() {
        Shape::Tuple(_) => Shape::Tuple(shapes.collect()),
        _ => shapes.next()?,
    };
    let (entry, root) = split.case.operation();
    let op = local_op(split, split.case.module[entry][root].op(), &operands, &result);
    evaluate(split, &op, operands, &result)
}

/// Result of the operation on operands of full size. `other` replaces elements of other parts.
fn on_masked(split: &Split<'_>, part: usize, other: impl Fn(Scalar) -> Scalar) -> Option<Literal> {
    let masked = |(operand, factors): (&Literal, &TensorFactors)| {
        let array = operand.array_shape();
        if !has(split, factors) {
            return Some(operand.clone());
        }
        let members = members(split, factors, array, part)?;
        let value = |i: usize| {
            if members.binary_search(&i).is_ok() { operand.get(i) } else { other(operand.get(i)) }
        };
        Literal::from_fn(array, value).ok()
    };
    let operands: Option<Vec<Literal>> = split.operands.iter().zip(&split.rule.operands).map(masked).collect();
    let (entry, root) = split.case.operation();
    evaluate(split, split.case.module[entry][root].op(), operands?, split.whole.shape())
}

fn parts_of_result(split: &Split<'_>, part: usize) -> Option<Vec<Literal>> {
    let leaves = split.whole.leaves();
    leaves.into_iter().zip(&split.rule.results).map(|(leaf, factors)| take(split, factors, leaf, part)).collect()
}

fn is_equal(a: &Literal, b: &Literal) -> bool {
    a.shape().compatible(b.shape()) && a.bytes() == b.bytes()
}

fn number(scalar: Scalar) -> f64 {
    match scalar {
        Scalar::Float(value) => value,
        other => other.as_i128().map_or(f64::NAN, |value| value as f64),
    }
}

/// Whether the factor has the property of a pass-through factor.
fn passes_through(split: &Split<'_>, by_masks: bool) -> bool {
    (0..split.parts).all(|part| {
        let expected = parts_of_result(split, part);
        let found = if by_masks {
            let whole = on_masked(split, part, |value| match value {
                Scalar::Float(value) => Scalar::Float(value + 5.0),
                other => other,
            });
            let leaves = whole.as_ref().map(Literal::leaves);
            leaves.and_then(|leaves| {
                let leaves = leaves.into_iter().zip(&split.rule.results);
                leaves.map(|(leaf, factors)| take(split, factors, leaf, part)).collect::<Option<Vec<_>>>()
            })
        } else {
            on_slices(split, part).map(|result| result.leaves().into_iter().cloned().collect())
        };
        match (found, expected) {
            (Some(found), Some(expected)) => {
                found.len() == expected.len() && found.iter().zip(&expected).all(|(a, b)| is_equal(a, b))
            }
            _ => false,
        }
    })
}

/// Whether the factor has the property of a reduction factor.
fn reduces(split: &Split<'_>, by_masks: bool) -> bool {
    if split.rule.results.iter().any(|factors| has(split, factors)) {
        return false;
    }
    let zero = |_: Scalar| Scalar::Float(0.0);
    let results: Option<Vec<Literal>> = (0..split.parts)
        .map(|part| if by_masks { on_masked(split, part, zero) } else { on_slices(split, part) })
        .collect();
    let Some(results) = results else { return false };
    let sums = |leaf: usize| {
        let whole = split.whole.leaves()[leaf];
        let sum = |i: usize| results.iter().map(|result| number(result.leaves()[leaf].get(i))).sum::<f64>();
        (0..whole.array_shape().element_count()).all(|i| sum(i) == number(whole.get(i)))
    };
    (0..split.whole.leaves().len()).all(sums)
}

/// Operands of a case: constants, and parameters with small integers, so that sums are exact.
fn operands(case: &Case) -> Vec<Literal> {
    let (entry, root) = case.operation();
    let computation = &case.module[entry];
    let operand = |&id: &xla_hlo::InstrId| match computation[id].op() {
        Op::Constant(constant) => constant.literal.clone(),
        Op::Parameter(parameter) => {
            let array = computation[id].shape().expect_array().expect("an array");
            let number = parameter.number.to_string();
            let is_zero = case.words("zero").contains(&number.as_str());
            let has_diagonal = case.words("diagonal").contains(&number.as_str());
            let value = |i: usize| {
                let index = multi_index(array.dims(), i);
                let is_diagonal = index.len() > 1 && index[index.len() - 1] == index[index.len() - 2];
                let hash = (i as i64 + 1) * 2_654_435_761 + parameter.number as i64 * 40_503;
                let small = hash / 64 % 7 - 3;
                let value = if has_diagonal && is_diagonal { 64 } else { small };
                Scalar::from_i64(array.element_type(), if is_zero { 0 } else { value })
            };
            Literal::from_fn(array, value).expect("a literal")
        }
        other => panic!("{}: the operand {other:?} is neither a constant nor a parameter", case.name),
    };
    computation[root].operands().iter().map(operand).collect()
}

fn smallest_divisor(size: usize) -> Option<usize> {
    (2..=size).find(|&d| size.is_multiple_of(d))
}

#[test]
fn kinds_of_factors_hold_and_no_other_kind_does() {
    let (mut checked, mut wrong) = ([0; 4], Vec::new());
    for case in cases() {
        let Some(rule) = case.rule() else { continue };
        let operands = operands(&case);
        let (entry, root) = case.operation();
        let instruction = &case.module[entry][root];
        let mut evaluator = Evaluator::new(&case.module);
        let whole = instruction.op().rules().evaluate(&mut evaluator, operands.clone(), instruction.shape());
        let whole = whole.unwrap_or_else(|error| panic!("{}: {error}", case.name));
        for factor in 0..rule.factors.len() {
            let Some(parts) = smallest_divisor(rule.factors[factor].size) else { continue };
            if case.names("unchecked", factor) {
                continue;
            }
            let split = Split { case: &case, rule: &rule, operands: &operands, whole: &whole, factor, parts };
            let by_masks = case.names("masks", factor);
            let found = (passes_through(&split, by_masks), reduces(&split, by_masks));
            let kind = rule.factors[factor].kind;
            let expected = match kind {
                FactorKind::PassThrough => (true, false),
                FactorKind::Reduction => (false, true),
                FactorKind::NeedReplication | FactorKind::Permutation => (case.names("whole", factor), false),
            };
            checked[kind as usize] += 1;
            if found != expected {
                wrong.push(format!(
                    "{}: factor {factor} of {rule} is {kind:?}; as pass-through and as reduction it is {found:?}",
                    case.name
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Pass-through, reduction, replication, permutation.
    assert!(checked.iter().zip([80, 10, 15, 5]).all(|(count, least)| *count >= least), "{checked:?}");
}
