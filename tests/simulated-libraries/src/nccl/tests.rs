//! Tests of arithmetic, exchanges, options and refused calls.

use std::thread;

use half::f16;

use super::cliques::State;
use super::element::{DataType, ReduceOp};
use super::exchange::{Collective, GARBAGE, Kind, Shared, Step};
use super::options::{Failure, Options};
use super::{Nccl, Status};
use simulated_gpu::machine::Memory;

fn status<T: std::fmt::Debug>(answer: Nccl<T>) -> Status {
    answer.unwrap_err().status
}

/// Returns the reduction of the elements of two members.
fn combined(op: ReduceOp, ty: DataType, first: &[u8], second: &[u8]) -> Vec<u8> {
    let mut total = first.to_vec();
    op.combine(ty, &mut total, second);
    total
}

#[test]
fn all_types_are_reduced() {
    assert_eq!(combined(ReduceOp::Sum, DataType::S8, &[127, 1], &[1, 2]), [128, 3]);
    assert_eq!(combined(ReduceOp::Min, DataType::S8, &[255, 1], &[1, 2]), [255, 1]);
    assert_eq!(combined(ReduceOp::Min, DataType::U8, &[255, 1], &[1, 2]), [1, 1]);
    let of = |a: u32, b: u32, op| combined(op, DataType::U32, &a.to_le_bytes(), &b.to_le_bytes());
    assert_eq!(of(1 << 31, 2, ReduceOp::Product), [0; 4]);
    assert_eq!(of(1 << 31, 2, ReduceOp::Max), (1u32 << 31).to_le_bytes());
    let of = |a: i64, b: i64, op| combined(op, DataType::S64, &a.to_le_bytes(), &b.to_le_bytes());
    assert_eq!(of(-5, 7, ReduceOp::Product), (-35i64).to_le_bytes());
    let half = |x: f32| f16::from_f32(x).to_le_bytes();
    assert_eq!(combined(ReduceOp::Sum, DataType::F16, &half(2048.0), &half(1.0)), half(2048.0));
    let of = |a: f64, b: f64, op| combined(op, DataType::F64, &a.to_le_bytes(), &b.to_le_bytes());
    assert_eq!(of(f64::NAN, 2.0, ReduceOp::Max), 2f64.to_le_bytes(), "NaN is ignored");
    assert_eq!(status(DataType::of(12)), Status::INVALID_ARGUMENT);
    assert_eq!(status(ReduceOp::of(4)), Status::INVALID_ARGUMENT);
    assert_eq!(status(ReduceOp::Sum.check(DataType::F8E5M2)), Status::INVALID_ARGUMENT);
}

/// Executes a collective of two members with these contributions; returns the results.
fn exchanged(kind: Kind, count: usize, sent: [&[u8]; 2]) -> [Vec<u8>; 2] {
    let collective = Collective { kind, ty: DataType::U8, count };
    let (shared, mut memory) = (Shared::new(2), Memory::new(1 << 20, true));
    let steps = [0, 1].map(|rank| {
        let [bytes, received] = collective.bytes(rank, 2).unwrap();
        let [from, to] = [(); 2].map(|()| memory.allocate(64).unwrap());
        memory.write(from, &sent[rank][..bytes]).unwrap();
        vec![Step::Collective { number: 0, collective, send: (from, bytes), receive: (to, received) }]
    });
    shared.lock().pending = vec![1; 2];
    shared.lock().enter(0, &steps[0], &mut memory).unwrap();
    assert!(!shared.lock().is_open(0, &steps[0]), "rank 1 has not arrived");
    shared.lock().enter(1, &steps[1], &mut memory).unwrap();
    [0, 1].map(|rank| {
        assert!(shared.lock().is_open(rank, &steps[rank]));
        shared.lock().leave(rank, &steps[rank], &mut memory).unwrap();
        let Step::Collective { receive: (address, bytes), .. } = steps[rank][0] else { unreachable!() };
        memory.read(address, bytes).unwrap().to_vec()
    })
}

#[test]
fn members_exchange_their_arrays() {
    let sent: [&[u8]; 2] = [&[1, 2, 3, 4], &[10, 20, 30, 40]];
    assert_eq!(exchanged(Kind::AllReduce(ReduceOp::Sum), 2, sent), [[11, 22], [11, 22]]);
    assert_eq!(exchanged(Kind::ReduceScatter(ReduceOp::Sum), 2, sent), [[11, 22], [33, 44]]);
    assert_eq!(exchanged(Kind::AllGather, 1, sent), [[1, 10], [1, 10]]);
    assert_eq!(exchanged(Kind::Broadcast(1), 3, sent), [[10, 20, 30], [10, 20, 30]]);
}

#[test]
fn messages_have_one_size_and_aborted_members_do_not_wait() {
    let (shared, mut memory) = (Shared::new(2), Memory::new(1 << 20, true));
    let address = memory.allocate(8).unwrap();
    memory.write(address, &[7; 8]).unwrap();
    let receive = [Step::Receive { number: 1, peer: 0, to: (address, 8) }];
    shared.lock().pending = vec![2; 2];
    shared.lock().abort(1);
    assert!(shared.lock().is_open(1, &receive));
    shared.lock().leave(1, &receive, &mut memory).unwrap();
    assert_eq!(memory.read(address, 8).unwrap(), [GARBAGE; 8], "the results of aborted work are unspecified");
    memory.write(address, &[7; 8]).unwrap();
    let send = [Step::Send { number: 1, peer: 1, from: (address, 4) }];
    shared.lock().enter(0, &send, &mut memory).unwrap();
    assert!(shared.lock().leave(1, &receive, &mut memory).unwrap_err().message.contains("rank 0 sends 4"));
}

#[test]
fn sends_wait_for_receives_and_leftovers_are_reported() {
    let (shared, mut memory) = (Shared::new(2), Memory::new(1 << 20, true));
    let address = memory.allocate(8).unwrap();
    memory.write(address, &[7; 8]).unwrap();
    let send = [Step::Send { number: 1, peer: 1, from: (address, 8) }];
    let receive = [Step::Receive { number: 1, peer: 0, to: (address, 8) }];
    shared.lock().pending = vec![1; 2];
    shared.lock().enter(0, &send, &mut memory).unwrap();
    assert!(!shared.lock().is_open(0, &send), "the receive has not begun");
    assert!(shared.lock().leftovers().unwrap().contains("1 messages"));
    shared.lock().enter(1, &receive, &mut memory).unwrap();
    assert!(shared.lock().is_open(0, &send) && shared.lock().is_open(1, &receive));
    shared.lock().leave(0, &send, &mut memory).unwrap();
    assert!(shared.lock().is_open(1, &receive));
    shared.lock().leave(1, &receive, &mut memory).unwrap();
    assert_eq!(shared.lock().leftovers(), None);
}

#[test]
fn failed_groups_leak_communicators_until_they_are_aborted() {
    let mut state = State::new();
    let id = state.issue();
    let first = state.join(id, 2, 0, Some(0)).unwrap();
    assert_eq!(state.leaked(), 0);
    state.fail(id);
    assert_eq!(state.leaked(), 1);
    state.abort(first).unwrap();
    assert_eq!(state.leaked(), 0);
}

#[test]
fn cliques_refuse_misuse() {
    let mut state = State::new();
    let id = state.issue();
    assert_eq!(status(state.join(id + 1, 2, 0, Some(0))), Status::INVALID_ARGUMENT, "another id");
    assert_eq!(status(state.join(id, 2, 2, Some(0))), Status::INVALID_ARGUMENT);
    assert_eq!(status(state.join(id, 2, 0, None)), Status::UNHANDLED_CUDA_ERROR);
    let first = state.join(id, 2, 0, Some(0)).unwrap();
    assert_eq!(status(state.join(id, 2, 0, Some(1))), Status::INVALID_USAGE, "the rank is taken");
    assert_eq!(status(state.join(id, 2, 1, Some(0))), Status::INVALID_USAGE, "two ranks on a device");
    assert_eq!(status(state.async_error(first)), Status::INVALID_USAGE, "the clique is not complete");
    let second = thread::scope(|scope| scope.spawn(|| state.join(id, 2, 1, Some(1)).unwrap()).join().unwrap());
    assert!(state.is_complete(id));
    state.abort(first).unwrap();
    assert_eq!(status(state.abort(first)), Status::INVALID_ARGUMENT, "the communicator does not exist any more");
    state.destroy(second).unwrap();
}

#[test]
fn options_are_read() {
    assert_eq!(Options::parse(""), Ok(Options::default()));
    let options = Options::parse("version=2.10.3, stuck=ncclSend:2,async=ncclRecv:1").unwrap();
    assert_eq!(options.version, Some(21_003));
    assert_eq!(Options::parse("version=2.8.4").unwrap().version, Some(2804));
    let called = ["ncclSend", "ncclSend", "ncclRecv"].map(|call| options.called(call));
    assert_eq!(called, [None, Some(Failure::Stuck), Some(Failure::Async)]);
    for bad in ["version=2", "fault=ncclSend", "fault=ncclSend:0", "colour=red", "log"] {
        assert!(Options::parse(bad).unwrap_err().contains("is not understood"), "{bad}");
    }
}
