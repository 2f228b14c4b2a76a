//! Recording of work that is sent later: nodes with their predecessors.

use xla_service::thunks::Selector;

use crate::cuda::library::ChosenCall;
use crate::cuda::memory::CudaMemory;
use crate::cuda::module::KernelLaunch;

/// Recorded work that has not been sent.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    pub(super) nodes: Vec<GraphNode>,
    /// Scratch memory, kept until the work is sent.
    pub(super) kept: Vec<CudaMemory>,
}

/// Command with the indices of its predecessors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GraphNode {
    pub work: NodeKind,
    pub after: Vec<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NodeKind {
    Kernel(KernelLaunch),
    Copy { from: u64, to: u64, bytes: usize },
    Library { call: ChosenCall, addresses: Vec<u64>, workspace: u64 },
    While { condition: Vec<GraphNode>, predicate: u64, body: Vec<GraphNode> },
    Choose { selector: Selector, address: u64, branches: Vec<Vec<GraphNode>> },
}

impl Recording {
    /// Adds a launch that follows the nodes `after`, all of which are earlier. Returns the index of its node.
    pub fn kernel(&mut self, call: KernelLaunch, after: &[usize]) -> usize {
        self.push(NodeKind::Kernel(call), after)
    }

    /// Adds a copy within device memory. The ranges must not overlap.
    pub fn copy(&mut self, from: u64, to: u64, bytes: usize, after: &[usize]) -> usize {
        self.push(NodeKind::Copy { from, to, bytes }, after)
    }

    /// Adds a library call with the address of its workspace.
    pub fn library(&mut self, call: &ChosenCall, addresses: &[u64], workspace: u64, after: &[usize]) -> usize {
        self.push(NodeKind::Library { call: call.clone(), addresses: addresses.to_vec(), workspace }, after)
    }

    /// Adds a loop that the device runs without the host: `condition`, then, while the byte at `predicate` is not 0,
    /// `body` and `condition` again. Requires [`crate::cuda::driver::Driver::has_loops`].
    pub fn repeat(&mut self, condition: Recording, predicate: u64, body: Recording, after: &[usize]) -> usize {
        self.kept.extend(condition.kept);
        self.kept.extend(body.kept);
        self.push(NodeKind::While { condition: condition.nodes, predicate, body: body.nodes }, after)
    }

    /// Adds a conditional that the device decides without the host: the bytes at an address select the branch. Requires
    /// [`crate::cuda::driver::Driver::has_loops`].
    pub fn choose(&mut self, (selector, address): (Selector, u64), branches: Vec<Recording>, after: &[usize]) -> usize {
        let mut recorded = Vec::with_capacity(branches.len());
        for branch in branches {
            self.kept.extend(branch.kept);
            recorded.push(branch.nodes);
        }
        self.push(NodeKind::Choose { selector, address, branches: recorded }, after)
    }

    /// Adds all nodes of another recording; those without predecessors follow the nodes `after`. Returns the nodes that
    /// subsequent work must follow.
    pub fn append(&mut self, other: Recording, after: &[usize]) -> Vec<usize> {
        let (begin, count) = (self.nodes.len(), other.nodes.len());
        let mut is_last = vec![true; count];
        for GraphNode { work, after: earlier } in other.nodes {
            earlier.iter().for_each(|&number| is_last[number] = false);
            let shifted: Vec<usize> = earlier.iter().map(|number| begin + number).collect();
            self.push(work, if shifted.is_empty() { after } else { &shifted });
        }
        self.kept.extend(other.kept);
        if count == 0 { after.to_vec() } else { (0..count).filter(|&n| is_last[n]).map(|n| begin + n).collect() }
    }

    /// Keeps memory until the work is sent, and frees it in stream order after the work.
    pub fn keep(&mut self, memory: CudaMemory) {
        self.kept.push(memory);
    }

    fn push(&mut self, work: NodeKind, after: &[usize]) -> usize {
        let number = self.nodes.len();
        let after = after.iter().copied().filter(|&earlier| earlier < number).collect();
        self.nodes.push(GraphNode { work, after });
        number
    }
}

/// Returns the nodes that must be updated; `None` if more than addresses and numbers differ.
pub(super) fn difference(old: &[GraphNode], new: &[GraphNode]) -> Option<Vec<usize>> {
    let pairs = || old.iter().zip(new);
    let is_alike = old.len() == new.len() && pairs().all(|(old, new)| is_alike(old, new));
    is_alike.then(|| pairs().enumerate().filter(|(_, (old, new))| old != new).map(|(number, _)| number).collect())
}

/// Whether two nodes differ only in addresses and numbers.
fn is_alike(old: &GraphNode, new: &GraphNode) -> bool {
    old.after == new.after
        && match (&old.work, &new.work) {
            (NodeKind::Kernel(old), NodeKind::Kernel(new)) => {
                let shape = |call: &KernelLaunch| {
                    let parameters = (call.arguments.len(), call.maps.len());
                    (call.function, call.blocks, call.threads, call.shared_bytes, parameters)
                };
                shape(old) == shape(new)
            }
            (NodeKind::Copy { bytes: old, .. }, NodeKind::Copy { bytes: new, .. }) => old == new,
            (NodeKind::Library { call: old, .. }, NodeKind::Library { call: new, .. }) => old == new,
            // Nodes inside loops and conditionals are not updated in place.
            (NodeKind::While { .. }, NodeKind::While { .. }) => old == new,
            (NodeKind::Choose { .. }, NodeKind::Choose { .. }) => old == new,
            (NodeKind::Kernel(_) | NodeKind::Copy { .. } | NodeKind::Library { .. }, _) => false,
            (NodeKind::While { .. } | NodeKind::Choose { .. }, _) => false,
        }
}

#[cfg(test)]
mod tests {
    use cudarc::driver::sys::CUtensorMap;

    use super::*;

    fn kernel(name: &str, blocks: u32, arguments: &[u64]) -> KernelLaunch {
        let function = std::ptr::without_provenance_mut(name.len());
        KernelLaunch {
            name: name.into(),
            function,
            blocks,
            threads: 128,
            shared_bytes: 0,
            arguments: arguments.to_vec(),
            maps: arguments.iter().map(|&argument| CUtensorMap { opaque: [argument; 16] }).collect(),
        }
    }

    fn recording(address: u64, blocks: u32) -> Recording {
        let mut recording = Recording::default();
        let first = recording.kernel(kernel("a", 1, &[address, 7]), &[]);
        let second = recording.copy(address, 4096, 64, &[first]);
        recording.kernel(kernel("bc", blocks, &[4096]), &[first, second, 99]);
        recording
    }

    #[test]
    fn only_what_changed_is_told() {
        let old = recording(256, 2).nodes;
        assert_eq!(old[2].after, [0, 1], "nodes come behind earlier ones alone");
        assert_eq!(difference(&old, &recording(256, 2).nodes), Some(vec![]));
        assert_eq!(difference(&old, &recording(512, 2).nodes), Some(vec![0, 1]));
        let mut maps = recording(256, 2).nodes;
        if let NodeKind::Kernel(call) = &mut maps[2].work {
            call.maps[0].opaque[3] = 1;
        }
        assert_eq!(difference(&old, &maps), Some(vec![2]));
    }

    #[test]
    fn a_recording_comes_after_what_was_before() {
        let mut all = recording(256, 2);
        let mut more = Recording::default();
        let first = more.kernel(kernel("a", 1, &[]), &[]);
        more.kernel(kernel("b", 1, &[]), &[]);
        more.kernel(kernel("c", 1, &[]), &[first]);
        assert_eq!(all.append(more, &[2]), [4, 5], "nobody in it follows these");
        let after: Vec<&[usize]> = all.nodes[3..].iter().map(|node| &node.after[..]).collect();
        assert_eq!(after, [&[2][..], &[2], &[3]]);
        assert_eq!(all.append(Recording::default(), &[4, 5]), [4, 5]);
    }

    #[test]
    fn another_shape_is_another_graph() {
        let old = recording(256, 2).nodes;
        assert_eq!(difference(&old, &recording(256, 3).nodes), None);
        assert_eq!(difference(&old, &old[..2]), None);
        let mut maps = recording(256, 2).nodes;
        if let NodeKind::Kernel(call) = &mut maps[2].work {
            call.maps.pop();
        }
        assert_eq!(difference(&old, &maps), None);
        let mut edges = recording(256, 2).nodes;
        edges[2].after.pop();
        assert_eq!(difference(&old, &edges), None);
        let mut sizes = recording(256, 2).nodes;
        sizes[1].work = NodeKind::Copy { from: 256, to: 4096, bytes: 128 };
        assert_eq!(difference(&old, &sizes), None);
    }
}
