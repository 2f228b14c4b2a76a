//! Asynchronous operations in protobuf.

use super::{Async, AsyncStart};
use crate::ops::control_flow::{read_aliases, write_aliases};
use crate::proto::numbers::fit;
use crate::proto::{ProtoAttributes, ProtoReader, ProtoWriter};
use crate::{Error, Opcode, Result};

impl ProtoAttributes for Async {
    /// Ignores the thread in the message: the called computation names the same thread.
    fn read_proto(opcode: Opcode, r: &mut ProtoReader<'_>) -> Result<Self> {
        Ok(match opcode {
            Opcode::AsyncStart => {
                let [computation] = r.called()?;
                Async::Start(AsyncStart { computation, aliases: read_aliases(&r.message.output_operand_aliasing)? })
            }
            Opcode::AsyncUpdate => Async::Update,
            Opcode::AsyncDone => Async::Done,
            Opcode::CopyStart => {
                Async::CopyStart { cross_program_prefetch_index: r.message.cross_program_prefetch_index.map(i64::from) }
            }
            Opcode::CopyDone => Async::CopyDone,
            other => return Err(Error::internal(format!("{other} is not asynchronous"))),
        })
    }

    fn write_proto(&self, w: &mut ProtoWriter<'_>) -> Result<()> {
        match self {
            Async::Start(start) => {
                w.message.output_operand_aliasing = write_aliases(&start.aliases)?;
                w.message.async_execution_thread = w.thread_of(start.computation)?.to_string();
                w.calls(&[start.computation])?;
            }
            Async::CopyStart { cross_program_prefetch_index } => {
                let index = cross_program_prefetch_index.map(|i| fit("cross_program_prefetch_index", i)).transpose()?;
                w.message.cross_program_prefetch_index = index;
            }
            Async::Update | Async::Done | Async::CopyDone => {}
        }
        Ok(())
    }
}
