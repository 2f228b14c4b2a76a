//! Attributes of a module's header in protobuf: layouts, aliasing, donation, stack tables.

use super::messages::{
    AliasEntryProto, BufferDonorEntryProto, FileLocationProto, FrontendAttributesProto, HloBufferDonorProto,
    HloInputOutputAliasProto, HloModuleConfigProto, ProgramShapeProto, StackFrameIndexProto, StackFrameProto,
};
use super::numbers::{fit, index, indices, longs};
use super::{annotations, shape};
use crate::{
    Error, FileLocation, InputOutputAlias, Module, ModuleAttributes, ParameterLeaf, Result, ResultExt, Shape,
    StackFrame, StackTables,
};

const MAY_ALIAS: i32 = 1;
const MUST_ALIAS: i32 = 2;

/// Messages of a module that form its header.
#[derive(Default)]
pub(super) struct Parts {
    pub shape: Option<ProgramShapeProto>,
    pub aliases: Option<HloInputOutputAliasProto>,
    pub donors: Option<HloBufferDonorProto>,
    pub frontend_attributes: Option<FrontendAttributesProto>,
    pub stack: Option<StackFrameIndexProto>,
}

/// Reads the header.
pub(super) fn read(parts: Parts, config: Option<HloModuleConfigProto>, header: &mut ModuleAttributes) -> Result<()> {
    let program = parts.shape.map(|shape| shape::read_program(&shape)).transpose();
    header.entry_computation_layout = program.context(|| "host_program_shape")?;
    let aliases = parts.aliases.unwrap_or_default().entries.iter().map(read_alias).collect::<Result<_>>();
    header.input_output_alias = aliases.context(|| "input_output_alias")?;
    let donors = parts.donors.unwrap_or_default().entries;
    let donors = donors.iter().map(|d| leaf(d.parameter_number, &d.parameter_shape_index)).collect::<Result<_>>();
    header.buffer_donors = donors.context(|| "buffer_donor")?;
    header.frontend_attributes = annotations::read_frontend_attributes(parts.frontend_attributes)?;
    header.stack = read_stack(parts.stack.unwrap_or_default());
    if let Some(config) = config {
        header.replica_count = fit("replica_count", config.replica_count)?;
        header.num_partitions = fit("num_partitions", config.num_partitions)?;
        header.alias_passthrough_params = config.alias_passthrough_params;
        header.allow_spmd_sharding_propagation_to_output = config.allow_spmd_sharding_propagation_to_output;
        header.allow_spmd_sharding_propagation_to_parameters = config.allow_spmd_sharding_propagation_to_parameters;
    }
    Ok(())
}

fn leaf(parameter: i64, path: &[i64]) -> Result<ParameterLeaf> {
    let parameter = index("parameter_number", parameter)?;
    Ok(ParameterLeaf { parameter, path: indices("parameter_shape_index", path)? })
}

fn read_alias(entry: &AliasEntryProto) -> Result<InputOutputAlias> {
    let must_alias = match entry.kind {
        MAY_ALIAS => false,
        MUST_ALIAS => true,
        other => return Err(Error::invalid_argument(format!("kind is {other}, neither may-alias nor must-alias"))),
    };
    Ok(InputOutputAlias {
        output: indices("output_shape_index", &entry.output_shape_index)?,
        parameter: leaf(entry.parameter_number, &entry.parameter_shape_index)?,
        must_alias,
    })
}

fn read_stack(proto: StackFrameIndexProto) -> StackTables {
    let location = |l: FileLocationProto| FileLocation {
        file_name_id: l.file_name_id.into(),
        function_name_id: l.function_name_id.into(),
        line: l.line.into(),
        end_line: l.end_line.into(),
        column: l.column.into(),
        end_column: l.end_column.into(),
    };
    let frame = |f: StackFrameProto| StackFrame {
        file_location_id: f.file_location_id.into(),
        parent_frame_id: f.parent_frame_id.into(),
    };
    StackTables {
        file_names: proto.file_names,
        function_names: proto.function_names,
        file_locations: proto.file_locations.into_iter().map(location).collect(),
        stack_frames: proto.stack_frames.into_iter().map(frame).collect(),
    }
}

/// Writes the header.
pub(super) fn write(module: &Module) -> Result<Parts> {
    let header = module.attributes();
    let donor = |donor: &ParameterLeaf| {
        Ok(BufferDonorEntryProto {
            parameter_number: fit("the number of a donated parameter", donor.parameter)?,
            parameter_shape_index: longs("a path into a parameter", &donor.path)?,
        })
    };
    Ok(Parts {
        shape: Some(write_program(module)?),
        aliases: Some(HloInputOutputAliasProto {
            entries: header.input_output_alias.iter().map(write_alias).collect::<Result<_>>()?,
        }),
        donors: Some(HloBufferDonorProto { entries: header.buffer_donors.iter().map(donor).collect::<Result<_>>()? }),
        frontend_attributes: Some(annotations::write_frontend_attributes(&header.frontend_attributes)),
        stack: if header.stack.is_empty() { None } else { Some(write_stack(&header.stack)?) },
    })
}

/// Writes the stated layout, or that of the entry computation.
fn write_program(module: &Module) -> Result<ProgramShapeProto> {
    let named = |(i, shape): (usize, _)| (format!("p{i}"), shape);
    if let Some(program) = &module.attributes().entry_computation_layout {
        return shape::write_program(program.parameters.iter().enumerate().map(named), &program.result);
    }
    let entry = module.entry();
    let parameters: Vec<&Shape> = entry.parameters().iter().map(|&p| entry[p].shape()).collect();
    shape::write_program(parameters.into_iter().enumerate().map(named), entry.result_shape())
}

fn write_alias(alias: &InputOutputAlias) -> Result<AliasEntryProto> {
    Ok(AliasEntryProto {
        output_shape_index: longs("a path into the result", &alias.output)?,
        parameter_number: fit("the number of an aliased parameter", alias.parameter.parameter)?,
        parameter_shape_index: longs("a path into a parameter", &alias.parameter.path)?,
        kind: if alias.must_alias { MUST_ALIAS } else { MAY_ALIAS },
    })
}

fn write_stack(stack: &StackTables) -> Result<StackFrameIndexProto> {
    let location = |l: &FileLocation| {
        Ok(FileLocationProto {
            file_name_id: fit("file_name_id", l.file_name_id)?,
            function_name_id: fit("function_name_id", l.function_name_id)?,
            line: fit("line", l.line)?,
            column: fit("column", l.column)?,
            end_line: fit("end_line", l.end_line)?,
            end_column: fit("end_column", l.end_column)?,
        })
    };
    let frame = |f: &StackFrame| {
        Ok(StackFrameProto {
            file_location_id: fit("file_location_id", f.file_location_id)?,
            parent_frame_id: fit("parent_frame_id", f.parent_frame_id)?,
        })
    };
    Ok(StackFrameIndexProto {
        file_names: stack.file_names.clone(),
        function_names: stack.function_names.clone(),
        file_locations: stack.file_locations.iter().map(location).collect::<Result<_>>()?,
        stack_frames: stack.stack_frames.iter().map(frame).collect::<Result<_>>()?,
    })
}
