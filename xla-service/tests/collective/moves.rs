//! Collectives that move data, with several tasks for each array or with many arrays, against plain loops.

use std::sync::Arc;

use xla_hlo::ElementType;
use xla_service::collective::{CollectiveSpec, MemberArguments, Operation, Part, RowMove, SlicePair};

use crate::sizes::execute_in_place;
use crate::support::{Member, Random, execute};

const MEMBERS: usize = 3;

fn spec(operation: Operation, parts: Vec<Part>) -> Arc<CollectiveSpec> {
    Arc::new(CollectiveSpec::new(operation, parts, MEMBERS).unwrap())
}

/// Returns operands with random bytes for each member.
fn operands(spec: &CollectiveSpec, random: &mut Random) -> Vec<Vec<Vec<u8>>> {
    let mut array = |bytes: usize| {
        let mut array = vec![0; bytes];
        array.chunks_mut(8).for_each(|chunk| chunk.copy_from_slice(&random.next().to_le_bytes()[..chunk.len()]));
        array
    };
    (0..MEMBERS).map(|_| spec.operand_bytes().map(&mut array).collect()).collect()
}

fn members(operands: Vec<Vec<Vec<u8>>>) -> Vec<Member> {
    operands.into_iter().map(Member::new).collect()
}

#[test]
fn permutes_by_several_tasks_copy_or_clear_every_element() {
    let random = &mut Random(11);
    let parts = [200_001, 0, 5, 300_007].map(|count| Part::whole(ElementType::F32, count));
    let spec = spec(Operation::Permute(vec![(0, 2), (2, 1)]), parts.to_vec());
    let operands = operands(&spec, random);
    let zeros: Vec<Vec<u8>> = operands[0].iter().map(|bytes| vec![0; bytes.len()]).collect();
    let results = execute(&spec, &members(operands.clone()), random).unwrap();
    assert!(results == [zeros, operands[2].clone(), operands[0].clone()]);
}

#[test]
fn tuples_by_several_tasks_for_each_array_are_exchanged() {
    let random = &mut Random(12);
    let spec = spec(Operation::AllToAllTuple, vec![Part::whole(ElementType::F32, 100_003); MEMBERS]);
    let operands = operands(&spec, random);
    let results = execute(&spec, &members(operands.clone()), random).unwrap();
    for (to, results) in results.iter().enumerate() {
        assert!(results.iter().zip(&operands).all(|(result, operands)| *result == operands[to]), "rank {to}");
    }
}

#[test]
fn hundreds_of_arrays_are_copied() {
    let random = &mut Random(13);
    let parts = (0..500).map(|i| Part::whole(ElementType::F32, [0, 3, 2000, 1, 0][i % 5])).collect();
    let spec = spec(Operation::Permute(vec![(0, 1), (1, 2), (2, 0)]), parts);
    let mut operands = operands(&spec, random);
    let results = execute(&spec, &members(operands.clone()), random).unwrap();
    operands.rotate_right(1);
    assert!(results == operands);
}

/// Checks the results, stored over the initial values and elsewhere.
fn check(spec: &Arc<CollectiveSpec>, mut members: Vec<Member>, expected: &[Vec<Vec<u8>>], random: &mut Random) {
    assert!(execute(spec, &members, random).unwrap() == expected);
    execute_in_place(spec, &mut members);
    for (rank, (member, expected)) in members.iter().zip(expected).enumerate() {
        assert!(member.operands.ends_with(expected), "results of rank {rank} over initial values");
    }
}

#[test]
fn slices_of_several_arrays_are_copied() {
    const ROW: usize = 500;
    let random = &mut Random(14);
    let routes = [(0, 1, 0, [ROW, 1]), (2, 1, 0, [ROW, 1]), (1, 0, 1, [1, ROW]), (2, 1, 1, [ROW, 1])];
    let pair = |(slice, (from, to, array, strides)): (usize, (usize, usize, usize, [usize; 2]))| {
        let (read_strides, write_strides) = (vec![ROW, 1], strides.to_vec());
        SlicePair { from, to, array, slice, sizes: vec![300, 200], read_strides, write_strides }
    };
    let pairs: Vec<SlicePair> = routes.into_iter().enumerate().map(pair).collect();
    let spec = spec(Operation::PermuteSlices(pairs.clone()), vec![Part::whole(ElementType::U32, 400 * ROW); 4]);
    let operands = operands(&spec, random);
    let read_at = |rank: usize, slice: usize| 1000 * rank + 10 * slice;
    let write_at = |rank: usize, slice: usize| 2000 * rank + 33 * slice;
    let mut expected: Vec<Vec<Vec<u8>>> = operands.iter().map(|operands| operands[2..].to_vec()).collect();
    for SlicePair { from, to, array, slice, write_strides, .. } in &pairs {
        for (i, j) in (0..300).flat_map(|i| (0..200).map(move |j| (i, j))) {
            let read = 4 * (read_at(*from, *slice) + ROW * i + j);
            let write = 4 * (write_at(*to, *slice) + write_strides[0] * i + write_strides[1] * j);
            expected[*to][*array][write..write + 4].copy_from_slice(&operands[*from][*array][read..read + 4]);
        }
    }
    let member = |(rank, operands)| {
        let [read_at, write_at] = [
            (0..pairs.len()).map(|slice| read_at(rank, slice)).collect(),
            (0..pairs.len()).map(|slice| write_at(rank, slice)).collect(),
        ];
        Member { operands, arguments: MemberArguments::Slices { read_at, write_at } }
    };
    check(&spec, operands.into_iter().enumerate().map(member).collect(), &expected, random);
}

#[test]
fn rows_that_tasks_cut_are_copied() {
    // Tasks have 43,690 elements, which is not a multiple of the row's three.
    const ROWS: [usize; 2] = [66_000, 66_667];
    const ROW_BYTES: usize = 3 * 8;
    let random = &mut Random(15);
    let part = |outer| Part { element_type: ElementType::S64, outer, inner: 3 };
    let spec = spec(Operation::RaggedAllToAll, ROWS.map(part).to_vec());
    let operands = operands(&spec, random);
    let mut position = |bound: usize| random.below(bound + 200) as i64 - 100;
    // Two entries for each receiver.
    let mut entry = || RowMove { read_at: position(ROWS[0]), write_at: position(ROWS[1]), count: position(30_000) };
    let rows: Vec<Vec<RowMove>> = (0..MEMBERS).map(|_| (0..2 * MEMBERS).map(|_| entry()).collect()).collect();
    let mut expected: Vec<Vec<Vec<u8>>> = operands.iter().map(|operands| operands[1..].to_vec()).collect();
    for (to, expected) in expected.iter_mut().enumerate() {
        for (from, rows) in rows.iter().enumerate() {
            for entry in &rows[2 * to..2 * to + 2] {
                for row in 0..entry.count {
                    let (read, write) = (entry.read_at + row, entry.write_at + row);
                    if (0..ROWS[0] as i64).contains(&read) && (0..ROWS[1] as i64).contains(&write) {
                        let [read, write] = [read, write].map(|row| row as usize * ROW_BYTES);
                        let bytes = &operands[from][0][read..read + ROW_BYTES];
                        expected[0][write..write + ROW_BYTES].copy_from_slice(bytes);
                    }
                }
            }
        }
    }
    let members = operands.into_iter().zip(rows);
    let members = members.map(|(operands, rows)| Member { operands, arguments: MemberArguments::Rows(rows) }).collect();
    check(&spec, members, &expected, random);
}
