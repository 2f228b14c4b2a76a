//! Printer of the module header and its stack tables.

use super::super::strings::push_quoted;
use super::Printer;
use crate::{ModuleAttributes, ParameterLeaf, ProgramShape, Shape, StackTables};

impl Printer<'_> {
    /// Prints `HloModule name, ...` and a line end, then the stack tables.
    pub fn header(&mut self) {
        let module = self.module;
        let attributes = module.attributes();
        self.push("HloModule ");
        self.push(module.name());
        if attributes.is_scheduled {
            self.push(", is_scheduled=true");
        }
        self.aliasing(attributes);
        if attributes.alias_passthrough_params {
            self.push(", alias_passthrough_params=true");
        }
        if self.options.layouts {
            self.entry_layout(attributes.entry_computation_layout.as_ref());
        }
        self.partitioning(attributes);
        if !attributes.origin_recovery_table.is_empty() {
            self.push(", origin_recovery_table=");
            self.push(&attributes.origin_recovery_table);
        }
        if !attributes.debug_attributes.is_empty() {
            self.push(", debug_attributes=");
            self.push(&attributes.debug_attributes);
        }
        self.push("\n");
        if self.options.metadata && !attributes.stack.is_empty() {
            self.stack_tables(&attributes.stack);
        }
    }

    fn aliasing(&mut self, attributes: &ModuleAttributes) {
        if !attributes.input_output_alias.is_empty() {
            self.push(", input_output_alias={ ");
            self.join(&attributes.input_output_alias, ", ", |p, alias| {
                p.path(&alias.output);
                p.push(": ");
                p.leaf(&alias.parameter);
                p.push(if alias.must_alias { ", must-alias)" } else { ", may-alias)" });
            });
            self.push(" }");
        }
        if !attributes.buffer_donors.is_empty() {
            self.push(", buffer_donor={ ");
            self.join(&attributes.buffer_donors, ", ", |p, leaf| {
                p.leaf(leaf);
                p.push(")");
            });
            self.push(" }");
        }
    }

    /// Prints `{0,1}`.
    fn path(&mut self, path: &[usize]) {
        self.push("{");
        self.join(path, ",", |p, i| p.display(i));
        self.push("}");
    }

    /// Prints `(1, {0}`, the start of an entry, up to its optional parts.
    fn leaf(&mut self, leaf: &ParameterLeaf) {
        self.display(format_args!("({}, ", leaf.parameter));
        self.path(&leaf.path);
    }

    /// Prints the stated layout, or that of the entry computation.
    fn entry_layout(&mut self, given: Option<&ProgramShape>) {
        let module = self.module;
        if let Some(program) = given {
            return self.program_shape(program.parameters.iter(), &program.result);
        }
        let Some(entry) = module.entry_if_set().map(|id| &module[id]) else { return };
        if entry.root_if_set().is_some() {
            self.program_shape(entry.parameters().iter().map(|&p| entry[p].shape()), entry.result_shape());
        }
    }

    fn program_shape<'s>(&mut self, parameters: impl Iterator<Item = &'s Shape>, result: &Shape) {
        self.push(", entry_computation_layout={(");
        self.join(parameters.enumerate(), ", ", |p, (i, shape)| {
            p.index_comment(i);
            p.shape(shape);
        });
        self.push(")->");
        self.shape(result);
        self.push("}");
    }

    fn partitioning(&mut self, attributes: &ModuleAttributes) {
        let flags = [
            ("parameters", &attributes.allow_spmd_sharding_propagation_to_parameters),
            ("output", &attributes.allow_spmd_sharding_propagation_to_output),
        ];
        for (what, values) in flags {
            // A single `false` is the default.
            if !values.is_empty() && **values != [false] {
                self.display(format_args!(", allow_spmd_sharding_propagation_to_{what}={{"));
                self.join(values, ",", |p, v| p.display(v));
                self.push("}");
            }
        }
        if !attributes.frontend_attributes.is_empty() {
            self.push(", frontend_attributes=");
            self.frontend_attributes(&attributes.frontend_attributes);
        }
        for (name, count) in
            [("replica_count", attributes.replica_count), ("num_partitions", attributes.num_partitions)]
        {
            if count > 1 {
                self.display(format_args!(", {name}={count}"));
            }
        }
    }

    fn stack_tables(&mut self, stack: &StackTables) {
        self.names("FileNames", &stack.file_names);
        self.names("FunctionNames", &stack.function_names);
        self.push("\nFileLocations\n");
        for (i, l) in stack.file_locations.iter().enumerate() {
            self.display(format_args!(
                "{} {{file_name_id={} function_name_id={} line={} end_line={} column={} end_column={}}}\n",
                i + 1,
                l.file_name_id,
                l.function_name_id,
                l.line,
                l.end_line,
                l.column,
                l.end_column
            ));
        }
        self.push("\nStackFrames\n");
        for (i, frame) in stack.stack_frames.iter().enumerate() {
            // In the text form, parents are numbered from 1, and 1 means no parent.
            let parent = frame.parent_frame_id.saturating_add(1);
            self.display(format_args!(
                "{} {{file_location_id={} parent_frame_id={parent}}}\n",
                i + 1,
                frame.file_location_id
            ));
        }
    }

    fn names(&mut self, title: &str, names: &[String]) {
        self.display(format_args!("\n{title}\n"));
        for (i, name) in names.iter().enumerate() {
            self.display(format_args!("{} ", i + 1));
            push_quoted(&mut self.out, name);
            self.push("\n");
        }
    }
}
