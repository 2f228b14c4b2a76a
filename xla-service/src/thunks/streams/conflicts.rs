//! Conflicts: accesses of thunks, and the earlier thunks that they must be ordered after.

use std::collections::HashMap;

use xla_passes::buffers::{AllocationId, Slice};

use super::super::{Thunk, ThunkKind};
use crate::intervals::IntervalMap;

/// Bytes that a thunk touches, with all that is nested in it.
#[derive(Clone, Debug, Default)]
pub(super) struct Touched {
    /// Slices read; they may be written as well.
    pub reads: Vec<Slice>,
    /// Slices written.
    pub writes: Vec<Slice>,
    /// Whether something in it has effects.
    pub effects: bool,
}

impl Touched {
    /// The accesses of a thunk.
    pub fn of(thunk: &Thunk) -> Touched {
        let mut touched = Touched::default();
        touched.add(thunk);
        merge(&mut touched.reads);
        merge(&mut touched.writes);
        touched
    }

    fn add(&mut self, thunk: &Thunk) {
        self.reads.extend(thunk.operands.iter().map(|array| array.slice));
        self.writes.extend(thunk.results.iter().map(|array| array.slice));
        self.effects |= thunk.has_effects;
        match &thunk.kind {
            ThunkKind::While { predicate, .. } => self.reads.push(*predicate),
            ThunkKind::Conditional { slice, .. } => self.reads.push(*slice),
            ThunkKind::Kernel(_) | ThunkKind::LibraryCall(_) | ThunkKind::Copy => {}
            ThunkKind::CustomCall | ThunkKind::HostFallback => {}
        }
        for sequence in thunk.kind.nested() {
            sequence.thunks.iter().for_each(|nested| self.add(nested));
        }
    }
}

/// Joins slices that overlap or follow each other, so that a loop's list stays short.
fn merge(slices: &mut Vec<Slice>) {
    slices.retain(|slice| slice.size > 0);
    slices.sort_by_key(|slice| (slice.allocation, slice.offset));
    slices.dedup_by(|next, slice| {
        let end = slice.offset.saturating_add(slice.size);
        let joins = next.allocation == slice.allocation && next.offset <= end;
        if joins {
            slice.size = end.max(next.offset.saturating_add(next.size)) - slice.offset;
        }
        joins
    });
}

/// Latest accesses to each byte by the thunks of one sequence so far.
#[derive(Debug, Default)]
pub(super) struct Conflicts {
    memories: HashMap<AllocationId, IntervalMap<Last>>,
    effect: Option<usize>,
}

/// The last node that wrote, and those that have read since, the last of each stream.
#[derive(Clone, Debug, Default)]
struct Last {
    write: Option<usize>,
    reads: Vec<(usize, usize)>,
}

impl Conflicts {
    /// The nodes that must come before an access to this memory, the latest first. Those that follow from these by the
    /// orders that there must be between them anyway, and by streams, are left out where that is cheap.
    pub fn before(&self, touched: &Touched) -> Vec<usize> {
        let mut nodes: Vec<usize> = self.effect.filter(|_| touched.effects).into_iter().collect();
        self.each(&touched.reads, |last| nodes.extend(last.write));
        self.each(&touched.writes, |last| {
            nodes.extend(last.write);
            nodes.extend(last.reads.iter().map(|(_, node)| node));
        });
        nodes.sort_unstable_by(|a, b| b.cmp(a));
        nodes.dedup();
        nodes
    }

    /// Says that `node`, which is later than all so far, touches this on `stream`.
    pub fn add(&mut self, node: usize, stream: usize, touched: &Touched) {
        if touched.effects {
            self.effect = Some(node);
        }
        for slice in &touched.reads {
            self.memories.entry(slice.allocation).or_default().update(range(slice), |last| {
                match last.reads.iter_mut().find(|(reader, _)| *reader == stream) {
                    Some((_, read)) => *read = node,
                    None => last.reads.push((stream, node)),
                }
            });
        }
        for slice in &touched.writes {
            let last = Last { write: Some(node), reads: Vec::new() };
            self.memories.entry(slice.allocation).or_default().replace(range(slice), last);
        }
    }

    fn each(&self, slices: &[Slice], mut f: impl FnMut(&Last)) {
        for slice in slices {
            if let Some(memory) = self.memories.get(&slice.allocation) {
                memory.for_each(range(slice), |_, last| f(last));
            }
        }
    }
}

fn range(slice: &Slice) -> std::ops::Range<usize> {
    slice.offset..slice.offset.saturating_add(slice.size)
}
