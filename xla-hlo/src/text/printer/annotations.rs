//! Printer of annotations, in XLA's order.

use super::super::attributes::AttributeWriter;
use super::super::strings::{push_json_or_quoted, push_quoted};
use super::{PrintOptions, Printer};
use crate::{
    Annotations, Computation, DeviceList, FrontendAttributes, Instruction, LeafSharding, Metadata, ShardGroup,
    Sharding, ShardingKind, SubgroupKind, TiledSharding,
};

impl AttributeWriter<'_> {
    /// Writes a sharding that is an attribute of the operation itself.
    pub(crate) fn sharding(&mut self, sharding: &Sharding) {
        let options = PrintOptions::default();
        let mut printer = Printer::new(self.module, &options);
        printer.sharding(sharding);
        self.push(&printer.out);
    }
}

impl Printer<'_> {
    /// Prints `, name=value` for every annotation that is set.
    pub fn annotations(&mut self, computation: &Computation, instruction: &Instruction) {
        let none = Annotations::default();
        let annotations = instruction.annotations().unwrap_or(&none);
        if !annotations.parameter_replication.is_empty() {
            self.push(", parameter_replication={");
            self.join(&annotations.parameter_replication, ",", |p, r| p.display(r));
            self.push("}");
        }
        if let Some(sharding) = &annotations.sharding {
            self.push(", sharding=");
            self.sharding(sharding);
        }
        if !annotations.frontend_attributes.is_empty() {
            self.push(", frontend_attributes=");
            self.frontend_attributes(&annotations.frontend_attributes);
        }
        if self.options.control_dependencies && !instruction.control_predecessors().is_empty() {
            self.push(", control-predecessors={");
            self.join(instruction.control_predecessors(), ", ", |p, &id| p.name(computation[id].name()));
            self.push("}");
        }
        if !annotations.statistics.is_empty() {
            self.push(", statistics={");
            self.join(&annotations.statistics, ",", |p, (name, value)| p.display(format_args!("{name}={value}")));
            self.push("}");
        }
        if !annotations.origin.is_empty() {
            self.push(", origin=");
            self.push(&annotations.origin);
        }
        if self.options.metadata && annotations.metadata != none.metadata {
            self.push(", metadata=");
            self.metadata(&annotations.metadata);
        }
        if self.options.backend_config && !annotations.backend_config.is_empty() {
            self.push(", backend_config=");
            push_json_or_quoted(&mut self.out, annotations.backend_config.as_bytes());
        }
    }

    /// Prints `{key="value",key2={"a": 1}}`.
    pub fn frontend_attributes(&mut self, attributes: &FrontendAttributes) {
        self.push("{");
        self.join(attributes, ",", |p, (key, value)| {
            p.push(key);
            p.push("=");
            push_json_or_quoted(&mut p.out, value.as_bytes());
        });
        self.push("}");
    }

    /// Prints the fields that are set: `{op_name="a" source_line=3}`.
    pub fn metadata(&mut self, metadata: &Metadata) {
        let Metadata {
            op_type,
            op_name,
            source_file,
            source_line,
            source_end_line,
            source_column,
            source_end_column,
            profile_types,
            deduplicated_name,
            scheduling_name,
            stack_frame_id,
            payload,
        } = metadata;
        self.push("{");
        let start = self.out.len();
        self.text_field(start, "op_type", op_type);
        self.text_field(start, "op_name", op_name);
        self.text_field(start, "source_file", source_file);
        self.integer_field(start, "source_line", *source_line);
        self.integer_field(start, "source_end_line", *source_end_line);
        self.integer_field(start, "source_column", *source_column);
        self.integer_field(start, "source_end_column", *source_end_column);
        if !profile_types.is_empty() {
            self.field(start, "profile_type");
            self.push("{");
            self.join(profile_types, ",", |p, t| p.display(t));
            self.push("}");
        }
        self.text_field(start, "deduplicated_name", deduplicated_name);
        self.text_field(start, "scheduling_name", scheduling_name);
        self.integer_field(start, "stack_frame_id", *stack_frame_id);
        self.text_field(start, "metadata_payload", payload);
        self.push("}");
    }

    /// Prints `name=`, after a space unless it is the first field since `start`.
    fn field(&mut self, start: usize, name: &str) {
        if self.out.len() > start {
            self.push(" ");
        }
        self.push(name);
        self.push("=");
    }

    fn text_field(&mut self, start: usize, name: &str, value: &str) {
        if !value.is_empty() {
            self.field(start, name);
            push_quoted(&mut self.out, value);
        }
    }

    fn integer_field(&mut self, start: usize, name: &str, value: i64) {
        if value != 0 {
            self.field(start, name);
            self.display(value);
        }
    }

    fn sharding(&mut self, sharding: &Sharding) {
        match sharding {
            Sharding::Leaf(leaf) => self.leaf_sharding(leaf),
            Sharding::Tuple(leaves) => {
                self.push("{");
                self.join(leaves.iter().enumerate(), ", ", |p, (i, leaf)| {
                    p.index_comment(i);
                    p.leaf_sharding(leaf);
                });
                self.push("}");
            }
        }
    }

    fn leaf_sharding(&mut self, leaf: &LeafSharding) {
        // The text of a named sharding includes its braces.
        if let ShardingKind::Named(text) = &leaf.kind {
            return self.push(text);
        }
        self.push("{");
        match &leaf.kind {
            ShardingKind::Replicated => self.push("replicated"),
            ShardingKind::Manual => self.push("manual"),
            ShardingKind::Unknown => self.push("unknown"),
            ShardingKind::Unreduced => self.push("unreduced"),
            ShardingKind::Maximal(device) => self.display(format_args!("maximal device={device}")),
            ShardingKind::Tiled(tiled) => self.tiled_sharding(tiled),
            ShardingKind::Named(_) => {}
        }
        match leaf.group {
            Some(ShardGroup::As(group)) => self.display(format_args!(" shard_as {group}")),
            Some(ShardGroup::Like(group)) => self.display(format_args!(" shard_like {group}")),
            None => {}
        }
        match &leaf.metadata[..] {
            [] => {}
            [one] => {
                self.push(" metadata=");
                self.metadata(one);
            }
            several => {
                self.push(" metadata={");
                self.join(several, ", ", |p, m| p.metadata(m));
                self.push("}");
            }
        }
        self.push("}");
    }

    fn tiled_sharding(&mut self, tiled: &TiledSharding) {
        self.push("devices=[");
        self.join(&tiled.tile_dims, ",", |p, d| p.display(d));
        self.push("]");
        match &tiled.devices {
            DeviceList::Listed(devices) => self.join(devices, ",", |p, d| p.display(d)),
            DeviceList::Iota { reshape, transpose } => {
                self.push("<=[");
                self.join(reshape, ",", |p, d| p.display(d));
                self.push("]");
                if !transpose.is_empty() {
                    self.push("T(");
                    self.join(transpose, ",", |p, d| p.display(d));
                    self.push(")");
                }
            }
        }
        if tiled.replicate_last {
            self.push(" last_tile_dim_replicate");
        }
        if !tiled.last_tile_dims.is_empty() {
            self.push(" last_tile_dims={");
            self.join(&tiled.last_tile_dims, ", ", |p, kind| {
                p.push(match kind {
                    SubgroupKind::Replicated => "replicated",
                    SubgroupKind::Manual => "manual",
                    SubgroupKind::Unreduced => "unreduced",
                });
            });
            self.push("}");
        }
    }
}
