//! Custom calls.

use xla_hlo::ops::{CustomCall, CustomCallApi, OutputOperandAlias, Tuple};
use xla_hlo::{BackendConfig, Error, InstrId, Layout, Result, Shape, Tile, TileDim};

use super::approximate;
use super::attributes::Attributes;
use super::call::Call;
use super::context::Lowering;
use super::dictionary;
use super::refinement;
use crate::ir::{AttrId, Attribute, EnumKind, Module};

/// Custom call target with which JAX requests that the first operand be computed before the second one. It is dropped:
/// no value depends on it, and the platform's compiler schedules the program.
const CONTROL_DEPENDENCY: &str = "control_dep";

/// Returns the names of the functions that a custom call may run.
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
    if target == CONTROL_DEPENDENCY && call.results.is_empty() {
        // An unused empty tuple, which is dead.
        return lowering.add(Tuple, Shape::Tuple(Vec::new()), Vec::new());
    }
    if let Some(checked) = refinement::assertion(lowering, call, &target) {
        return checked;
    }
    let names = callees(attributes)?;
    let computations = names.iter().map(|name| lowering.called_computation(name)).collect::<Result<Vec<_>>>()?;
    // In old programs, the attribute dictionary of a typed FFI handler is separate from the configuration.
    let config = attributes.get("mhlo.backend_config").or_else(|| attributes.get("backend_config"));
    let config = config.map(|config| configuration(module, config)).transpose()?;
    if target == approximate::TOP_K {
        return approximate::top_k(lowering, call, &computations, &config.unwrap_or_default());
    }
    let operands: Vec<Shape> = call.operands.iter().map(|&operand| lowering.shape(operand)).collect();
    let op = CustomCall {
        has_side_effect: attributes.flag("has_side_effect")?,
        operand_layouts: layouts(call, "operand_layouts", &operands)?,
        aliases: aliases(attributes, &target)?,
        // Artifacts with typed FFI handlers state the original API version and have a separate dictionary.
        api: match attributes.get("mhlo.backend_config").map(|id| &module.attributes[id]) {
            Some(Attribute::Dictionary(_)) => CustomCallApi::TypedFfi,
            _ => api(attributes.enumeration("api_version", EnumKind::CustomCallApiVersion)?),
        },
        computations,
        ..CustomCall::new(target)
    };
    // A single tuple result has a layout for each element.
    let (results, is_tuple) = match &call.results[..] {
        [Shape::Tuple(elements)] => (&elements[..], true),
        results => (results, false),
    };
    let mut results = layouts(call, "result_layouts", results)?.unwrap_or_else(|| results.to_vec());
    tile(attributes, &mut results)?;
    let shape = if is_tuple { Shape::Tuple(results) } else { super::types::packed_shape(results) };
    let id = lowering.add(op, shape, call.operands.clone())?;
    if let Some(config) = config {
        lowering.set_backend_config(id, config);
    }
    Ok(id)
}

const fn api(version: &str) -> CustomCallApi {
    match version.as_bytes() {
        b"API_VERSION_STATUS_RETURNING" => CustomCallApi::StatusReturning,
        b"API_VERSION_STATUS_RETURNING_UNIFIED" => CustomCallApi::StatusReturningUnified,
        b"API_VERSION_TYPED_FFI" => CustomCallApi::TypedFfi,
        _ => CustomCallApi::Original,
    }
}

/// Assigns the listed layouts, minor to major, to shapes; `None` if the list is empty.
fn layouts(call: &Call<'_>, name: &str, shapes: &[Shape]) -> Result<Option<Vec<Shape>>> {
    let attributes = call.attributes;
    let list = match attributes.get(name) {
        Some(_) => attributes.array(name)?,
        None => &[],
    };
    if list.is_empty() {
        return Ok(None);
    }
    // The list includes layouts of the operands that are result shapes.
    let kept: Option<Vec<AttrId>> = match &call.kept_operands {
        Some(kept) if name == "operand_layouts" => kept.iter().map(|&index| list.get(index).copied()).collect(),
        _ => None,
    };
    let list = kept.as_deref().unwrap_or(list);
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

/// Adds tiles to the layouts of the results: `result_tilings` has a list of tiles for each result, outermost first.
fn tile(attributes: Attributes<'_>, results: &mut [Shape]) -> Result<()> {
    const NAME: &str = "result_tilings";
    let module = attributes.module;
    let lists = match attributes.get(NAME).map(|id| &module.attributes[id]) {
        Some(Attribute::Array(lists)) if !lists.is_empty() => lists,
        _ => return Ok(()),
    };
    let wrong =
        || Error::invalid_argument(format!("{NAME} must have a list of tiles for each of {} results", results.len()));
    if lists.len() != results.len() {
        return Err(wrong());
    }
    let mut all = Vec::with_capacity(lists.len());
    for &list in lists {
        let Attribute::Array(tiles) = &module.attributes[list] else { return Err(wrong()) };
        let tile = |&id: &AttrId| {
            let sizes = attributes.indices_of(NAME, id)?;
            Ok(Tile(sizes.into_iter().map(|size| TileDim::Size(size as u64)).collect()))
        };
        all.push(tiles.iter().map(tile).collect::<Result<Vec<Tile>>>()?);
    }
    for (result, tiles) in results.iter_mut().zip(all) {
        *result = result.map_layouts(&mut |array| {
            let layout = array.layout().cloned().unwrap_or_else(|| Layout::row_major(array.rank()));
            Some(Layout { tiles: tiles.clone(), ..layout })
        });
    }
    Ok(())
}

/// Returns the aliases between results and operands. By default, `Pin` (value to buffer) and `Unpin` (buffer to value)
/// alias their operand.
fn aliases(attributes: Attributes<'_>, target: &str) -> Result<Vec<OutputOperandAlias>> {
    if matches!(target, "Pin" | "Unpin") && attributes.array("output_operand_aliases")?.is_empty() {
        return Ok(vec![OutputOperandAlias { output: Vec::new(), operand: 0, path: Vec::new() }]);
    }
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

/// Returns the configuration for the handler: the bytes of a string, or a dictionary in MLIR's syntax.
fn configuration(module: &Module, id: AttrId) -> Result<BackendConfig> {
    match &module.attributes[id] {
        Attribute::String(string) => Ok(module.strings[*string].to_vec().into()),
        _ => dictionary::typed(module, id)
            .map(|attributes| attributes.to_string().into())
            .map_err(|error| error.context("backend_config")),
    }
}
