//! Metadata, and the module's table of payloads.

use super::messages::{OpMetadata, PayloadProto};
use super::numbers::{fit, index, text};
use crate::{Error, Metadata, Result};

/// Table of the texts that metadata refers to by index; a module has one table.
#[derive(Default)]
pub(super) struct Payloads(Vec<Vec<u8>>);

impl Payloads {
    /// Creates the table from the field of a message.
    pub fn new(payloads: Vec<Vec<u8>>) -> Payloads {
        Payloads(payloads)
    }

    /// Returns the table as the field of a message.
    pub fn into_vec(self) -> Vec<Vec<u8>> {
        self.0
    }

    /// Reads metadata.
    pub fn read(&self, proto: OpMetadata) -> Result<Metadata> {
        Ok(Metadata {
            op_type: proto.op_type,
            op_name: proto.op_name,
            source_file: proto.source_file,
            source_line: proto.source_line.into(),
            source_end_line: proto.source_end_line.into(),
            source_column: proto.source_column.into(),
            source_end_column: proto.source_end_column.into(),
            profile_types: proto.profile_type.into_iter().map(i64::from).collect(),
            deduplicated_name: proto.deduplicated_name,
            scheduling_name: proto.scheduling_name,
            stack_frame_id: proto.stack_frame_id.into(),
            payload: proto.metadata_payload.and_then(|p| p.index).map_or(Ok(String::new()), |i| self.text(i))?,
        })
    }

    fn text(&self, i: i64) -> Result<String> {
        let payload = self.0.get(index("metadata_payload", i)?);
        let count = self.0.len();
        let payload = payload.ok_or_else(|| {
            Error::invalid_argument(format!("metadata_payload names payload {i} of the module, which has {count}"))
        })?;
        text("payloads", payload.clone())
    }

    /// Writes metadata.
    pub fn write(&mut self, metadata: &Metadata) -> Result<OpMetadata> {
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
        Ok(OpMetadata {
            op_type: op_type.clone(),
            op_name: op_name.clone(),
            source_file: source_file.clone(),
            source_line: fit("source_line", *source_line)?,
            source_end_line: fit("source_end_line", *source_end_line)?,
            source_column: fit("source_column", *source_column)?,
            source_end_column: fit("source_end_column", *source_end_column)?,
            profile_type: profile_types.iter().map(|&t| fit("profile_type", t)).collect::<Result<_>>()?,
            deduplicated_name: deduplicated_name.clone(),
            scheduling_name: scheduling_name.clone(),
            stack_frame_id: fit("stack_frame_id", *stack_frame_id)?,
            metadata_payload: (!payload.is_empty()).then(|| PayloadProto { index: Some(self.add(payload)) }),
        })
    }

    fn add(&mut self, payload: &str) -> i64 {
        self.0.push(payload.as_bytes().to_vec());
        self.0.len() as i64 - 1
    }
}
