//! Forms of MLIR's and Shardy's operations.

use super::{Form, Types};
use crate::ir::Version;

/// Returns the form of an operation by its name with the dialect.
pub(super) fn form(name: &[u8]) -> Option<&'static Form> {
    OTHERS.iter().find(|form| form.name.as_bytes() == name)
}

macro_rules! others {
    ($($name:literal $operands:tt, $properties:tt, $results:tt, $regions:tt;)*) => {
        &[$(Form {
            name: $name,
            since: Version(0, 9, 0),
            until: None,
            operands: &$operands,
            properties: &$properties,
            results: &$results,
            regions: &$regions,
            types: Types::Any,
        },)*]
    };
}

// Columns: name, operands, properties, results, regions.
const OTHERS: &[Form] = others! {
    "builtin.module" [], ["?sym_name", "?sym_visibility"], [], ["body"];
    "builtin.unrealized_conversion_cast" ["*inputs"], [], ["*outputs"], [];
    "sdy.mesh" [], ["mesh", "sym_name"], [], [];
    "sdy.manual_computation" ["*tensors"], ["in_shardings", "manual_axes", "out_shardings"], ["*results"], ["body"];
    "sdy.sharding_constraint" ["input"], ["sharding"], ["result"], [];
    "sdy.reshard" ["input"], ["sharding"], ["result"], [];
    "sdy.return" ["*results"], [], [], [];
    "sdy.sharding_group" ["input"], ["group_id"], [], [];
    "sdy.propagation_barrier" ["input"], ["allowed_direction"], ["result"], [];
    "sdy.named_computation" ["*operands"], ["?in_shardings", "name", "?out_shardings"], ["*results"], ["body"];
    "sdy.data_flow_edge" ["input"], ["?sharding"], ["result"], [];
};
