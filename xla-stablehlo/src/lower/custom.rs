//! Custom calls.

use xla_hlo::ops::{CustomCall, CustomCallApi, OutputOperandAlias, ResultAccuracy, Unary, UnaryOp};
use xla_hlo::{Error, InstrId, Layout, Opcode, Result, Shape};

use super::attributes::Attributes;
use super::call::Call;
use super::context::Lowering;
use crate::ir::{AttrId, Attribute, EnumKind, Module, Type};

/// Names of the functions that a custom call may run.
pub(super) fn callees(attributes: Attributes<'_>) -> Result<Vec<String>> {
    let module = attributes.module;
    let name = |&id| match &module.attributes[id] {
        Attribute::Symbol(path) if path.len() == 1 => module.string_attribute(path[0]),
        _ => module.string_attribute(id),
    };
    let names = attributes.array("called_computations")?.iter().map(|id| name(id).map(|name| name.into_owned()));
    let names: Option<Vec<String>> = names.collect();
    names.ok_or_else(|| Error::invalid_argument("called_computations must be names of functions"))
}

/// Lowers a custom call.
pub(super) fn lower(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Option<Result<InstrId>> {
    (call.name == "custom_call").then(|| custom_call(lowering, call))
}

fn custom_call(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Result<InstrId> {
    let attributes = call.attributes;
    let module = attributes.module;
    let target = attributes.string("call_target_name")?;
    if let Some(op) = function(&target) {
        return lowering.add(Unary { op, accuracy: ResultAccuracy::Default }, call.shape(), call.operands.clone());
    }
    if attributes.get("mhlo.sharding").is_some() || attributes.get("sdy.sharding").is_some() {
        return Err(Error::unimplemented("a custom call with a sharding"));
    }
    let names = callees(attributes)?;
    let computations: Option<Vec<_>> = names.iter().map(|name| lowering.functions.get(name).copied()).collect();
    let computations = computations.ok_or_else(|| Error::invalid_argument("a called computation is not there"))?;
    let operands: Vec<Shape> = call.operands.iter().map(|&operand| lowering.shape(operand)).collect();
    let op = CustomCall {
        has_side_effect: attributes.flag("has_side_effect")?,
        operand_layouts: layouts(attributes, "operand_layouts", &operands)?,
        aliases: aliases(attributes)?,
        api: api(attributes.enumeration("api_version", EnumKind::CustomCallApiVersion)?),
        computations,
        ..CustomCall::new(target)
    };
    let shape = match layouts(attributes, "result_layouts", &call.results)? {
        Some(shapes) => super::types::packed_shape(shapes),
        None => call.shape(),
    };
    let id = lowering.add(op, shape, call.operands.clone())?;
    // Typed handlers of old programs have their dictionary beside the configuration.
    let config = attributes.get("mhlo.backend_config").or_else(|| attributes.get("backend_config"));
    if let Some(config) = config {
        let config = configuration(module, config)?;
        lowering.set_backend_config(id, config);
    }
    Ok(id)
}

/// The function that a target of MHLO stands for: `mhlo.acos`, which StableHLO lacks.
fn function(target: &str) -> Option<UnaryOp> {
    UnaryOp::from_opcode(Opcode::from_name(target.strip_prefix("mhlo.")?)?)
}

const fn api(version: &str) -> CustomCallApi {
    match version.as_bytes() {
        b"API_VERSION_STATUS_RETURNING" => CustomCallApi::StatusReturning,
        b"API_VERSION_STATUS_RETURNING_UNIFIED" => CustomCallApi::StatusReturningUnified,
        b"API_VERSION_TYPED_FFI" => CustomCallApi::TypedFfi,
        _ => CustomCallApi::Original,
    }
}

/// Shapes with the layouts of a list, minor dimension first; `None` where the list is empty.
fn layouts(attributes: Attributes<'_>, name: &str, shapes: &[Shape]) -> Result<Option<Vec<Shape>>> {
    let list = match attributes.get(name) {
        Some(_) => attributes.array(name)?,
        None => &[],
    };
    if list.is_empty() {
        return Ok(None);
    }
    if list.len() != shapes.len() {
        return Err(Error::invalid_argument(format!("{name} has {} entries, not {}", list.len(), shapes.len())));
    }
    let with_layout = |(&id, shape): (&AttrId, &Shape)| {
        let order = attributes.indices_of(name, id)?;
        Ok(match shape {
            Shape::Array(array) => Shape::Array(array.clone().with_layout(Some(Layout::from_minor_to_major(order)))),
            other => other.clone(),
        })
    };
    list.iter().zip(shapes).map(with_layout).collect::<Result<Vec<Shape>>>().map(Some)
}

fn aliases(attributes: Attributes<'_>) -> Result<Vec<OutputOperandAlias>> {
    let path = |path: &[i64]| path.iter().map(|&index| usize::try_from(index).ok()).collect::<Option<Vec<usize>>>();
    let alias = |&id: &AttrId| match &attributes.module.attributes[id] {
        Attribute::OutputOperandAlias { output, operand, operand_path } => Some(OutputOperandAlias {
            output: path(output)?,
            operand: usize::try_from(*operand).ok()?,
            path: path(operand_path)?,
        }),
        _ => None,
    };
    let aliases: Option<Vec<OutputOperandAlias>> =
        attributes.array("output_operand_aliases")?.iter().map(alias).collect();
    aliases.ok_or_else(|| Error::invalid_argument("output_operand_aliases must be a list of aliases"))
}

/// The text for the handler: a string as it is, a dictionary in MLIR's spelling.
fn configuration(module: &Module, id: AttrId) -> Result<String> {
    match &module.attributes[id] {
        Attribute::String(string) => match String::from_utf8(module.strings[*string].to_vec()) {
            Ok(text) => Ok(text),
            Err(_) => Err(Error::unimplemented("a backend_config of bytes that are no text")),
        },
        _ => value(module, id, 0),
    }
}

/// Values of dictionaries nest no deeper than this.
const MAX_DEPTH: usize = 32;

fn value(module: &Module, id: AttrId, depth: usize) -> Result<String> {
    if depth > MAX_DEPTH {
        return Err(Error::resource_exhausted(format!("backend_config nests deeper than {MAX_DEPTH}")));
    }
    let refused = || Error::unimplemented(format!("{} in backend_config", module.attribute_text(id)));
    let all = |list: &[AttrId]| {
        let texts = list.iter().map(|&id| value(module, id, depth + 1)).collect::<Result<Vec<String>>>();
        texts.map(|texts| texts.join(", "))
    };
    Ok(match &module.attributes[id] {
        Attribute::Unit => "unit".to_string(),
        Attribute::Bool(flag) => flag.to_string(),
        Attribute::Integer { ty, value } => match &module.types[*ty] {
            Type::Element(element) if element.is_signed() => format!("{value} : i{}", element.bit_width()),
            Type::Element(element) => format!("{} : ui{}", *value as u64, element.bit_width()),
            Type::Index => format!("{value} : index"),
            _ => return Err(refused()),
        },
        Attribute::Float { ty, bits } => match &module.types[*ty] {
            Type::Element(xla_hlo::ElementType::F32) => format!("{:?} : f32", f32::from_bits(*bits as u32)),
            Type::Element(xla_hlo::ElementType::F64) => format!("{:?} : f64", f64::from_bits(*bits)),
            _ => return Err(refused()),
        },
        Attribute::String(string) => format!("{:?}", module.text(*string)),
        Attribute::Array(list) => format!("[{}]", all(list)?),
        Attribute::Dictionary(entries) => {
            let mut texts = Vec::with_capacity(entries.len());
            for &(name, entry) in entries {
                let name = module.string_attribute(name).ok_or_else(refused)?;
                texts.push(format!("{name} = {}", value(module, entry, depth + 1)?));
            }
            format!("{{{}}}", texts.join(", "))
        }
        _ => return Err(refused()),
    })
}
