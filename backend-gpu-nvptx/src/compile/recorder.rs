//! A lowering that remembers what it said, for programs that are written down.

use xla_hlo::Result;
use xla_service::thunks::{Lowered, Lowering, LoweringContext};

use crate::stored::Answer;

/// A lowering whose answers are kept.
pub(crate) struct Recorder<'a> {
    inner: &'a mut dyn Lowering,
    pub answers: Vec<Answer>,
}

impl<'a> Recorder<'a> {
    pub fn new(inner: &'a mut dyn Lowering) -> Recorder<'a> {
        Recorder { inner, answers: Vec::new() }
    }
}

impl Lowering for Recorder<'_> {
    fn lower(&mut self, cx: &LoweringContext<'_>) -> Result<Lowered> {
        let lowered = self.inner.lower(cx)?;
        self.answers.push(match &lowered {
            Lowered::Kernel(kernel) => Answer::Kernel(kernel.index, kernel.name.clone()),
            Lowered::LibraryCall(call) => Answer::LibraryCall(call.index, call.name.clone()),
            Lowered::NotMine => Answer::NotMine,
        });
        Ok(lowered)
    }
}
