//! Tests of reachability between instructions, compared with searches.

use std::collections::HashSet;

use xla_hlo::entity::SecondaryMap;
use xla_hlo::ops::Tuple;
use xla_hlo::{Computation, InstrId, Instruction, Shape};
use xla_passes::analysis::reachability::Reachability;

/// Returns the direct dependencies of an instruction.
fn direct(graph: &Computation, id: InstrId) -> impl Iterator<Item = InstrId> + '_ {
    graph[id].operands().iter().chain(graph[id].control_predecessors()).copied()
}

fn add(graph: &mut Computation, operands: Vec<InstrId>) -> InstrId {
    graph.add(Instruction::new(Tuple.into(), Shape::Token, operands))
}

/// Generates a random graph of `count` instructions, each with up to three operands among the preceding ones.
fn random_graph(seed: u64, count: usize) -> Computation {
    let mut state = seed;
    let mut below = |n: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % n
    };
    let mut graph = Computation::new("random");
    let mut all: Vec<InstrId> = Vec::new();
    for _ in 0..count {
        let operands = (0..if all.is_empty() { 0 } else { below(4) }).map(|_| all[below(all.len())]).collect();
        let id = add(&mut graph, operands);
        if let Some(&before) = all.get(below(2 * count)) {
            graph.add_control_dependency(before, id);
        }
        all.push(id);
    }
    graph
}

#[test]
fn answers_are_those_of_a_search() {
    for seed in 0..40 {
        let graph = random_graph(seed, 40);
        let reachability = Reachability::of(&graph);
        let mut needs: SecondaryMap<InstrId, HashSet<InstrId>> = SecondaryMap::default();
        for id in graph.ids() {
            let all = direct(&graph, id).flat_map(|d| needs[d].iter().copied().chain([d]).collect::<Vec<_>>());
            needs[id] = all.collect();
        }
        for (to, from) in graph.ids().flat_map(|to| graph.ids().map(move |from| (to, from))) {
            assert_eq!(reachability.needs(to, from), needs[to].contains(&from), "{seed}: {to} {from}");
        }
        let place = |id: InstrId| reachability.order().iter().position(|&o| o == id);
        assert!(graph.ids().all(|id| direct(&graph, id).all(|needed| place(needed) < place(id))));
        let chain = reachability.longest_chain();
        assert!(chain.windows(2).all(|pair| direct(&graph, pair[1]).any(|needed| needed == pair[0])));
        assert_eq!(chain.len(), 1 + graph.ids().map(|id| reachability.level(id)).max().unwrap());
    }
}

#[test]
fn a_hundred_thousand_instructions_are_no_trouble() {
    let mut graph = Computation::new("long");
    let mut last = [add(&mut graph, vec![]), add(&mut graph, vec![])];
    let first = last;
    for i in 0..50_000 {
        // Builds two long chains with occasional cross edges.
        let other = if i % 100 == 0 { 1 } else { 0 };
        last = [add(&mut graph, vec![last[0]]), add(&mut graph, vec![last[1], last[1 - other]])];
    }
    let reachability = Reachability::of(&graph);
    for _ in 0..1000 {
        assert!(reachability.needs(last[0], first[0]) && reachability.needs(last[1], first[1]));
        assert!(!reachability.needs(last[0], first[1]) && reachability.needs(last[1], first[0]));
        assert!(reachability.are_independent(last[0], last[1]));
    }
}
