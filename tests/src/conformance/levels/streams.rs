//! Level 1: streams execute work in order, wait for each other by events, and accept work from many threads.

use xla_service::{DeviceMemory, Stream, StreamExecutor};

use super::support::{bytes, filled, joined, pattern, settles};
use crate::conformance::case::{Case, Check, Level, Subject, ensure};

const SIZE: usize = 4096;
const ITERATIONS: usize = 40;
const THREADS: usize = 8;

pub fn cases() -> Vec<Case> {
    let case = |name: &str, work: fn(&Subject) -> Check| Case::new(Level::Device, format!("streams/{name}"), work);
    vec![
        case("in-order", in_order),
        case("host-memory-is-free-again", staged),
        case("events", events),
        case("events-across-streams", across),
        case("events-outlive-streams", outlived),
        case("annotate", annotate),
        case("one-stream-many-threads", one_stream),
        case("many-streams", many_streams).alone(),
        case("dropped-memory", dropped_memory).alone(),
        case("dropped-stream", dropped_stream).alone(),
        case("synchronize", synchronize),
    ]
}

/// Each iteration overwrites data that the previous one has copied.
fn in_order(subject: &Subject) -> Check {
    let executor = subject.executor()?;
    let stream = executor.create_stream()?;
    let mut source = executor.allocate(SIZE)?;
    let mut copies = Vec::new();
    for iteration in 0..ITERATIONS {
        stream.copy_to_device(&pattern(iteration, SIZE), &mut source, 0)?;
        let mut copy = executor.allocate(SIZE)?;
        stream.copy(&source, 0..SIZE, &mut copy, 0)?;
        stream.copy_within(&mut source, 0..SIZE / 2, SIZE / 2)?;
        copies.push(copy);
    }
    for (iteration, copy) in copies.iter().enumerate() {
        ensure!(
            bytes(&*stream, copy)? == pattern(iteration, SIZE),
            "iteration {iteration} has the bytes of another one"
        );
    }
    Ok(())
}

fn staged(subject: &Subject) -> Check {
    let executor = subject.executor()?;
    let stream = executor.create_stream()?;
    let mut memories = Vec::new();
    let mut host = Vec::new();
    for iteration in 0..ITERATIONS {
        let mut memory = executor.allocate(SIZE)?;
        host = pattern(iteration, SIZE);
        stream.copy_to_device(&host, &mut memory, 0)?;
        host.fill(0xee);
        memories.push(memory);
    }
    drop(host);
    for (iteration, memory) in memories.iter().enumerate() {
        ensure!(
            bytes(&*stream, memory)? == pattern(iteration, SIZE),
            "a copy from the host was done after it returned"
        );
    }
    Ok(())
}

fn events(subject: &Subject) -> Check {
    let executor = subject.executor()?;
    let stream = executor.create_stream()?;
    let idle = stream.record_event()?;
    idle.wait()?;
    ensure!(idle.is_reached()?, "an event that was waited for is not reached");
    let mut memory = executor.allocate(SIZE)?;
    for iteration in 0..ITERATIONS {
        stream.copy_to_device(&pattern(iteration, SIZE), &mut memory, 0)?;
        let event = stream.record_event()?;
        let again = event.clone();
        again.wait()?;
        ensure!(event.is_reached()?, "a clone was waited for, and the event is not reached");
    }
    stream.wait_for(&idle)?;
    Ok(stream.synchronize()?)
}

fn across(subject: &Subject) -> Check {
    let executor = subject.executor()?;
    let (first, second) = (executor.create_stream()?, executor.create_stream()?);
    let mut shared = executor.allocate(SIZE)?;
    let mut copies = Vec::new();
    for iteration in 0..ITERATIONS {
        first.copy_to_device(&pattern(iteration, SIZE), &mut shared, 0)?;
        second.wait_for(&first.record_event()?)?;
        let mut copy = executor.allocate(SIZE)?;
        second.copy(&shared, 0..SIZE, &mut copy, 0)?;
        // The next iteration must not write before this one has read.
        first.wait_for(&second.record_event()?)?;
        copies.push(copy);
    }
    for (iteration, copy) in copies.iter().enumerate() {
        ensure!(
            bytes(&*second, copy)? == pattern(iteration, SIZE),
            "iteration {iteration} read before, or after, its time"
        );
    }
    Ok(())
}

fn outlived(subject: &Subject) -> Check {
    let executor = subject.executor()?;
    let mut memory = executor.allocate(SIZE)?;
    let stream = executor.create_stream()?;
    stream.copy_to_device(&pattern(4, SIZE), &mut memory, 0)?;
    let event = stream.record_event()?;
    drop(stream);
    event.wait()?;
    let other = executor.create_stream()?;
    other.wait_for(&event)?;
    ensure!(bytes(&*other, &memory)? == pattern(4, SIZE), "what a dropped stream did is not there");
    Ok(())
}

fn annotate(subject: &Subject) -> Check {
    let executor = subject.executor()?;
    let stream = executor.create_stream()?;
    stream.annotate(&|| "platform none, thunk t0 (%nothing)".to_string());
    let memory = filled(&*executor, &*stream, &pattern(1, SIZE))?;
    ensure!(bytes(&*stream, &memory)? == pattern(1, SIZE), "a stream with a note does other work");
    Ok(stream.synchronize()?)
}

/// Runs work of a thread with its own memory.
fn busy(executor: &dyn StreamExecutor, stream: &dyn Stream, thread: usize) -> Check {
    let (mut a, mut b) = (executor.allocate(SIZE)?, executor.allocate(SIZE)?);
    for iteration in 0..ITERATIONS {
        let wanted = pattern(thread * 1000 + iteration, SIZE);
        stream.copy_to_device(&wanted, &mut a, 0)?;
        stream.copy(&a, 0..SIZE, &mut b, 0)?;
        stream.record_event()?.wait()?;
        ensure!(bytes(stream, &b)? == wanted, "thread {thread}, iteration {iteration}: bytes of somebody else");
    }
    Ok(())
}

fn one_stream(subject: &Subject) -> Check {
    let executor = subject.executor()?;
    let stream = executor.create_stream()?;
    std::thread::scope(|scope| {
        let work = |thread| busy(&*executor, &*stream, thread);
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || work(thread))).collect();
        threads.into_iter().try_for_each(joined)
    })
}

fn many_streams(subject: &Subject) -> Check {
    let executor = subject.executor()?;
    let before = executor.memory_stats().bytes_in_use;
    std::thread::scope(|scope| {
        let work = |thread| busy(&*executor, &*executor.create_stream()?, thread);
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || work(thread))).collect();
        threads.into_iter().try_for_each(joined)
    })?;
    settles(&*executor, before)
}

/// Drops memory while a long queue of copies still uses it; it must not be reused before they are done.
fn dropped_memory(subject: &Subject) -> Check {
    let executor = subject.executor()?;
    let stream = executor.create_stream()?;
    let before = executor.memory_stats().bytes_in_use;
    let large = 1 << 20;
    for iteration in 0..4 {
        let wanted = pattern(iteration, large);
        let mut last = filled(&*executor, &*stream, &wanted)?;
        for _ in 0..8 {
            let mut next = executor.allocate(large)?;
            stream.copy(&last, 0..large, &mut next, 0)?;
            last = next;
        }
        // This allocation may reuse freed memory, on a stream that waits for nothing.
        let other = executor.create_stream()?;
        let fresh = filled(&*executor, &*other, &pattern(iteration + 77, large))?;
        ensure!(bytes(&*stream, &last)? == wanted, "memory went to somebody else while work was queued");
        ensure!(
            bytes(&*other, &fresh)? == pattern(iteration + 77, large),
            "queued work wrote to memory that was given back"
        );
    }
    stream.synchronize()?;
    settles(&*executor, before)
}

fn dropped_stream(subject: &Subject) -> Check {
    let executor = subject.executor()?;
    let before = executor.memory_stats().bytes_in_use;
    for iteration in 0..ITERATIONS {
        let stream = executor.create_stream()?;
        let from = filled(&*executor, &*stream, &pattern(iteration, SIZE))?;
        let mut to: DeviceMemory = executor.allocate(SIZE)?;
        stream.copy(&from, 0..SIZE, &mut to, 0)?;
        drop(stream);
    }
    settles(&*executor, before)
}

fn synchronize(subject: &Subject) -> Check {
    let executor = subject.executor()?;
    let stream = executor.create_stream()?;
    stream.synchronize()?;
    let memory = filled(&*executor, &*stream, &pattern(1, SIZE))?;
    stream.synchronize()?;
    stream.synchronize()?;
    // All work is done, so another stream need not wait.
    let other = executor.create_stream()?;
    ensure!(bytes(&*other, &memory)? == pattern(1, SIZE), "synchronize() returned before the work was done");
    Ok(())
}
