//! Attributes of a module's header: layouts, aliasing, donation, replication, stack tables.

use super::annotations::FrontendAttributes;
use crate::Shape;

/// Everything in the header but the name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModuleAttributes {
    /// Whether the order of instructions is the schedule.
    pub is_scheduled: bool,
    /// Parameter and result shapes with layouts; absent: those of the entry computation.
    pub entry_computation_layout: Option<ProgramShape>,
    /// Outputs that may or must live in a parameter's buffer.
    pub input_output_alias: Vec<InputOutputAlias>,
    /// Parameters whose buffers may be reused for anything.
    pub buffer_donors: Vec<ParameterLeaf>,
    /// `alias_passthrough_params`.
    pub alias_passthrough_params: bool,
    /// Copies of the program; 0 when the text does not say.
    pub replica_count: u64,
    /// Parts of the program; 0 when the text does not say.
    pub num_partitions: u64,
    /// One flag for all, or one for each parameter.
    pub allow_spmd_sharding_propagation_to_parameters: Vec<bool>,
    /// One flag for all, or one for each output.
    pub allow_spmd_sharding_propagation_to_output: Vec<bool>,
    /// Free text from the framework.
    pub frontend_attributes: FrontendAttributes,
    /// `origin_recovery_table={...}`, braces included, white space normalised.
    pub origin_recovery_table: String,
    /// `debug_attributes={...}`, braces included, white space normalised.
    pub debug_attributes: String,
    /// The tables that `stack_frame_id` points into.
    pub stack: StackTables,
}

/// Parameter shapes and the result's shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramShape {
    /// In the order of the parameters.
    pub parameters: Vec<Shape>,
    /// Of the root.
    pub result: Shape,
}

/// A leaf of a parameter.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ParameterLeaf {
    /// The parameter's number.
    pub parameter: usize,
    /// Path into its tuple shape; empty for arrays.
    pub path: Vec<usize>,
}

/// One entry of `input_output_alias`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InputOutputAlias {
    /// Path into the result; empty for a result that is not a tuple.
    pub output: Vec<usize>,
    /// The parameter's leaf.
    pub parameter: ParameterLeaf,
    /// Whether a copy is forbidden.
    pub must_alias: bool,
}

/// Deduplicated stack frames; all ids are 1-based, 0 is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StackTables {
    /// Names of source files.
    pub file_names: Vec<String>,
    /// Names of functions.
    pub function_names: Vec<String>,
    /// Places in files.
    pub file_locations: Vec<FileLocation>,
    /// Frames, each with the frame that called it.
    pub stack_frames: Vec<StackFrame>,
}

impl StackTables {
    /// Whether no table has an entry.
    pub fn is_empty(&self) -> bool {
        self.file_names.is_empty()
            && self.function_names.is_empty()
            && self.file_locations.is_empty()
            && self.stack_frames.is_empty()
    }
}

/// A place in a source file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileLocation {
    /// 1-based into the file names.
    pub file_name_id: i64,
    /// 1-based into the function names.
    pub function_name_id: i64,
    /// First line.
    pub line: i64,
    /// Last line.
    pub end_line: i64,
    /// First column.
    pub column: i64,
    /// Last column.
    pub end_column: i64,
}

/// A call on the stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackFrame {
    /// 1-based into the file locations.
    pub file_location_id: i64,
    /// The calling frame as stored: 0 for a root (text prints one more).
    pub parent_frame_id: i64,
}
