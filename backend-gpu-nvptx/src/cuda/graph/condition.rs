//! Kernels that hand what they read to the conditional nodes of their graph.

use crate::program::image::{CodeObject, KernelFunction, ModuleImage};

/// The kernel that reads a loop's predicate: its parameters are the loop's handle and the predicate's address.
pub(super) const SET_CONDITION: usize = 0;

/// The kernel that reads a conditional's selector: its parameters are the handle of a branch, the selector's address,
/// the branch's number, and the number of branches, or 0 if the selector is a predicate.
pub(super) const SET_BRANCH: usize = 1;

/// Both kernels. The function that they call is the driver's own.
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
