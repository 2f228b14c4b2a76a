//! Folds over dimensions in messages.

use super::Reduce;
use crate::proto::{ProtoAttributes, ProtoReader, ProtoWriter};
use crate::{Opcode, Result};

impl ProtoAttributes for Reduce {
    fn read_proto(_: Opcode, r: &mut ProtoReader<'_>) -> Result<Self> {
        let [computation] = r.called()?;
        Ok(Reduce { dimensions: r.dimensions()?, computation })
    }

    fn write_proto(&self, w: &mut ProtoWriter<'_>) -> Result<()> {
        w.dimensions(&self.dimensions)?;
        w.calls(&[self.computation])
    }
}
