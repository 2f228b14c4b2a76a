//! Tokens and transfers in protobuf.

use super::{AddDependency, AfterAll, Channel, Transfer};
use crate::proto::numbers::text;
use crate::proto::{ProtoAttributes, ProtoReader, ProtoWriter, proto_without_attributes, shape};
use crate::{Error, Opcode, Result, ResultExt};

proto_without_attributes!(AfterAll, AddDependency);

impl Channel {
    fn read_proto(r: &ProtoReader<'_>) -> Channel {
        Channel { id: r.channel_id(), is_host_transfer: r.message.is_host_transfer }
    }

    fn write_proto(&self, w: &mut ProtoWriter<'_>) {
        w.message.channel_id = self.id.unwrap_or(0);
        w.message.is_host_transfer = self.is_host_transfer;
    }
}

impl ProtoAttributes for Transfer {
    fn read_proto(opcode: Opcode, r: &mut ProtoReader<'_>) -> Result<Self> {
        Ok(match opcode {
            Opcode::Infeed => {
                Transfer::Infeed { config: text("infeed_config", std::mem::take(&mut r.message.infeed_config))? }
            }
            Opcode::Outfeed => {
                let shape = r.message.outfeed_shape.take().map(|s| shape::read(&s)).transpose();
                Transfer::Outfeed {
                    shape: shape.context(|| "outfeed_shape")?,
                    config: text("outfeed_config", std::mem::take(&mut r.message.outfeed_config))?,
                }
            }
            Opcode::Send => Transfer::Send(Channel::read_proto(r)),
            Opcode::SendDone => Transfer::SendDone(Channel::read_proto(r)),
            Opcode::Recv => Transfer::Recv(Channel::read_proto(r)),
            Opcode::RecvDone => Transfer::RecvDone(Channel::read_proto(r)),
            other => return Err(Error::internal(format!("{other} is not a transfer"))),
        })
    }

    fn write_proto(&self, w: &mut ProtoWriter<'_>) -> Result<()> {
        match self {
            Transfer::Infeed { config } => w.message.infeed_config = config.clone().into_bytes(),
            Transfer::Outfeed { shape, config } => {
                w.message.outfeed_shape = shape.as_ref().map(|s| shape::write(s).map(Box::new)).transpose()?;
                w.message.outfeed_config = config.clone().into_bytes();
            }
            Transfer::Send(channel)
            | Transfer::SendDone(channel)
            | Transfer::Recv(channel)
            | Transfer::RecvDone(channel) => channel.write_proto(w),
        }
        Ok(())
    }
}
