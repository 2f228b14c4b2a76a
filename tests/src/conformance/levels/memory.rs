//! Level 1: device memory can be allocated in every size, is not shared, is counted, and its exhaustion is an error.

use xla::Error;
use xla_service::host::HostMemory;

use super::support::{bytes, filled, joined, pattern, settles};
use crate::conformance::case::{Case, Check, Level, Subject, ensure};

/// Sizes around powers of two, where errors in rounding up occur.
const SIZES: &[usize] = &[0, 1, 2, 3, 7, 8, 31, 63, 64, 65, 255, 256, 257, 4095, 4096, 4097, 100_003, 1 << 20];

pub fn cases() -> Vec<Case> {
    let case = |name: &str, work: fn(&Subject) -> Check| Case::new(Level::Device, format!("memory/{name}"), work);
    vec![
        case("zero-bytes", zero_bytes),
        case("sizes", sizes),
        case("alignment", alignment),
        case("not-shared", not_shared),
        case("accounting", accounting).alone(),
        case("exhausted", exhausted).alone(),
        case("many-threads", many_threads).alone(),
    ]
}

fn zero_bytes(subject: &Subject) -> Check {
    let executor = subject.executor()?;
    let stream = executor.create_stream()?;
    let (mut a, mut b) = (executor.allocate(0)?, executor.allocate(0)?);
    ensure!(a.byte_size() == 0, "no bytes were asked for, {} were given", a.byte_size());
    stream.copy_to_device(&[], &mut a, 0)?;
    stream.copy(&a, 0..0, &mut b, 0)?;
    stream.copy_within(&mut a, 0..0, 0)?;
    stream.copy_to_host(&b, 0, &mut [])?;
    Ok(stream.synchronize()?)
}

fn sizes(subject: &Subject) -> Check {
    let executor = subject.executor()?;
    let stream = executor.create_stream()?;
    for &size in SIZES {
        let wanted = pattern(size, size);
        let memory = filled(&*executor, &*stream, &wanted)?;
        ensure!(memory.byte_size() == size, "{size} bytes were asked for, byte_size() is {}", memory.byte_size());
        ensure!(bytes(&*stream, &memory)? == wanted, "{size} bytes come back as others");
    }
    Ok(())
}

/// Checks alignment; only host memory exposes its address.
fn alignment(subject: &Subject) -> Check {
    let executor = subject.executor()?;
    let alignment = executor.description().memory_alignment;
    let memories = SIZES.iter().map(|&size| executor.allocate(size)).collect::<xla::Result<Vec<_>>>()?;
    for memory in &memories {
        if let Ok(host) = memory.downcast::<HostMemory>() {
            let address = host.as_ptr() as usize;
            ensure!(address.is_multiple_of(alignment), "{address:#x} is not a multiple of {alignment}");
        }
    }
    Ok(())
}

fn not_shared(subject: &Subject) -> Check {
    let executor = subject.executor()?;
    let stream = executor.create_stream()?;
    let fill = |(seed, &size): (usize, &usize)| {
        let wanted = pattern(seed, size);
        Ok((filled(&*executor, &*stream, &wanted)?, wanted))
    };
    let twice = SIZES.iter().chain(SIZES).enumerate();
    let all = twice.map(fill).collect::<xla::Result<Vec<_>>>()?;
    for (memory, wanted) in &all {
        ensure!(bytes(&*stream, memory)? == *wanted, "{} bytes were overwritten by other memory", wanted.len());
    }
    Ok(())
}

fn accounting(subject: &Subject) -> Check {
    let executor = subject.executor()?;
    let before = executor.memory_stats();
    let total: usize = SIZES.iter().sum();
    for iteration in 0..3 {
        let memories = SIZES.iter().map(|&size| executor.allocate(size)).collect::<xla::Result<Vec<_>>>()?;
        let during = executor.memory_stats();
        let grown = during.bytes_in_use.saturating_sub(before.bytes_in_use);
        ensure!(grown >= total, "iteration {iteration}: {total} bytes are live, the device counts {grown}");
        ensure!(during.peak_bytes_in_use >= during.bytes_in_use, "the peak is lower than what is in use: {during:?}");
        drop(memories);
        settles(&*executor, before.bytes_in_use)?;
    }
    let after = executor.memory_stats();
    let allocations = after.allocations.saturating_sub(before.allocations);
    ensure!(allocations == 3 * SIZES.len() as u64, "{} allocations, {allocations} counted", 3 * SIZES.len());
    ensure!(after.peak_bytes_in_use >= before.peak_bytes_in_use, "the peak went down");
    Ok(())
}

fn exhausted(subject: &Subject) -> Check {
    let executor = subject.executor()?;
    let before = executor.memory_stats();
    let over = before.bytes_limit.and_then(|limit| limit.checked_add(1));
    for size in [usize::MAX, usize::MAX - 63, isize::MAX as usize, 1 << 60].into_iter().chain(over) {
        match executor.allocate(size) {
            Ok(_) => ensure!(false, "{size} bytes were given"),
            Err(Error::ResourceExhausted(detail)) => {
                let message = detail.to_string();
                ensure!(
                    message.contains(&size.to_string()),
                    "the error does not tell how much was asked for: {message}"
                );
            }
            Err(error) => ensure!(false, "{size} bytes must be ResourceExhausted: {error:?}"),
        }
    }
    settles(&*executor, before.bytes_in_use)?;
    let stream = executor.create_stream()?;
    let wanted = pattern(1, 1000);
    let memory = filled(&*executor, &*stream, &wanted)?;
    ensure!(bytes(&*stream, &memory)? == wanted, "after that, memory does not work");
    Ok(())
}

fn many_threads(subject: &Subject) -> Check {
    let executor = subject.executor()?;
    let before = executor.memory_stats().bytes_in_use;
    let work = |thread: usize| -> Check {
        let stream = executor.create_stream()?;
        let mut kept = Vec::new();
        for i in 0..100 {
            let wanted = pattern(thread * 1000 + i, (i * 37 + thread * 131) % 3000);
            kept.push((filled(&*executor, &*stream, &wanted)?, wanted));
            if i % 3 == 2 {
                let (memory, wanted) = kept.swap_remove(i % kept.len());
                ensure!(bytes(&*stream, &memory)? == wanted, "memory of thread {thread} holds other bytes");
            }
        }
        for (memory, wanted) in &kept {
            ensure!(bytes(&*stream, memory)? == *wanted, "memory of thread {thread} holds other bytes");
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|thread| scope.spawn(move || work(thread))).collect();
        threads.into_iter().try_for_each(joined)
    })?;
    settles(&*executor, before)
}
