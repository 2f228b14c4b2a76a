//! Text form of transfers.

use super::{Channel, Transfer};
use crate::Result;
use crate::text::{AttributeReader, AttributeWriter};

impl Channel {
    pub(super) fn read(r: &mut AttributeReader<'_>) -> Result<Channel> {
        Ok(Channel {
            id: r.optional("channel_id")?,
            is_host_transfer: r.optional("is_host_transfer")?.unwrap_or_default(),
        })
    }

    fn write(&self, w: &mut AttributeWriter<'_>) {
        if let Some(id) = &self.id {
            w.attribute("channel_id", id);
        }
        if self.is_host_transfer {
            w.attribute("is_host_transfer", &true);
        }
    }
}

pub(super) fn write(op: &Transfer, w: &mut AttributeWriter<'_>) {
    match op {
        Transfer::Infeed { config } => write_config("infeed_config", config, w),
        Transfer::Outfeed { shape, config } => {
            if let Some(shape) = shape {
                w.attribute("outfeed_shape", shape);
            }
            write_config("outfeed_config", config, w);
        }
        Transfer::Send(channel)
        | Transfer::SendDone(channel)
        | Transfer::Recv(channel)
        | Transfer::RecvDone(channel) => channel.write(w),
    }
}

fn write_config(name: &'static str, config: &String, w: &mut AttributeWriter<'_>) {
    if !config.is_empty() {
        w.attribute(name, config);
    }
}
