//! Tests of assignments for hand-made and random sequences: streams, no races, no superfluous edges.

use xla_hlo::entity::EntityId;
use xla_hlo::{ArrayShape, CompId, ElementType, InstrId};
use xla_passes::buffers::{AllocationId, Slice};

use super::super::sequence::Selector;
use super::super::{ArraySlice, KernelRef, StreamId, Thunk, ThunkId, ThunkKind, ThunkSequence};
use super::{StreamProfile, ThunkCost, assign_streams, verify_streams};

mod execution;
mod random;

const MICRO: f64 = 1e-6;

/// Returns a slice of `size` bytes of an allocation.
fn slice(allocation: usize, offset: usize, size: usize) -> Slice {
    Slice { allocation: AllocationId::from_index(allocation), offset, size }
}

/// Returns the slice of a whole allocation of 64 bytes.
fn whole(allocation: usize) -> Slice {
    slice(allocation, 0, 64)
}

fn arrays(slices: &[Slice]) -> Vec<ArraySlice> {
    let shape = |slice: &Slice| ArrayShape::new(ElementType::U8, [slice.size]);
    slices.iter().map(|slice| ArraySlice { slice: *slice, shape: shape(slice) }).collect()
}

fn thunk(id: u32, kind: ThunkKind, reads: &[Slice], writes: &[Slice]) -> Thunk {
    Thunk {
        id: ThunkId(id),
        computation: CompId::from_index(0),
        instruction: InstrId::from_index(id as usize),
        name: format!("k{id}"),
        kind,
        operands: arrays(reads),
        results: arrays(writes),
        has_effects: false,
        stream: StreamId::default(),
        waits: Vec::new(),
    }
}

fn kernel(id: u32, reads: &[Slice], writes: &[Slice]) -> Thunk {
    thunk(id, ThunkKind::Kernel(KernelRef { index: 0, name: "k".to_string() }), reads, writes)
}

fn sequence(thunks: Vec<Thunk>) -> ThunkSequence {
    ThunkSequence { thunks, ..ThunkSequence::default() }
}

/// Returns the profile of a device on which launches and events take one microsecond.
fn profile(compute_streams: u32) -> StreamProfile {
    StreamProfile { compute_streams, launch_seconds: MICRO, event_seconds: MICRO, ..StreamProfile::default() }
}

/// Returns the cost of kernels that take this time and a fifth of the device.
fn small(microseconds: f64) -> impl Fn(&Thunk) -> ThunkCost {
    move |_| ThunkCost { seconds: microseconds * MICRO, share: 0.2 }
}

/// Returns the stream of each thunk, including nested ones.
fn streams(sequence: &ThunkSequence) -> Vec<u32> {
    sequence.walk().map(|thunk| thunk.stream.0).collect()
}

/// Three chains of two kernels that read `a0`, and one kernel that reads the results of all.
fn branches() -> ThunkSequence {
    sequence(vec![
        kernel(0, &[whole(0)], &[whole(1)]),
        kernel(1, &[whole(1)], &[whole(2)]),
        kernel(2, &[whole(0)], &[whole(3)]),
        kernel(3, &[whole(3)], &[whole(4)]),
        kernel(4, &[whole(0)], &[whole(5)]),
        kernel(5, &[whole(5)], &[whole(6)]),
        kernel(6, &[whole(2), whole(4), whole(6)], &[whole(7)]),
    ])
}

#[test]
fn independent_branches_run_side_by_side() {
    let mut sequence = branches();
    let report = assign_streams(&mut sequence, &profile(3), &small(20.0)).unwrap();
    insta::assert_snapshot!(sequence, @r"
    begin streams=[1, 2]
    t0: kernel k %k0 (a0[0..64] u8[64]) -> (a1[0..64] u8[64])
    t1: kernel k %k1 (a1[0..64] u8[64]) -> (a2[0..64] u8[64])
    t2: kernel k %k2 (a0[0..64] u8[64]) -> (a3[0..64] u8[64]) stream=1
    t3: kernel k %k3 (a3[0..64] u8[64]) -> (a4[0..64] u8[64]) stream=1
    t4: kernel k %k4 (a0[0..64] u8[64]) -> (a5[0..64] u8[64]) stream=2
    t5: kernel k %k5 (a5[0..64] u8[64]) -> (a6[0..64] u8[64]) stream=2
    t6: kernel k %k6 (a2[0..64] u8[64], a4[0..64] u8[64], a6[0..64] u8[64]) -> (a7[0..64] u8[64]) waits=[t3, t5]
    ");
    insta::assert_snapshot!(report, @r"
    By the model: 68.00 us on several streams, 141.00 us on one.

    the program: 3 streams, 3 events, 4 waits, 68.00 us
      stream 0 (its own)
             1.00 us ..     21.00 us  t0 kernel %k0
            21.00 us ..     41.00 us  t1 kernel %k1
            48.00 us ..     68.00 us  t6 kernel %k6 waits=[t3, t5]
      stream 1 waits for earlier work
             4.00 us ..     24.00 us  t2 kernel %k2
            24.00 us ..     44.00 us  t3 kernel %k3
      stream 2 waits for earlier work
             7.00 us ..     27.00 us  t4 kernel %k4
            27.00 us ..     47.00 us  t5 kernel %k5
      end waits=[]
    ");
    assert!(report.seconds < 0.6 * report.seconds_on_one_stream, "{report}");
    // A second assignment yields the same result; an assignment to one stream removes it.
    let first = sequence.clone();
    assign_streams(&mut sequence, &profile(3), &small(20.0)).unwrap();
    assert_eq!(sequence, first);
    let report = assign_streams(&mut sequence, &profile(1), &small(20.0)).unwrap();
    assert_eq!((&sequence, report.uses_streams()), (&branches(), false));
}

#[test]
fn what_gains_nothing_stays_on_one_stream() {
    // The host is too slow to keep several streams busy.
    let mut sequence = branches();
    let report = assign_streams(&mut sequence, &profile(3), &small(0.5)).unwrap();
    assert_eq!(sequence, branches());
    assert_eq!(report.seconds, report.seconds_on_one_stream);
    // Each kernel needs the whole device.
    assign_streams(&mut sequence, &profile(3), &|_| ThunkCost { seconds: 20.0 * MICRO, share: 1.0 }).unwrap();
    assert_eq!(sequence, branches());
    // Each kernel reads the output of the previous one.
    let chain = |_| sequence_of_chain();
    let mut sequence = chain(());
    assign_streams(&mut sequence, &profile(3), &small(20.0)).unwrap();
    assert_eq!(sequence, chain(()));
    // Non-finite costs.
    let mut sequence = branches();
    assign_streams(&mut sequence, &profile(3), &|_| ThunkCost { seconds: f64::NAN, share: f64::INFINITY }).unwrap();
    assert_eq!(sequence, branches());
    assign_streams(&mut ThunkSequence::default(), &profile(3), &small(1.0)).unwrap();
}

fn sequence_of_chain() -> ThunkSequence {
    sequence((0..6).map(|i| kernel(i, &[whole(i as usize)], &[whole(i as usize + 1)])).collect())
}

#[test]
fn memory_that_is_used_again_is_an_order() {
    // The second chain overwrites part of the memory that the first one reads. The order is required although the
    // values are unrelated.
    let mut sequence = sequence(vec![
        kernel(0, &[whole(0)], &[slice(1, 0, 64)]),
        kernel(1, &[slice(1, 0, 64)], &[whole(2)]),
        kernel(2, &[whole(0)], &[slice(1, 32, 64)]),
        kernel(3, &[slice(1, 32, 64)], &[whole(3)]),
        kernel(4, &[whole(0)], &[slice(1, 96, 64)]),
    ]);
    assign_streams(&mut sequence, &profile(4), &small(20.0)).unwrap();
    insta::assert_snapshot!(sequence, @r"
    begin streams=[1]
    t0: kernel k %k0 (a0[0..64] u8[64]) -> (a1[0..64] u8[64])
    t1: kernel k %k1 (a1[0..64] u8[64]) -> (a2[0..64] u8[64])
    t2: kernel k %k2 (a0[0..64] u8[64]) -> (a1[32..96] u8[64])
    t3: kernel k %k3 (a1[32..96] u8[64]) -> (a3[0..64] u8[64])
    t4: kernel k %k4 (a0[0..64] u8[64]) -> (a1[96..160] u8[64]) stream=1
    end waits=[t4]
    ");
}

#[test]
fn effects_keep_their_order() {
    let mut sequence = sequence((0..4).map(|i| kernel(i, &[whole(0)], &[whole(i as usize + 1)])).collect());
    sequence.thunks[0].has_effects = true;
    sequence.thunks[3].has_effects = true;
    assign_streams(&mut sequence, &profile(4), &small(20.0)).unwrap();
    verify_streams(&sequence).unwrap();
    let (first, last) = (&sequence.thunks[0], &sequence.thunks[3]);
    assert!(first.stream == last.stream || last.waits == [first.id], "{sequence}");
    assert!(streams(&sequence).iter().any(|&stream| stream > 0));
}

#[test]
fn large_copies_have_streams_of_their_own() {
    let copies = StreamProfile {
        copy_streams: 1,
        copy_seconds_per_byte: 1e-7,
        copy_share: 0.1,
        copy_stream_bytes: 512,
        ..profile(1)
    };
    let copy = |id, from, to| thunk(id, ThunkKind::Copy, &[from], &[to]);
    let mut sequence = sequence(vec![
        copy(0, slice(0, 0, 1024), slice(1, 0, 1024)),
        kernel(1, &[whole(2)], &[whole(3)]),
        copy(2, whole(0), whole(4)),
        kernel(3, &[whole(3)], &[whole(5)]),
        kernel(4, &[slice(1, 0, 1024), whole(4), whole(5)], &[whole(6)]),
    ]);
    assign_streams(&mut sequence, &copies, &small(50.0)).unwrap();
    assert_eq!(streams(&sequence), [1, 0, 0, 0, 0], "{sequence}");
    assert_eq!(sequence.thunks[4].waits, [ThunkId(0)]);
    // Stream numbers are dense even if some kernel streams stay unused.
    let both = StreamProfile { compute_streams: 3, ..copies };
    assign_streams(&mut sequence, &both, &small(50.0)).unwrap();
    assert!(streams(&sequence).iter().all(|&stream| stream <= 2), "{sequence}");
}

/// Loop whose body has two independent kernels, next to a kernel that is independent of the loop.
fn looping(trip_count: Option<u64>) -> ThunkSequence {
    let condition = sequence(vec![kernel(2, &[whole(1)], &[slice(5, 0, 1)])]);
    let body = sequence(vec![kernel(3, &[whole(1)], &[whole(1)]), kernel(4, &[whole(2)], &[whole(2)])]);
    let kind = ThunkKind::While { condition, body, predicate: slice(5, 0, 1), trip_count };
    sequence(vec![
        kernel(0, &[whole(0)], &[whole(3)]),
        thunk(1, kind, &[whole(1), whole(2)], &[whole(1), whole(2)]),
        kernel(5, &[whole(1), whole(3)], &[whole(4)]),
    ])
}

#[test]
fn loops_are_spread_inside_and_are_one_thunk_outside() {
    for trip_count in [None, Some(3)] {
        let mut sequence = looping(trip_count);
        let report = assign_streams(&mut sequence, &profile(2), &small(30.0)).unwrap();
        verify_streams(&sequence).unwrap();
        assert_eq!(report.sequences.len(), 2, "{report}");
        let ThunkKind::While { condition, body, .. } = &sequence.thunks[1].kind else { panic!("{sequence}") };
        let home = sequence.thunks[1].stream;
        assert!(condition.is_on_one_stream() && condition.thunks[0].stream == home);
        assert!(body.thunks.iter().any(|thunk| thunk.stream == home) && body.joins.len() == 1, "{sequence}");
    }
    let mut sequence = looping(None);
    assign_streams(&mut sequence, &profile(2), &small(30.0)).unwrap();
    insta::assert_snapshot!(sequence, @r"
    begin streams=[1]
    t0: kernel k %k0 (a0[0..64] u8[64]) -> (a3[0..64] u8[64])
    t1: while %k1 (a1[0..64] u8[64], a2[0..64] u8[64]) -> (a1[0..64] u8[64], a2[0..64] u8[64]) stream=1
     condition, predicate in a5[0..1]:
      t2: kernel k %k2 (a1[0..64] u8[64]) -> (a5[0..1] u8[1]) stream=1
     body:
      begin streams=[0]
      t3: kernel k %k3 (a1[0..64] u8[64]) -> (a1[0..64] u8[64]) stream=1
      t4: kernel k %k4 (a2[0..64] u8[64]) -> (a2[0..64] u8[64])
      end waits=[t4]
    t5: kernel k %k5 (a1[0..64] u8[64], a3[0..64] u8[64]) -> (a4[0..64] u8[64]) waits=[t1]
    ");
}

#[test]
fn what_is_nested_takes_streams_that_have_nothing_else_to_do() {
    let mut sequence = looping(None);
    assign_streams(&mut sequence, &profile(3), &small(30.0)).unwrap();
    // Streams of the independent kernel, the loop, its condition, its body, and the kernel that reads both results.
    assert_eq!(streams(&sequence), [0, 1, 1, 1, 2, 0], "{sequence}");
}

#[test]
fn loops_of_the_device_are_left_alone() {
    let mut sequence = looping(None);
    let device_loops = StreamProfile { device_loops: true, ..profile(2) };
    assign_streams(&mut sequence, &device_loops, &small(30.0)).unwrap();
    let ThunkKind::While { condition, body, .. } = &sequence.thunks[1].kind else { panic!("{sequence}") };
    assert!(condition.is_on_one_stream() && body.is_on_one_stream());
    let home = sequence.thunks[1].stream;
    assert!(condition.thunks.iter().chain(&body.thunks).all(|thunk| thunk.stream == home));
    assert_ne!(sequence.thunks[0].stream, home, "the kernel beside it runs at the same time\n{sequence}");
}

#[test]
fn branches_of_conditionals_begin_and_end_on_one_stream() {
    let branch =
        |from: u32| sequence(vec![kernel(from, &[whole(1)], &[whole(2)]), kernel(from + 1, &[whole(1)], &[whole(3)])]);
    let kind = ThunkKind::Conditional {
        selector: Selector::Predicate,
        slice: slice(0, 0, 1),
        branches: vec![branch(2), branch(4)],
    };
    let mut sequence = sequence(vec![
        kernel(0, &[whole(6)], &[slice(0, 0, 1)]),
        thunk(1, kind, &[slice(0, 0, 1), whole(1)], &[whole(2), whole(3)]),
        kernel(6, &[whole(2), whole(3)], &[whole(1)]),
    ]);
    let report = assign_streams(&mut sequence, &profile(2), &small(30.0)).unwrap();
    assert_eq!(
        report.sequences.iter().map(|s| s.place.as_str()).collect::<Vec<_>>(),
        ["branch 0 of thunk t1 (%k1)", "branch 1 of thunk t1 (%k1)"]
    );
    verify_streams(&sequence).unwrap();
}

#[test]
fn what_is_missing_is_named() {
    let mut sequence = branches();
    assign_streams(&mut sequence, &profile(3), &small(20.0)).unwrap();
    let good = sequence.clone();
    sequence.thunks[6].waits.clear();
    let error = verify_streams(&sequence).unwrap_err();
    assert!(error.message().contains("must wait for an event that stream"), "{error}");
    sequence = good.clone();
    sequence.forks.clear();
    assert!(verify_streams(&sequence).unwrap_err().message().contains("work before the program"));
    sequence = good;
    sequence.thunks[0].waits = vec![ThunkId(6)];
    let error = verify_streams(&sequence).unwrap_err();
    assert_eq!(error.message(), "thunk t0 (%k0): it waits for t6, which does not precede it in the same sequence");
}

#[test]
fn a_picture_has_a_row_for_each_stream_and_an_arrow_for_each_wait() {
    let mut sequence = branches();
    sequence.thunks[0].name = "a<b&c".to_string();
    let report = assign_streams(&mut sequence, &profile(3), &small(20.0)).unwrap();
    let svg = report.svg();
    let count = |what: &str| svg.matches(what).count();
    assert_eq!((count(">stream "), count("<title>")), (3, 7));
    assert_eq!(count("class=\"arrow\""), report.sequences[0].waits());
    assert!(svg.contains("a&lt;b&amp;c") && !svg.contains("a<b"));
    assert!(svg.contains("prefers-color-scheme: dark"));
}

#[test]
fn large_programs_are_quick() {
    let mut random = 7u64;
    let mut next = |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % below
    };
    let mut place = || slice(0, 64 * next(500), 64);
    let mut sequence = sequence((0..20_000).map(|i| kernel(i, &[place(), place()], &[place()])).collect());
    let report = assign_streams(&mut sequence, &profile(4), &small(10.0)).unwrap();
    assert!(report.seconds < 0.4 * report.seconds_on_one_stream);
    // Invisible details are not drawn.
    assert!(report.svg().len() < 4_000_000);
}
