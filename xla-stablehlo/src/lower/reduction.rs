//! Operations that apply a function to elements: reductions, windowed reductions, maps, sorts.

use xla_hlo::ops::{Binary, BinaryOp, Map, Op, Reduce, ReduceWindow, SelectAndScatter, Sort, Window};
use xla_hlo::{CompId, ElementType, InstrId, Result, Shape};

use super::call::Call;
use super::context::Lowering;
use super::contraction::window_dims;
use super::promotion;

/// Lowers an operation that applies a function.
pub(super) fn lower(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Option<Result<InstrId>> {
    let op = match call.name {
        "reduce" => reduce(lowering, call),
        "reduce_window" => reduce_window(lowering, call),
        "select_and_scatter" => return Some(select_and_scatter(lowering, call)),
        "map" => map(lowering, call),
        "sort" => sort(lowering, call),
        _ => return None,
    };
    Some(op.and_then(|op| lowering.add(op, call.shape(), call.operands.clone())))
}

fn reduce(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<Op> {
    let [body] = call.regions()?;
    let dimensions = call.attributes.indices("dimensions")?;
    Ok(Reduce { dimensions, computation: lowering.closed_region("reduce_body", body)? }.into())
}

fn reduce_window(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<Op> {
    let [body] = call.regions()?;
    let list = |name| call.attributes.indices(name);
    let window = Window {
        dims: window_dims(
            &list("window_dimensions")?,
            &list("window_strides")?,
            &call.attributes.rows("padding")?,
            [&list("base_dilations")?, &list("window_dilations")?],
            &[],
        )?,
    };
    Ok(ReduceWindow { window, computation: lowering.closed_region("reduce_window_body", body)? }.into())
}

fn select_and_scatter(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<InstrId> {
    let [select, scatter] = call.regions()?;
    let list = |name| call.attributes.indices(name);
    let (sizes, strides) = (list("window_dimensions")?, list("window_strides")?);
    let window = Window { dims: window_dims(&sizes, &strides, &call.attributes.rows("padding")?, [&[], &[]], &[])? };
    let ty = promotion::element_type(lowering, scatter, 0)?;
    let operands = promotion::promoted(lowering, &call.operands, scatter, |_| Some(0))?;
    let select = promotion::comparison(lowering, select, ty)?;
    let op = SelectAndScatter { window, select, scatter: lowering.closed_region("scatter", scatter)? };
    lowering.add(op, call.shape(), operands)
}

fn map(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<Op> {
    let [body] = call.regions()?;
    let dimensions = call.attributes.indices("dimensions")?;
    Ok(Map { dimensions, computation: lowering.closed_region("map_body", body)? }.into())
}

fn sort(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<Op> {
    let [comparator] = call.regions()?;
    let dimension = dimension(lowering, call)?;
    let is_stable = call.attributes.flag("is_stable")?;
    Ok(Sort { dimension, is_stable, computation: lowering.closed_region("comparator", comparator)? }.into())
}

/// Returns the dimension to sort; a negative one counts from the end.
fn dimension(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<usize> {
    let dimension = call.attributes.int("dimension")?;
    let rank = match call.operands.first() {
        Some(&first) => lowering.shape(first).expect_array()?.rank() as i64,
        None => 0,
    };
    usize::try_from(if dimension < 0 { dimension + rank } else { dimension })
        .map_err(|_| xla_hlo::Error::invalid_argument(format!("dimension {dimension} is out of range for rank {rank}")))
}

/// Builds a computation that adds two scalars.
pub(super) fn sum_computation(lowering: &mut Lowering<'_>, ty: ElementType) -> Result<CompId> {
    lowering.computation("sum", |lowering| {
        let x = lowering.parameter(Shape::scalar(ty))?;
        let y = lowering.parameter(Shape::scalar(ty))?;
        lowering.infer(Binary { op: BinaryOp::Add }, [x, y])
    })
}
