//! Race detector: finds unordered accesses to memory of simulated devices, with vector clocks.
//!
//! Each stream, and the host, has a vector clock: for every stream, the number of its accesses that are known to
//! precede. An event is a copy of its stream's clock; waiting for the event joins that clock into the waiter's. An
//! access is ordered after an earlier one if its stream's clock covers the earlier access (C. Flanagan and S. N.
//! Freund, "FastTrack: Efficient and Precise Dynamic Race Detection", 2009). For each range of a memory it suffices to
//! keep the last write and, for each stream, the last read since then: accesses before these are ordered before them,
//! or have been reported.
//!
//! The result depends only on events, not on the actual execution order. Therefore one run finds all conflicting pairs
//! that no event orders.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use xla_hlo::{Error, Result};

use crate::intervals::IntervalMap;

/// Race detector of one device. Users that share it between threads put it into a lock.
///
/// ```
/// use xla_service::host::{MemoryAccess, RaceDetector};
///
/// let mut detector = RaceDetector::new();
/// let (first, second) = (detector.stream(), detector.stream());
/// detector.access(first, 7, 0..64, MemoryAccess::Write, "a")?;
/// let event = detector.record(first);
/// assert!(detector.access(second, 7, 0..4, MemoryAccess::Read, "b").is_err());
/// detector.wait(second, &event);
/// detector.access(second, 7, 0..4, MemoryAccess::Read, "b")?;
/// # Ok::<(), xla_hlo::Error>(())
/// ```
#[derive(Debug)]
pub struct RaceDetector {
    /// Clock of each stream; the host is number 0.
    clocks: Vec<Clock>,
    /// Closed streams, whose numbers may be reused.
    closed: Vec<RaceStream>,
    memories: HashMap<u64, IntervalMap<History>>,
}

/// Stream of a [`RaceDetector`], or the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RaceStream(usize);

impl RaceStream {
    /// Sequence of the host's own accesses.
    pub const HOST: RaceStream = RaceStream(0);
}

impl fmt::Display for RaceStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("the host"),
            stream => write!(f, "stream {}", stream - 1),
        }
    }
}

/// Vector clock: known progress of every stream. An event is such a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clock(Vec<u64>);

impl Clock {
    fn at(&self, stream: RaceStream) -> u64 {
        self.0.get(stream.0).copied().unwrap_or(0)
    }

    /// Counts one more access of a stream, and returns its number.
    fn tick(&mut self, stream: RaceStream) -> u64 {
        if self.0.len() <= stream.0 {
            self.0.resize(stream.0 + 1, 0);
        }
        self.0[stream.0] += 1;
        self.0[stream.0]
    }

    fn join(&mut self, other: &Clock) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(mine, theirs)| *mine = (*mine).max(*theirs));
    }
}

/// Kind of an access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryAccess {
    /// Read; may overlap other reads.
    Read,
    /// Write, or read and write; must not overlap any other access.
    Write,
}

impl MemoryAccess {
    fn verb(self) -> &'static str {
        match self {
            MemoryAccess::Read => "reads",
            MemoryAccess::Write => "writes",
        }
    }
}

/// Accesses to a range of a memory.
#[derive(Clone, Debug, Default)]
struct History {
    write: Option<Done>,
    /// Last read of each stream since the write.
    reads: Vec<Done>,
}

/// Access that has happened.
#[derive(Clone, Debug)]
struct Done {
    stream: RaceStream,
    tick: u64,
    range: Range<usize>,
    label: Arc<str>,
}

impl Default for RaceDetector {
    fn default() -> Self {
        RaceDetector::new()
    }
}

impl RaceDetector {
    /// Creates a detector without streams or accesses.
    pub fn new() -> RaceDetector {
        RaceDetector { clocks: vec![Clock::default()], closed: Vec::new(), memories: HashMap::new() }
    }

    /// Adds a stream. It may reuse the number of a closed stream if the host has waited for all work of that stream.
    /// This is sound because a new stream starts with the host's clock and is therefore ordered after that work.
    pub fn stream(&mut self) -> RaceStream {
        let host = &self.clocks[RaceStream::HOST.0];
        let is_over = |stream: &RaceStream| host.at(*stream) >= self.clocks[stream.0].at(*stream);
        if let Some(place) = self.closed.iter().position(is_over) {
            let stream = self.closed.swap_remove(place);
            self.clocks[stream.0] = host.clone();
            return stream;
        }
        self.clocks.push(Clock::default());
        RaceStream(self.clocks.len() - 1)
    }

    /// Closes a stream that receives no more work. The cost of accesses grows with the number of streams, so users
    /// that create many streams should close them.
    pub fn closed(&mut self, stream: RaceStream) {
        self.closed.push(stream);
    }

    /// Records that the host now sends work to `stream` which reads or writes bytes of a memory. `label` names the work
    /// in error messages.
    ///
    /// Each launch calls this once for each of its operands and results; accesses of one stream never race with each
    /// other. The host's own accesses use [`RaceStream::HOST`]. The error is [`Error::Internal`] and names this access
    /// and the earlier access that it races with, with streams and bytes, and the missing wait. The access is recorded
    /// nevertheless, so that detection can continue.
    pub fn access(
        &mut self,
        stream: RaceStream,
        memory: u64,
        range: Range<usize>,
        access: MemoryAccess,
        label: impl Into<Arc<str>>,
    ) -> Result<()> {
        let tick = self.advance(stream).tick(stream);
        let done = Done { stream, tick, range: range.clone(), label: label.into() };
        let RaceDetector { clocks, memories, .. } = self;
        let (clock, history) = (&clocks[stream.0], memories.entry(memory).or_default());
        let race = conflict(history, range.clone(), access, clock);
        let race = race.map(|earlier| race_error(memory, &earlier, access, &done));
        match access {
            MemoryAccess::Write => history.replace(range, History { write: Some(done), reads: Vec::new() }),
            MemoryAccess::Read => history.update(range, |part| {
                match part.reads.iter_mut().find(|read| read.stream == stream) {
                    Some(read) => *read = done.clone(),
                    None => part.reads.push(done.clone()),
                };
            }),
        }
        race.map_or(Ok(()), Err)
    }

    /// Records an event on `stream`: a snapshot of everything sent to it so far.
    pub fn record(&mut self, stream: RaceStream) -> Clock {
        self.advance(stream).clone()
    }

    /// Makes later work on `stream` wait for an event.
    pub fn wait(&mut self, stream: RaceStream, event: &Clock) {
        self.advance(stream).join(event);
    }

    /// Records that the host has waited for an event.
    pub fn host_wait(&mut self, event: &Clock) {
        self.wait(RaceStream::HOST, event);
    }

    /// Records that the host has waited for everything sent to `stream`.
    pub fn host_sync(&mut self, stream: RaceStream) {
        let event = self.record(stream);
        self.host_wait(&event);
    }

    /// Records that a memory is freed in the order of `stream`: its next owner may use it after that stream's work so
    /// far. Accesses that are not ordered before this point are races. The detector forgets the memory, whose number
    /// may be reused.
    pub fn freed(&mut self, stream: RaceStream, memory: u64) -> Result<()> {
        let tick = self.advance(stream).tick(stream);
        let Some(history) = self.memories.remove(&memory) else { return Ok(()) };
        let mut end = 0;
        history.for_all(|range, _| end = end.max(range.end));
        let done = Done { stream, tick, range: 0..end, label: "release of the memory".into() };
        let earlier = conflict(&history, 0..end, MemoryAccess::Write, &self.clocks[stream.0]);
        earlier.map_or(Ok(()), |earlier| Err(race_error(memory, &earlier, MemoryAccess::Write, &done)))
    }

    /// Joins the host's clock into a stream's clock and returns it: work is ordered after everything that the host
    /// waited for before sending it.
    fn advance(&mut self, stream: RaceStream) -> &mut Clock {
        if stream != RaceStream::HOST
            && let Some((host, rest)) = self.clocks.split_first_mut()
        {
            rest[stream.0 - 1].join(host);
        }
        &mut self.clocks[stream.0]
    }
}

/// Returns an earlier conflicting access that `clock` does not cover, and its kind.
fn conflict(
    history: &IntervalMap<History>,
    range: Range<usize>,
    access: MemoryAccess,
    clock: &Clock,
) -> Option<(Done, MemoryAccess)> {
    let mut found = None;
    history.for_each(range, |_, part| {
        let write = part.write.iter().map(|done| (done, MemoryAccess::Write));
        let reads = part.reads.iter().map(|done| (done, MemoryAccess::Read));
        let reads = reads.filter(|_| access == MemoryAccess::Write);
        let unordered = write.chain(reads).find(|(done, _)| clock.at(done.stream) < done.tick);
        if let (None, Some((done, verb))) = (&found, unordered) {
            found = Some((done.clone(), verb));
        }
    });
    found
}

fn race_error(memory: u64, earlier: &(Done, MemoryAccess), access: MemoryAccess, done: &Done) -> Error {
    let (before, verb) = earlier;
    let order = match (before.stream, done.stream) {
        (RaceStream::HOST, later) => format!("this was sent to {later} before the host did that"),
        (stream, later) => format!("{later} must wait for an event that {stream} records after {}", before.label),
    };
    Error::internal(format!(
        "race: {} on {} {} bytes {}..{} of memory {memory}, and {} on {} {} bytes {}..{}; {order}",
        done.label,
        done.stream,
        access.verb(),
        done.range.start,
        done.range.end,
        before.label,
        before.stream,
        verb.verb(),
        before.range.start,
        before.range.end
    ))
}

#[cfg(test)]
mod tests {
    use super::MemoryAccess::{Read, Write};
    use super::*;

    #[test]
    fn conflicts_need_an_order() {
        let mut detector = RaceDetector::new();
        let (a, b) = (detector.stream(), detector.stream());
        detector.access(a, 1, 0..64, Write, "t0 (%x)").unwrap();
        detector.access(a, 1, 0..64, Read, "t1").unwrap();
        detector.access(b, 1, 64..128, Write, "t2").unwrap();
        detector.access(b, 2, 0..64, Write, "t3").unwrap();
        let error = detector.access(b, 1, 60..70, Read, "t4 (%y)").unwrap_err();
        assert!(matches!(error, Error::Internal(_)));
        assert_eq!(
            error.message(),
            "race: t4 (%y) on stream 1 reads bytes 60..70 of memory 1, and t0 (%x) on stream 0 writes bytes 0..64; \
             stream 1 must wait for an event that stream 0 records after t0 (%x)"
        );
    }

    #[test]
    fn readers_do_not_race_but_a_writer_waits_for_all_of_them() {
        let mut detector = RaceDetector::new();
        let [a, b, c] = std::array::from_fn(|_| detector.stream());
        detector.access(a, 1, 0..8, Write, "w").unwrap();
        let written = detector.record(a);
        let mut events = Vec::new();
        for stream in [b, c] {
            detector.wait(stream, &written);
            detector.access(stream, 1, 0..8, Read, "r").unwrap();
            events.push(detector.record(stream));
        }
        detector.wait(a, &events[0]);
        assert!(detector.access(a, 1, 7..8, Write, "w2").is_err(), "nothing waited for the reader on c");
        detector.wait(a, &events[1]);
        detector.access(a, 1, 0..7, Write, "w2").unwrap();
    }

    #[test]
    fn order_is_transitive_and_an_event_is_as_old_as_its_record() {
        let mut detector = RaceDetector::new();
        let [a, b, c] = std::array::from_fn(|_| detector.stream());
        detector.access(a, 1, 0..8, Write, "first").unwrap();
        let early = detector.record(a);
        detector.access(a, 1, 8..16, Write, "second").unwrap();
        detector.wait(b, &early);
        let passed_on = detector.record(b);
        detector.wait(c, &passed_on);
        detector.access(c, 1, 0..8, Write, "third").unwrap();
        assert!(detector.access(c, 1, 8..16, Read, "fourth").is_err());
    }

    #[test]
    fn the_host_orders_what_it_waits_for() {
        let mut detector = RaceDetector::new();
        let (a, b) = (detector.stream(), detector.stream());
        detector.access(a, 1, 0..8, Write, "w").unwrap();
        let error = detector.access(RaceStream::HOST, 1, 0..8, Read, "a copy").unwrap_err();
        assert!(error.message().starts_with("race: a copy on the host reads"), "{error}");
        detector.host_sync(a);
        detector.access(RaceStream::HOST, 1, 0..8, Read, "a copy").unwrap();
        // Later work is ordered after everything that the host has waited for.
        detector.access(b, 1, 0..8, Write, "w2").unwrap();
        let event = detector.record(b);
        detector.host_wait(&event);
        detector.access(a, 1, 0..8, Write, "w3").unwrap();
    }

    #[test]
    fn memory_is_given_back_behind_its_last_use() {
        let mut detector = RaceDetector::new();
        let (a, b) = (detector.stream(), detector.stream());
        detector.access(a, 1, 0..8, Write, "w").unwrap();
        let event = detector.record(a);
        detector.wait(b, &event);
        detector.access(b, 1, 4..8, Read, "r").unwrap();
        let mut late = detector.record(b);
        let error = detector.freed(a, 1).unwrap_err();
        assert!(
            error
                .message()
                .contains("release of the memory on stream 0 writes bytes 0..8 of memory 1, and r on stream 1")
        );
        // The freed memory is forgotten, even after a race.
        detector.access(b, 1, 0..8, Write, "another").unwrap();
        late.join(&detector.record(b));
        detector.wait(a, &late);
        detector.freed(a, 1).unwrap();
        detector.freed(a, 99).unwrap();
    }

    #[test]
    fn numbers_are_used_again_when_nothing_of_them_is_under_way() {
        let mut detector = RaceDetector::new();
        let (a, b) = (detector.stream(), detector.stream());
        detector.access(a, 1, 0..8, Write, "w").unwrap();
        detector.closed(a);
        // Work of other streams may still race with it.
        assert_ne!(detector.stream(), a);
        assert!(detector.access(b, 1, 0..8, Read, "r").is_err());
        detector.host_sync(a);
        assert_eq!(detector.stream(), a);
        detector.access(a, 1, 0..8, Read, "r").unwrap();
    }

    #[test]
    fn empty_ranges_touch_nothing() {
        let mut detector = RaceDetector::new();
        let (a, b) = (detector.stream(), detector.stream());
        detector.access(a, 1, 0..8, Write, "w").unwrap();
        detector.access(b, 1, 3..3, Write, "nothing").unwrap();
    }

    #[test]
    fn many_accesses_are_quick() {
        let mut detector = RaceDetector::new();
        let streams: Vec<RaceStream> = (0..4).map(|_| detector.stream()).collect();
        let label: Arc<str> = "k".into();
        for i in 0..200_000usize {
            let (stream, start) = (streams[i % 4], 64 * (i * 7919 % 5000));
            // Each stream accesses its own bytes among those of the others.
            let range = start + 16 * (i % 4)..start + 16 * (i % 4) + 16;
            let access = if i % 3 == 0 { Write } else { Read };
            detector.access(stream, (i % 16) as u64, range, access, label.clone()).unwrap();
        }
    }
}
