//! Conflicts: memory accesses of thunks, and the earlier thunks that must precede them.

use std::collections::HashMap;

use xla_passes::buffers::{AllocationId, Slice};

use super::super::{Thunk, ThunkKind};
use crate::intervals::IntervalMap;

/// Bytes that a thunk accesses, including its nested thunks.
#[derive(Clone, Debug, Default)]
pub(super) struct Touched {
    /// Slices that are read, and possibly written as well.
    pub reads: Vec<Slice>,
    /// Slices that are written.
    pub writes: Vec<Slice>,
    /// Whether the thunk or a nested thunk has effects.
    pub effects: bool,
}

impl Touched {
    /// Returns the accesses of a thunk.
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
            ThunkKind::Collective(_) | ThunkKind::CustomCall | ThunkKind::HostFallback => {}
        }
        for sequence in thunk.kind.nested() {
            sequence.thunks.iter().for_each(|nested| self.add(nested));
        }
    }
}

/// Merges slices that overlap or are adjacent, so that the list of a loop stays short.
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

/// Last node that wrote, and the last node of each stream that has read since.
#[derive(Clone, Debug, Default)]
struct Last {
    write: Option<usize>,
    reads: Vec<(usize, usize)>,
}

impl Conflicts {
    /// Returns the nodes that must precede these accesses, latest first. Nodes whose order follows from others through
    /// existing edges or streams are omitted where that is cheap.
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

    /// Records that `node`, which follows all earlier nodes, performs these accesses on `stream`.
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
