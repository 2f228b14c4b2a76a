//! A member's part in a collective.

use std::sync::Once;

use xla_hlo::{Error, Module, Result};
use xla_passes::buffers::Slice;
use xla_service::collective::OnDevice;
use xla_service::thunks::Launch;

use super::communicators::{Call, find};
use super::meeting::{MeetingKey, Request};
use crate::cuda::memory::CudaMemory;
use crate::cuda::stream::CudaStream;
use crate::program::collective::{Place, Step, plan};

/// Executes the collective of a launch's thunk by NCCL. Returns `false`, without effect, if the service should execute
/// it: NCCL is not installed, or declines it. All members take the same decision.
pub(crate) fn execute(module: &Module, launch: &mut Launch<'_>) -> Result<bool> {
    let Some(device) = launch.context.logical_device else { return Ok(false) };
    let Some(own) = OnDevice::new(device, module, launch.thunk)? else { return Ok(false) };
    let Ok(plan) = plan(own.spec()) else { return Ok(false) };
    let stream: &CudaStream = launch.context.stream.downcast()?;
    let steps = plan.steps(own.rank(), own.root().unwrap_or(0));
    if own.spec().members() > 1 && !is_installed() {
        return Ok(false);
    }
    let (addresses, memory) = addresses(launch, stream)?;
    let at = |place: Place| addresses.get(place.array).map_or(0, |address| address + place.offset as u64);
    let mut calls = Vec::with_capacity(steps.len());
    for step in steps {
        let (from, to) = match step {
            Step::AllReduce { from, to, .. }
            | Step::ReduceScatter { from, to, .. }
            | Step::AllGather { from, to, .. }
            | Step::Broadcast { from, to, .. }
            | Step::Copy { from, to, .. } => (at(from), at(to)),
            Step::Send { from, .. } => (at(from), 0),
            Step::Receive { to, .. } | Step::Zero { to, .. } => (0, at(to)),
        };
        match step {
            Step::Copy { bytes, .. } if from != to => stream.copy_apart(from, to, bytes)?,
            Step::Copy { .. } => {}
            Step::Zero { bytes, .. } => stream.queue().zero(to, bytes)?,
            Step::AllReduce { .. }
            | Step::ReduceScatter { .. }
            | Step::AllGather { .. }
            | Step::Broadcast { .. }
            | Step::Send { .. }
            | Step::Receive { .. } => calls.push(Call { step, from, to }),
        }
    }
    if own.spec().members() == 1 {
        return Ok(true);
    }
    let collectives = &stream.resources().collectives;
    let (instruction, devices) = (own.instruction().clone(), own.devices().clone());
    let key = MeetingKey { run: own.run().key(), instruction, devices };
    let meeting = collectives.arrive(&key, own.rank(), Request { queue: stream.queue().clone(), calls, memory })?;
    let met = own.meet(launch.context.cancel);
    // All members close it before the second meeting, after which they may arrive again.
    collectives.close(&key);
    met?;
    let clique = meeting.clique(|contexts| collectives.clique(contexts))?;
    let work = match own.rank() {
        0 => {
            let missing = || Error::internal(format!("a member has left the meeting of {}", key.instruction));
            let requests = meeting.take().ok_or_else(missing)?;
            let sent = collectives.send(&key, &clique, &requests);
            // From here on, the order of the streams protects the memory.
            requests.into_iter().for_each(|request| drop(request.memory));
            Some(sent?)
        }
        _ => None,
    };
    let met = own.meet(launch.context.cancel);
    if let (Err(_), Some(work)) = (&met, &work) {
        collectives.adopt(key.run, stream.queue().context().ordinal(), work);
    }
    met.map(|()| true)
}

/// Returns the addresses of the operands, then of the results, and their memory.
fn addresses(launch: &mut Launch<'_>, stream: &CudaStream) -> Result<(Vec<u64>, Vec<CudaMemory>)> {
    // `memory_mut` fails for shared memory, so the results have no other readers.
    launch.thunk.results.iter().try_for_each(|array| launch.buffers.memory_mut(array.slice.allocation).map(drop))?;
    let arrays = launch.thunk.operands.iter().chain(&launch.thunk.results).map(|array| array.slice);
    let located = |slice: Slice| {
        let memory = launch.buffers.memory(slice.allocation)?;
        Ok((stream.address_of(memory, slice.offset, slice.size)?, memory.downcast::<CudaMemory>()?.clone()))
    };
    Ok(arrays.map(located).collect::<Result<Vec<_>>>()?.into_iter().unzip())
}

/// Whether NCCL can be used. Warns once if it cannot.
fn is_installed() -> bool {
    static WARNED: Once = Once::new();
    match find() {
        Ok(()) => true,
        Err(why) => {
            WARNED.call_once(|| tracing::warn!(%why, "NCCL is not used: collectives among GPUs pass through the host"));
            false
        }
    }
}
