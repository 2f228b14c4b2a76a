//! Helpers of the levels: memory with known bytes, memory in use, threads.

use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use xla_service::{DeviceMemory, Stream, StreamExecutor};

use crate::conformance::case::{Check, Stop, ensure};

/// Returns bytes that depend on their position and the seed.
pub fn pattern(seed: usize, len: usize) -> Vec<u8> {
    (0..len)
        .map(|i| (i.wrapping_mul(31) ^ (i >> 8).wrapping_mul(7)).wrapping_add(seed.wrapping_mul(101)) as u8)
        .collect()
}

/// Returns all bytes of a memory.
pub fn bytes(stream: &dyn Stream, memory: &DeviceMemory) -> xla::Result<Vec<u8>> {
    let mut bytes = vec![0; memory.byte_size()];
    stream.copy_to_host(memory, 0, &mut bytes)?;
    Ok(bytes)
}

/// Returns memory with given bytes.
pub fn filled(executor: &dyn StreamExecutor, stream: &dyn Stream, bytes: &[u8]) -> xla::Result<DeviceMemory> {
    let mut memory = executor.allocate(bytes.len())?;
    stream.copy_to_device(bytes, &mut memory, 0)?;
    Ok(memory)
}

/// Checks that dropped memory is freed, possibly later in stream order.
pub fn settles(executor: &dyn StreamExecutor, before: usize) -> Check {
    let end = Instant::now() + Duration::from_secs(5);
    loop {
        let now = executor.memory_stats().bytes_in_use;
        if now == before {
            return Ok(());
        }
        ensure!(Instant::now() < end, "memory leaks: {now} bytes are in use, {before} were before");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Returns the bytes in use once the number is stable.
pub fn resting(executor: &dyn StreamExecutor) -> usize {
    let mut last = executor.memory_stats().bytes_in_use;
    for _ in 0..1000 {
        std::thread::sleep(Duration::from_millis(3));
        let now = executor.memory_stats().bytes_in_use;
        if now == last {
            break;
        }
        last = now;
    }
    last
}

/// Returns the result of a thread; a panic is a failure.
pub fn joined(thread: ScopedJoinHandle<'_, Check>) -> Check {
    thread.join().unwrap_or_else(|_| Err(Stop::Failed("a thread panicked".to_string())))
}
