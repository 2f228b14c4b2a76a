//! Shape rules of collectives.

use std::collections::HashMap;

use super::super::checks::{self, ensure};
use super::attributes::{EXCHANGE, PARTS, RAGGED, REDUCE, ROOTED};
use super::participants::{Rules, check_channel};
use super::slices::sent_slices;
use super::{AllGather, Collective, CollectiveDone, CollectivePermute};
use crate::ops::ShapeContext;
use crate::{ArrayShape, CompId, ElementType, Error, Result, Shape};

pub(super) fn infer(op: &Collective, cx: &ShapeContext<'_>) -> Result<Shape> {
    match op {
        Collective::AllReduce(op) => {
            op.participants.check(cx.attributes(), REDUCE)?;
            reduced(cx, op.computation, cx.operands())
        }
        Collective::AllGather(op) => all_gather(op, cx),
        Collective::ReduceScatter { participants, dimension, computation } => {
            let members = participants.check(cx.attributes(), PARTS)?;
            reduced(cx, *computation, cx.operands())?;
            scaled(cx, *dimension, members, cx.written()?, |operand, result| (operand, result))
        }
        Collective::AllToAll { participants, dimension } => {
            let members = participants.check(cx.attributes(), EXCHANGE)?;
            all_to_all(cx, *dimension, members)
        }
        Collective::CollectivePermute(op) => permute(op, cx),
        Collective::CollectiveBroadcast { participants, has_dynamic_root } => {
            participants.check(cx.attributes(), ROOTED)?;
            whole(without_root(cx, *has_dynamic_root)?)
        }
        Collective::CollectiveReduce { participants, has_dynamic_root, computation } => {
            participants.check(cx.attributes(), Rules { use_global_device_ids: true, ..ROOTED })?;
            reduced(cx, *computation, without_root(cx, *has_dynamic_root)?)
        }
        Collective::RaggedAllToAll(participants) => {
            participants.check(cx.attributes(), RAGGED)?;
            ragged(cx)
        }
        Collective::Done(CollectiveDone::AllReduce) => Ok(cx.operand(0)?.without_layout()),
        Collective::Done(CollectiveDone::AllGather | CollectiveDone::CollectivePermute) => {
            let operand = cx.operand(0)?;
            match operand.as_tuple() {
                Some([_, results, ..]) => Ok(results.without_layout()),
                _ => Err(Error::invalid_argument(format!(
                    "operand 0 must be the result of a start operation, (operands, results), it is {operand}"
                ))),
            }
        }
        Collective::ReplicaId | Collective::PartitionId => Ok(Shape::scalar(ElementType::U32)),
    }
}

/// Returns the shape of a single array, or a tuple of the shapes of several.
fn whole(shapes: &[&Shape]) -> Result<Shape> {
    for shape in shapes {
        ensure!(shape.as_array().is_some(), "operands must be arrays, one is {shape}");
    }
    Ok(match shapes {
        [one] => one.without_layout(),
        several => Shape::Tuple(several.iter().map(|s| s.without_layout()).collect()),
    })
}

/// Returns the operands that are data, that is all but the root's number if there is one.
fn without_root<'a>(cx: &ShapeContext<'a>, has_dynamic_root: bool) -> Result<&'a [&'a Shape]> {
    if !has_dynamic_root {
        return Ok(cx.operands());
    }
    let Some((root, data)) = cx.operands().split_last() else {
        return Err(Error::invalid_argument("has_dynamic_root=true needs an operand, the root's number"));
    };
    ensure!(root.compatible(&Shape::scalar(ElementType::S32)), "the root's number must be s32[], it is {root}");
    Ok(data)
}

/// Checks a reduction of `operands` and returns its shape. Elements may have another float precision than the
/// reduction.
fn reduced(cx: &ShapeContext<'_>, computation: CompId, operands: &[&Shape]) -> Result<Shape> {
    let name = cx.computation(computation)?.name();
    let scalar = |shape: &Shape| shape.as_array().filter(|a| a.is_scalar()).map(ArrayShape::element_type);
    let parameters: Vec<_> = cx.parameter_shapes(computation)?.into_iter().map(scalar).collect();
    let (&[Some(a), Some(b)], Some(result)) = (&parameters[..], scalar(cx.result_shape(computation)?)) else {
        return Err(Error::invalid_argument(format!("the computation {name} must take two scalars and return one")));
    };
    ensure!(a == b && a == result, "the computation {name} takes {a} and {b} and returns {result}, not one type");
    for (i, operand) in operands.iter().enumerate() {
        let fits = operand.element_type().is_some_and(|ty| checks::feeds(ty, a));
        ensure!(fits, "operand {i} is {operand}, which the computation {name} of {a} cannot reduce");
    }
    whole(operands)
}

fn all_gather(op: &AllGather, cx: &ShapeContext<'_>) -> Result<Shape> {
    let members = op.participants.check(cx.attributes(), PARTS)?;
    let written = cx.written()?;
    if !op.is_start {
        return scaled(cx, op.dimension, members, written, |operand, result| (result, operand));
    }
    let Some([operands, results]) = written.as_tuple() else {
        return Err(Error::invalid_argument(format!("all-gather-start returns (operands, results), not {written}")));
    };
    let results = scaled(cx, op.dimension, members, results, |operand, result| (result, operand))?;
    let expected = whole(cx.operands())?;
    ensure!(operands.compatible(&expected), "element 0 of all-gather-start must be {expected}, it is {operands}");
    Ok(Shape::Tuple(vec![expected, results]))
}

/// Checks the result shape `written`, whose arrays have the dimensions of the operands except along `dimension`.
/// `order` sorts the operand's and the result's size along `dimension` into large and small; large must be `members`
/// times small.
fn scaled(
    cx: &ShapeContext<'_>,
    dimension: usize,
    members: Option<usize>,
    written: &Shape,
    order: fn(usize, usize) -> (usize, usize),
) -> Result<Shape> {
    let mut expected = Vec::with_capacity(cx.operands().len());
    let results: Vec<&Shape> = match (written, cx.operands()) {
        (Shape::Tuple(elements), operands) if operands.len() != 1 => elements.iter().collect(),
        _ => vec![written],
    };
    let count = cx.operands().len();
    ensure!(results.len() == count, "there are {count} operands and {} results", results.len());
    for (i, result) in results.iter().enumerate() {
        let operand = cx.array(i)?;
        ensure!(dimension < operand.rank(), "operand {i} is {operand}, which has no dimension {dimension}");
        let size = result.as_array().filter(|r| r.rank() == operand.rank()).map(|r| r.dims()[dimension]);
        let size = size.ok_or_else(|| {
            Error::invalid_argument(format!("result {i} must be an array of rank {}, it is {result}", operand.rank()))
        })?;
        let (large, small) = order(operand.dims()[dimension], size);
        let fits = match members {
            // A program that runs on one device may still have shapes for the number of devices it was written for.
            None | Some(1) => large == 0 || (small > 0 && large.is_multiple_of(small)),
            Some(n) => small.checked_mul(n) == Some(large),
        };
        ensure!(
            fits,
            "dimension {dimension} of operand {i} is {}, of the result {size}, in groups of {} devices",
            operand.dims()[dimension],
            members.map_or_else(|| "any number of".to_string(), |n| n.to_string())
        );
        let mut dims = operand.dims().to_vec();
        dims[dimension] = size;
        expected.push(checks::array(operand.element_type(), dims)?);
    }
    whole(&expected.iter().collect::<Vec<_>>())
}

fn all_to_all(cx: &ShapeContext<'_>, dimension: Option<usize>, members: Option<usize>) -> Result<Shape> {
    let operands = cx.operands();
    let Some(dimension) = dimension else {
        let Some((first, others)) = operands.split_first() else { return Ok(Shape::Tuple(Vec::new())) };
        ensure!(others.iter().all(|o| o.compatible(first)), "the parts of all-to-all must have the same shape");
        let fits = members.is_none_or(|n| n == 1 || n == operands.len());
        ensure!(fits, "all-to-all has {} parts in groups of {} devices", operands.len(), members.unwrap_or_default());
        whole(operands)?;
        return Ok(Shape::Tuple(operands.iter().map(|s| s.without_layout()).collect()));
    };
    ensure!(operands.len() == 1, "all-to-all along a dimension takes 1 operand, found {}", operands.len());
    let operand = cx.array(0)?;
    ensure!(dimension < operand.rank(), "operand 0 is {operand}, which has no dimension {dimension}");
    let (size, parts) = (operand.dims()[dimension], members.unwrap_or(1));
    ensure!(size.is_multiple_of(parts), "dimension {dimension} of {operand} cannot be cut into {parts} parts");
    Ok(cx.operand(0)?.without_layout())
}

fn permute(op: &CollectivePermute, cx: &ShapeContext<'_>) -> Result<Shape> {
    check_channel(op.channel_id)?;
    // A source may send each of its slices in a separate pair, and a target may receive each in a separate pair.
    let arrays = cx.operands().first().map_or(1, |operand| operand.leaves().len().max(1));
    check_pairs(&op.pairs, if op.is_in_place() { op.slice_sizes.len() / arrays } else { 1 })?;
    let operands = cx.operands();
    let (sent, received) = if !op.is_in_place() {
        (whole(operands)?, whole(operands)?)
    } else {
        let &[input, output, inputs_at, outputs_at] = operands else {
            return Err(Error::invalid_argument(format!(
                "collective-permute with slice_sizes takes input, output and two lists of indices, found {} operands",
                operands.len()
            )));
        };
        let (read, written) = (sent_slices(op, input, inputs_at)?, sent_slices(op, output, outputs_at)?);
        ensure!(read == written, "the indices of input and output must be for the same slices");
        (input.without_layout(), output.without_layout())
    };
    if !op.is_start {
        return Ok(received);
    }
    let written = cx.written()?;
    match written.as_tuple() {
        Some([a, b, ..]) if a.compatible(&sent) && b.compatible(&received) => Ok(written.without_layout()),
        _ => Err(Error::invalid_argument(format!(
            "collective-permute-start returns ({sent}, {received}, state...), not {written}"
        ))),
    }
}

/// Checks the pairs of sources and targets: each source and each target may be in at most `allowed` pairs.
fn check_pairs(pairs: &[Vec<i64>], allowed: usize) -> Result<()> {
    let (mut sources, mut targets) = (HashMap::new(), HashMap::new());
    let times = if allowed == 1 { "once".to_string() } else { format!("{allowed} times") };
    for pair in pairs {
        let &[source, target] = &pair[..] else {
            return Err(Error::invalid_argument("source_target_pairs are lists of two numbers each"));
        };
        ensure!(source >= 0 && target >= 0, "source_target_pairs names the negative number {}", source.min(target));
        for (seen, device, what) in [(&mut sources, source, "source"), (&mut targets, target, "target")] {
            let count = seen.entry(device).or_insert(0);
            *count += 1;
            ensure!(*count <= allowed, "{what} {device} appears more than {times} in source_target_pairs");
        }
    }
    Ok(())
}

fn ragged(cx: &ShapeContext<'_>) -> Result<Shape> {
    let (input, output) = (cx.array(0)?, cx.array(1)?);
    checks::same_element_type(("operand 0", input), ("operand 1", output))?;
    let rows_fit = input.rank() > 0 && output.rank() == input.rank() && input.dims()[1..] == output.dims()[1..];
    ensure!(rows_fit, "operands 0 and 1 must have rows of the same shape, they are {input} and {output}");
    let places = cx.array(2)?;
    for i in 2..6 {
        let list = cx.array(i)?;
        checks::integer(&format!("operand {i}"), list)?;
        let fits = list.same_dims(places) && matches!(list.rank(), 1 | 2);
        ensure!(fits, "operands 2 to 5 must have the same one or two dimensions, operand {i} is {list}");
    }
    Ok(cx.operand(1)?.without_layout())
}
