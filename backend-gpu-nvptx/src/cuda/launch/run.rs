//! Run of thunks that do not need the host, sent as one graph: found by the bases of its memory, or recorded.

use std::sync::Arc;

use xla_hlo::{Error, Result};
use xla_service::ExecutionContext;
use xla_service::thunks::{ExecutionBuffers, KernelRef, LibraryRef, Thunk, ThunkKind};

use super::context::{LaunchContext, ResolvedCommand, copy};
use super::graph_order::{GraphOrder, Step};
use super::loaded::{KeptGraph, LoadedProgram, RunNeeds};
use crate::autotune::cache::AutotuneCache;
use crate::cuda::graph::GraphBases;
use crate::cuda::graph::recording::Recording;
use crate::cuda::memory::CudaMemory;
use crate::cuda::stream::CudaStream;
use crate::program::commands::CommandSequence;

/// Run of thunks, and its launch state.
pub(super) struct GraphRun<'a, 'c> {
    pub loaded: &'a LoadedProgram,
    pub autotune: &'a AutotuneCache,
    pub thunks: &'a [Thunk],
    /// Returns the commands of a kernel or library call by its index.
    pub lowered: &'a dyn Fn(u32) -> Result<&'c CommandSequence>,
    pub context: &'a ExecutionContext<'a>,
    pub buffers: &'a ExecutionBuffers,
    pub stream: &'a CudaStream,
}

/// Memories that no other work uses until this work is sent, with their addresses.
#[derive(Default)]
pub(super) struct OwnMemory {
    kept: Vec<CudaMemory>,
    pub addresses: Vec<u64>,
}

impl<'c> GraphRun<'_, 'c> {
    /// Sends the run, or adds it to the recording of a capturing stream.
    pub fn send(&self, kept: &KeptGraph) -> Result<()> {
        let needs = kept.needs(|| Ok(RunNeeds::of(self.thunks, &self.commands()?)))?;
        let allocations = self.allocations(needs)?;
        let scratch = OwnMemory::new(&needs.scratch, self.stream)?;
        let bases = |workspaces: &OwnMemory| {
            let all = [&allocations[..], &scratch.addresses, &workspaces.addresses].concat();
            (!needs.draws).then(|| GraphBases(all.into()))
        };
        let mut workspaces = OwnMemory::default();
        // A captured run is part of another graph.
        let expected = kept.latest_order().filter(|_| !self.stream.is_capturing());
        if let Some(graph_order) = &expected {
            workspaces = OwnMemory::new(&graph_order.workspaces, self.stream)?;
            if let Some(bases) = bases(&workspaces)
                && kept.slot.launch(&bases, self.stream)?
            {
                return Ok(());
            }
        }
        let (commands, steps) = self.resolve(&scratch.addresses)?;
        let graph_order = kept.graph_order(self.thunks, steps);
        if !expected.is_some_and(|expected| Arc::ptr_eq(&expected, &graph_order)) {
            workspaces = OwnMemory::new(&graph_order.workspaces, self.stream)?;
        }
        let bases = bases(&workspaces);
        let mut recording = self.record(commands, &graph_order, &workspaces.addresses)?;
        scratch.kept.into_iter().chain(workspaces.kept).for_each(|memory| recording.keep(memory));
        match self.stream.capture_sequence(recording) {
            Some(recording) => kept.slot.run(recording, bases, &self.loaded.libraries, self.stream),
            None => Ok(()),
        }
    }

    /// Returns the start addresses of the allocations.
    fn allocations(&self, needs: &RunNeeds) -> Result<Vec<u64>> {
        let address = |&(allocation, bytes)| self.stream.address_of(self.buffers.memory(allocation)?, 0, bytes);
        needs.allocations.iter().map(address).collect()
    }

    /// Returns the commands of each thunk; `None` for copies.
    fn commands(&self) -> Result<Vec<Option<&'c CommandSequence>>> {
        let commands = self.thunks.iter().map(|thunk| match &thunk.kind {
            ThunkKind::Kernel(KernelRef { index, .. }) | ThunkKind::LibraryCall(LibraryRef { index, .. }) => {
                (self.lowered)(*index).map(Some)
            }
            ThunkKind::Copy => Ok(None),
            ThunkKind::While { .. }
            | ThunkKind::Conditional { .. }
            | ThunkKind::Collective(_)
            | ThunkKind::CustomCall
            | ThunkKind::HostFallback => {
                Err(Error::internal(format!("thunk {} is neither a launch nor a copy", thunk.name)))
            }
        });
        commands.collect()
    }

    /// Resolves the commands of all thunks.
    fn resolve(&self, scratch: &[u64]) -> Result<(Vec<ResolvedCommand>, Vec<Step>)> {
        let (mut resolved, mut steps) = (Vec::new(), Vec::new());
        let mut scratch = scratch;
        let all = self.commands()?;
        for (owner, (thunk, commands)) in self.thunks.iter().zip(all).enumerate() {
            match commands {
                Some(commands) => {
                    let (own, rest) = scratch.split_at(commands.scratch.len());
                    scratch = rest;
                    let place = (self.stream, self.context);
                    LaunchContext::new(self.loaded, self.autotune, commands, thunk, self.buffers, place, own)
                        .resolve(&commands.commands, &mut resolved)?;
                }
                None => resolved.push(copy(thunk, [0, 1], self.buffers, self.stream)?),
            }
            for command in &resolved[steps.len()..] {
                let workspace = match command {
                    ResolvedCommand::Library { call, addresses } => self.loaded.libraries.workspace(call, addresses)?,
                    ResolvedCommand::Launch { .. } | ResolvedCommand::Copy { .. } => 0,
                };
                steps.push(Step { owner, workspace });
            }
        }
        Ok((resolved, steps))
    }

    /// Records the commands as nodes of a graph.
    fn record(
        &self,
        commands: Vec<ResolvedCommand>,
        graph_order: &GraphOrder,
        workspaces: &[u64],
    ) -> Result<Recording> {
        let mut recording = Recording::default();
        for (number, command) in commands.into_iter().enumerate() {
            let after = &graph_order.order[number];
            match command {
                ResolvedCommand::Launch { function, blocks, arguments } => {
                    recording.kernel(self.loaded.module.call(function, blocks, &arguments)?, after);
                }
                ResolvedCommand::Copy { from, to, bytes } => _ = recording.copy(from, to, bytes, after),
                ResolvedCommand::Library { call, addresses } => {
                    // Calls that need no workspace receive address 0.
                    let workspace = graph_order.workspace[number].map_or(0, |number| workspaces[number]);
                    recording.library(&call, &addresses, workspace, after);
                }
            }
        }
        Ok(recording)
    }
}

impl OwnMemory {
    /// Allocates memories of these sizes, for work that is sent to the stream next.
    pub fn new(sizes: &[usize], stream: &CudaStream) -> Result<OwnMemory> {
        let kept = sizes.iter().map(|&bytes| stream.scratch(bytes)).collect::<Result<Vec<_>>>()?;
        let addresses = kept.iter().zip(sizes).map(|(memory, &bytes)| stream.address_in(memory, 0, bytes));
        Ok(OwnMemory { addresses: addresses.collect::<Result<_>>()?, kept })
    }
}
