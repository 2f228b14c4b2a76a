//! A lowering that remembers what it said, for programs that are written down.

use xla_hlo::Result;
use xla_service::thunks::{Lowered, Lowering, LoweringContext};

use crate::stored::RecordedLowering;

/// A lowering whose answers are kept.
pub(crate) struct RecordingLowering<'a> {
    inner: &'a mut dyn Lowering,
    pub lowerings: Vec<RecordedLowering>,
}

impl<'a> RecordingLowering<'a> {
    pub fn new(inner: &'a mut dyn Lowering) -> RecordingLowering<'a> {
        RecordingLowering { inner, lowerings: Vec::new() }
    }
}

impl Lowering for RecordingLowering<'_> {
    fn lower(&mut self, cx: &LoweringContext<'_>) -> Result<Lowered> {
        let lowered = self.inner.lower(cx)?;
        self.lowerings.push(match &lowered {
            Lowered::Kernel(kernel) => RecordedLowering::Kernel(kernel.index, kernel.name.clone()),
            Lowered::LibraryCall(call) => RecordedLowering::LibraryCall(call.index, call.name.clone()),
            Lowered::NotMine => RecordedLowering::NotMine,
        });
        Ok(lowered)
    }
}
