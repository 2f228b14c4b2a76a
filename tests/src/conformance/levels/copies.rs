//! Level 1: copies move the right bytes, and reject ranges out of bounds and memory of other devices.

use std::ops::Range;

use xla::{Error, Result};
use xla_service::executor::Allocation;
use xla_service::{DeviceMemory, Stream};

use super::support::{bytes, filled, pattern};
use crate::conformance::case::{Case, Check, Level, Subject, ensure};

const SIZE: usize = 203;

pub fn cases() -> Vec<Case> {
    let case = |name: &str, work: fn(&Subject) -> Check| Case::new(Level::Device, format!("copies/{name}"), work);
    vec![
        case("parts-to-and-from-host", parts),
        case("ranges", ranges),
        case("overlapping", overlapping),
        case("large", large),
        case("outside", outside),
        case("foreign-memory", foreign),
    ]
}

/// Returns ranges and offsets that fit into `size` bytes: empty, one byte, odd positions, all.
fn places(size: usize) -> impl Iterator<Item = (Range<usize>, usize)> {
    let starts = [0, 1, 3, 64, 65, size / 2, size - 1, size];
    let lengths = [0, 1, 2, 5, 63, 64, size / 2, size];
    starts.into_iter().flat_map(move |start| {
        lengths.into_iter().flat_map(move |length| {
            let fits = start + length <= size;
            starts
                .into_iter()
                .filter(move |offset| fits && offset + length <= size)
                .map(move |o| (start..start + length, o))
        })
    })
}

fn parts(subject: &Subject) -> Check {
    let executor = subject.executor()?;
    let stream = executor.create_stream()?;
    for (range, offset) in places(SIZE) {
        let mut model = pattern(1, SIZE);
        let mut memory = filled(&*executor, &*stream, &model)?;
        let source = pattern(2, range.len());
        stream.copy_to_device(&source, &mut memory, offset)?;
        model[offset..offset + source.len()].copy_from_slice(&source);
        ensure!(bytes(&*stream, &memory)? == model, "{} bytes to offset {offset} went elsewhere", source.len());
        let mut found = vec![0; range.len()];
        stream.copy_to_host(&memory, range.start, &mut found)?;
        ensure!(found == model[range.clone()], "bytes {range:?} come back as others");
    }
    Ok(())
}

fn ranges(subject: &Subject) -> Check {
    let executor = subject.executor()?;
    let stream = executor.create_stream()?;
    let source = pattern(1, SIZE);
    let from = filled(&*executor, &*stream, &source)?;
    for (range, offset) in places(SIZE) {
        let mut model = pattern(2, SIZE);
        let mut to = filled(&*executor, &*stream, &model)?;
        stream.copy(&from, range.clone(), &mut to, offset)?;
        model[offset..offset + range.len()].copy_from_slice(&source[range.clone()]);
        ensure!(bytes(&*stream, &to)? == model, "bytes {range:?} to offset {offset} went elsewhere");
    }
    ensure!(bytes(&*stream, &from)? == source, "a copy wrote to its source");
    Ok(())
}

fn overlapping(subject: &Subject) -> Check {
    let executor = subject.executor()?;
    let stream = executor.create_stream()?;
    for (range, offset) in places(SIZE) {
        let mut model = pattern(3, SIZE);
        let mut memory = filled(&*executor, &*stream, &model)?;
        stream.copy_within(&mut memory, range.clone(), offset)?;
        model.copy_within(range.clone(), offset);
        ensure!(bytes(&*stream, &memory)? == model, "bytes {range:?} to offset {offset} of the same memory are others");
    }
    Ok(())
}

fn large(subject: &Subject) -> Check {
    let executor = subject.executor()?;
    let stream = executor.create_stream()?;
    let wanted = pattern(5, 8 << 20);
    let from = filled(&*executor, &*stream, &wanted)?;
    let mut to = executor.allocate(wanted.len())?;
    stream.copy(&from, 0..wanted.len(), &mut to, 0)?;
    drop(from);
    ensure!(bytes(&*stream, &to)? == wanted, "8 MiB come back as others");
    Ok(())
}

/// Checks that an operation fails immediately or, on an asynchronous stream, at synchronization.
fn refused(stream: &dyn Stream, what: &str, result: Result<()>) -> Check {
    match result.and_then(|()| stream.synchronize()) {
        Err(Error::Internal(_)) => Ok(()),
        Ok(()) => {
            ensure!(false, "{what} is no error");
            Ok(())
        }
        Err(error) => {
            ensure!(false, "{what} must be Internal: {error:?}");
            Ok(())
        }
    }
}

fn outside(subject: &Subject) -> Check {
    let executor = subject.executor()?;
    let (model, other) = (pattern(1, SIZE), pattern(2, SIZE));
    let stream = executor.create_stream()?;
    let (mut a, mut b) = (filled(&*executor, &*stream, &model)?, filled(&*executor, &*stream, &other)?);
    stream.synchronize()?;
    for (offset, length) in
        [(SIZE, 1), (SIZE - 4, 5), (SIZE + 9, 0), (0, SIZE + 1), (usize::MAX, 1), (usize::MAX - 1, 5)]
    {
        // Each operation has its own stream, so that a late error is not attributed to the next operation.
        let tell = |what: &str| format!("{what} {length} bytes at offset {offset} of {SIZE}");
        let stream = executor.create_stream()?;
        let result = stream.copy_to_device(&vec![9; length], &mut a, offset);
        refused(&*stream, &tell("writing"), result)?;
        let stream = executor.create_stream()?;
        let result = stream.copy_to_host(&a, offset, &mut vec![9; length]);
        refused(&*stream, &tell("reading"), result)?;
        let stream = executor.create_stream()?;
        let result = stream.copy(&a, offset..offset.saturating_add(length), &mut b, 0);
        if length > 0 && offset.checked_add(length).is_some() {
            refused(&*stream, &tell("copying"), result)?;
        }
        if length <= SIZE {
            let stream = executor.create_stream()?;
            let result = stream.copy(&a, 0..length, &mut b, offset);
            refused(&*stream, &tell("copying to"), result)?;
            let stream = executor.create_stream()?;
            let result = stream.copy_within(&mut a, 0..length, offset);
            refused(&*stream, &tell("moving to"), result)?;
        }
    }
    let stream = executor.create_stream()?;
    ensure!(bytes(&*stream, &a)? == model && bytes(&*stream, &b)? == other, "a refused copy has written something");
    Ok(())
}

/// Memory of an unknown executor.
#[derive(Debug)]
struct Elsewhere;

impl Allocation for Elsewhere {
    fn byte_size(&self) -> usize {
        16
    }
}

/// Returns memory of another executor type, which the device must reject.
pub fn elsewhere() -> DeviceMemory {
    DeviceMemory::new(Elsewhere)
}

fn foreign(subject: &Subject) -> Check {
    let executor = subject.executor()?;
    let stream = executor.create_stream()?;
    let mut own = filled(&*executor, &*stream, &[7; 16])?;
    let mut foreign = elsewhere();
    let mut host = [0; 4];
    let results = [
        ("copy_to_device", stream.copy_to_device(&[1; 4], &mut foreign, 0)),
        ("copy_to_host", stream.copy_to_host(&foreign, 0, &mut host)),
        ("copy from it", stream.copy(&foreign, 0..4, &mut own, 0)),
        ("copy to it", stream.copy(&own, 0..4, &mut foreign, 0)),
        ("copy_within", stream.copy_within(&mut foreign, 0..4, 8)),
    ];
    for (what, result) in results {
        ensure!(
            matches!(result, Err(Error::InvalidArgument(_))),
            "{what} on memory of another device must be InvalidArgument: {result:?}"
        );
    }
    stream.synchronize()?;
    ensure!(bytes(&*stream, &own)? == [7; 16], "a refused copy has written something");
    Ok(())
}
