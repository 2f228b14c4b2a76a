//! Sizes around the limits of tasks and blocks, against plain loops.
#![expect(unsafe_code, reason = "results are stored over operands")]

use std::sync::Arc;

use xla_hlo::ElementType;
use xla_hlo::ops::BinaryOp;
use xla_service::CancelToken;
use xla_service::collective::{
    CollectiveCall, CollectiveEngine, CollectiveSpec, Communicator, InProcess, MemberArguments, Operation, Part,
    Reduction, RunKey, Source, Target,
};

use crate::support::{Member, Random, execute, key};

/// Numbers of elements on both sides of the limits: blocks of 4,096 elements, 256 KiB in total, tasks of 1 MiB.
const COUNTS: [usize; 12] = [0, 1, 7, 4095, 4096, 4097, 10_922, 10_923, 43_691, 65_537, 131_071, 262_147];

fn numbers(count: usize, random: &mut Random) -> Vec<f32> {
    (0..count).map(|_| (random.next() >> 40) as f32 / 1e6 - 8.0).collect()
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|x| x.to_le_bytes()).collect()
}

fn spec(operation: Operation, part: Part, members: usize) -> Arc<CollectiveSpec> {
    Arc::new(CollectiveSpec::new(operation, vec![part], members).unwrap())
}

fn sum() -> Reduction {
    Reduction::simple(BinaryOp::Add, ElementType::F32)
}

/// Returns the sum of element `i` in the order of the ranks.
fn sum_of(values: &[Vec<f32>], i: usize) -> f32 {
    values.iter().map(|values| values[i]).reduce(|sum, x| sum + x).unwrap()
}

#[test]
fn sums_are_in_rank_order_for_every_size() {
    let random = &mut Random(1);
    for count in COUNTS {
        for members in [1, 2, 3, 5] {
            let values: Vec<Vec<f32>> = (0..members).map(|_| numbers(count, random)).collect();
            let calls: Vec<Member> = values.iter().map(|values| Member::new(vec![bytes(values)])).collect();
            let spec = spec(Operation::AllReduce(sum()), Part::whole(ElementType::F32, count), members);
            let expected = bytes(&(0..count).map(|i| sum_of(&values, i)).collect::<Vec<f32>>());
            for results in execute(&spec, &calls, random).unwrap() {
                assert!(results[0] == expected, "{count} elements, {members} members");
            }
        }
    }
}

#[test]
fn parts_of_several_runs_are_in_place_for_every_size() {
    let random = &mut Random(2);
    for (outer, inner) in [(1, 0), (0, 3), (1, 5), (3, 7), (1000, 3), (5, 13_107), (2, 70_001), (40_000, 2)] {
        let (members, part) = (3, Part { element_type: ElementType::F32, outer, inner });
        let values: Vec<Vec<f32>> = (0..members).map(|_| numbers(members * outer * inner, random)).collect();
        let calls: Vec<Member> = values.iter().map(|values| Member::new(vec![bytes(values)])).collect();
        // Element `i` of run `o` of part `p`.
        let at = |o: usize, p: usize, i: usize| (o * members + p) * inner + i;
        let scattered = execute(&spec(Operation::ReduceScatter(sum()), part, members), &calls, random).unwrap();
        let exchanged = execute(&spec(Operation::AllToAll, part, members), &calls, random).unwrap();
        let own: Vec<Member> = scattered.iter().map(|results| Member::new(results.clone())).collect();
        let gathered = execute(&spec(Operation::AllGather, part, members), &own, random).unwrap();
        let sums: Vec<f32> = (0..members * outer * inner).map(|i| sum_of(&values, i)).collect();
        for rank in 0..members {
            let indices = || (0..outer).flat_map(|o| (0..inner).map(move |i| (o, i)));
            let expected: Vec<f32> = indices().map(|(o, i)| sums[at(o, rank, i)]).collect();
            assert!(scattered[rank][0] == bytes(&expected), "reduce-scatter of {part:?}");
            assert!(gathered[rank][0] == bytes(&sums), "all-gather of {part:?}");
            let mut expected = vec![0.0; members * outer * inner];
            for (from, values) in values.iter().enumerate() {
                indices().for_each(|(o, i)| expected[at(o, from, i)] = values[at(o, rank, i)]);
            }
            assert!(exchanged[rank][0] == bytes(&expected), "all-to-all of {part:?}");
        }
    }
}

/// Sums of many 8-bit floats are read from a table, sums of few are computed.
#[test]
fn sums_of_many_small_floats_are_equal_to_those_of_few() {
    let (random, count) = (&mut Random(6), 50_000);
    for ty in [ElementType::F8E4M3FN, ElementType::F8E5M2, ElementType::F4E2M1FN, ElementType::F8E8M0FNU] {
        let values: Vec<Vec<u8>> = (0..3).map(|_| (0..count).map(|_| random.next() as u8).collect()).collect();
        let sum = |range: std::ops::Range<usize>, random: &mut Random| {
            let operation = Operation::AllReduce(Reduction::simple(BinaryOp::Add, ty));
            let spec = spec(operation, Part::whole(ty, range.len()), 3);
            let calls = values.iter().map(|values| Member::new(vec![values[range.clone()].to_vec()]));
            execute(&spec, &calls.collect::<Vec<_>>(), random).unwrap().swap_remove(1).swap_remove(0)
        };
        let many = sum(0..count, random);
        for start in (0..count).step_by(5000) {
            let few = sum(start..start + 1000, random);
            assert_eq!(many[start..start + 1000], few, "{ty}");
        }
    }
}

/// Executes a collective whose results are stored over the initial values, its last operands.
pub fn execute_in_place(spec: &Arc<CollectiveSpec>, members: &mut [Member]) {
    let (engine, run) = (InProcess::default(), RunKey::next());
    let devices: Vec<usize> = (0..members.len()).collect();
    let clique = &engine.clique(&key(run, &devices)).unwrap();
    std::thread::scope(|scope| {
        for (rank, member) in members.iter_mut().enumerate() {
            scope.spawn(move || execute_member_in_place(&**clique, rank, spec, member));
        }
    });
}

/// Executes a collective as one member, whose results are stored over the initial values, its last operands.
pub fn execute_member_in_place(
    clique: &dyn Communicator,
    rank: usize,
    spec: &Arc<CollectiveSpec>,
    member: &mut Member,
) {
    let inputs = member.operands.len() - spec.result_bytes().count();
    let (inputs, initial) = member.operands.split_at_mut(inputs);
    let results: Vec<Target<'_>> = initial.iter_mut().map(|bytes| Target::from(&mut bytes[..])).collect();
    // SAFETY: each source is an operand of this call alone.
    let initial = results.iter().map(|target| unsafe { target.as_source() });
    let operands = inputs.iter().map(|bytes| Source::from(&bytes[..])).chain(initial).collect();
    let (arguments, cancel) = (member.arguments.clone(), &CancelToken::never());
    clique.run(rank, CollectiveCall { spec, operands, results, arguments, cancel }).unwrap();
}

#[test]
fn results_may_be_stored_over_operands() {
    let random = &mut Random(3);
    for count in COUNTS {
        let values: Vec<Vec<f32>> = (0..4).map(|_| numbers(count, random)).collect();
        let part = Part::whole(ElementType::F32, count);
        let members = |arguments: MemberArguments| -> Vec<Member> {
            let member = |values| Member { operands: vec![bytes(values)], arguments: arguments.clone() };
            values.iter().map(|values| member(values)).collect()
        };
        let (mut sums, mut copies) = (members(MemberArguments::None), members(MemberArguments::Root(2)));
        execute_in_place(&spec(Operation::AllReduce(sum()), part, 4), &mut sums);
        let expected = bytes(&(0..count).map(|i| sum_of(&values, i)).collect::<Vec<f32>>());
        assert!(sums.iter().all(|sum| sum.operands[0] == expected), "{count} elements");
        execute_in_place(&spec(Operation::Broadcast, part, 4), &mut copies);
        assert!(copies.iter().all(|copy| copy.operands[0] == bytes(&values[2])), "{count} elements");
    }
}

/// Returns the error of an operation on two numbers over one device.
fn error(operation: Operation, operand: Option<&[u8]>) -> String {
    let spec = spec(operation, Part::whole(ElementType::F32, 2), 1);
    let mut memory = [0; 8];
    let target = Target::from(&mut memory[..]);
    // SAFETY: the source is an operand of this call alone.
    let in_place = unsafe { target.as_source() };
    let call = CollectiveCall {
        spec: &spec,
        operands: vec![operand.map_or(in_place, Source::from)],
        results: vec![target],
        arguments: MemberArguments::None,
        cancel: &CancelToken::never(),
    };
    let clique = InProcess::default().clique(&key(RunKey::next(), &[5])).unwrap();
    clique.run(0, call).unwrap_err().message().to_string()
}

/// Returns the error of a permute of 500 arrays of eight bytes over one device, whose results start at these offsets.
fn overlap(offset: impl Fn(usize) -> usize) -> String {
    let parts = vec![Part::whole(ElementType::F32, 2); 500];
    let spec = &Arc::new(CollectiveSpec::new(Operation::Permute(vec![]), parts, 1).unwrap());
    let mut memory = vec![0; 8000];
    let start = Target::from(&mut memory[..]).start();
    // SAFETY: the regions are in bounds of the memory. The call fails before it accesses them.
    let target = |i| unsafe { Target::from_raw(start.add(offset(i)), 8) };
    // SAFETY: as above.
    let source = |i: usize| unsafe { Source::from_raw(start.add(8 * i), 8) };
    let (operands, results) = ((0..500).map(source).collect(), (0..500).map(target).collect());
    let (arguments, cancel) = (MemberArguments::None, &CancelToken::never());
    let clique = InProcess::default().clique(&key(RunKey::next(), &[5])).unwrap();
    let error = clique.run(0, CollectiveCall { spec, operands, results, arguments, cancel }).unwrap_err();
    error.message().to_string()
}

#[test]
fn overlaps_among_many_arrays_are_errors() {
    // Operands are in the first half of the memory, results in the second one in reverse order.
    let reverse = |i: usize| 8 * (999 - i);
    let results = overlap(|i| if i == 7 { reverse(300) + 4 } else { reverse(i) });
    assert_eq!(results, "%collective.1: results 7 and 300 of collective-permute overlap in memory");
    let operand = overlap(|i| if i == 499 { 8 * 499 } else { reverse(i) });
    assert_eq!(operand, "%collective.1: operand 499 and result 499 of collective-permute overlap in memory");
    let operands = overlap(|i| if i == 3 { 8 * 123 + 4 } else { reverse(i) });
    assert_eq!(operands, "%collective.1: operand 123 and result 3 of collective-permute overlap in memory");
}

#[test]
fn other_overlaps_and_wrong_sizes_are_errors() {
    let overlap = "%collective.1: operand 0 and result 0 of all-gather overlap in memory";
    assert_eq!(error(Operation::AllGather, None), overlap);
    let size = "%collective.1: the operands of collective-permute have [4] bytes, expected [8]";
    assert_eq!(error(Operation::Permute(vec![]), Some(&[0; 4])), size);
}
