//! Outlines of programs, which are equal for all forms of a program.

use xla_hlo::entity::EntityId;
use xla_stablehlo::ir::forms::may_be_left_out;
use xla_stablehlo::ir::{Attribute, Module, OpId, ValueId};

/// Attributes whose defaults are omitted in text: ones or zeros for each dimension.
const WINDOW: [&str; 7] = [
    "base_dilations",
    "lhs_dilation",
    "padding",
    "rhs_dilation",
    "window_dilations",
    "window_reversal",
    "window_strides",
];

/// Returns the name of an operation without dialect and version.
pub fn stem(module: &Module, op: OpId) -> String {
    let name = module.text(module.operations[op].name).into_owned();
    let own = name.split_once('.').map_or(&*name, |(_, own)| own);
    let versioned = own.rsplit_once("_v").filter(|(_, version)| version.bytes().all(|byte| byte.is_ascii_digit()));
    versioned.map_or(own, |(stem, _)| stem).to_string()
}

/// Returns one line for each operation: name, operands, types of results and of the arguments of regions, and
/// attributes that no form may omit.
pub fn outline(module: &Module) -> Vec<String> {
    // Values are numbered in the order of the text, independently of the reader.
    let mut numbers = vec![0; module.values.len()];
    let mut next = 1..;
    let mut lines = Vec::new();
    for op in module.walk() {
        let operation = &module.operations[op];
        let operands: Vec<usize> = operation.operands.iter().map(|value| numbers[value.index()]).collect();
        let mut line = format!("{} {operands:?}", stem(module, op));
        let blocks = operation.regions.iter().flat_map(|&region| &module.regions[region].blocks);
        let arguments = blocks.flat_map(|&block| &module.blocks[block].arguments);
        for &value in operation.results.iter().chain(arguments) {
            let value: ValueId = value;
            numbers[value.index()] = next.next().expect("a number");
            line += &format!(" {}", module.type_text(module.values[value].ty));
        }
        for &(name, value) in &operation.attributes {
            let name = module.text(name);
            if !may_be_left_out(&name) && !WINDOW.contains(&&*name) && !name.contains('.') {
                line += &format!(" {name}={}", attribute(module, value));
            }
        }
        lines.push(line);
    }
    lines
}

/// Returns the text of an attribute, equal for symbols and strings, and for splats and lists of equal elements.
fn attribute(module: &Module, id: xla_stablehlo::ir::AttrId) -> String {
    match &module.attributes[id] {
        Attribute::Symbol(path) if path.len() == 1 => module.attribute_text(path[0]),
        Attribute::Array(list) => list.iter().map(|&id| attribute(module, id)).collect::<Vec<_>>().join(", "),
        Attribute::Dense { ty, bytes } => {
            let width = bytes.len().clamp(1, 8);
            let is_splat = bytes.len() % 8 == 0 && bytes.chunks(width).all(|element| element == &bytes[..width]);
            let bytes = if is_splat { &bytes[..width.min(bytes.len())] } else { bytes };
            format!("{bytes:?}: {}", module.type_text(*ty))
        }
        _ => module.attribute_text(id),
    }
}
