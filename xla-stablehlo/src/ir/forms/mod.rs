//! Table of the operations of VHLO and related dialects. Readers, verifier and documentation all use it.

mod others;
pub(crate) mod properties;
mod vhlo;

use super::Version;

pub use vhlo::FORMS;

/// Form of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// Name without the dialect, such as `add_v1`.
    pub name: &'static str,
    /// First VHLO version with this form.
    pub since: Version,
    /// Last VHLO version with this form; `None` if it is current.
    pub until: Option<Version>,
    /// Names of the operands; a `*` prefix marks a group of any number.
    pub operands: &'static [&'static str],
    /// Names of the inherent attributes, in the alphabetical order of the properties; a `?` prefix marks an optional
    /// one.
    pub properties: &'static [&'static str],
    /// Names of the results; a `*` prefix marks a group of any number.
    pub results: &'static [&'static str],
    /// Names of the regions; a `*` prefix marks a group of any number.
    pub regions: &'static [&'static str],
    /// Rule for the types of operands and results.
    pub types: Types,
}

/// Rules for the types of operands and results. A dynamic dimension agrees with any extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Types {
    /// No rule; the lowering checks the types.
    Any,
    /// All operands and results have the same type.
    Same,
    /// Each result has the type of the operand at its position.
    Pairs,
    /// Each result has the dimensions of the operand at its position, possibly with a wider element type.
    PairedShapes,
    /// The result has the type of the first operand.
    First,
    /// The result has the type of all operands but the first.
    Branches,
    /// All operands and results have the same dimensions.
    Shape,
    /// The result has the element type of the first operand.
    Element,
    /// Each result has the element type of the operand at its position.
    PairedElements,
}

impl Form {
    /// Returns the name without dialect and version.
    pub fn stem(&self) -> &'static str {
        self.name.rsplit_once("_v").map_or(self.name, |(stem, _)| stem)
    }
}

/// Properties that StableHLO's text may omit, where VHLO has `none`, a default or an empty list.
#[doc(hidden)]
pub const LEFT_OUT: &[&str] = &[
    "accumulation_type",
    "allow_imprecise_accumulation",
    "arg_attrs",
    "backend_config",
    "channel_id",
    "channel_type",
    "collapsed_slice_dims",
    "composite_attributes",
    "has_dynamic_root",
    "infeed_config",
    "input_batching_dims",
    "inserted_window_dims",
    "is_host_transfer",
    "known_expanding_dimensions",
    "known_nonexpanding_dimensions",
    "layout",
    "lhs_component_count",
    "lhs_precision_type",
    "num_primitive_operations",
    "offset_dims",
    "operand_batching_dims",
    "operand_layouts",
    "outfeed_config",
    "precision_config",
    "res_attrs",
    "result_accuracy",
    "result_layouts",
    "result_tilings",
    "rhs_component_count",
    "rhs_precision_type",
    "scatter_dims_to_operand_dims",
    "scatter_indices_batching_dims",
    "source_target_pairs",
    "start_index_map",
    "start_indices_batching_dims",
    "sym_visibility",
    "transpose_a",
    "unit_diagonal",
    "update_window_dims",
    "version",
];

/// Returns the form of an operation by its name with the dialect. For StableHLO, this is VHLO's newest form.
pub fn form(name: &[u8]) -> Option<&'static Form> {
    let (dialect, own) = name.split_at(name.iter().position(|&byte| byte == b'.')?);
    let own = &own[1..];
    match dialect {
        b"vhlo" => FORMS.binary_search_by(|form| form.name.as_bytes().cmp(own)).ok().map(|index| &FORMS[index]),
        b"stablehlo" if own != b"func" && own != b"call" => newest(own),
        b"func" if matches!(own, b"func" | b"call" | b"return") => newest(own),
        _ => others::form(name),
    }
}

/// Returns the inherent attributes of an operation by its name with the dialect, in the order of bytecode; a `?` prefix
/// marks an optional one. One attribute of StableHLO may hold several of VHLO's.
pub fn properties(name: &[u8]) -> Option<&'static [&'static str]> {
    properties::of(name).or_else(|| form(name).map(|form| form.properties).filter(|_| !name.starts_with(b"stablehlo.")))
}

/// Returns the newest form of a StableHLO operation.
fn newest(stem: &[u8]) -> Option<&'static Form> {
    // The table is sorted by name, not by stem: `log_plus_one_v2` precedes `log_v2`.
    let after = || stem.iter().copied().chain(*b"_w");
    let end = FORMS.partition_point(|form| form.name.bytes().lt(after()));
    FORMS[..end].last().filter(|form| form.stem().as_bytes() == stem)
}

/// Whether StableHLO's text may omit a property.
pub fn may_be_left_out(property: &str) -> bool {
    property.starts_with('?') || LEFT_OUT.contains(&property)
}
