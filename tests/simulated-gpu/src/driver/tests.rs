//! Tests of events with timing, and of the dynamic shared memory of launches.

use super::handle::Handle;
use super::{DEFAULT_STREAM, Driver, LaunchShape, Options, Status, StreamWork};

/// Kernel whose threads count loop iterations and store the count in their elements.
const COUNT: &str = "\
.version 7.8
.target sm_90
.address_size 64

.visible .entry count(.param .u64 into, .param .u64 turns)
{
	.reg .b32 %r<3>;
	.reg .b64 %rd<7>;
	.reg .pred %p<2>;
	ld.param.u64 %rd1, [into];
	ld.param.u64 %rd2, [turns];
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %rd3, %r1, 4;
	add.s64 %rd4, %rd1, %rd3;
	mov.u32 %r2, 0;
LOOP:
	add.s32 %r2, %r2, 1;
	add.s64 %rd2, %rd2, -1;
	setp.ne.s64 %p1, %rd2, 0;
	@%p1 bra LOOP;
	st.global.u32 [%rd4], %r2;
	ret;
}
";

fn driver(seed: u64) -> (Driver, Handle, u64) {
    let mut driver = Driver::new(Options { seed, ..Options::default() });
    let module = driver.load_module(COUNT).unwrap();
    let function = driver.function(module, "count").unwrap();
    let memory = driver.allocate(32 * 4).unwrap();
    (driver, function, memory)
}

fn parameters(memory: u64, turns: u64) -> Vec<u8> {
    [memory.to_le_bytes(), turns.to_le_bytes()].concat()
}

const SHAPE: LaunchShape = LaunchShape { grid: [1, 1, 1], block: [32, 1, 1], shared: 0 };

/// Number of instructions of all threads of a launch; `setp` is executed as two.
const fn steps(turns: u64) -> u64 {
    32 * (8 + 5 * turns)
}

#[test]
fn the_same_work_takes_the_same_time_however_it_is_sent() {
    for seed in 0..8 {
        let (mut driver, function, memory) = driver(seed);
        let stream = driver.create_stream();
        let call = driver.call(function, SHAPE, parameters(memory, 5)).unwrap();
        let graph = driver.create_graph();
        for _ in 0..4 {
            driver.add_work(graph, StreamWork::Kernel(call.clone()), &[]).unwrap();
        }
        let graph = driver.instantiate(graph).unwrap();
        let [begin, once, all] = [(); 3].map(|()| driver.create_event(true));
        driver.record_event(begin, stream).unwrap();
        driver.launch(function, SHAPE, parameters(memory, 5), stream).unwrap();
        driver.record_event(once, stream).unwrap();
        driver.launch_graph(graph, stream).unwrap();
        driver.record_event(all, stream).unwrap();
        driver.wait_for_event(all).unwrap();
        let nanoseconds = |from, to| (driver.elapsed(from, to).unwrap() * 1e6).round() as u64;
        assert_eq!(nanoseconds(begin, once), steps(5), "seed {seed}");
        assert_eq!(nanoseconds(once, all), 4 * steps(5), "seed {seed}");
        assert_eq!(driver.elapsed(all, begin), Ok(-driver.elapsed(begin, all).unwrap()));
    }
}

#[test]
fn events_without_a_time_are_told_apart() {
    let (mut driver, function, memory) = driver(0);
    let [begin, end, never] = [(); 3].map(|()| driver.create_event(true));
    let without = driver.create_event(false);
    driver.record_event(begin, DEFAULT_STREAM).unwrap();
    driver.record_event(without, DEFAULT_STREAM).unwrap();
    driver.launch(function, SHAPE, parameters(memory, 1), DEFAULT_STREAM).unwrap();
    driver.record_event(end, DEFAULT_STREAM).unwrap();
    assert_eq!(driver.elapsed(begin, end), Err(Status::NOT_READY));
    driver.wait_for_event(end).unwrap();
    assert!(driver.elapsed(begin, end).unwrap() > 0.0);
    for other in [without, never, 12345] {
        assert_eq!(driver.elapsed(begin, other), Err(Status::INVALID_HANDLE));
    }
    // An event that is recorded again has no time until it is reached again.
    driver.record_event(end, DEFAULT_STREAM).unwrap();
    assert_eq!(driver.elapsed(begin, end), Err(Status::NOT_READY));
}

/// Kernel that stores the last word of its dynamic shared memory, which follows 16 bytes of static shared memory.
const SHARED: &str = "\
.version 8.0
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 more[];
.visible .entry last(.param .u64 into)
{
	.reg .b32 %r<3>;
	.reg .b64 %rd<5>;
	.shared .align 8 .b8 own[16];
	ld.param.u64 %rd1, [into];
	mov.u32 %r1, %dynamic_smem_size;
	cvt.u64.u32 %rd2, %r1;
	mov.b64 %rd3, more;
	and.b64 %rd4, %rd3, 1023;
	st.global.b64 [%rd1], %rd4;
	add.s64 %rd3, %rd3, %rd2;
	st.shared.u32 [%rd3+-4], %r1;
	ld.shared.u32 %r2, [%rd3+-4];
	st.global.u32 [%rd1], %r2;
	ret;
}
";

#[test]
fn more_shared_memory_is_asked_for() {
    const MOST: usize = (227 << 10) - 1024;
    let mut driver = Driver::new(Options::default());
    let module = driver.load_module(SHARED).unwrap();
    let function = driver.function(module, "last").unwrap();
    let memory = driver.allocate(8).unwrap();
    let launch = |driver: &mut Driver, shared: usize| {
        let shape = LaunchShape { block: [1, 1, 1], shared, ..SHAPE };
        driver.launch(function, shape, memory.to_le_bytes().to_vec(), DEFAULT_STREAM)
    };
    assert_eq!(launch(&mut driver, (48 << 10) - 1024), Ok(()));
    assert_eq!(launch(&mut driver, 48 << 10), Err(Status::INVALID_VALUE));
    assert_eq!(driver.set_function_attribute(function, 8, MOST as i32 + 1), Err(Status::INVALID_VALUE));
    assert_eq!(driver.set_function_attribute(function, 8, MOST as i32), Ok(()));
    assert_eq!(launch(&mut driver, MOST), Ok(()));
    driver.synchronize(DEFAULT_STREAM).unwrap();
    let found = driver.device.memory.read(memory, 8).unwrap();
    assert_eq!(found, (MOST as u64).to_le_bytes(), "aligned memory, all of it");
    assert_eq!(launch(&mut driver, MOST + 1), Err(Status::INVALID_VALUE));
}
