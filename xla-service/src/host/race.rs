//! Race detector: finds unordered accesses to memory of simulated devices, by vector clocks.
//!
//! Each stream, and the host, has a clock: how far it knows every stream to be. An event is a copy of its stream's
//! clock, and whoever waits for it takes over the clock's knowledge. An access is ordered after an earlier one if
//! its stream knows the earlier one's stream to be that far (C. Flanagan and S. N. Freund, "FastTrack: Efficient and
//! Precise Dynamic Race Detection", 2009). For each part of a memory it is enough to keep the last write and, of each
//! stream, the last read since: what was before them is ordered before them, or has been reported.
//!
//! The result depends on events alone and not on which work happened to come first, so one run shows every pair that no
//! event orders.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use xla_hlo::{Error, Result};

use crate::intervals::IntervalMap;

/// Watches one device. Whoever shares it between threads puts it behind a lock.
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
    /// By stream; the host is 0.
    clocks: Vec<Clock>,
    /// Streams that nobody will use any more.
    closed: Vec<RaceStream>,
    memories: HashMap<u64, IntervalMap<History>>,
}

/// A stream that a [`RaceDetector`] knows, or the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RaceStream(usize);

impl RaceStream {
    /// The host's own accesses, one after the other.
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

/// Known progress of every stream; the value of an event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clock(Vec<u64>);

impl Clock {
    fn at(&self, stream: RaceStream) -> u64 {
        self.0.get(stream.0).copied().unwrap_or(0)
    }

    /// Counts one more access of that stream, and returns its number.
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
    /// It is read; others may read it too.
    Read,
    /// It is written, or read and written: nobody else may touch it.
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

/// Accesses to a part of a memory.
#[derive(Clone, Debug, Default)]
struct History {
    write: Option<Done>,
    /// Since then, the last of each stream.
    reads: Vec<Done>,
}

/// An access that was made.
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
    /// A detector that has seen nothing.
    pub fn new() -> RaceDetector {
        RaceDetector { clocks: vec![Clock::default()], closed: Vec::new(), memories: HashMap::new() }
    }

    /// A new stream. It may have the number of one that was closed, if the host knows all of that one's work to be
    /// done: then the new stream, which starts with the host's clock, is after that work anyway.
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

    /// Nobody will send anything to `stream` any more. Accesses take longer the more streams there are, so whoever
    /// makes many should say this when one goes.
    pub fn closed(&mut self, stream: RaceStream) {
        self.closed.push(stream);
    }

    /// Work that the host now sends to `stream` reads or writes bytes of a memory. `label` says whose work it is, for
    /// errors.
    ///
    /// Each launch says this once for each of its operands and results; accesses of one stream never race with each
    /// other. The host's own accesses are those of [`RaceStream::HOST`]. The error is [`Error::Internal`] and names
    /// this access and the one before it that it races with, with streams and bytes, and the wait that is missing. The
    /// access counts nevertheless, so that one can go on.
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

    /// An event on `stream`: everything sent to it so far.
    pub fn record(&mut self, stream: RaceStream) -> Clock {
        self.advance(stream).clone()
    }

    /// Makes work sent to `stream` from now on wait for an event.
    pub fn wait(&mut self, stream: RaceStream, event: &Clock) {
        self.advance(stream).join(event);
    }

    /// The host has waited for an event.
    pub fn host_wait(&mut self, event: &Clock) {
        self.wait(RaceStream::HOST, event);
    }

    /// The host has waited for everything sent to `stream`.
    pub fn host_sync(&mut self, stream: RaceStream) {
        let event = self.record(stream);
        self.host_wait(&event);
    }

    /// A memory is given back in the order of `stream`: its next owner may use it after that stream's work so far. Work
    /// that is not ordered before this is a race. The memory is forgotten; its number may be used for another one.
    pub fn freed(&mut self, stream: RaceStream, memory: u64) -> Result<()> {
        let tick = self.advance(stream).tick(stream);
        let Some(history) = self.memories.remove(&memory) else { return Ok(()) };
        let mut end = 0;
        history.for_all(|range, _| end = end.max(range.end));
        let done = Done { stream, tick, range: 0..end, label: "giving it back".into() };
        let earlier = conflict(&history, 0..end, MemoryAccess::Write, &self.clocks[stream.0]);
        earlier.map_or(Ok(()), |earlier| Err(race_error(memory, &earlier, MemoryAccess::Write, &done)))
    }

    /// The clock of a stream, joined with the host's: work is after everything that the host waited for before sending
    /// it.
    fn advance(&mut self, stream: RaceStream) -> &mut Clock {
        if stream != RaceStream::HOST
            && let Some((host, rest)) = self.clocks.split_first_mut()
        {
            rest[stream.0 - 1].join(host);
        }
        &mut self.clocks[stream.0]
    }
}

/// An earlier conflicting access that `clock` does not cover, and its kind.
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
        (RaceStream::HOST, later) => format!("{later} was sent this without the host having done that"),
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
        // Work enqueued from now on is ordered after all that the host has waited for.
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
            error.message().contains("giving it back on stream 0 writes bytes 0..8 of memory 1, and r on stream 1")
        );
        // Forgotten, whatever it was.
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
        // Somebody else's work may still race with it.
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
            // Each stream has bytes of its own among the others'.
            let range = start + 16 * (i % 4)..start + 16 * (i % 4) + 16;
            let access = if i % 3 == 0 { Write } else { Read };
            detector.access(stream, (i % 16) as u64, range, access, label.clone()).unwrap();
        }
    }
}
