//! Tests of the pool on simulated memory, with a race detector that checks its ordering guarantees.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use proptest::prelude::*;

use super::*;

/// Device of limited memory. Chunks have consecutive addresses, so that they are adjacent.
#[derive(Clone)]
struct Device {
    room: Arc<AtomicUsize>,
    next: Arc<AtomicU64>,
}

/// Queue: the numbers of the last work sent and done.
#[derive(Clone)]
struct TestLane(Arc<(AtomicU64, AtomicU64)>);

impl ChunkSource for Device {
    type PoolQueue = TestLane;

    fn take(&self, bytes: usize) -> Result<Option<u64>> {
        let room = self.room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |room| room.checked_sub(bytes));
        Ok(room.ok().map(|_| self.next.fetch_add(bytes as u64, Ordering::Relaxed)))
    }

    fn give_back(&self, _: u64) {}
}

impl TestLane {
    fn new() -> TestLane {
        TestLane(Arc::default())
    }

    fn send(&self) -> u64 {
        self.0.0.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn finish(&self) {
        self.finish_to(self.sent());
    }

    fn finish_to(&self, number: u64) {
        self.0.1.fetch_max(number, Ordering::Relaxed);
    }
}

impl PoolQueue for TestLane {
    fn sent(&self) -> u64 {
        self.0.0.load(Ordering::Relaxed)
    }

    fn is_done(&self, number: u64) -> bool {
        self.0.1.load(Ordering::Relaxed) >= number
    }

    fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

fn pool(room: usize, limit: usize) -> Pool<Device> {
    Pool::new(Device { room: Arc::new(room.into()), next: Arc::new((1 << 40).into()) }, limit)
}

fn waits(work: &PendingWork<TestLane>) -> Vec<u64> {
    work.iter().map(|(_, number)| *number).collect()
}

#[test]
fn pieces_are_cut_from_chunks_and_become_one_again() {
    let pool = pool(1 << 30, 1 << 30);
    let lane = TestLane::new();
    let [a, b, c] = [1000, 0, 5000].map(|size| pool.allocate(size).unwrap());
    let address = |piece: &PoolBlock<_>| piece.enter(&lane).0;
    assert_eq!([address(&b) - address(&a), address(&c) - address(&b)], [1024, 256]);
    assert_eq!((a.size(), b.size()), (1000, 0));
    let stats = pool.stats();
    assert_eq!((stats.bytes_in_use, stats.bytes_pooled), (1024 + 256 + 5120, SMALLEST_CHUNK - 6400));
    assert_eq!((stats.allocations, stats.pool_hits), (3, 2));
    let first = address(&a);
    drop(a);
    drop(c);
    drop(b);
    let all = pool.allocate(SMALLEST_CHUNK).unwrap();
    assert_eq!((address(&all), pool.stats().pool_hits), (first, 3));
    assert_eq!(pool.stats().bytes_pooled, 0);
}

#[test]
fn the_smallest_piece_that_suffices_is_taken() {
    let pool = pool(1 << 30, 1 << 30);
    let lane = TestLane::new();
    let pieces = [4096, 256, 1024, 256, 2048, 256].map(|size| Some(pool.allocate(size).unwrap()));
    let addresses = pieces.each_ref().map(|piece| piece.as_ref().unwrap().enter(&lane).0);
    let mut pieces = pieces;
    [0, 2, 4].into_iter().for_each(|i| pieces[i] = None);
    assert_eq!(pool.allocate(1025).unwrap().enter(&lane).0, addresses[4]);
    assert_eq!(pool.allocate(1024).unwrap().enter(&lane).0, addresses[2]);
    assert_eq!(pool.allocate(4096).unwrap().enter(&lane).0, addresses[0]);
}

#[test]
fn memory_is_given_back_in_the_order_of_work() {
    let pool = pool(1 << 30, 1 << 30);
    let [one, two, three] = [(); 3].map(|()| TestLane::new());
    let a = pool.allocate(SMALLEST_CHUNK).unwrap();
    let (address, work) = a.enter(&one);
    assert!(work.is_empty());
    one.send();
    drop(a);
    // The same queue need not wait. Another one must wait once, unless the work is known to be done.
    let b = pool.allocate(SMALLEST_CHUNK).unwrap();
    assert_eq!(b.enter(&one).0, address);
    assert!(b.enter(&one).1.is_empty());
    assert_eq!(waits(&b.enter(&two).1), [1]);
    assert!(b.enter(&two).1.is_empty());
    two.send();
    two.send();
    drop(b);
    let c = pool.allocate(SMALLEST_CHUNK).unwrap();
    drop(c);
    let d = pool.allocate(SMALLEST_CHUNK).unwrap();
    assert_eq!(waits(&d.enter(&three).1), [1, 2], "what nobody used meanwhile keeps the work before it");
    drop(d);
    [&one, &two, &three].into_iter().for_each(TestLane::finish);
    assert!(pool.allocate(SMALLEST_CHUNK).unwrap().enter(&two).1.is_empty());
}

#[test]
fn limits_hold_and_are_told() {
    let pool = pool(64 << 20, 40 << 20);
    let error = pool.allocate(41 << 20).unwrap_err();
    assert!(matches!(error, Error::ResourceExhausted(_)));
    assert_eq!(
        error.message(),
        "GPU memory for 42991616 more bytes is not available: 0 are in use, the limit is 41943040"
    );
    assert!(pool.allocate(usize::MAX).is_err());
    assert!(pool.allocate(usize::MAX - 100).is_err());
    let most = pool.allocate(40 << 20).unwrap();
    assert!(pool.allocate(0).is_err());
    drop(most);
    assert_eq!(pool.stats().bytes_pooled, 40 << 20);
    pool.trim();
    assert_eq!(pool.stats().bytes_pooled, 0);
}

#[test]
fn a_full_device_gives_what_is_needed_and_takes_back_what_is_free() {
    let pool = pool(40 << 20, 1 << 40);
    let small = pool.allocate(1).unwrap();
    // The device has 8 MiB left: less than the minimum size of a chunk, but enough.
    let next = pool.allocate(SMALLEST_CHUNK - 100).unwrap_err();
    assert!(matches!(next, Error::ResourceExhausted(_)));
    let other = pool.allocate(SMALLEST_CHUNK - 256).unwrap();
    let third = pool.allocate(7 << 20).unwrap();
    assert_eq!(pool.stats().bytes_pooled, 1 << 20);
    drop((small, other, third));
}

#[test]
fn many_threads_share_a_pool() {
    let pool = pool(1 << 34, 1 << 34);
    std::thread::scope(|scope| {
        for thread in 0..4usize {
            let pool = &pool;
            scope.spawn(move || {
                let lane = TestLane::new();
                for i in 0..500usize {
                    let piece = pool.allocate((i * 7919 + thread) % 100_000).unwrap();
                    piece.enter(&lane);
                    lane.send();
                }
            });
        }
    });
    let stats = pool.stats();
    assert_eq!((stats.bytes_in_use, stats.allocations), (0, 2000));
    check(&pool, &[]);
}

#[derive(Clone, Debug)]
enum Command {
    Allocate(usize),
    Drop(usize),
    Use(usize, usize),
    Finish(usize),
    Trim,
}

fn steps() -> impl Strategy<Value = Vec<Command>> {
    let step = prop_oneof![
        3 => prop_oneof![0usize..2000, 0usize..(40 << 20)].prop_map(Command::Allocate),
        3 => any::<usize>().prop_map(Command::Drop),
        6 => (any::<usize>(), 0usize..3).prop_map(|(piece, lane)| Command::Use(piece, lane)),
        1 => (0usize..3).prop_map(Command::Finish),
        1 => Just(Command::Trim),
    ];
    prop::collection::vec(step, 1..80)
}

/// Work of the model: its lane, its number there, its piece and the address range.
struct Done {
    lane: usize,
    number: u64,
    piece: usize,
    range: (u64, u64),
}

/// Model of the order of work.
#[derive(Default)]
struct Model {
    /// For each lane and each of its numbers: the last preceding number of each lane.
    clocks: [Vec<[u64; 3]>; 3],
    /// Work of each lane that the next work of a lane must follow.
    next: [[u64; 3]; 3],
    done: Vec<Done>,
}

impl Model {
    fn wait(&mut self, lane: usize, other: usize, number: u64) {
        let behind = self.clocks[other].get(number as usize - 1).copied().unwrap_or_default();
        for (own, behind) in self.next[lane].iter_mut().zip(behind) {
            *own = behind.max(*own);
        }
        self.next[lane][other] = self.next[lane][other].max(number);
    }

    fn work(&mut self, done: Done, lanes: &[TestLane]) {
        let race = self.done.iter().find(|old| {
            let apart = old.range.1 <= done.range.0 || done.range.1 <= old.range.0;
            let ordered = old.lane == done.lane || self.next[done.lane][old.lane] >= old.number;
            old.piece != done.piece && !apart && !ordered && !lanes[old.lane].is_done(old.number)
        });
        assert!(race.is_none(), "lane {} overtakes work on what was there before", done.lane);
        self.next[done.lane][done.lane] = done.number;
        self.clocks[done.lane].push(self.next[done.lane]);
        self.done.push(done);
    }
}

proptest! {
    #[test]
    fn pieces_never_overlap_and_new_ones_come_behind_old_ones(steps in steps()) {
        let pool = pool(256 << 20, 1 << 40);
        let lanes = [(); 3].map(|()| TestLane::new());
        let mut pieces: Vec<(usize, PoolBlock<Device>)> = Vec::new();
        let mut model = Model::default();
        for (number, step) in steps.iter().enumerate() {
            match *step {
                Command::Allocate(size) => pieces.extend(pool.allocate(size).ok().map(|piece| (number, piece))),
                Command::Drop(index) if !pieces.is_empty() => drop(pieces.swap_remove(index % pieces.len())),
                Command::Use(index, lane) if !pieces.is_empty() => {
                    let (id, piece) = &pieces[index % pieces.len()];
                    let (address, work) = piece.enter(&lanes[lane]);
                    for (other, number) in &work {
                        let other = lanes.iter().position(|l| l.is_same(other)).unwrap();
                        model.wait(lane, other, *number);
                    }
                    let range = (address, address + piece.size() as u64);
                    model.work(Done { lane, number: lanes[lane].send(), piece: *id, range }, &lanes);
                }
                // Lanes that it waited for are then done, too.
                Command::Finish(lane) => {
                    lanes.iter().zip(model.next[lane]).for_each(|(lane, number)| lane.finish_to(number));
                }
                Command::Trim => pool.trim(),
                Command::Drop(_) | Command::Use(..) => {}
            }
            check(&pool, &pieces);
        }
        drop(pieces);
        check(&pool, &[]);
    }
}

/// Checks that pieces and free blocks tile the chunks, and that the statistics match.
fn check(pool: &Pool<Device>, pieces: &[(usize, PoolBlock<Device>)]) {
    let state = pool.state();
    let mut tiles: Vec<(u64, usize, bool)> = state.free.iter().map(|(at, free)| (*at, free.bytes, true)).collect();
    tiles.extend(pieces.iter().map(|(_, piece)| (piece.address, piece.reserved, false)));
    tiles.sort();
    let by_size: BTreeSet<_> = state.free.iter().map(|(at, free)| (free.bytes, *at)).collect();
    assert_eq!(by_size, state.by_size);
    let mut tiles = tiles.into_iter();
    for (&start, &bytes) in &state.chunks {
        let (mut at, mut was_free) = (start, false);
        while at < start + bytes as u64 {
            let (tile, size, free) = tiles.next().expect("a chunk has a hole");
            assert_eq!(tile, at);
            assert!(!(free && was_free), "neighbours are free and not one");
            (at, was_free) = (tile + size as u64, free);
        }
        assert_eq!(at, start + bytes as u64, "a piece reaches over its chunk's end");
    }
    assert!(tiles.next().is_none());
    assert_eq!(state.stats.bytes_in_use, pieces.iter().map(|(_, piece)| piece.reserved).sum::<usize>());
}
