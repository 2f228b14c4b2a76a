//! Report of a stream assignment: modelled times, and waits between thunks.

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use super::super::{StreamId, ThunkId, ThunkKind, ThunkSequence};

/// Result of [`assign_streams`](super::assign_streams), for display.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StreamReport {
    /// Modelled time of the program, in seconds.
    pub seconds: f64,
    /// Modelled time on one stream, in seconds.
    pub seconds_on_one_stream: f64,
    /// Sequences on more than one stream, outer ones first.
    pub sequences: Vec<Timeline>,
}

/// One run of a sequence that uses more than one stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    /// Name of the sequence: `the program`, `the body of thunk t3 (%while)`.
    pub place: String,
    /// Home stream of the sequence.
    pub home: StreamId,
    /// Thunks, in launch order.
    pub thunks: Vec<TimelineThunk>,
    /// Streams that start by waiting for earlier work.
    pub forks: Vec<StreamId>,
    /// Thunks that the home stream waits for at the end.
    pub joins: Vec<ThunkId>,
}

/// Scheduled thunk.
#[derive(Clone, Debug, PartialEq)]
pub struct TimelineThunk {
    /// Number of the thunk.
    pub id: ThunkId,
    /// Name of its instruction.
    pub name: String,
    /// Kind of the thunk: `kernel`, `copy`.
    pub kind: &'static str,
    /// Stream of the thunk.
    pub stream: StreamId,
    /// Start in seconds, relative to the start of the sequence.
    pub start: f64,
    /// End in seconds, relative to the start of the sequence.
    pub finish: f64,
    /// Thunks that it waits for.
    pub waits: Vec<ThunkId>,
}

impl StreamReport {
    /// Creates the report of a sequence whose thunks run at these times.
    pub(super) fn new(
        sequence: &ThunkSequence,
        times: &HashMap<ThunkId, (f64, f64)>,
        seconds: f64,
        seconds_on_one_stream: f64,
    ) -> StreamReport {
        let mut report = StreamReport { seconds, seconds_on_one_stream, sequences: Vec::new() };
        report.add(sequence, "the program".to_string(), StreamId(0), times);
        report
    }

    /// Whether any thunk uses a stream other than 0.
    pub fn uses_streams(&self) -> bool {
        !self.sequences.is_empty()
    }

    fn add(&mut self, sequence: &ThunkSequence, place: String, home: StreamId, times: &HashMap<ThunkId, (f64, f64)>) {
        if !sequence.is_on_one_stream() {
            let thunks = sequence.thunks.iter().map(|thunk| {
                let (start, finish) = times.get(&thunk.id).copied().unwrap_or_default();
                let (id, name, stream) = (thunk.id, thunk.name.clone(), thunk.stream);
                TimelineThunk { id, name, kind: kind(&thunk.kind), stream, start, finish, waits: thunk.waits.clone() }
            });
            let (forks, joins) = (sequence.forks.clone(), sequence.joins.clone());
            self.sequences.push(Timeline { place, home, thunks: thunks.collect(), forks, joins });
        }
        for thunk in &sequence.thunks {
            for (i, nested) in thunk.kind.nested().into_iter().enumerate() {
                let part = match (&thunk.kind, i) {
                    (ThunkKind::While { .. }, 0) => "the condition".to_string(),
                    (ThunkKind::While { .. }, _) => "the body".to_string(),
                    (_, i) => format!("branch {i}"),
                };
                self.add(nested, format!("{part} of {}", thunk.place()), thunk.stream, times);
            }
        }
    }
}

impl Timeline {
    /// Returns all streams that the sequence uses.
    pub fn streams(&self) -> BTreeSet<StreamId> {
        self.thunks.iter().map(|thunk| thunk.stream).chain([self.home]).collect()
    }

    /// Returns the number of recorded events.
    pub fn events(&self) -> usize {
        let waited_for: BTreeSet<ThunkId> =
            self.thunks.iter().flat_map(|t| &t.waits).chain(&self.joins).copied().collect();
        waited_for.len() + usize::from(!self.forks.is_empty())
    }

    /// Returns the number of waits for events.
    pub fn waits(&self) -> usize {
        self.thunks.iter().map(|thunk| thunk.waits.len()).sum::<usize>() + self.forks.len() + self.joins.len()
    }

    /// Returns the time at which the last thunk is done, in seconds.
    pub fn seconds(&self) -> f64 {
        self.thunks.iter().map(|thunk| thunk.finish).fold(0.0, f64::max)
    }
}

fn kind(kind: &ThunkKind) -> &'static str {
    match kind {
        ThunkKind::Kernel(_) => "kernel",
        ThunkKind::LibraryCall(call) => call.op.label(),
        ThunkKind::Copy => "copy",
        ThunkKind::While { .. } => "while",
        ThunkKind::Conditional { .. } => "conditional",
        ThunkKind::Collective(_) => "collective",
        ThunkKind::CustomCall => "custom-call",
        ThunkKind::HostFallback => "host-fallback",
    }
}

/// Formats a time in microseconds with a suitable number of digits.
pub(super) fn microseconds(seconds: f64) -> String {
    let value = seconds * 1e6;
    let digits = if value >= 1000.0 { 0 } else { 2 };
    format!("{value:.digits$} us")
}

impl fmt::Display for StreamReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (several, one) = (microseconds(self.seconds), microseconds(self.seconds_on_one_stream));
        writeln!(f, "By the model: {several} on several streams, {one} on one.")?;
        self.sequences.iter().try_for_each(|timeline| write!(f, "\n{timeline}"))
    }
}

impl fmt::Display for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let streams = self.streams();
        let (events, waits, time) = (self.events(), self.waits(), microseconds(self.seconds()));
        writeln!(f, "{}: {} streams, {events} events, {waits} waits, {time}", self.place, streams.len())?;
        for stream in streams {
            let begin = match (self.forks.contains(&stream), stream == self.home) {
                (_, true) => " (its own)",
                (true, _) => " waits for earlier work",
                (false, false) => "",
            };
            writeln!(f, "  stream {}{begin}", stream.0)?;
            for thunk in self.thunks.iter().filter(|thunk| thunk.stream == stream) {
                let TimelineThunk { id, kind, name, .. } = thunk;
                write!(f, "    {:>12} .. {:>12}", microseconds(thunk.start), microseconds(thunk.finish))?;
                write!(f, "  {id} {kind} %{name}")?;
                writeln!(
                    f,
                    "{}",
                    if thunk.waits.is_empty() { String::new() } else { format!(" waits={:?}", thunk.waits) }
                )?;
            }
        }
        writeln!(f, "  end waits={:?}", self.joins)
    }
}
