//! Tests of the decision between NCCL and the service, and of the calls of each member.

use std::collections::HashMap;
use std::sync::Arc;

use xla_hlo::ElementType::{self, BF16, C64, F8E5M2, F16, F32, F64, Pred, S8, S16, S32, S64, U8, U32, U64};
use xla_hlo::ops::BinaryOp;
use xla_service::collective::{CollectiveSpec, Operation, Part, Reduction};

use super::{Step, plan};

const ALL: [BinaryOp; 6] =
    [BinaryOp::Add, BinaryOp::Multiply, BinaryOp::Minimum, BinaryOp::Maximum, BinaryOp::And, BinaryOp::Or];

fn spec(operation: Operation, arrays: Vec<Part>, members: usize) -> Arc<CollectiveSpec> {
    Arc::new(CollectiveSpec::new(operation, arrays, members).unwrap())
}

/// Returns the operations that NCCL computes in an all-reduce of a type.
fn taken(ty: ElementType) -> Vec<BinaryOp> {
    let is_taken = |operation: &BinaryOp| {
        let reduction = Reduction::simple(*operation, ty);
        plan(&spec(Operation::AllReduce(reduction), vec![Part::whole(ty, 3)], 2)).is_ok()
    };
    ALL.into_iter().filter(is_taken).collect()
}

#[test]
fn combiners_are_those_with_the_results_of_hlo() {
    for ty in [S8, U8, S32, U32, S64, U64] {
        assert_eq!(taken(ty), ALL[..4], "{ty}");
    }
    for ty in [F16, BF16, F32, F64] {
        assert_eq!(taken(ty), ALL[..2], "{ty}: minimum and maximum ignore NaN");
    }
    assert_eq!(taken(C64), ALL[..1]);
    assert_eq!(taken(Pred), ALL[2..]);
    for ty in [S16, F8E5M2] {
        assert_eq!(taken(ty), [], "{ty}");
    }
}

#[test]
fn reasons_name_the_difference() {
    let reason = |operation, arrays| plan(&spec(operation, arrays, 2)).unwrap_err().to_string();
    let wide = Reduction::simple(BinaryOp::Add, F32);
    let text = reason(Operation::AllReduce(wide), vec![Part::whole(BF16, 3)]);
    assert_eq!(text, "elements of bf16 are combined as f32");
    let minimum = Reduction::simple(BinaryOp::Minimum, F32);
    let text = reason(Operation::ReduceScatter(minimum), vec![Part::whole(F32, 3)]);
    assert_eq!(text, "NCCL does not compute Minimum of f32 as HLO does");
    let rows = Part { element_type: S16, outer: 65, inner: 2 };
    let text = reason(Operation::AllToAll, vec![rows]);
    assert_eq!(text, "the parts are not contiguous: 260 calls for each member");
    assert_eq!(reason(Operation::RaggedAllToAll, vec![rows; 2]), "NCCL has no ragged-all-to-all with these operands");
}

#[test]
fn functions_are_named() {
    let name = |operation, arrays| plan(&spec(operation, arrays, 2)).unwrap().to_string();
    let sum = Reduction::simple(BinaryOp::Add, F32);
    assert_eq!(name(Operation::AllReduce(sum), vec![Part::whole(F32, 3)]), "ncclAllReduce Sum of f32");
    assert_eq!(name(Operation::AllGather, vec![Part::whole(S16, 3)]), "ncclAllGather");
    assert_eq!(name(Operation::Permute(vec![(0, 1)]), vec![Part::whole(S16, 3)]), "ncclSend and ncclRecv");
}

/// Executes the steps of all members on the host. Each element of an operand is `100 * rank + position`.
fn execute(operation: Operation, arrays: &[Part], members: usize) -> Vec<Vec<Vec<u8>>> {
    let spec = spec(operation, arrays.to_vec(), members);
    let plan = plan(&spec).unwrap();
    let sent = |rank: usize, bytes: usize| (0..bytes).map(move |i| (100 * rank + i) as u8).collect::<Vec<u8>>();
    let operands: Vec<Vec<Vec<u8>>> =
        (0..members).map(|rank| spec.operand_bytes().map(|bytes| sent(rank, bytes)).collect()).collect();
    let mut results: Vec<Vec<Vec<u8>>> =
        (0..members).map(|_| spec.result_bytes().map(|bytes| vec![0xee; bytes]).collect()).collect();
    let count = arrays.len();
    let steps: Vec<Vec<Step>> = (0..members).map(|rank| plan.steps(rank, 1)).collect();
    let mut messages: HashMap<(usize, usize), Vec<Vec<u8>>> = HashMap::new();
    for (rank, steps) in steps.iter().enumerate() {
        for step in steps {
            if let Step::Send { from, bytes, peer } = *step {
                let message = operands[rank][from.array][from.offset..from.offset + bytes].to_vec();
                messages.entry((rank, peer)).or_default().insert(0, message);
            }
        }
    }
    for rank in 0..members {
        for (number, step) in steps[rank].iter().enumerate() {
            let (to, content) = match *step {
                Step::AllReduce { from, to, count, ty, .. } => {
                    let bytes = count * ty.bytes();
                    let part = |rank: usize| &operands[rank][from.array][from.offset..from.offset + bytes];
                    (to, (0..bytes).map(|i| (0..members).fold(0u8, |sum, r| sum.wrapping_add(part(r)[i]))).collect())
                }
                Step::ReduceScatter { from, to, count, ty, .. } => {
                    let (bytes, first) = (count * ty.bytes(), from.offset + rank * count * ty.bytes());
                    let part = |rank: usize| &operands[rank][from.array][first..first + bytes];
                    (to, (0..bytes).map(|i| (0..members).fold(0u8, |sum, r| sum.wrapping_add(part(r)[i]))).collect())
                }
                Step::AllGather { from, to, bytes } => {
                    // All members make the same calls in the same order.
                    let own = |rank: usize| match steps[rank][number] {
                        Step::AllGather { from, .. } => &operands[rank][from.array][from.offset..from.offset + bytes],
                        _ => panic!("rank {rank} makes another call"),
                    };
                    assert_eq!(from.array, to.array - count);
                    (to, (0..members).flat_map(|rank| own(rank).to_vec()).collect::<Vec<u8>>())
                }
                Step::Broadcast { from, to, bytes, root } => (to, operands[root][from.array][..bytes].to_vec()),
                Step::Receive { to, bytes, peer } => {
                    let message = messages.get_mut(&(peer, rank)).and_then(Vec::pop).unwrap();
                    assert_eq!(message.len(), bytes);
                    (to, message)
                }
                Step::Copy { from, to, bytes } => {
                    (to, operands[rank][from.array][from.offset..from.offset + bytes].to_vec())
                }
                Step::Zero { to, bytes } => (to, vec![0; bytes]),
                Step::Send { .. } => continue,
            };
            results[rank][to.array - count][to.offset..to.offset + content.len()].copy_from_slice(&content);
        }
    }
    assert!(messages.values().all(Vec::is_empty), "a message is not received");
    results
}

#[test]
fn parts_are_sent_to_their_places() {
    // A dimension that is cut into two parts inside of two rows.
    let rows = Part { element_type: U8, outer: 2, inner: 2 };
    let sum = || Reduction::simple(BinaryOp::Add, U8);
    let scattered = execute(Operation::ReduceScatter(sum()), &[rows], 2);
    assert_eq!(scattered, [[[100, 102, 108, 110]], [[104, 106, 112, 114]]]);
    let gathered = execute(Operation::AllGather, &[rows], 2);
    assert_eq!(gathered, [[[0, 1, 100, 101, 2, 3, 102, 103]]; 2]);
    let exchanged = execute(Operation::AllToAll, &[rows], 2);
    assert_eq!(exchanged, [[[0, 1, 100, 101, 4, 5, 104, 105]], [[2, 3, 102, 103, 6, 7, 106, 107]]]);
    let whole = Part::whole(U8, 2);
    let reduced = execute(Operation::AllReduce(sum()), &[whole, Part::whole(U8, 0)], 2);
    assert_eq!(reduced, [[vec![100, 102], vec![]], [vec![100, 102], vec![]]]);
    let exchanged = execute(Operation::AllToAllTuple, &[whole; 2], 2);
    assert_eq!(exchanged, [[[0, 1], [100, 101]]; 2]);
    let sent = execute(Operation::Broadcast, &[whole], 2);
    assert_eq!(sent, [[[100, 101]]; 2]);
    let permuted = execute(Operation::Permute(vec![(0, 2), (1, 1)]), &[whole], 3);
    assert_eq!(permuted, [[[0, 0]], [[100, 101]], [[0, 1]]], "a rank without source receives zeros");
}

#[test]
fn a_member_alone_copies() {
    let whole = Part::whole(F32, 1);
    let minimum = Reduction::simple(BinaryOp::Minimum, F32);
    assert_eq!(execute(Operation::AllReduce(minimum), &[whole], 1), [[[0, 1, 2, 3]]]);
    assert_eq!(execute(Operation::Permute(vec![]), &[whole], 1), [[[0, 0, 0, 0]]]);
    assert_eq!(execute(Operation::Permute(vec![(0, 0)]), &[whole], 1), [[[0, 1, 2, 3]]]);
}
