//! Recorded lowering: the results of a lowering, stored with the program and replayed when it is loaded.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use xla_hlo::{Error, Result};
use xla_service::thunks::{KernelRef, LibraryOp, LibraryRef, LoopContext, Lowered, Lowering, LoweringContext};

/// Recorded [`Lowered`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum RecordedLowering {
    /// Command sequence with this index and name.
    Kernel(u32, String),
    /// Library call with this index, by the names of [`LibraryOp`] and [`LibraryRef`].
    LibraryCall { index: u32, op: String, name: String },
    /// Instruction that the host evaluates, or loop that is lowered one instruction at a time.
    NotMine,
    /// Collective of a library, by the name of its operation.
    Collective(String),
}

/// Lowering that replays recorded results.
pub(crate) struct ReplayLowering(VecDeque<RecordedLowering>);

impl ReplayLowering {
    pub fn new(lowerings: &[RecordedLowering]) -> ReplayLowering {
        ReplayLowering(lowerings.iter().cloned().collect())
    }
}

impl Lowering for ReplayLowering {
    fn lower(&mut self, _: &LoweringContext<'_>) -> Result<Lowered> {
        Ok(match self.0.pop_front().ok_or_else(other_build)? {
            RecordedLowering::Kernel(index, name) => Lowered::Kernel(KernelRef { index, name }),
            RecordedLowering::LibraryCall { index, op, name } => {
                let op = LibraryOp::from_name(&op).ok_or_else(other_build)?;
                Lowered::LibraryCall(LibraryRef { index, op, name })
            }
            RecordedLowering::Collective(name) => Lowered::Collective(name),
            RecordedLowering::NotMine => Lowered::NotMine,
        })
    }

    /// A program with collectives is only compiled if it has them.
    fn has_collectives(&self) -> bool {
        true
    }

    fn lower_loop(&mut self, _: &LoopContext<'_>) -> Result<Option<KernelRef>> {
        match self.0.pop_front().ok_or_else(other_build)? {
            RecordedLowering::Kernel(index, name) => Ok(Some(KernelRef { index, name })),
            RecordedLowering::NotMine => Ok(None),
            RecordedLowering::LibraryCall { .. } | RecordedLowering::Collective(_) => Err(other_build()),
        }
    }
}

/// Lowering that records the results of another one.
#[cfg(feature = "compile")]
pub(crate) struct RecordingLowering<'a> {
    inner: &'a mut dyn Lowering,
    pub lowerings: Vec<RecordedLowering>,
}

#[cfg(feature = "compile")]
impl<'a> RecordingLowering<'a> {
    pub fn new(inner: &'a mut dyn Lowering) -> RecordingLowering<'a> {
        RecordingLowering { inner, lowerings: Vec::new() }
    }
}

#[cfg(feature = "compile")]
impl Lowering for RecordingLowering<'_> {
    fn lower(&mut self, cx: &LoweringContext<'_>) -> Result<Lowered> {
        let lowered = self.inner.lower(cx)?;
        self.lowerings.push(match &lowered {
            Lowered::Kernel(kernel) => RecordedLowering::Kernel(kernel.index, kernel.name.clone()),
            Lowered::LibraryCall(LibraryRef { index, op, name }) => {
                RecordedLowering::LibraryCall { index: *index, op: op.name().to_string(), name: name.clone() }
            }
            Lowered::Collective(name) => RecordedLowering::Collective(name.clone()),
            Lowered::NotMine => RecordedLowering::NotMine,
        });
        Ok(lowered)
    }

    fn has_collectives(&self) -> bool {
        self.inner.has_collectives()
    }

    fn lower_loop(&mut self, cx: &LoopContext<'_>) -> Result<Option<KernelRef>> {
        let lowered = self.inner.lower_loop(cx)?;
        self.lowerings.push(match &lowered {
            Some(kernel) => RecordedLowering::Kernel(kernel.index, kernel.name.clone()),
            None => RecordedLowering::NotMine,
        });
        Ok(lowered)
    }
}

/// Returns the error for a program whose thunks this build would place differently.
pub(super) fn other_build() -> Error {
    Error::invalid_argument(
        "the program was compiled by another build of the compiler, and this build would place its arrays differently; compile it again",
    )
}
