//! Orders for the nodes of a scheduling graph.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::graph::ScheduleGraph;

impl ScheduleGraph {
    /// Returns the current order of the nodes, as far as edges permit.
    pub(super) fn as_it_stands(&self) -> Vec<usize> {
        let mut waits: Vec<usize> = self.nodes.iter().map(|n| n.before.len()).collect();
        let mut ready: BinaryHeap<Reverse<usize>> =
            (0..self.nodes.len()).filter(|&n| waits[n] == 0).map(Reverse).collect();
        let mut order = Vec::with_capacity(self.nodes.len());
        while let Some(Reverse(node)) = ready.pop() {
            order.push(node);
            self.release(node, &mut waits, |next| ready.push(Reverse(next)));
        }
        order
    }

    /// Decrements the wait counts of the successors of `node`, which has run.
    fn release(&self, node: usize, waits: &mut [usize], mut ready: impl FnMut(usize)) {
        for &next in &self.nodes[node].after {
            waits[next] -= 1;
            if waits[next] == 0 {
                ready(next);
            }
        }
    }

    /// Returns the order that always runs the node with the greatest excess of freed over allocated bytes. Nodes
    /// without cost run at once; ties are resolved in favor of the earlier node.
    pub(super) fn most_freed_first(&self) -> Vec<usize> {
        let mut left = self.reader_counts();
        let mut waits: Vec<usize> = self.nodes.iter().map(|n| n.before.len()).collect();
        let mut done = vec![false; self.nodes.len()];
        // Entries hold the gain at the time of their insertion; outdated entries are skipped.
        let mut ready: BinaryHeap<(i64, Reverse<usize>)> =
            (0..self.nodes.len()).filter(|&n| waits[n] == 0).map(|n| (self.gain(n, &left), Reverse(n))).collect();
        let mut order = Vec::with_capacity(self.nodes.len());
        while let Some((gain, Reverse(node))) = ready.pop() {
            if done[node] || gain != self.gain(node, &left) {
                continue;
            }
            done[node] = true;
            order.push(node);
            for &value in &self.nodes[node].reads {
                left[value] -= 1;
                if left[value] == 1 {
                    let last = self.values[value].readers.iter().find(|r| !done[**r] && waits[**r] == 0);
                    ready.extend(last.map(|&r| (self.gain(r, &left), Reverse(r))));
                }
            }
            self.release(node, &mut waits, |next| ready.push((self.gain(next, &left), Reverse(next))));
        }
        order
    }

    /// Returns the given order, except that nodes that only write to results run as soon as possible: the memory of
    /// results exists all the time, and the values that are written to it need no memory afterwards.
    pub(super) fn results_early(&self, order: &[usize]) -> Vec<usize> {
        let free = self.writes_results();
        let mut waits: Vec<usize> = self.nodes.iter().map(|n| n.before.len()).collect();
        let mut done = vec![false; self.nodes.len()];
        let mut out = Vec::with_capacity(order.len());
        // Stack of nodes that can run now, including the ones that the last node made ready.
        let mut ready: Vec<usize> = (0..self.nodes.len()).rev().filter(|&n| waits[n] == 0 && free[n]).collect();
        for &next in order {
            ready.insert(0, next);
            while let Some(node) = ready.pop() {
                if !std::mem::replace(&mut done[node], true) {
                    out.push(node);
                    self.release(node, &mut waits, |after| ready.extend(free[after].then_some(after)));
                }
            }
        }
        out
    }

    /// Flags the nodes that define no value, or only results and values that results overwrite.
    fn writes_results(&self) -> Vec<bool> {
        let mut is_result: Vec<bool> = self.values.iter().map(|v| v.stays).collect();
        for &node in self.as_it_stands().iter().rev() {
            // A result can overwrite only one operand.
            let over = self.nodes[node]
                .in_place
                .iter()
                .find(|&&(from, to)| is_result[to] && self.values[from].bytes == self.values[to].bytes);
            if let Some(&(from, _)) = over {
                is_result[from] = true;
            }
        }
        self.nodes.iter().map(|node| node.inner == 0 && node.makes.iter().all(|&v| is_result[v])).collect()
    }

    /// Returns the bytes that are freed when `node` runs now, minus the bytes that it allocates.
    fn gain(&self, node: usize, left: &[usize]) -> i64 {
        let node = &self.nodes[node];
        if node.makes.is_empty() && node.reads.is_empty() {
            return i64::MAX;
        }
        let freed: u64 = node.reads.iter().filter(|&&v| left[v] == 1).map(|&v| self.values[v].bytes).sum();
        let made: u64 = node.makes.iter().map(|&v| self.values[v].bytes).sum();
        i64::try_from(freed).unwrap_or(i64::MAX).saturating_sub(i64::try_from(made).unwrap_or(i64::MAX))
    }

    /// Returns the depth-first order from the results. Among the operands of a node, the one that takes most memory
    /// beyond its result comes first (R. Sethi and J. D. Ullman, "The Generation of Optimal Code for Arithmetic
    /// Expressions", 1970, for trees).
    pub(super) fn depth_first(&self) -> Vec<usize> {
        let order = self.as_it_stands();
        let mut needs = vec![0u64; self.nodes.len()];
        let mut before: Vec<Vec<usize>> = vec![Vec::new(); self.nodes.len()];
        let hold = |n: usize| self.nodes[n].makes.iter().map(|&v| self.values[v].bytes).sum::<u64>();
        for &node in &order {
            let mut sorted = self.nodes[node].before.clone();
            sorted.sort_by_key(|&n| Reverse(needs[n].saturating_sub(hold(n))));
            let (mut held, mut most) = (0u64, 0u64);
            for &n in &sorted {
                most = most.max(held.saturating_add(needs[n]));
                held = held.saturating_add(hold(n));
            }
            needs[node] = most.max(held.saturating_add(hold(node)));
            before[node] = sorted;
        }
        let mut seen = vec![false; self.nodes.len()];
        let mut out = Vec::with_capacity(self.nodes.len());
        // Results are nodes without successors. The root follows its operands, and dead code is last.
        let sinks = order.iter().rev().copied().filter(|&n| self.nodes[n].after.is_empty());
        for sink in sinks {
            let mut stack = vec![(sink, 0usize)];
            seen[sink] = true;
            while let Some((node, next)) = stack.last_mut() {
                let Some(&n) = before[*node].get(*next) else {
                    out.push(*node);
                    stack.pop();
                    continue;
                };
                *next += 1;
                if !std::mem::replace(&mut seen[n], true) {
                    stack.push((n, 0));
                }
            }
        }
        out
    }
}
