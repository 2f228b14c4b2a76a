//! Verifies with a race detector that a stream assignment orders all conflicting accesses.

use xla_hlo::entity::EntityId;
use xla_hlo::{Error, Result, ResultExt};
use xla_passes::buffers::{AllocationId, Slice};

use std::collections::{BTreeMap, HashMap, HashSet};

use super::super::{StreamId, Thunk, ThunkId, ThunkKind, ThunkSequence};
use super::conflicts::Touched;
use crate::host::{Clock, MemoryAccess, RaceDetector, RaceStream};

/// Checks that any two thunks that access the same bytes, one of them for writing, are ordered by streams and waits,
/// for all possible control flow. Checks the same for thunks with effects, and that stream 0 orders all work after the
/// work before the program and before the work after it.
///
/// [`Error::Internal`] names two thunks and the missing wait, or a wait for a thunk that is not earlier in the same
/// sequence.
pub fn verify_streams(sequence: &ThunkSequence) -> Result<()> {
    let mut replay = Replay { detector: RaceDetector::new(), streams: HashMap::new() };
    let all = everything(sequence);
    replay.everything(&all, "work before the program")?;
    replay.sequence(sequence, StreamId(0))?;
    replay.everything(&all, "work after the program")
}

/// Number of a pseudo memory that all effects write.
const EFFECTS: u64 = u64::MAX;

struct Replay {
    detector: RaceDetector,
    streams: HashMap<StreamId, RaceStream>,
}

/// Returns for each allocation the end of the bytes that the sequence accesses.
fn everything(sequence: &ThunkSequence) -> BTreeMap<AllocationId, usize> {
    let mut ends: BTreeMap<AllocationId, usize> = BTreeMap::new();
    for thunk in &sequence.thunks {
        let touched = Touched::of(thunk);
        for slice in touched.reads.iter().chain(&touched.writes) {
            let end = ends.entry(slice.allocation).or_default();
            *end = (*end).max(slice.offset.saturating_add(slice.size));
        }
    }
    ends
}

impl Replay {
    fn stream(&mut self, stream: StreamId) -> RaceStream {
        *self.streams.entry(stream).or_insert_with(|| self.detector.stream())
    }

    fn access(&mut self, stream: StreamId, slice: Slice, access: MemoryAccess, label: &str) -> Result<()> {
        let stream = self.stream(stream);
        let range = slice.offset..slice.offset.saturating_add(slice.size);
        self.detector.access(stream, slice.allocation.index() as u64, range, access, label)
    }

    fn everything(&mut self, all: &BTreeMap<AllocationId, usize>, label: &str) -> Result<()> {
        all.iter().try_for_each(|(&allocation, &size)| {
            self.access(StreamId(0), Slice { allocation, offset: 0, size }, MemoryAccess::Write, label)
        })
    }

    /// Replays one run of a sequence with this home stream.
    fn sequence(&mut self, sequence: &ThunkSequence, home: StreamId) -> Result<()> {
        let home_stream = self.stream(home);
        let begin = self.detector.record(home_stream);
        for &fork in &sequence.forks {
            let stream = self.stream(fork);
            self.detector.wait(stream, &begin);
        }
        let is_waited_for: HashSet<ThunkId> =
            sequence.thunks.iter().flat_map(|thunk| &thunk.waits).chain(&sequence.joins).copied().collect();
        let mut events: HashMap<ThunkId, Clock> = HashMap::new();
        for thunk in &sequence.thunks {
            self.wait(thunk.stream, &thunk.waits, &events).context(|| thunk.place())?;
            self.thunk(thunk)?;
            if is_waited_for.contains(&thunk.id) {
                let stream = self.stream(thunk.stream);
                events.insert(thunk.id, self.detector.record(stream));
            }
        }
        self.wait(home, &sequence.joins, &events).context(|| "the end of a sequence")
    }

    fn wait(&mut self, stream: StreamId, waits: &[ThunkId], events: &HashMap<ThunkId, Clock>) -> Result<()> {
        let stream = self.stream(stream);
        for id in waits {
            let event = events.get(id).ok_or_else(|| {
                Error::internal(format!("it waits for {id}, which does not precede it in the same sequence"))
            })?;
            self.detector.wait(stream, event);
        }
        Ok(())
    }

    fn thunk(&mut self, thunk: &Thunk) -> Result<()> {
        let (label, stream) = (thunk.place(), thunk.stream);
        match &thunk.kind {
            ThunkKind::Kernel(_) | ThunkKind::LibraryCall(_) | ThunkKind::Copy => self.leaf(thunk),
            ThunkKind::Collective(_) | ThunkKind::CustomCall | ThunkKind::HostFallback => self.leaf(thunk),
            ThunkKind::While { condition, body, predicate, trip_count } => {
                // Two iterations, to find conflicts between iterations.
                for _ in 0..2 {
                    if trip_count.is_none() {
                        self.sequence(condition, stream)?;
                        self.access(stream, *predicate, MemoryAccess::Read, &label)?;
                    }
                    self.sequence(body, stream)?;
                }
                Ok(())
            }
            ThunkKind::Conditional { slice, branches, .. } => {
                self.access(stream, *slice, MemoryAccess::Read, &label)?;
                // Branches are replayed in sequence. Each starts and ends on the same stream, so a branch adds no order
                // for the next one beyond that of the stream.
                branches.iter().try_for_each(|branch| self.sequence(branch, stream))
            }
        }
    }

    fn leaf(&mut self, thunk: &Thunk) -> Result<()> {
        let label = thunk.place();
        let reads = thunk.operands.iter().map(|array| (array.slice, MemoryAccess::Read));
        let writes = thunk.results.iter().map(|array| (array.slice, MemoryAccess::Write));
        reads.chain(writes).try_for_each(|(slice, access)| self.access(thunk.stream, slice, access, &label))?;
        if thunk.has_effects {
            let stream = self.stream(thunk.stream);
            self.detector.access(stream, EFFECTS, 0..1, MemoryAccess::Write, format!("the effects of {label}"))?;
        }
        Ok(())
    }
}
