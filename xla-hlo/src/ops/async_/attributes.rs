//! Text form of asynchronous operations. The parser and the printer handle the short form.

use super::{Async, AsyncStart};
use crate::ops::Opcode;
use crate::text::{AttributeReader, AttributeWriter};
use crate::{CompId, Error, MAIN_THREAD, Result};

pub(super) fn read(opcode: Opcode, r: &mut AttributeReader<'_>) -> Result<Async> {
    Ok(match opcode {
        Opcode::AsyncStart => Async::Start(AsyncStart {
            computation: r.required("calls")?,
            aliases: r.optional("output_to_operand_aliasing")?.unwrap_or_default(),
        }),
        Opcode::AsyncUpdate => Async::Update,
        Opcode::AsyncDone => Async::Done,
        Opcode::CopyStart => {
            Async::CopyStart { cross_program_prefetch_index: r.optional("cross_program_prefetch_index")? }
        }
        Opcode::CopyDone => Async::CopyDone,
        other => return Err(Error::internal(format!("{other} is not asynchronous"))),
    })
}

pub(super) fn write(op: &Async, w: &mut AttributeWriter<'_>) {
    match op {
        Async::Start(start) => {
            write_thread(start.computation, w);
            if !start.aliases.is_empty() {
                w.attribute("output_to_operand_aliasing", &start.aliases);
            }
            w.attribute("calls", &start.computation);
        }
        Async::CopyStart { cross_program_prefetch_index: Some(index) } => {
            w.attribute("cross_program_prefetch_index", index);
        }
        Async::CopyStart { cross_program_prefetch_index: None } | Async::Update | Async::Done | Async::CopyDone => {}
    }
}

/// Writes the execution thread, which the short form also has. The parser reads it, since it belongs to the
/// computation.
pub(crate) fn write_thread(computation: CompId, w: &mut AttributeWriter<'_>) {
    let thread = w.execution_thread(computation).to_string();
    if thread != MAIN_THREAD {
        w.attribute("async_execution_thread", &thread);
    }
}
