//! Kernel that hands the predicate of a loop to the conditional node of its graph.

use crate::program::image::{CodeObject, KernelFunction, ModuleImage};

/// The kernel that reads a loop's predicate: its parameters are the loop's handle and the predicate's address. The
/// function that it calls is the driver's own.
pub(crate) fn condition_image() -> ModuleImage {
    let function = KernelFunction {
        name: "set_condition".to_string(),
        object: 0,
        threads: 1,
        shared_bytes: 0,
        together: false,
        parameters: 2,
    };
    ModuleImage {
        functions: vec![function],
        objects: vec![CodeObject::Ptx(include_str!("set_condition.ptx").to_string())],
    }
}
