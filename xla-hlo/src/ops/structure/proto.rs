//! Parameters, constants, tuples and domains in protobuf.

use super::{Constant, Domain, GetTupleElement, OptBarrier, Parameter, Tuple};
use crate::proto::numbers::{fit, index, required};
use crate::proto::{ProtoAttributes, ProtoReader, ProtoWriter, literal, proto_without_attributes};
use crate::{Opcode, Result, ResultExt};

proto_without_attributes!(Tuple, OptBarrier);

impl ProtoAttributes for Parameter {
    fn read_proto(_: Opcode, r: &mut ProtoReader<'_>) -> Result<Self> {
        Ok(Parameter { number: index("parameter_number", r.message.parameter_number)? })
    }

    fn write_proto(&self, w: &mut ProtoWriter<'_>) -> Result<()> {
        w.message.parameter_number = fit("parameter_number", self.number)?;
        Ok(())
    }
}

impl ProtoAttributes for Constant {
    fn read_proto(_: Opcode, r: &mut ProtoReader<'_>) -> Result<Self> {
        let literal = required("literal", r.message.literal.take())?;
        Ok(Constant { literal: literal::read(*literal).context(|| "literal")? })
    }

    fn write_proto(&self, w: &mut ProtoWriter<'_>) -> Result<()> {
        w.message.literal = Some(Box::new(literal::write(&self.literal, w.shape)?));
        Ok(())
    }
}

impl ProtoAttributes for GetTupleElement {
    fn read_proto(_: Opcode, r: &mut ProtoReader<'_>) -> Result<Self> {
        Ok(GetTupleElement { index: index("tuple_index", r.message.tuple_index)? })
    }

    fn write_proto(&self, w: &mut ProtoWriter<'_>) -> Result<()> {
        w.message.tuple_index = fit("tuple_index", self.index)?;
        Ok(())
    }
}

impl ProtoAttributes for Domain {
    /// Swaps the two sides: XLA names them from the operand's point of view, so that the entry in text is the exit in
    /// messages.
    fn read_proto(_: Opcode, r: &mut ProtoReader<'_>) -> Result<Self> {
        let (entry, exit) = (r.message.domain_exit_sharding.take(), r.message.domain_entry_sharding.take());
        Ok(Domain {
            kind: "sharding".to_string(),
            entry: r.sharding(*required("domain_exit_sharding", entry)?)?,
            exit: r.sharding(*required("domain_entry_sharding", exit)?)?,
        })
    }

    fn write_proto(&self, w: &mut ProtoWriter<'_>) -> Result<()> {
        w.message.domain_exit_sharding = Some(Box::new(w.sharding(&self.entry)?));
        w.message.domain_entry_sharding = Some(Box::new(w.sharding(&self.exit)?));
        Ok(())
    }
}
