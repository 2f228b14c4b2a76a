//! Happens-before order that streams and waits imply: vector clocks over the nodes of one sequence.

/// The nodes of a sequence in the order they are sent: 0 is its beginning, then come its thunks, and at last its end.
/// Beginning and end are on stream 0, the home of the sequence.
#[derive(Debug)]
pub(super) struct HappensBefore {
    streams: usize,
    /// The stream of each node.
    stream_of: Vec<usize>,
    /// For each node, one number for each stream: of its nodes those below are known to be done. All in a row.
    known: Vec<usize>,
    /// The last node of each stream.
    last: Vec<Option<usize>>,
}

impl HappensBefore {
    /// A sequence that has just begun.
    pub fn new(streams: usize) -> HappensBefore {
        let mut order = HappensBefore { streams, stream_of: Vec::new(), known: Vec::new(), last: vec![None; streams] };
        order.push(0, &[]);
        order
    }

    /// Nodes among `needed`, latest first, that a next node on `stream` must wait for, so that all of them are done
    /// before it. A later node may be known to be after an earlier one, never the other way around, so each is asked
    /// for once.
    pub fn waits(&self, stream: usize, needed: impl Iterator<Item = usize>) -> Vec<usize> {
        let mut known = self.known_on(stream);
        let mut waits = Vec::new();
        for node in needed {
            if known[self.stream_of[node]] <= node {
                join(&mut known, self.known(node));
                waits.push(node);
            }
        }
        waits
    }

    /// The last node of each stream but home, the latest first: what the end needs.
    pub fn ends(&self) -> Vec<usize> {
        let mut ends: Vec<usize> = self.last.iter().skip(1).flatten().copied().collect();
        ends.sort_unstable_by(|a, b| b.cmp(a));
        ends
    }

    /// Adds the next node.
    pub fn push(&mut self, stream: usize, waits: &[usize]) {
        let node = self.stream_of.len();
        let mut known = self.known_on(stream);
        waits.iter().for_each(|&wait| join(&mut known, self.known(wait)));
        known[stream] = node + 1;
        self.known.extend(known);
        self.stream_of.push(stream);
        self.last[stream] = Some(node);
    }

    fn known(&self, node: usize) -> &[usize] {
        &self.known[node * self.streams..(node + 1) * self.streams]
    }

    /// The clock known after all that `stream` was sent so far.
    fn known_on(&self, stream: usize) -> Vec<usize> {
        self.last[stream].map_or_else(|| vec![0; self.streams], |node| self.known(node).to_vec())
    }
}

fn join(known: &mut [usize], other: &[usize]) {
    known.iter_mut().zip(other).for_each(|(mine, theirs)| *mine = (*mine).max(*theirs));
}
