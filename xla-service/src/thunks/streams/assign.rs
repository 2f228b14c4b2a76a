//! Assigns streams to thunks by list scheduling, with a timing model of host and device.
//!
//! Each thunk is assigned to the stream where it finishes first, including the cost of events. Ties prefer the
//! sequence's home, then the lower stream number. Therefore a chain, or work that the host sends too slowly, stays on
//! one stream. The assignment is repeated for each number of streams up to the profile's limit; the best one is kept if
//! it is better than a single stream.

use std::collections::{BTreeSet, HashMap};

use xla_hlo::Result;

use super::super::sequence::can_be_recorded;
use super::super::{StreamId, Thunk, ThunkId, ThunkKind, ThunkSequence};
use super::conflicts::{Conflicts, Touched};
use super::model::{Demand, Machine, Times};
use super::order::HappensBefore;
use super::report::StreamReport;
use super::{StreamProfile, ThunkCost, verify_streams};

/// Assigns streams and waits to all thunks, including nested sequences. Replaces any earlier assignment.
///
/// `cost` is called for kernels, library calls and work on the host. The profile determines the cost of copies. The
/// cost of control flow is that of its nested thunks, with one iteration if the trip count is unknown. Negative or
/// non-finite costs count as 0. Stream numbers are dense. All work stays on one stream unless the model predicts that
/// several are faster. Debug builds check the assignment with [`verify_streams`], whose
/// [`Error::Internal`](xla_hlo::Error::Internal) is the only error.
pub fn assign_streams(
    sequence: &mut ThunkSequence,
    profile: &StreamProfile,
    cost: &dyn Fn(&Thunk) -> ThunkCost,
) -> Result<StreamReport> {
    reset(sequence);
    let mut assigner = Assigner { profile, cost, times: HashMap::new() };
    let level = assigner.level(sequence, true);
    let numbers: HashMap<u32, u32> = used_streams(sequence).into_iter().zip(0..).collect();
    renumber(sequence, &|stream| numbers.get(&stream).copied().unwrap_or(stream));
    if cfg!(debug_assertions) {
        verify_streams(sequence)?;
    }
    Ok(StreamReport::new(sequence, &assigner.times, level.best.seconds, level.single.seconds))
}

struct Assigner<'a> {
    profile: &'a StreamProfile,
    cost: &'a dyn Fn(&Thunk) -> ThunkCost,
    /// Start and end of each thunk, relative to the start of its sequence.
    times: HashMap<ThunkId, (f64, f64)>,
}

/// Time of one run of a sequence, in seconds.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    seconds: f64,
    /// Time until the host has sent all of its work.
    host: f64,
    /// Average share of the device that is busy.
    share: f64,
}

/// Times of one run of a sequence, as assigned and on a single stream.
#[derive(Clone, Copy, Debug, Default)]
struct SequenceLevel {
    best: Span,
    single: Span,
}

/// Assignment of the thunks of a sequence.
struct StreamPlan {
    streams: Vec<usize>,
    /// Nodes that each thunk waits for.
    waits: Vec<Vec<usize>>,
    joins: Vec<usize>,
    times: Vec<Times>,
    span: Span,
}

/// Candidate stream of a thunk.
struct ThunkPlacement {
    stream: usize,
    waits: Vec<usize>,
    times: Times,
    /// Finish time of the thunk, including the cost of events.
    score: f64,
}

impl Assigner<'_> {
    /// Assigns a sequence and its nested sequences as if its home were stream 0. Uses a single stream unless `spread`.
    fn level(&mut self, sequence: &mut ThunkSequence, spread: bool) -> SequenceLevel {
        let mut best = Vec::with_capacity(sequence.thunks.len());
        let mut single = Vec::with_capacity(sequence.thunks.len());
        for thunk in &mut sequence.thunks {
            let recorded = self.is_recorded(&thunk.kind);
            let nested = thunk.kind.nested_mut().into_iter().map(|inner| self.level(inner, spread && !recorded));
            let nested: Vec<SequenceLevel> = nested.collect();
            best.push(self.demand(thunk, recorded, &|i| nested[i].best));
            single.push(self.demand(thunk, recorded, &|i| nested[i].single));
        }
        let touched: Vec<Touched> = sequence.thunks.iter().map(Touched::of).collect();
        let single = self.plan(sequence, &touched, &single, &[0]).span;
        let mut plan = self.plan(sequence, &touched, &best, &[0]);
        let mut limit = plan.span.seconds * (1.0 - LEAST_GAIN);
        for candidates in if spread { self.choices() } else { Vec::new() } {
            let other = self.plan(sequence, &touched, &best, &candidates);
            if other.span.seconds < limit {
                limit = other.span.seconds;
                plan = other;
            }
        }
        self.apply(sequence, &plan);
        SequenceLevel { best: plan.span, single }
    }

    /// Returns the sets of streams to try: 1 to `compute_streams` streams for kernels, each with no or all copy
    /// streams.
    fn choices(&self) -> Vec<Vec<usize>> {
        let (compute, copies) = (self.profile.compute_streams.max(1) as usize, self.profile.copy_streams as usize);
        let mut choices = Vec::new();
        for count in 1..=compute {
            for copies in BTreeSet::from([0, copies]) {
                choices.push((0..count).chain(compute..compute + copies).collect());
            }
        }
        // The first set is the single stream.
        choices.remove(0);
        choices
    }

    fn plan(&self, sequence: &ThunkSequence, touched: &[Touched], demands: &[Demand], streams: &[usize]) -> StreamPlan {
        let count = streams.iter().max().map_or(1, |&last| last + 1);
        let mut machine = Machine::new(self.profile, count);
        let (mut order, mut conflicts) = (HappensBefore::new(count), Conflicts::default());
        let mut plan = StreamPlan {
            streams: Vec::with_capacity(demands.len()),
            waits: Vec::with_capacity(demands.len()),
            joins: Vec::new(),
            times: Vec::new(),
            span: Span::default(),
        };
        for (i, thunk) in sequence.thunks.iter().enumerate() {
            // Every thunk is ordered after the start of the sequence.
            let needed = conflicts.before(&touched[i]).into_iter().chain([0]);
            let place = |stream| {
                let waits = order.waits(stream, needed.clone());
                let times = machine.plan(&demands[i], stream, &waits);
                // Streams other than home must be joined again.
                let events = waits.len() + usize::from(stream != 0);
                ThunkPlacement {
                    stream,
                    score: times.finish + events as f64 * self.profile.event_seconds,
                    waits,
                    times,
                }
            };
            let allowed = streams.iter().copied().filter(|&stream| self.allows(thunk, stream, streams));
            let better = |best: ThunkPlacement, next: ThunkPlacement| {
                if next.score < best.score * (1.0 - TIE) { next } else { best }
            };
            let ThunkPlacement { stream, waits, times, .. } =
                allowed.map(place).reduce(better).unwrap_or_else(|| place(0));
            machine.send(&demands[i], stream, times);
            order.push(stream, &waits);
            conflicts.add(i + 1, stream, &touched[i]);
            plan.streams.push(stream);
            plan.waits.push(waits);
        }
        plan.joins = order.waits(0, order.ends().into_iter());
        let (seconds, host) = machine.end(&plan.joins);
        let work: f64 = demands.iter().map(|demand| demand.seconds * demand.share).sum();
        let share = if seconds > 0.0 { (work / seconds).min(1.0) } else { 0.0 };
        plan.span = Span { seconds, host, share };
        plan.times = machine.into_times();
        plan
    }

    /// Whether a thunk may run on a stream of this set. If the set has copy streams, large copies use only these, and
    /// no other thunk does: when a copy is sent, it is unknown which thunks would follow it on a kernel stream.
    fn allows(&self, thunk: &Thunk, stream: usize, streams: &[usize]) -> bool {
        let for_copies = |stream: usize| stream >= self.profile.compute_streams.max(1) as usize;
        let is_large = matches!(thunk.kind, ThunkKind::Copy) && copied_bytes(thunk) >= self.profile.copy_stream_bytes;
        for_copies(stream) == (is_large && streams.iter().any(|&stream| for_copies(stream)))
    }

    fn is_recorded(&self, kind: &ThunkKind) -> bool {
        match kind {
            ThunkKind::While { condition, body, .. } => {
                self.profile.device_loops && [condition, body].iter().all(|part| can_be_recorded(part, false))
            }
            ThunkKind::Kernel(_) | ThunkKind::LibraryCall(_) | ThunkKind::Copy => false,
            ThunkKind::Conditional { .. }
            | ThunkKind::Collective(_)
            | ThunkKind::CustomCall
            | ThunkKind::HostFallback => false,
        }
    }

    /// Returns the demand of a thunk; `nested` returns the times of its nested sequences.
    fn demand(&self, thunk: &Thunk, recorded: bool, nested: &dyn Fn(usize) -> Span) -> Demand {
        let launch = self.profile.launch_seconds;
        let launched = |seconds, share| Demand { lead: launch, issue: launch, seconds, share, blocks: false };
        match &thunk.kind {
            ThunkKind::Kernel(_) | ThunkKind::LibraryCall(_) => {
                let cost = self.cost_of(thunk);
                launched(cost.seconds, cost.share)
            }
            ThunkKind::Copy => {
                let seconds = copied_bytes(thunk) as f64 * self.profile.copy_seconds_per_byte;
                launched(number(seconds), number(self.profile.copy_share).min(1.0))
            }
            ThunkKind::Collective(_) | ThunkKind::CustomCall | ThunkKind::HostFallback => {
                Demand { seconds: self.cost_of(thunk).seconds, blocks: true, ..Demand::default() }
            }
            ThunkKind::While { trip_count, .. } => {
                let (condition, body) = (nested(0), nested(1));
                let iterations = trip_count.unwrap_or(1) as f64;
                let counted = trip_count.is_some() && !recorded;
                let tests = if counted { 0.0 } else { iterations + 1.0 };
                let seconds = iterations * body.seconds + tests * condition.seconds;
                let recording = condition.host + body.host + launch;
                let (lead, issue) = if recorded { (recording, recording) } else { (0.0, iterations * body.host) };
                Demand { lead, issue, seconds, share: body.share, blocks: !counted && !recorded }
            }
            ThunkKind::Conditional { branches, .. } => {
                let most_expensive = (0..branches.len()).map(nested).max_by(|a, b| a.seconds.total_cmp(&b.seconds));
                let Span { seconds, share, .. } = most_expensive.unwrap_or_default();
                Demand { seconds, share, blocks: true, ..Demand::default() }
            }
        }
    }

    /// Returns new stream numbers for sequences nested in a thunk on `home`. They were assigned as if home were stream
    /// 0. Their other streams should be those that this sequence does not use, as far as possible.
    fn moved(&self, used: &BTreeSet<u32>, home: u32) -> Vec<u32> {
        let mut others: Vec<u32> = (0..self.profile.compute_streams.max(1)).filter(|&stream| stream != home).collect();
        others.sort_by_key(|&stream| used.contains(&stream));
        std::iter::once(home).chain(others).collect()
    }

    fn cost_of(&self, thunk: &Thunk) -> ThunkCost {
        let ThunkCost { seconds, share } = (self.cost)(thunk);
        ThunkCost { seconds: number(seconds), share: number(share).min(1.0) }
    }

    /// Writes a plan to the thunks of a sequence.
    fn apply(&mut self, sequence: &mut ThunkSequence, plan: &StreamPlan) {
        let ids: Vec<ThunkId> = sequence.thunks.iter().map(|thunk| thunk.id).collect();
        let thunk_of = |node: &usize| node.checked_sub(1).map(|i| ids[i]);
        let used: BTreeSet<u32> = plan.streams.iter().map(|&stream| stream as u32).collect();
        let moved: HashMap<u32, Vec<u32>> = used.iter().map(|&home| (home, self.moved(&used, home))).collect();
        let mut forks = BTreeSet::new();
        for (i, thunk) in sequence.thunks.iter_mut().enumerate() {
            let stream = plan.streams[i] as u32;
            thunk.stream = StreamId(stream);
            thunk.waits = plan.waits[i].iter().rev().filter_map(thunk_of).collect();
            if plan.waits[i].contains(&0) {
                forks.insert(thunk.stream);
            }
            let number = |old: u32| moved[&stream].get(old as usize).copied().unwrap_or(old);
            thunk.kind.nested_mut().into_iter().for_each(|inner| renumber(inner, &number));
            let Times { start, finish, .. } = plan.times[i + 1];
            self.times.insert(thunk.id, (start, finish));
        }
        sequence.forks = forks.into_iter().collect();
        sequence.joins = plan.joins.iter().rev().filter_map(thunk_of).collect();
    }
}

/// Relative difference below which scores count as equal.
const TIE: f64 = 1e-9;

/// Relative gain that several streams must achieve; smaller gains are within the error of the model.
const LEAST_GAIN: f64 = 0.02;

/// Replaces negative and non-finite values by 0.
fn number(value: f64) -> f64 {
    if value.is_finite() { value.max(0.0) } else { 0.0 }
}

fn copied_bytes(thunk: &Thunk) -> usize {
    thunk.results.iter().map(|array| array.slice.size).fold(0, usize::saturating_add)
}

fn reset(sequence: &mut ThunkSequence) {
    sequence.forks.clear();
    sequence.joins.clear();
    for thunk in &mut sequence.thunks {
        thunk.stream = StreamId::default();
        thunk.waits.clear();
        thunk.kind.nested_mut().into_iter().for_each(reset);
    }
}

fn renumber(sequence: &mut ThunkSequence, number: &dyn Fn(u32) -> u32) {
    sequence.forks.iter_mut().for_each(|stream| stream.0 = number(stream.0));
    sequence.forks.sort_unstable();
    for thunk in &mut sequence.thunks {
        thunk.stream.0 = number(thunk.stream.0);
        thunk.kind.nested_mut().into_iter().for_each(|inner| renumber(inner, number));
    }
}

/// Returns the numbers of all streams, including 0.
fn used_streams(sequence: &ThunkSequence) -> BTreeSet<u32> {
    sequence.walk().map(|thunk| thunk.stream.0).chain([0]).collect()
}
