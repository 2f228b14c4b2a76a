//! Einsum with one or two operands, lowered to masks, reductions, a dot and a transpose.

use std::collections::HashMap;

use xla_hlo::ops::{Broadcast, Compare, CompareDirection, Constant, Dot, DotDims, Iota, Reduce, Select, Transpose};
use xla_hlo::{ArrayShape, ElementType, Error, InstrId, Literal, Result, Shape};

use super::call::Call;
use super::context::Lowering;
use super::reduction::sum_computation;

/// Lowers an einsum.
pub(super) fn lower(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Option<Result<InstrId>> {
    Some(match call.name {
        "einsum" => einsum(lowering, call),
        "unary_einsum" => unary(lowering, call),
        _ => return None,
    })
}

/// Array with a label for each dimension.
struct Labelled {
    value: InstrId,
    labels: Vec<char>,
}

fn unary(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<InstrId> {
    let [x] = call.exactly()?;
    let (operands, result) = configuration(lowering, call, &[x])?;
    let [labels] = &operands[..] else { return Err(wrong(call, "it must name one operand")) };
    let x = summed(lowering, Labelled { value: x, labels: labels.clone() }, |label| result.contains(&label))?;
    arranged(lowering, call, &x, &result)
}

/// Lowers an einsum of two operands. Labels of both operands are batch dimensions if the result has them; otherwise,
/// they are contracted.
fn einsum(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<InstrId> {
    let [a, b] = call.exactly()?;
    let (operands, result) = configuration(lowering, call, &[a, b])?;
    let [of_a, of_b] = &operands[..] else { return Err(wrong(call, "it must name two operands")) };
    let a = Labelled { value: a, labels: of_a.clone() };
    let b = Labelled { value: b, labels: of_b.clone() };
    let a = summed(lowering, a, |label| result.contains(&label) || of_b.contains(&label))?;
    let b = summed(lowering, b, |label| result.contains(&label) || of_a.contains(&label))?;
    let mut dims = DotDims::default();
    let mut labels = Vec::new();
    for (i, label) in a.labels.iter().enumerate() {
        let Some(j) = b.labels.iter().position(|other| other == label) else { continue };
        if result.contains(label) {
            dims.lhs_batch.push(i);
            dims.rhs_batch.push(j);
            labels.push(*label);
        } else {
            dims.lhs_contracting.push(i);
            dims.rhs_contracting.push(j);
        }
    }
    labels.extend(a.labels.iter().filter(|label| !b.labels.contains(label)));
    labels.extend(b.labels.iter().filter(|label| !a.labels.contains(label)));
    let dot = Dot { dims, precision: Vec::new(), algorithm: None };
    let value = lowering.infer(dot, [a.value, b.value])?;
    arranged(lowering, call, &Labelled { value, labels }, &result)
}

/// Transposes `x` to the order of the result's labels.
fn arranged(lowering: &mut Lowering<'_>, call: &Call<'_>, x: &Labelled, result: &[char]) -> Result<InstrId> {
    let place = |label: &char| x.labels.iter().position(|other| other == label);
    let permutation = result.iter().map(place).collect::<Option<Vec<usize>>>();
    let permutation = permutation.filter(|permutation| permutation.len() == x.labels.len());
    let permutation = permutation.ok_or_else(|| wrong(call, "the result must have labels of operands, each once"))?;
    if permutation.is_sorted() {
        return Ok(x.value);
    }
    lowering.add(Transpose { permutation }, call.shape(), [x.value])
}

/// Takes the diagonal of dimensions that share a label, and sums over labels that are not kept.
fn summed(lowering: &mut Lowering<'_>, x: Labelled, keep: impl Fn(char) -> bool) -> Result<Labelled> {
    let shape = lowering.shape(x.value);
    let shape = shape.expect_array()?.clone();
    let first = |d: usize| x.labels.iter().position(|label| *label == x.labels[d]).unwrap_or(d);
    let repeated: Vec<usize> = (0..x.labels.len()).filter(|&d| first(d) < d).collect();
    let dropped: Vec<usize> = (0..x.labels.len()).filter(|&d| first(d) < d || !keep(x.labels[d])).collect();
    if dropped.is_empty() {
        return Ok(x);
    }
    let ty = shape.element_type();
    let zero = lowering.infer(Constant { literal: Literal::zeros(&ArrayShape::new(ty, []))? }, [])?;
    let mut value = x.value;
    for d in repeated {
        let index = |lowering: &mut Lowering<'_>, dimension| {
            lowering.add(Iota { dimension }, Shape::array(ElementType::S64, shape.dims().to_vec()), [])
        };
        let (row, column) = (index(lowering, first(d))?, index(lowering, d)?);
        let equal = Compare { direction: CompareDirection::Eq, order: None };
        let mask = lowering.infer(equal, [row, column])?;
        let zeros = lowering.add(Broadcast { dimensions: Vec::new() }, Shape::Array(shape.clone()), [zero])?;
        value = lowering.infer(Select, [mask, value, zeros])?;
    }
    let computation = sum_computation(lowering, ty)?;
    let value = lowering.infer(Reduce { dimensions: dropped.clone(), computation }, [value, zero])?;
    let kept = (0..x.labels.len()).filter(|d| !dropped.contains(d));
    Ok(Labelled { value, labels: kept.map(|d| x.labels[d]).collect() })
}

/// Parses a configuration such as `ab,bc->ac` into the labels of each operand and of the result. `...` denotes the
/// unlabeled dimensions; the operands share them, aligned at the last one.
fn configuration(
    lowering: &mut Lowering<'_>,
    call: &Call<'_>,
    operands: &[InstrId],
) -> Result<(Vec<Vec<char>>, Vec<char>)> {
    let text: String = call.attributes.string("einsum_config")?.split_whitespace().collect();
    let (inputs, result) = text.split_once("->").ok_or_else(|| wrong(call, "it must have an arrow, `->`"))?;
    let inputs: Vec<&str> = inputs.split(',').collect();
    if inputs.len() != operands.len() {
        return Err(wrong(call, &format!("it names {} operands, there are {}", inputs.len(), operands.len())));
    }
    let mut labels = Vec::with_capacity(inputs.len());
    let mut extents: HashMap<char, usize> = HashMap::new();
    let mut most = 0;
    for (input, &operand) in inputs.iter().zip(operands) {
        let shape = lowering.shape(operand);
        let shape = shape.expect_array()?;
        let unnamed = shape.rank().checked_sub(input.replace("...", "").chars().count());
        let unnamed = unnamed.filter(|&count| count == 0 || input.contains("..."));
        let unnamed = unnamed.ok_or_else(|| wrong(call, &format!("`{input}` does not fit {shape}")))?;
        most = most.max(unnamed);
        let own = expanded(call, input, unnamed)?;
        for (&label, &extent) in own.iter().zip(shape.dims()) {
            if *extents.entry(label).or_insert(extent) != extent {
                return Err(wrong(call, &format!("a dimension of {shape} differs from another of its label")));
            }
        }
        labels.push(own);
    }
    Ok((labels, expanded(call, result, most)?))
}

/// Returns the labels of one operand, with private labels for the dimensions of `...`.
fn expanded(call: &Call<'_>, labels: &str, unnamed: usize) -> Result<Vec<char>> {
    // Private-use characters, which programs do not contain. The last unlabeled dimension gets the first one.
    let private = |i: usize| u32::try_from(i).ok().and_then(|i| char::from_u32(0xE000 + i));
    let private = (0..unnamed).rev().map(private).collect::<Option<String>>();
    let private = private.ok_or_else(|| wrong(call, "it has too many dimensions"))?;
    let labels = labels.replacen("...", &private, 1);
    match labels.chars().find(|label| label.is_ascii() && !label.is_ascii_alphabetic()) {
        Some(label) => Err(wrong(call, &format!("`{label}` is not a label"))),
        None => Ok(labels.chars().collect()),
    }
}

fn wrong(call: &Call<'_>, why: &str) -> Error {
    let config = call.attributes.string("einsum_config").unwrap_or_default();
    Error::invalid_argument(format!("einsum_config {config:?}: {why}"))
}
