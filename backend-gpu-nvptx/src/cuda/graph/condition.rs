//! Kernels that set the conditions of conditional nodes in their graph.

use crate::program::image::{CodeObject, KernelFunction, ModuleImage};

/// Index of the kernel that reads a loop's predicate. Parameters: the condition handle of the loop, and the address of
/// the predicate.
pub(super) const SET_CONDITION: usize = 0;

/// Index of the kernel that reads a conditional's selector. Parameters: the condition handle of a branch, the address
/// of the selector, the number of the branch, and the number of branches, or 0 if the selector is a predicate.
pub(super) const SET_BRANCH: usize = 1;

/// Returns the code of both kernels. They call `cudaGraphSetConditional`, which the driver provides.
pub(crate) fn condition_image() -> ModuleImage {
    let function = |name: &str, parameters| KernelFunction {
        name: name.to_string(),
        object: 0,
        threads: 1,
        shared_bytes: 0,
        together: false,
        parameters,
        maps: Vec::new(),
    };
    ModuleImage {
        functions: vec![function("set_condition", 2), function("set_branch", 4)],
        objects: vec![CodeObject::Ptx(include_str!("conditions.ptx").to_string())],
    }
}
