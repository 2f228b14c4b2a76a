//! Happens-before order implied by streams and waits: vector clocks over the nodes of one sequence.

/// Nodes of a sequence in the order in which they are sent: its start (node 0), its thunks, and its end. Start and end
/// are on stream 0, the home of the sequence.
#[derive(Debug)]
pub(super) struct HappensBefore {
    streams: usize,
    /// Stream of each node.
    stream_of: Vec<usize>,
    /// Vector clock of each node, all in one array. The entry for a stream is an upper bound: nodes of that stream with
    /// a smaller number are known to be done.
    known: Vec<usize>,
    /// Last node of each stream.
    last: Vec<Option<usize>>,
}

impl HappensBefore {
    /// Creates the order of a sequence that has only its start.
    pub fn new(streams: usize) -> HappensBefore {
        let mut order = HappensBefore { streams, stream_of: Vec::new(), known: Vec::new(), last: vec![None; streams] };
        order.push(0, &[]);
        order
    }

    /// Returns the nodes among `needed`, latest first, that a next node on `stream` must wait for so that all of
    /// `needed` precede it. A later node may imply an earlier one but not vice versa, so a single pass suffices.
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

    /// Returns the last node of each stream except home, latest first: the nodes that the end must wait for.
    pub fn ends(&self) -> Vec<usize> {
        let mut ends: Vec<usize> = self.last.iter().skip(1).flatten().copied().collect();
        ends.sort_unstable_by(|a, b| b.cmp(a));
        ends
    }

    /// Appends the next node.
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

    /// Returns the vector clock after all work that `stream` was sent so far.
    fn known_on(&self, stream: usize) -> Vec<usize> {
        self.last[stream].map_or_else(|| vec![0; self.streams], |node| self.known(node).to_vec())
    }
}

fn join(known: &mut [usize], other: &[usize]) {
    known.iter_mut().zip(other).for_each(|(mine, theirs)| *mine = (*mine).max(*theirs));
}
