//! Options that users set by name: XLA's `DebugOptions`, each checked against its type.

use std::collections::HashMap;
use std::path::PathBuf;

use xla_service::{CompileOptions, OptLevel};

use super::messages::{OptionOverrideProto, OverrideValue};
use crate::status::Status;

/// Names and types of XLA's options.
const NAMES: &str = include_str!("debug_options.txt");

/// Checks all options, and applies those that this crate supports.
pub(super) fn apply(
    overrides: &HashMap<String, OptionOverrideProto>,
    options: &mut CompileOptions,
) -> Result<(), Status> {
    // Sorted by name, so that the reported error is deterministic.
    let mut sorted: Vec<_> = overrides.iter().collect();
    sorted.sort_by_key(|(name, _)| *name);
    for (name, value) in sorted {
        let missing = || Status::invalid_argument(format!("No such compile option: '{name}'"));
        let ty =
            NAMES.lines().find_map(|line| line.strip_prefix(name.as_str())?.strip_prefix(' ')).ok_or_else(missing)?;
        let Some(value) = &value.value else { continue };
        check(name, ty, value)?;
        set(name, value, options)?;
    }
    Ok(())
}

/// Returns an error if the value does not have the option's type.
fn check(name: &str, ty: &str, value: &OverrideValue) -> Result<(), Status> {
    let (fits, expected) = match ty {
        "bool" => (as_flag(value).is_some(), "bool"),
        "int32" => (as_integer(value).is_some_and(|number| i32::try_from(number).is_ok()), "int32"),
        "int64" => (as_integer(value).is_some(), "int64"),
        "float" => (as_real(value).is_some(), "float"),
        // Not checked: enumerations are set by name or number, and lists are comma-separated.
        _ => (true, ty),
    };
    if fits {
        return Ok(());
    }
    let shown = match value {
        OverrideValue::Text(text) => text.clone(),
        OverrideValue::Flag(flag) => flag.to_string(),
        OverrideValue::Integer(number) => number.to_string(),
        OverrideValue::Real(number) => number.to_string(),
    };
    Err(Status::invalid_argument(format!("While setting option {name}, '{shown}' is not a valid {expected} value.")))
}

/// Applies a supported option.
fn set(name: &str, value: &OverrideValue, options: &mut CompileOptions) -> Result<(), Status> {
    match (name, value) {
        ("xla_backend_optimization_level", value) => {
            options.opt_level = match as_integer(value) {
                Some(0) => OptLevel::O0,
                Some(1) => OptLevel::O1,
                Some(2) | None => OptLevel::O2,
                Some(_) => OptLevel::O3,
            };
        }
        ("xla_allow_excess_precision", value) => options.excess_precision = as_flag(value).unwrap_or(true),
        // The list has the commands that graphs may contain; an empty list disables graphs.
        ("xla_gpu_enable_command_buffer", OverrideValue::Text(list)) => options.graphs = !list.is_empty(),
        ("xla_dump_to", OverrideValue::Text(folder)) => dump_to(folder, options)?,
        _ => {}
    }
    Ok(())
}

/// Sets the dump directory, unless its name is empty.
pub(super) fn dump_to(folder: &str, options: &mut CompileOptions) -> Result<(), Status> {
    match folder {
        "" => {}
        "-" => {
            return Err(Status::unimplemented(
                "xla_dump_to=-, dumps to the standard output, is not supported: name a directory",
            ));
        }
        folder => options.dump_to = Some(PathBuf::from(folder)),
    }
    Ok(())
}

fn as_flag(value: &OverrideValue) -> Option<bool> {
    match value {
        OverrideValue::Flag(flag) => Some(*flag),
        OverrideValue::Text(text) if ["true", "True", "1"].contains(&text.as_str()) => Some(true),
        OverrideValue::Text(text) if ["false", "False", "0"].contains(&text.as_str()) => Some(false),
        OverrideValue::Text(_) | OverrideValue::Integer(_) | OverrideValue::Real(_) => None,
    }
}

fn as_integer(value: &OverrideValue) -> Option<i64> {
    match value {
        OverrideValue::Integer(number) => Some(*number),
        OverrideValue::Text(text) => text.parse().ok(),
        OverrideValue::Flag(_) | OverrideValue::Real(_) => None,
    }
}

fn as_real(value: &OverrideValue) -> Option<f64> {
    match value {
        OverrideValue::Real(number) => Some(*number),
        OverrideValue::Integer(number) => Some(*number as f64),
        OverrideValue::Text(text) => text.parse().ok(),
        OverrideValue::Flag(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn graphs_are_what_may_be_in_them() {
        let graphs = |list: &str| {
            let value = OptionOverrideProto { value: Some(OverrideValue::Text(list.to_string())) };
            let mut options = CompileOptions::default();
            apply(&HashMap::from([("xla_gpu_enable_command_buffer".to_string(), value)]), &mut options).unwrap();
            options.graphs
        };
        assert!(graphs("fusion,cublas") && !graphs(""));
    }
}
