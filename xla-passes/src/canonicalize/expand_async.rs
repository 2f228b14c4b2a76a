//! Expands asynchronous operations into synchronous calls and copies.

use xla_hlo::ops::{Async, Call, Copy};
use xla_hlo::{CompId, InstrId, Instruction, MAIN_THREAD, Module, Op, Result};

use crate::rewrite::async_chain::{chain, complete};
use crate::{Pass, PassContext};

/// Replaces `async-start` to `async-done` by a `call` at the place of the start, and `copy-start` to `copy-done` by a
/// `copy`.
///
/// Everything then runs on the main thread.
pub struct ExpandAsync;

impl Pass for ExpandAsync {
    fn name(&self) -> &'static str {
        "expand-async"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        let ids: Vec<CompId> = module.ids().collect();
        for id in ids {
            for start in starts(module, id).into_iter().filter(|_| cx.allow_rewrite(self.name())) {
                expand(module, id, start)?;
            }
            if module[id].execution_thread() != MAIN_THREAD {
                module.computation_mut(id).set_execution_thread(MAIN_THREAD);
            }
        }
        Ok(())
    }
}

fn starts(module: &Module, id: CompId) -> Vec<InstrId> {
    let is_start = |op: &Op| matches!(op, Op::Async(Async::Start(_) | Async::CopyStart { .. }));
    module[id].iter().filter(|(_, i)| is_start(i.op())).map(|(id, _)| id).collect()
}

fn expand(module: &mut Module, id: CompId, start: InstrId) -> Result<()> {
    let computation = module.computation_mut(id);
    let op: Op = match computation[start].op() {
        Op::Async(Async::Start(start)) => Call { computation: start.computation, is_composite: false }.into(),
        _ => Copy.into(),
    };
    let steps = chain(computation, start)?;
    let done = &computation[steps[steps.len() - 1]];
    let value = Instruction::new(op, done.shape().clone(), computation[start].operands())
        .with_name(done.name())
        .with_annotations(computation[start].annotations().cloned().map(Box::new));
    let value = computation.add(value);
    complete(computation, &steps, value)
}
