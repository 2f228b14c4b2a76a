//! Tests of the topological order that fusion maintains.

use xla_hlo::ops::{GetTupleElement, Tuple};
use xla_hlo::{Computation, InstrId, Instruction, Shape};
use xla_passes::internals::{TopologicalOrder, is_element, predecessors};

/// Linear congruential generator.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n
    }
}

fn add(graph: &mut Computation, operands: Vec<InstrId>) -> InstrId {
    graph.add(Instruction::new(Tuple.into(), Shape::Token, operands))
}

/// Generates instructions with up to three operands among the preceding eight; the last one depends on all.
fn random_graph(numbers: &mut Numbers) -> Computation {
    let mut graph = Computation::new("random");
    let mut all: Vec<InstrId> = Vec::new();
    for n in 0..40 {
        let near = &all[all.len().saturating_sub(8)..];
        let count = if near.is_empty() { 0 } else { numbers.below(4) };
        let mut operands: Vec<InstrId> = (0..count).map(|_| near[numbers.below(near.len())]).collect();
        operands.sort_unstable();
        operands.dedup();
        all.push(add(&mut graph, operands));
        assert_eq!(graph.len(), n + 1);
    }
    let root = add(&mut graph, all);
    graph.set_root(root);
    graph
}

fn needs(graph: &Computation, from: InstrId, to: InstrId) -> bool {
    graph[to].operands().iter().any(|&o| o == from || needs(graph, from, o))
}

/// Replaces two instructions by one, as in a merge of kernels.
fn merge(graph: &mut Computation, order: &mut TopologicalOrder, producer: InstrId, consumer: InstrId) {
    let place = order.meet(graph, producer, consumer);
    let mut operands: Vec<InstrId> =
        [producer, consumer].iter().flat_map(|&id| graph[id].operands().to_vec()).collect();
    operands.retain(|&o| o != producer);
    operands.sort_unstable();
    operands.dedup();
    let new = add(graph, operands);
    for (index, old) in [consumer, producer].into_iter().enumerate() {
        let element = graph.add(Instruction::new(GetTupleElement { index }.into(), Shape::Token, [new]));
        graph.replace_all_uses(old, element);
        graph.remove(old).unwrap();
    }
    order.put(new, place);
}

#[test]
fn it_stays_topological_while_instructions_merge() {
    let mut numbers = Numbers(1);
    for _ in 0..60 {
        let mut graph = random_graph(&mut numbers);
        let mut order = TopologicalOrder::new(&graph);
        for _ in 0..30 {
            let plain = |&id: &InstrId| id != graph.root() && !is_element(&graph, id);
            let ids: Vec<InstrId> = graph.ids().filter(plain).collect();
            let [a, b] = [ids[numbers.below(ids.len())], ids[numbers.below(ids.len())]];
            assert_eq!(order.reaches(&graph, a, b), needs(&graph, a, b));
            let related = order.related(&graph, a, &ids);
            assert!(
                ids.iter().all(|&b| { b == a || related.contains(&b) == (needs(&graph, a, b) || needs(&graph, b, a)) })
            );
            let between = order.reaches_around(&graph, a, b) || order.reaches(&graph, b, a);
            // As with kernels, an instruction with several results absorbs others and is not absorbed itself.
            let is_single = !graph[a].users().iter().any(|&user| is_element(&graph, user));
            if a != b && !between && is_single {
                merge(&mut graph, &mut order, a, b);
            }
            for id in graph.ids().filter(|&id| !is_element(&graph, id)) {
                assert!(predecessors(&graph, id).iter().all(|&o| order.places[o] < order.places[id]));
            }
        }
    }
}
