//! Dynamic sizes in protobuf.

use super::Dynamic;
use crate::proto::{ProtoAttributes, ProtoReader, ProtoWriter};
use crate::{Error, Opcode, Result};

impl ProtoAttributes for Dynamic {
    fn read_proto(opcode: Opcode, r: &mut ProtoReader<'_>) -> Result<Self> {
        match opcode {
            Opcode::GetDimensionSize => Ok(Dynamic::GetDimensionSize { dimension: r.dimension()? }),
            Opcode::SetDimensionSize => Ok(Dynamic::SetDimensionSize { dimension: r.dimension()? }),
            Opcode::DynamicReshape => Ok(Dynamic::DynamicReshape),
            other => Err(Error::internal(format!("{other} does not read or set sizes"))),
        }
    }

    fn write_proto(&self, w: &mut ProtoWriter<'_>) -> Result<()> {
        match self {
            Dynamic::GetDimensionSize { dimension } | Dynamic::SetDimensionSize { dimension } => {
                w.dimensions(&[*dimension])
            }
            Dynamic::DynamicReshape => Ok(()),
        }
    }
}
