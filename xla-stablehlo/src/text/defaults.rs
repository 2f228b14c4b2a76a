//! Conversion of StableHLO's attributes to the form of VHLO: compound attributes are split, and missing attributes get
//! their default values.

use xla_hlo::{ElementType, Result};

use super::attributes::Entries;
use super::reader::Reader;
use crate::ir::{AttrId, Attribute, EnumKind, Module, StringId, Type};

/// Attributes that correspond to several of VHLO's.
const COMPOUND: [&[u8]; 6] = [
    b"algorithm",
    b"channel_handle",
    b"dimension_numbers",
    b"dot_dimension_numbers",
    b"ragged_dot_dimension_numbers",
    b"scatter_dimension_numbers",
];

/// Limit on the entries of a compound attribute.
const MOST_PARTS: usize = 16;

#[derive(Clone, Copy)]
enum Initial {
    False,
    Integer(i64),
    /// Tensor without elements.
    NoIntegers,
    /// Tensor of shape `[0, 2]`.
    NoPairs,
    EmptyList,
    Enum(EnumKind, u32),
}

/// Returns the default values for attributes that the text may omit.
fn defaults(operation: &str) -> &'static [(&'static str, Initial)] {
    use Initial::{EmptyList, Enum, False, Integer, NoIntegers, NoPairs};
    match operation {
        "convolution" | "dynamic_conv" => &[
            ("window_strides", NoIntegers),
            ("padding", NoPairs),
            ("lhs_dilation", NoIntegers),
            ("rhs_dilation", NoIntegers),
            ("window_reversal", NoIntegers),
        ],
        "reduce_window" => &[
            ("window_strides", NoIntegers),
            ("base_dilations", NoIntegers),
            ("window_dilations", NoIntegers),
            ("padding", NoPairs),
        ],
        "select_and_scatter" => {
            &[("window_dimensions", NoIntegers), ("window_strides", NoIntegers), ("padding", NoPairs)]
        }
        "gather" | "dynamic_gather" => &[("indices_are_sorted", False), ("index_vector_dim", Integer(0))],
        "scatter" => &[("indices_are_sorted", False), ("unique_indices", False), ("index_vector_dim", Integer(0))],
        "sort" => &[("dimension", Integer(-1)), ("is_stable", False)],
        "custom_call" => &[
            ("has_side_effect", False),
            ("api_version", Enum(EnumKind::CustomCallApiVersion, 1)),
            ("called_computations", EmptyList),
            ("output_operand_aliases", EmptyList),
        ],
        "dot_general" => &[
            ("lhs_batching_dimensions", NoIntegers),
            ("rhs_batching_dimensions", NoIntegers),
            ("lhs_contracting_dimensions", NoIntegers),
            ("rhs_contracting_dimensions", NoIntegers),
        ],
        "all_reduce" | "all_gather" | "reduce_scatter" | "collective_reduce" => {
            &[("channel_id", Integer(0)), ("use_global_device_ids", False)]
        }
        "all_to_all" | "collective_permute" | "collective_broadcast" => &[("channel_id", Integer(0))],
        "compare" | "broadcast_compare" => &[("compare_type", Enum(EnumKind::ComparisonType, 0))],
        "cholesky" => &[("lower", False)],
        _ => &[],
    }
}

impl Reader<'_> {
    /// Converts attributes to the form of VHLO, sorted by name.
    pub(super) fn normalized(&mut self, operation: &str, entries: Entries) -> Result<Entries> {
        normalized(&mut self.module, operation, entries).map_err(|what| self.cursor.expected(&format!("{what} before")))
    }

    /// Adds a tensor of shape `[N, 2]`.
    pub(super) fn push_rows(&mut self, rows: &[[i64; 2]]) -> AttrId {
        push_rows(&mut self.module, rows)
    }
}

/// Converts the attributes of an operation to the form of VHLO, sorted by name. The error names the expected text.
pub(crate) fn normalized(
    module: &mut Module,
    operation: &str,
    entries: impl IntoIterator<Item = (StringId, AttrId)>,
) -> std::result::Result<Entries, String> {
    let mut result = Entries::new();
    for (name, value) in entries {
        match &module.attributes[value] {
            Attribute::Dictionary(parts) if COMPOUND.contains(&&*module.strings[name]) => {
                // Aliases let many operations share a dictionary, so its size is limited to that of real compound
                // attributes.
                if parts.len() > MOST_PARTS {
                    return Err(format!("at most {MOST_PARTS} entries of {}", module.text(name)));
                }
                for &(name, value) in parts {
                    if let Attribute::String(name) = module.attributes[name] {
                        result.push((name, value));
                    }
                }
            }
            _ => result.push((name, value)),
        }
    }
    for &mut (name, ref mut value) in &mut result {
        let name = &*module.strings[name];
        let replaced = match module.attributes[*value] {
            Attribute::Unit if name == b"use_global_device_ids" => Attribute::Bool(true),
            Attribute::Integer { value, .. } if name == b"api_version" => {
                Attribute::Enum(EnumKind::CustomCallApiVersion, value.clamp(0, 4) as u32)
            }
            _ => continue,
        };
        *value = module.attributes.push(replaced);
    }
    for &(name, default) in defaults(operation) {
        let name = module.intern(name.as_bytes());
        if result.iter().all(|&(known, _)| known != name && module.strings[known] != module.strings[name]) {
            let value = initial(module, default);
            result.push((name, value));
        }
    }
    result.sort_by(|&(a, _), &(b, _)| module.strings[a].cmp(&module.strings[b]));
    Ok(result)
}

fn initial(module: &mut Module, default: Initial) -> AttrId {
    match default {
        Initial::False => module.attributes.push(Attribute::Bool(false)),
        Initial::Integer(value) => module.push_integer(value),
        Initial::NoIntegers => module.push_integers(&[]),
        Initial::NoPairs => push_rows(module, &[]),
        Initial::EmptyList => module.attributes.push(Attribute::Array(Vec::new())),
        Initial::Enum(kind, value) => module.attributes.push(Attribute::Enum(kind, value)),
    }
}

/// Adds a tensor of shape `[N, 2]`.
fn push_rows(module: &mut Module, rows: &[[i64; 2]]) -> AttrId {
    let element = module.element(ElementType::S64);
    let dims = vec![Some(rows.len() as u64), Some(2)];
    let ty = module.types.push(Type::Tensor { dims, element, encoding: None });
    let bytes = rows.iter().flatten().flat_map(|value| value.to_le_bytes()).collect();
    module.attributes.push(Attribute::Dense { ty, bytes })
}
