//! Attributes of a module's header: layouts, aliasing, donation, replication, stack tables.

use super::annotations::FrontendAttributes;
use crate::Shape;

/// Attributes of the module header, except the name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModuleAttributes {
    /// Whether the order of instructions is the schedule.
    pub is_scheduled: bool,
    /// Parameter and result shapes with layouts; if absent, the entry computation determines them.
    pub entry_computation_layout: Option<ProgramShape>,
    /// Outputs that may or must share a parameter's buffer.
    pub input_output_alias: Vec<InputOutputAlias>,
    /// Parameters whose buffers may be reused for any purpose.
    pub buffer_donors: Vec<ParameterLeaf>,
    /// `alias_passthrough_params`.
    pub alias_passthrough_params: bool,
    /// Number of replicas of the program; 0 if the text does not state it.
    pub replica_count: u64,
    /// Number of partitions of the program; 0 if the text does not state it.
    pub num_partitions: u64,
    /// One flag for all, or one for each parameter.
    pub allow_spmd_sharding_propagation_to_parameters: Vec<bool>,
    /// One flag for all, or one for each output.
    pub allow_spmd_sharding_propagation_to_output: Vec<bool>,
    /// Free text from the framework.
    pub frontend_attributes: FrontendAttributes,
    /// `origin_recovery_table={...}`, with braces and normalized white space.
    pub origin_recovery_table: String,
    /// `debug_attributes={...}`, with braces and normalized white space.
    pub debug_attributes: String,
    /// Tables that `stack_frame_id` refers to.
    pub stack: StackTables,
}

/// Shapes of the parameters and of the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramShape {
    /// Shapes of the parameters in order.
    pub parameters: Vec<Shape>,
    /// Shape of the result.
    pub result: Shape,
}

/// Leaf of a parameter.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ParameterLeaf {
    /// Number of the parameter.
    pub parameter: usize,
    /// Path into the parameter's tuple shape; empty for arrays.
    pub path: Vec<usize>,
}

/// Entry of `input_output_alias`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InputOutputAlias {
    /// Path into the result; empty for a result that is not a tuple.
    pub output: Vec<usize>,
    /// Aliased leaf of a parameter.
    pub parameter: ParameterLeaf,
    /// Whether a copy is forbidden.
    pub must_alias: bool,
}

/// Deduplicated stack frames; all ids are 1-based, 0 means none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StackTables {
    /// Names of source files.
    pub file_names: Vec<String>,
    /// Names of functions.
    pub function_names: Vec<String>,
    /// Positions in files.
    pub file_locations: Vec<FileLocation>,
    /// Stack frames, each with the id of its caller.
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

/// Position in a source file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileLocation {
    /// 1-based index into the file names.
    pub file_name_id: i64,
    /// 1-based index into the function names.
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

/// Frame of a call stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackFrame {
    /// 1-based index into the file locations.
    pub file_location_id: i64,
    /// Id of the calling frame; 0 for a root. The text form prints this number plus one.
    pub parent_frame_id: i64,
}
