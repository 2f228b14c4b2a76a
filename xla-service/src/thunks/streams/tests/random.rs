//! Random sequences: all required orders hold, and each edge is necessary.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::thunks::streams::conflicts::Touched;

/// One kernel: the parts of a few small memories that it reads and writes, its time, and its share of the device.
type Step = (Vec<(usize, usize, usize)>, Vec<(usize, usize, usize)>, u8, u8);

fn step() -> impl Strategy<Value = Step> {
    let piece = || (0..6usize, 0..4usize, 1..3usize);
    (vec(piece(), 0..3), vec(piece(), 1..3), 1..40u8, 1..11u8)
}

fn build(steps: &[Step]) -> ThunkSequence {
    let pieces = |list: &[(usize, usize, usize)]| -> Vec<Slice> {
        list.iter().map(|&(memory, start, length)| slice(memory, 16 * start, 16 * length)).collect()
    };
    let kernels = steps.iter().zip(0..).map(|((reads, writes, _, _), id)| kernel(id, &pieces(reads), &pieces(writes)));
    sequence(kernels.collect())
}

/// Kernel, or a thunk with nested sequences.
#[derive(Clone, Debug)]
enum Tree {
    Kernel(Step),
    Loop { condition: Vec<Tree>, body: Vec<Tree>, is_counted: bool },
    Branches(Vec<Vec<Tree>>),
    Host(Step),
}

fn tree() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![4 => step().prop_map(Tree::Kernel), 1 => step().prop_map(Tree::Host)];
    leaf.prop_recursive(2, 24, 6, |inner| {
        let list = |most| vec(inner.clone(), 0..most);
        let looping = (list(2), list(6), any::<bool>());
        prop_oneof![
            3 => step().prop_map(Tree::Kernel),
            1 => looping.prop_map(|(condition, body, is_counted)| Tree::Loop { condition, body, is_counted }),
            1 => vec(list(5), 1..3).prop_map(Tree::Branches),
        ]
    })
}

/// Memory of the predicates of loops and conditionals.
const PREDICATE: usize = 9;

fn plant(trees: &[Tree], next: &mut u32) -> ThunkSequence {
    let mut thunks = Vec::new();
    for tree in trees {
        let id = *next;
        *next += 1;
        let predicate = slice(PREDICATE, 0, 1);
        thunks.push(match tree {
            Tree::Kernel(step) => Thunk { id: ThunkId(id), ..build(std::slice::from_ref(step)).thunks.remove(0) },
            Tree::Host(step) => {
                let kernel = build(std::slice::from_ref(step)).thunks.remove(0);
                Thunk { id: ThunkId(id), kind: ThunkKind::HostFallback, has_effects: true, ..kernel }
            }
            Tree::Loop { condition, body, is_counted } => {
                let mut condition = plant(condition, next);
                condition.thunks.push(kernel(*next, &[whole(0)], &[predicate]));
                *next += 1;
                let trip_count = is_counted.then_some(3);
                let kind = ThunkKind::While { condition, body: plant(body, next), predicate, trip_count };
                thunk(id, kind, &[whole(1)], &[whole(1)])
            }
            Tree::Branches(branches) => {
                let branches = branches.iter().map(|branch| plant(branch, next)).collect();
                let kind = ThunkKind::Conditional { selector: Selector::Predicate, slice: predicate, branches };
                thunk(id, kind, &[predicate], &[whole(2)])
            }
        });
    }
    sequence(thunks)
}

fn conflict(a: &Touched, b: &Touched) -> bool {
    let meet = |a: &[Slice], b: &[Slice]| a.iter().any(|a| b.iter().any(|b| a.overlaps(b)));
    meet(&a.writes, &b.writes) || meet(&a.writes, &b.reads) || meet(&a.reads, &b.writes)
}

/// Returns the order of thunks implied by streams and waits: a table of all pairs, including the start and the end.
fn ordered(sequence: &ThunkSequence) -> Vec<Vec<bool>> {
    let count = sequence.thunks.len() + 2;
    let mut before = vec![vec![false; count]; count];
    let node = |id: &ThunkId| id.0 as usize + 1;
    let mut last = std::collections::HashMap::from([(StreamId(0), 0)]);
    for to in 1..count {
        let (stream, waits) = match sequence.thunks.get(to - 1) {
            Some(thunk) => (thunk.stream, &thunk.waits),
            None => (StreamId(0), &sequence.joins),
        };
        let mut direct: Vec<usize> = waits.iter().map(node).collect();
        match last.insert(stream, to) {
            Some(from) => direct.push(from),
            None if sequence.forks.contains(&stream) => direct.push(0),
            None => {}
        }
        for from in direct {
            for (node, row) in before.iter_mut().enumerate() {
                row[to] |= node == from || row[from];
            }
        }
    }
    before
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn everything_is_ordered_and_every_edge_is_needed(
        steps in vec(step(), 1..24),
        streams in 2..5u32,
        launch in 0..4u8,
    ) {
        let mut sequence = build(&steps);
        let profile = StreamProfile { launch_seconds: f64::from(launch) * MICRO, ..profile(streams) };
        let cost = |thunk: &Thunk| {
            let (_, _, time, share) = steps[thunk.id.0 as usize];
            ThunkCost { seconds: f64::from(time) * MICRO, share: f64::from(share) / 10.0 }
        };
        let report = assign_streams(&mut sequence, &profile, &cost).unwrap();
        prop_assert!(report.seconds <= report.seconds_on_one_stream);
        verify_streams(&sequence).unwrap();
        let before = ordered(&sequence);
        let touched: Vec<Touched> = sequence.thunks.iter().map(Touched::of).collect();
        for (j, later) in touched.iter().enumerate() {
            prop_assert!(before[0][j + 1] && before[j + 1][steps.len() + 1], "{sequence}");
            for (i, earlier) in touched.iter().enumerate().take(j) {
                prop_assert!(before[i + 1][j + 1] || !conflict(earlier, later), "t{i} and t{j}\n{sequence}");
            }
        }
        for changed in without_each_edge(&sequence) {
            prop_assert!(verify_streams(&changed).is_err(), "of\n{sequence}\nthis is enough:\n{changed}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nested_sequences_are_ordered_too(trees in vec(tree(), 1..12), streams in 2..5u32, loops: bool) {
        let mut sequence = plant(&trees, &mut 0);
        let profile = StreamProfile { device_loops: loops, launch_seconds: 0.0, ..profile(streams) };
        let cost = |thunk: &Thunk| ThunkCost { seconds: f64::from(1 + thunk.id.0 % 30) * MICRO, share: 0.1 };
        let report = assign_streams(&mut sequence, &profile, &cost).unwrap();
        verify_streams(&sequence).unwrap();
        prop_assert!(report.seconds <= report.seconds_on_one_stream * (1.0 + 1e-9));
        prop_assert_eq!(report.uses_streams(), sequence.walk().any(|thunk| thunk.stream.0 > 0), "{}", sequence);
        prop_assert!(sequence.walk().all(|thunk| thunk.stream.0 < streams));
    }
}

/// Returns, for each wait, fork and join, the sequence without it.
pub(super) fn without_each_edge(sequence: &ThunkSequence) -> Vec<ThunkSequence> {
    let mut all = Vec::new();
    for (i, thunk) in sequence.thunks.iter().enumerate() {
        for wait in 0..thunk.waits.len() {
            all.push(sequence.clone());
            all.last_mut().unwrap().thunks[i].waits.remove(wait);
        }
    }
    for fork in 0..sequence.forks.len() {
        all.push(sequence.clone());
        all.last_mut().unwrap().forks.remove(fork);
    }
    for join in 0..sequence.joins.len() {
        all.push(sequence.clone());
        all.last_mut().unwrap().joins.remove(join);
    }
    all
}
