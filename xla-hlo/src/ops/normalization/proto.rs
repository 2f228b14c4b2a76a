//! Batch normalization in protobuf.

use super::{BatchNorm, BatchNormKind, Epsilon};
use crate::proto::numbers::{fit, index};
use crate::proto::{ProtoAttributes, ProtoReader, ProtoWriter};
use crate::{Opcode, Result};

impl ProtoAttributes for BatchNorm {
    fn read_proto(opcode: Opcode, r: &mut ProtoReader<'_>) -> Result<Self> {
        Ok(BatchNorm {
            kind: BatchNormKind::from_opcode(opcode)?,
            epsilon: Epsilon::new(r.message.epsilon),
            feature_index: index("feature_index", r.message.feature_index)?,
        })
    }

    fn write_proto(&self, w: &mut ProtoWriter<'_>) -> Result<()> {
        w.message.epsilon = self.epsilon.get();
        w.message.feature_index = fit("feature_index", self.feature_index)?;
        Ok(())
    }
}
