//! Dot products and convolutions.

use xla_hlo::ops::{
    Convolution, ConvolutionDims, ConvolutionKind, Dot, DotAlgorithm, DotDims, Op, Precision, SparsityConfig, Window,
    WindowDim,
};
use xla_hlo::{ElementType, Error, InstrId, Result};

use super::call::Call;
use super::context::Lowering;
use super::types;
use crate::ir::{Attribute, EnumKind, Type};

/// Lowers a dot product or convolution.
pub(super) fn lower(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Option<Result<InstrId>> {
    let op = match call.name {
        "dot_general" => dot_general(call),
        "dot" => dot(lowering, call),
        "convolution" => call.exactly().and_then(|[_, kernel]| {
            let padding = call.attributes.rows("padding")?;
            convolution(lowering, call, kernel, &padding)
        }),
        _ => return None,
    };
    Some(op.and_then(|op| lowering.add(op, call.shape(), call.operands.clone())))
}

fn dot_general(call: &Call<'_>) -> Result<Op> {
    let list = |name| call.attributes.indices(name);
    let dims = DotDims {
        lhs_batch: list("lhs_batching_dimensions")?,
        rhs_batch: list("rhs_batching_dimensions")?,
        lhs_contracting: list("lhs_contracting_dimensions")?,
        rhs_contracting: list("rhs_contracting_dimensions")?,
    };
    Ok(Dot { dims, precision: precision(call)?, algorithm: algorithm(call)? }.into())
}

/// Lowers `dot`, which contracts the last dimension of the left operand with the first of the right one.
fn dot(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<Op> {
    let [lhs, _] = call.exactly()?;
    let rank = lowering.shape(lhs).expect_array()?.rank();
    let last = rank.checked_sub(1).ok_or_else(|| Error::invalid_argument("the left operand of dot is a scalar"))?;
    let dims = DotDims { lhs_contracting: vec![last], rhs_contracting: vec![0], ..DotDims::default() };
    Ok(Dot { dims, precision: precision(call)?, algorithm: None }.into())
}

/// Returns the precision of each operand; an empty list if none is set.
pub(super) fn precision(call: &Call<'_>) -> Result<Vec<Precision>> {
    let module = call.attributes.module;
    // Composites store enumerators as strings.
    let name = |&id| match module.attributes[id] {
        Attribute::Enum(EnumKind::Precision, value) => EnumKind::Precision.names().get(value as usize).copied(),
        Attribute::String(text) => {
            EnumKind::Precision.names().iter().copied().find(|name| name.as_bytes() == &*module.strings[text])
        }
        _ => None,
    };
    let one = |id| match name(id) {
        Some("DEFAULT") => Ok(Precision::Default),
        Some("HIGH") => Ok(Precision::High),
        Some("HIGHEST") => Ok(Precision::Highest),
        _ => Err(Error::invalid_argument("precision_config must be a list of precisions")),
    };
    match call.attributes.get("precision_config") {
        Some(_) => {
            let list: Vec<Precision> =
                call.attributes.array("precision_config")?.iter().map(one).collect::<Result<_>>()?;
            Ok(if let [both] = list[..] { vec![both; 2] } else { list })
        }
        None => Ok(Vec::new()),
    }
}

/// Returns the algorithm of a dot product, given by its types and components.
fn algorithm(call: &Call<'_>) -> Result<Option<DotAlgorithm>> {
    let module = call.attributes.module;
    let ty = |name: &str| -> Result<Option<Option<ElementType>>> {
        match call.attributes.get(name).map(|id| &module.attributes[id]) {
            None => Ok(None),
            Some(Attribute::Type(ty)) => match &module.types[*ty] {
                Type::None => Ok(None),
                Type::Foreign("tf32") => Ok(Some(None)),
                _ => types::element_type(module, *ty).map(|ty| Some(Some(ty))),
            },
            Some(_) => Err(Error::invalid_argument(format!("{name} must be a type"))),
        }
    };
    let Some(lhs) = ty("lhs_precision_type")? else { return Ok(None) };
    let rhs = ty("rhs_precision_type")?.flatten();
    let accumulation = ty("accumulation_type")?.flatten();
    let operations = call.attributes.int("num_primitive_operations")?;
    let components = [call.attributes.int("lhs_component_count")?, call.attributes.int("rhs_component_count")?];
    let imprecise = call.attributes.flag("allow_imprecise_accumulation")?;
    use ElementType::{BF16, F16, F32, F64};
    let is_f8 = |ty: Option<ElementType>| ty.is_some_and(|ty| ty.is_float() && ty.bit_width() == 8);
    let found = match (lhs, rhs, accumulation, operations) {
        (_, _, Some(F32), 1) if is_f8(lhs) && is_f8(rhs) && imprecise => Some(DotAlgorithm::AnyF8AnyF8F32FastAccum),
        (_, _, Some(F32), 1) if is_f8(lhs) && is_f8(rhs) => Some(DotAlgorithm::AnyF8AnyF8F32),
        (Some(F16), Some(F16), Some(F16), 1) => Some(DotAlgorithm::F16F16F16),
        (Some(F16), Some(F16), Some(F32), 1) => Some(DotAlgorithm::F16F16F32),
        (Some(BF16), Some(BF16), Some(BF16), 1) => Some(DotAlgorithm::Bf16Bf16Bf16),
        (Some(BF16), Some(BF16), Some(F32), 1) => Some(DotAlgorithm::Bf16Bf16F32),
        (Some(BF16), Some(BF16), Some(F32), 3) => Some(DotAlgorithm::Bf16Bf16F32X3),
        (Some(BF16), Some(BF16), Some(F32), 6) => Some(DotAlgorithm::Bf16Bf16F32X6),
        (Some(BF16), Some(BF16), Some(F32), 9) => Some(DotAlgorithm::Bf16Bf16F32X9),
        (None, None, Some(F32), 1) => Some(DotAlgorithm::Tf32Tf32F32),
        (None, None, Some(F32), 3) => Some(DotAlgorithm::Tf32Tf32F32X3),
        (Some(F32), Some(F32), Some(F32), 1) => Some(DotAlgorithm::F32F32F32),
        (Some(F64), Some(F64), Some(F64), 1) => Some(DotAlgorithm::F64F64F64),
        _ => None,
    };
    found.map(Some).ok_or_else(|| {
        let named = |ty: Option<ElementType>| ty.map_or("tf32", ElementType::name);
        Error::unimplemented(format!(
            "the dot algorithm of {} and {} in {} with {operations} operations of {components:?} components is not supported",
            named(lhs),
            named(rhs),
            accumulation.map_or("no type", ElementType::name),
        ))
    })
}

/// Lowers a convolution with these paddings, one row per spatial dimension.
pub(super) fn convolution(
    lowering: &mut Lowering<'_>,
    call: &Call<'_>,
    kernel: InstrId,
    padding: &[Vec<i64>],
) -> Result<Op> {
    let (index, list) = (|name| call.attributes.index(name), |name| call.attributes.indices(name));
    let dims = ConvolutionDims {
        input_batch: index("input_batch_dimension")?,
        input_feature: index("input_feature_dimension")?,
        input_spatial: list("input_spatial_dimensions")?,
        kernel_input_feature: index("kernel_input_feature_dimension")?,
        kernel_output_feature: index("kernel_output_feature_dimension")?,
        kernel_spatial: list("kernel_spatial_dimensions")?,
        output_batch: index("output_batch_dimension")?,
        output_feature: index("output_feature_dimension")?,
        output_spatial: list("output_spatial_dimensions")?,
    };
    let shape = lowering.shape(kernel);
    let extents = shape.expect_array()?.dims();
    let sizes: Option<Vec<usize>> = dims.kernel_spatial.iter().map(|&d| extents.get(d).copied()).collect();
    let sizes = sizes
        .ok_or_else(|| Error::invalid_argument("kernel_spatial_dimensions must be less than the kernel's rank"))?;
    let window = Window {
        dims: window_dims(
            &sizes,
            &list("window_strides")?,
            padding,
            [&list("lhs_dilation")?, &list("rhs_dilation")?],
            &call.attributes.ints("window_reversal")?,
        )?,
    };
    Ok(Convolution {
        window,
        dims,
        feature_group_count: index("feature_group_count")?,
        batch_group_count: index("batch_group_count")?,
        precision: precision(call)?,
        algorithm: None,
        kind: ConvolutionKind::Unset,
        sparsity: SparsityConfig::default(),
    }
    .into())
}

/// Returns the dimensions of a window. An empty list means the default value in every dimension.
pub(super) fn window_dims(
    sizes: &[usize],
    strides: &[usize],
    padding: &[Vec<i64>],
    [base, window]: [&[usize]; 2],
    reversal: &[i64],
) -> Result<Vec<WindowDim>> {
    let rank = sizes.len();
    let fits = |length: usize| length == 0 || length == rank;
    if ![strides.len(), padding.len(), base.len(), window.len(), reversal.len()].into_iter().all(fits) {
        return Err(Error::invalid_argument(format!("the lists of a window of {rank} dimensions differ in length")));
    }
    let at = |list: &[usize], d: usize| list.get(d).copied().unwrap_or(1);
    let pads = |d: usize| match padding.get(d).map(Vec::as_slice) {
        None => Ok((0, 0)),
        Some(&[low, high]) => Ok((low, high)),
        Some(_) => Err(Error::invalid_argument("padding must have two columns")),
    };
    (0..rank)
        .map(|d| {
            let (pad_low, pad_high) = pads(d)?;
            Ok(WindowDim {
                size: sizes[d],
                stride: at(strides, d),
                pad_low,
                pad_high,
                window_dilation: at(window, d),
                base_dilation: at(base, d),
                reversal: reversal.get(d).is_some_and(|&flag| flag != 0),
            })
        })
        .collect()
}
