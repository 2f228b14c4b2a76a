//! Large arrays, many arrays, and results over operands, against the engine of one process.

use std::sync::Arc;

use xla_hlo::ElementType;
use xla_hlo::ops::BinaryOp;
use xla_service::collective::{CollectiveSpec, MemberArguments, Operation, Part, Reduction, RowMove, RunKey, Timeouts};

use super::cluster::{Cluster, execute};
use crate::sizes::execute_member_in_place;
use crate::support::{self, Member, Random, key};

/// Returns random operands. No element of a float type is NaN.
fn operands(spec: &CollectiveSpec, random: &mut Random) -> Vec<Vec<u8>> {
    let mut chunk = || (random.next() & 0x3f3f_3f3f_3f3f_3f3f).to_le_bytes();
    let mut array = |bytes: usize| {
        let mut array = vec![0; bytes];
        array.chunks_mut(8).for_each(|part| part.copy_from_slice(&chunk()[..part.len()]));
        array
    };
    spec.operand_bytes().map(&mut array).collect()
}

/// Checks that the results are those of the engine of one process.
fn check(operation: Operation, parts: Vec<Part>, arguments: impl Fn(usize) -> MemberArguments, random: &mut Random) {
    for members in [2, 3, 5] {
        let spec = Arc::new(CollectiveSpec::new(operation.clone(), parts.clone(), members).unwrap());
        let member = |rank| Member { operands: operands(&spec, random), arguments: arguments(rank) };
        let members: Vec<Member> = (0..members).map(member).collect();
        let expected = support::execute(&spec, &members, random).unwrap();
        assert!(execute(&spec, &members, random).unwrap() == expected, "{spec}");
    }
}

fn sum(ty: ElementType) -> Reduction {
    Reduction::simple(BinaryOp::Add, ty)
}

/// Numbers of elements on both sides of the limits: 8 KiB in a header, slots of 1 to 120 KiB, pieces of 4 MiB.
const COUNTS: [usize; 9] = [0, 1, 2048, 2049, 3000, 131_071, 262_145, 700_001, 1_400_000];

#[test]
fn large_arrays_are_exchanged() {
    let random = &mut Random(21);
    for count in COUNTS {
        let part = vec![Part::whole(ElementType::S32, count)];
        for operation in [
            Operation::AllReduce(sum(ElementType::S32)),
            Operation::ReduceScatter(sum(ElementType::S32)),
            Operation::AllGather,
            Operation::AllToAll,
            Operation::Permute(vec![(0, 1)]),
        ] {
            check(operation, part.clone(), |_| MemberArguments::None, random);
        }
        check(Operation::Broadcast, part, |_| MemberArguments::Root(1), random);
    }
}

#[test]
fn parts_of_several_runs_are_exchanged() {
    let random = &mut Random(22);
    for (outer, inner) in [(3, 7), (1000, 3), (5, 13_107), (40_000, 2)] {
        let part = vec![Part { element_type: ElementType::U64, outer, inner }];
        let scatter = Operation::ReduceScatter(sum(ElementType::U64));
        for operation in [scatter, Operation::AllGather, Operation::AllToAll] {
            check(operation, part.clone(), |_| MemberArguments::None, random);
        }
    }
}

#[test]
fn arrays_of_different_types_are_reduced_together() {
    let random = &mut Random(23);
    let types = [ElementType::F32, ElementType::BF16, ElementType::F16, ElementType::F32];
    let parts = (0..100).map(|i| Part::whole(types[i % 4], [3, 0, 2000, 1, 17][i % 5])).collect();
    check(Operation::AllReduce(sum(ElementType::F32)), parts, |_| MemberArguments::None, random);
}

#[test]
fn rows_out_of_bounds_are_skipped() {
    let random = &mut Random(24);
    let part = |outer| Part { element_type: ElementType::U16, outer, inner: 3 };
    let row = |i: i64| RowMove { read_at: [-5, 9, i64::MAX, i64::MIN][i as usize % 4], write_at: 7 * i, count: 90 };
    let rows = |rank| MemberArguments::Rows((0..30).map(|i| row(i + rank as i64)).collect());
    check(Operation::RaggedAllToAll, vec![part(100), part(150)], rows, random);
}

#[test]
fn results_may_be_stored_over_operands() {
    let random = &mut Random(25);
    for count in COUNTS {
        let spec = |operation| {
            Arc::new(CollectiveSpec::new(operation, vec![Part::whole(ElementType::S32, count)], 4).unwrap())
        };
        for (operation, arguments) in [
            (Operation::AllReduce(sum(ElementType::S32)), MemberArguments::None),
            (Operation::Broadcast, MemberArguments::Root(2)),
        ] {
            let spec = spec(operation);
            let member = |_| Member { operands: operands(&spec, random), arguments: arguments.clone() };
            let mut members: Vec<Member> = (0..4).map(member).collect();
            let expected = support::execute(&spec, &members, random).unwrap();
            let cluster = &Cluster::new(vec![1, 0, 2, 1], Timeouts::default(), random);
            let (run, devices) = (RunKey::next(), [0, 1, 2, 3]);
            std::thread::scope(|scope| {
                for (rank, member) in members.iter_mut().enumerate() {
                    let (spec, clique) = (&spec, cluster.engine(rank).clique(&key(run, &devices)).unwrap());
                    scope.spawn(move || execute_member_in_place(&*clique, rank, spec, member));
                }
            });
            assert!(members.iter().zip(&expected).all(|(member, expected)| member.operands == *expected), "{spec}");
        }
    }
}
