//! Sorting in protobuf.

use super::{Sort, TopK};
use crate::proto::numbers::{fit, index};
use crate::proto::{ProtoAttributes, ProtoReader, ProtoWriter};
use crate::{Opcode, Result};

impl ProtoAttributes for Sort {
    fn read_proto(_: Opcode, r: &mut ProtoReader<'_>) -> Result<Self> {
        let [computation] = r.called()?;
        Ok(Sort { dimension: r.dimension()?, is_stable: r.message.is_stable, computation })
    }

    fn write_proto(&self, w: &mut ProtoWriter<'_>) -> Result<()> {
        w.dimensions(&[self.dimension])?;
        w.message.is_stable = self.is_stable;
        w.calls(&[self.computation])
    }
}

impl ProtoAttributes for TopK {
    fn read_proto(_: Opcode, r: &mut ProtoReader<'_>) -> Result<Self> {
        Ok(TopK { k: index("k", r.message.k)?, largest: r.message.largest, is_stable: r.message.is_stable })
    }

    fn write_proto(&self, w: &mut ProtoWriter<'_>) -> Result<()> {
        w.message.k = fit("k", self.k)?;
        w.message.largest = self.largest;
        w.message.is_stable = self.is_stable;
        Ok(())
    }
}
