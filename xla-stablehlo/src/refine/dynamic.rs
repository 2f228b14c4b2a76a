//! Analysis of the functions with dynamic dimensions, whose lowering depends on the shapes at each call.

use std::collections::HashSet;

use xla_hlo::entity::EntityId;

use crate::ir::{Attribute, Module, OpId, Type, TypeId, ValueId};

/// For each type of a program, whether it has a dimension without a size and without a bound.
struct DynamicTypes(Vec<bool>);

impl DynamicTypes {
    /// Analyzes all types of a program.
    fn new(program: &Module) -> DynamicTypes {
        DynamicTypes(program.types.iter().map(|(_, ty)| is_open(program, ty)).collect())
    }

    fn has(&self, ty: TypeId) -> bool {
        self.0[ty.index()]
    }
}

fn is_open(program: &Module, ty: &Type) -> bool {
    let Type::Tensor { dims, encoding, .. } = ty else { return false };
    let bounds = match encoding.map(|encoding| &program.attributes[encoding]) {
        Some(Attribute::TypeExtensions(bounds)) => &bounds[..],
        _ => &[],
    };
    (0..dims.len()).any(|d| dims[d].is_none() && bounds.get(d).is_none_or(|&bound| bound < 0))
}

/// Returns the names of the functions that have a value of a dynamic type or call such a function. `functions` must
/// list each function after its callees.
pub(crate) fn dynamic_functions<'n>(
    program: &Module,
    functions: impl IntoIterator<Item = (&'n str, OpId, Vec<String>)>,
) -> HashSet<String> {
    let types = DynamicTypes::new(program);
    let mut dynamic = HashSet::new();
    for (name, op, callees) in functions {
        if callees.iter().any(|callee| dynamic.contains(callee)) || has_value(program, &types, op) {
            dynamic.insert(name.to_string());
        }
    }
    dynamic
}

/// Whether a function has a value of a dynamic type.
fn has_value(program: &Module, types: &DynamicTypes, function: OpId) -> bool {
    let is_dynamic = |&value: &ValueId| types.has(program.values[value].ty);
    let mut operations = vec![function];
    while let Some(op) = operations.pop() {
        let operation = &program.operations[op];
        if operation.results.iter().any(is_dynamic) {
            return true;
        }
        for &block in operation.regions.iter().flat_map(|&region| &program.regions[region].blocks) {
            let block = &program.blocks[block];
            if block.arguments.iter().any(is_dynamic) {
                return true;
            }
            operations.extend(&block.operations);
        }
    }
    false
}
