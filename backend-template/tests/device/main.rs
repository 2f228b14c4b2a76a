//! Unit tests of the simulated device: memory, queues, events, faults, and error propagation.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use backend_template::device::{
    Access, Block, Command, Coordinate, Device, FaultKind, Index, Instruction, Kernel, LANES, Predicate, Program,
    Queue, REGISTERS, Region, Register, TensorDescriptor, VectorOp, View,
};
use xla_hlo::ops::{BinaryOp, UnaryOp};
use xla_hlo::{ElementType, Error, Scalar};

const S32: ElementType = ElementType::S32;

fn label(text: &str) -> Arc<str> {
    text.into()
}

fn all(block: &Arc<Block>) -> Region {
    Region::new(block, 0, block.size()).expect("a block is inside of itself")
}

/// Creates the descriptor of a vector of [`LANES`] elements.
fn vector(access: Access) -> TensorDescriptor {
    TensorDescriptor::new(S32, &[LANES], access).expect("a small array")
}

/// Returns the view in which lane `i` accesses element `i`.
fn lanes() -> View {
    View::Flat(Coordinate::constant(0).per_row(8).per_column(1))
}

/// Loads a kernel that computes `tensor 1 = tensor 0 op tensor 0`.
fn doubling(op: BinaryOp) -> Arc<Kernel> {
    let (x, y) = (Register(0), Register(1));
    let body = vec![
        Instruction::Load { to: x, tensor: 0, view: lanes() },
        Instruction::Vector { to: y, op: VectorOp::Binary(op), operands: vec![x, x] },
        Instruction::Store { from: y, tensor: 1, view: lanes() },
    ];
    let tensors = vec![vector(Access::Read), vector(Access::Write)];
    let program = Program { name: "doubling".to_string(), tensors, registers: vec![S32; 2], indices: 0, body };
    Arc::new(Kernel::load(program).expect("a right program"))
}

fn numbers(bytes: &[u8]) -> Vec<i32> {
    bytes.chunks_exact(4).map(|b| i32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

fn upload(queue: &Queue, block: &Arc<Block>, number: i32) {
    let bytes: Vec<u8> = (0..LANES).flat_map(|_| number.to_le_bytes()).collect();
    queue.submit(Command::upload(&label("upload"), &bytes, all(block)).expect("sizes agree")).expect("the queue runs");
}

fn launch(queue: &Queue, kernel: &Arc<Kernel>, name: &str, from: &Arc<Block>, to: &Arc<Block>) {
    let command = Command::launch(&label(name), kernel, vec![all(from), all(to)]).expect("sizes agree");
    queue.submit(command).expect("the queue runs");
}

fn download(queue: &Queue, block: &Arc<Block>) -> Result<Vec<i32>, Error> {
    queue.download(all(block)).map(|bytes| numbers(&bytes))
}

fn block(device: &Device) -> Arc<Block> {
    device.allocate(4 * LANES).expect("enough memory")
}

#[test]
fn kernels_run_in_order() {
    let device = Device::new(1 << 20);
    let queue = device.queue().expect("a thread");
    let (a, b) = (block(&device), block(&device));
    let double = doubling(BinaryOp::Add);
    upload(&queue, &a, 3);
    launch(&queue, &double, "first", &a, &b);
    launch(&queue, &double, "second", &b, &a);
    assert_eq!(download(&queue, &a).expect("no fault"), [12; LANES]);
}

#[test]
fn memory_is_counted_and_limited() {
    let device = Device::new(1024);
    let a = device.allocate(100).expect("enough memory");
    assert_eq!((a.size(), a.charged(), device.usage().in_use), (100, 128, 128));
    let error = device.allocate(900).expect_err("too much");
    assert_eq!(error.message(), "no device memory for 900 bytes: 896 of 1024 are free");
    assert!(matches!(device.allocate(usize::MAX), Err(Error::ResourceExhausted(_))));
    let nothing = device.allocate(0).expect("nothing is there");
    assert_eq!(nothing.size(), 0);
    drop((a, nothing));
    let usage = device.usage();
    assert_eq!((usage.in_use, usage.peak), (0, 128));
}

#[test]
fn queued_work_keeps_memory_alive_and_allocation_waits_for_it() {
    let device = Device::new(4 * 128);
    let queue = device.queue().expect("a thread");
    let double = doubling(BinaryOp::Add);
    for _ in 0..100 {
        let (a, b) = (block(&device), block(&device));
        upload(&queue, &a, 1);
        launch(&queue, &double, "k", &a, &b);
        // Both blocks are dropped while the queue may still use them; the next iteration must nevertheless find room.
    }
    drop(queue);
    assert_eq!(device.usage().in_use, 0);
}

#[test]
fn errors_flow_with_the_data() {
    let device = Device::new(1 << 20);
    let queue = device.queue().expect("a thread");
    let [a, b, c, d, e] = std::array::from_fn(|_| block(&device));
    let double = doubling(BinaryOp::Add);
    upload(&queue, &a, 1);
    device.inject_fault(FaultKind::Kernel, 1);
    launch(&queue, &double, "goes well", &a, &b);
    launch(&queue, &double, "thunk t7 (%bad)", &b, &c);
    launch(&queue, &double, "reads poison", &c, &d);
    launch(&queue, &double, "has nothing to do with it", &b, &e);
    let event = queue.record().expect("the queue runs");
    let expected = "thunk t7 (%bad): kernel doubling failed: injected fault";
    for bad in [&c, &d] {
        assert_eq!(download(&queue, bad).expect_err("poison").message(), expected);
    }
    assert_eq!(download(&queue, &e).expect("no poison"), [4; LANES]);
    assert_eq!(event.wait().expect_err("work before it failed").message(), expected);
    assert!(event.is_reached().is_err());
    // The event has reported the error; later work is independent of it, and overwriting clears the poison.
    assert!(queue.record().expect("the queue runs").wait().is_ok());
    launch(&queue, &double, "again", &b, &c);
    assert_eq!(download(&queue, &c).expect("healed"), [4; LANES]);
}

#[test]
fn poison_is_as_large_as_what_was_not_written() {
    let device = Device::new(1 << 20);
    let queue = device.queue().expect("a thread");
    let memory = device.allocate(64).expect("enough memory");
    let part = |from, size| Region::new(&memory, from, size).expect("inside");
    queue.submit(Command::upload(&label("u"), &[1; 64], part(0, 64)).expect("sizes agree")).expect("the queue runs");
    device.inject_fault(FaultKind::Copy, 0);
    let bad = Command::copy(&label("bad"), part(0, 16), part(16, 16)).expect("sizes agree");
    queue.submit(bad).expect("the queue runs");
    let read = |from, size| queue.download(part(from, size));
    assert!(read(0, 16).is_ok() && read(32, 32).is_ok());
    assert!(read(15, 2).is_err() && read(31, 1).is_err() && read(0, 64).is_err());
    queue.submit(Command::upload(&label("u"), &[2; 8], part(20, 8)).expect("sizes agree")).expect("the queue runs");
    assert!(read(20, 8).is_ok());
    assert!(read(16, 4).is_err() && read(28, 4).is_err());
}

#[test]
fn every_kind_of_fault_strikes_once_and_can_be_taken_back() {
    let device = Device::new(1 << 20);
    let queue = device.queue().expect("a thread");
    device.inject_fault(FaultKind::Allocation, 1);
    let a = block(&device);
    assert!(matches!(device.allocate(1), Err(Error::ResourceExhausted(_))));
    assert!(device.allocate(1).is_ok());
    upload(&queue, &a, 5);
    device.inject_fault(FaultKind::Copy, 0);
    let error = download(&queue, &a).expect_err("an injected fault");
    assert_eq!(error.message(), "copy from the device failed: injected fault");
    device.inject_fault(FaultKind::Copy, 0);
    device.clear_faults();
    assert_eq!(download(&queue, &a).expect("the memory is as it was"), [5; LANES]);
}

#[test]
fn events_order_work_of_several_queues_and_threads() {
    let device = Device::new(1 << 20);
    let double = doubling(BinaryOp::Add);
    let (a, b) = (block(&device), block(&device));
    let (first, second) = (device.queue().expect("a thread"), device.queue().expect("a thread"));
    for round in 0..50 {
        upload(&first, &a, round);
        launch(&first, &double, "k", &a, &b);
        let event = first.record().expect("the queue runs");
        second.wait_for(&event).expect("the queue runs");
        launch(&second, &double, "k", &b, &a);
        let back = second.record().expect("the queue runs");
        thread::scope(|scope| {
            let waiter = scope.spawn(|| back.wait());
            first.wait_for(&back).expect("the queue runs");
            assert!(waiter.join().expect("no panic").is_ok());
        });
        assert_eq!(download(&first, &a).expect("no fault"), [4 * round; LANES]);
    }
}

#[test]
fn waiting_for_a_queue_that_fails_or_ends_is_no_deadlock() {
    let device = Device::new(1 << 20);
    let double = doubling(BinaryOp::Add);
    let (a, b) = (block(&device), block(&device));
    let queue = device.queue().expect("a thread");
    let other = device.queue().expect("a thread");
    device.inject_fault(FaultKind::Kernel, 0);
    launch(&other, &double, "bad", &a, &b);
    let event = other.record().expect("the queue runs");
    queue.wait_for(&event).expect("the queue runs");
    drop(other);
    upload(&queue, &a, 1);
    assert_eq!(download(&queue, &a).expect("this data is right"), [1; LANES]);
    assert!(download(&queue, &b).is_err());
    // Waiting for failed work returns its error, once.
    let told = queue.record().expect("the queue runs").wait().expect_err("what was waited for failed");
    assert_eq!(told.message(), "bad: kernel doubling failed: injected fault");
    assert!(queue.record().expect("the queue runs").wait().is_ok());
}

#[test]
fn loops_end_by_their_predicate_by_cancellation_and_by_errors() {
    let device = Device::new(1 << 20);
    let queue = device.queue().expect("a thread");
    let [a, b] = std::array::from_fn(|_| block(&device));
    // The predicate is the low byte of a number: doubling 1 eight times makes it 0.
    let repeat = |cancelled: bool| {
        let double = doubling(BinaryOp::Add);
        let step = |from, to| Command::launch(&label("step"), &double, vec![all(from), all(to)]).expect("sizes agree");
        let back = Command::copy(&label("back"), all(&b), all(&a)).expect("sizes agree");
        let place = Region::new(&a, 0, 1).expect("inside");
        let predicate = Predicate { place, cancelled: Arc::new(AtomicBool::new(cancelled)) };
        Command::repeat(&label("loop"), Vec::new(), predicate, vec![step(&a, &b), back]).expect("one byte")
    };
    upload(&queue, &a, 1);
    queue.submit(repeat(false)).expect("the queue runs");
    assert_eq!(download(&queue, &a).expect("no fault"), [256; LANES]);
    upload(&queue, &a, 1);
    queue.submit(repeat(true)).expect("the queue runs");
    assert!(matches!(download(&queue, &a), Err(Error::Cancelled(_))));
    upload(&queue, &a, 1);
    device.inject_fault(FaultKind::Kernel, 3);
    queue.submit(repeat(false)).expect("the queue runs");
    let error = download(&queue, &a).expect_err("an injected fault");
    assert_eq!(error.message(), "step: kernel doubling failed: injected fault");
}

#[test]
fn wrong_programs_are_refused() {
    let load = |registers: usize, body: Vec<Instruction>| {
        let tensors = vec![vector(Access::Read), vector(Access::Write)];
        Kernel::load(Program { name: "wrong".to_string(), tensors, registers: vec![S32; registers], indices: 1, body })
    };
    let (x, y) = (Register(0), Register(1));
    let too_many = load(REGISTERS + 1, Vec::new()).expect_err("too many registers");
    assert_eq!(too_many.message(), "kernel wrong needs 65 registers, but the core has 64");
    let elsewhere = Coordinate::of(Index(3));
    for body in [
        Instruction::Load { to: Register(2), tensor: 0, view: lanes() },
        Instruction::Load { to: x, tensor: 2, view: lanes() },
        Instruction::Load { to: x, tensor: 0, view: View::Window(Vec::new()) },
        Instruction::Load { to: x, tensor: 0, view: View::Window(vec![elsewhere]) },
        Instruction::Store { from: x, tensor: 0, view: lanes() },
        Instruction::Splat { to: x, value: Scalar::Float(1.0) },
        Instruction::Vector { to: x, op: VectorOp::Unary(UnaryOp::Abs), operands: vec![x, y] },
        Instruction::Vector { to: x, op: VectorOp::Select, operands: vec![x, y, y] },
        Instruction::LoadIndex { index: Index(0), tensor: 0, at: Vec::new(), range: 0..=1 },
        Instruction::Loop { index: Index(0), extent: 1, step: 0, body: Vec::new() },
    ] {
        let error = load(2, vec![body]).expect_err("a wrong instruction");
        assert!(matches!(error, Error::Internal(_) | Error::InvalidArgument(_)), "{error}");
    }
    let kernel = doubling(BinaryOp::Add);
    let device = Device::new(1 << 20);
    let a = block(&device);
    assert!(Command::launch(&label("l"), &kernel, vec![all(&a)]).is_err());
    assert!(Region::new(&a, 100, usize::MAX).is_err());
    assert!(Command::upload(&label("l"), &[0; 3], all(&a)).is_err());
}
