//! Reductions and scans in protobuf.

use super::{Reduce, Scan};
use crate::proto::numbers::{fit, index};
use crate::proto::{ProtoAttributes, ProtoReader, ProtoWriter};
use crate::{Error, Opcode, Result};

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

/// Value of `is_associative` for true. The field has three values: 0 for unspecified, true, false.
const TRUE: i32 = 1;
const FALSE: i32 = 2;

impl ProtoAttributes for Scan {
    fn read_proto(_: Opcode, r: &mut ProtoReader<'_>) -> Result<Self> {
        let [computation] = r.called()?;
        let is_associative = match r.message.is_associative {
            TRUE => true,
            0 | FALSE => false,
            other => {
                return Err(Error::invalid_argument(format!("is_associative is {other}, which has no meaning here")));
            }
        };
        Ok(Scan {
            dimension: r.dimension()?,
            num_carries: index("num_carries", r.message.num_carries)?,
            is_reverse: r.message.is_reverse,
            is_associative,
            computation,
        })
    }

    fn write_proto(&self, w: &mut ProtoWriter<'_>) -> Result<()> {
        w.dimensions(&[self.dimension])?;
        w.message.num_carries = fit("num_carries", self.num_carries)?;
        w.message.is_reverse = self.is_reverse;
        w.message.is_associative = if self.is_associative { TRUE } else { FALSE };
        w.calls(&[self.computation])
    }
}
