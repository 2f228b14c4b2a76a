//! Staging of copies between host and device through reused pinned buffers.
#![expect(unsafe_code, reason = "the driver is a C library")]

use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::sys;
use xla_hlo::{Error, Result};

use crate::cuda::api::driver as api;
use crate::cuda::context::Context;
use crate::cuda::stream::queue::{Queue, QueueMark};

/// Sizes of buffers in bytes, and their maximum numbers. Scalars and small arrays are frequent; a few chunks of large
/// arrays keep the bus busy. The driver takes a few microseconds for a copy, in which the bus transfers some hundred
/// kilobytes.
const CLASSES: [(usize, usize); 2] = [(64 << 10, 64), (4 << 20, 8)];

/// Number of chunks in flight in a copy to the host (double buffering): the device copies one while the host copies the
/// other.
const CHUNKS_IN_FLIGHT: usize = 2;

/// Pinned buffers of one context.
#[derive(Debug)]
pub(crate) struct Staging {
    context: Arc<Context>,
    classes: [Mutex<SizeClass>; CLASSES.len()],
}

/// Buffers of one size.
#[derive(Debug, Default)]
struct SizeClass {
    /// Number of buffers, including those in use.
    made: usize,
    /// Buffers in the order of their last use, with the mark after it.
    waiting: VecDeque<(PinnedBuffer, Option<QueueMark>)>,
}

impl Staging {
    /// Creates the state without buffers.
    pub fn new(context: &Arc<Context>) -> Staging {
        Staging { context: context.clone(), classes: Default::default() }
    }

    /// `cuMemcpyHtoDAsync`: copies `source` to device memory at `to`. The caller may reuse `source` when this returns;
    /// the copy may still be in flight.
    pub fn upload(&self, queue: &Arc<Queue>, source: &[u8], to: u64) -> Result<()> {
        let class = class_of(source.len());
        let mut to = to;
        for part in source.chunks(CLASSES[class].0) {
            let mut buffer = self.take(class)?;
            buffer.bytes_mut()[..part.len()].copy_from_slice(part);
            let from = buffer.start.as_ptr().cast();
            let sent = queue.send("cuMemcpyHtoDAsync", |stream| {
                // SAFETY: the buffer has that many bytes, and no code writes or frees it until the mark after the copy
                // is reached.
                unsafe { api::cuMemcpyHtoDAsync_v2(to, from, part.len(), stream) }
            });
            self.put_behind(class, buffer, queue, sent)?;
            to += part.len() as u64;
        }
        Ok(())
    }

    /// `cuMemcpyDtoHAsync`: copies device memory at `from` to `target`, after all work sent before, and waits for the
    /// copy.
    pub fn download(&self, queue: &Arc<Queue>, from: u64, target: &mut [u8]) -> Result<()> {
        let class = class_of(target.len());
        let mut under_way = VecDeque::new();
        let mut from = from;
        for part in target.chunks_mut(CLASSES[class].0) {
            if under_way.len() == CHUNKS_IN_FLIGHT {
                self.finish(class, &mut under_way)?;
            }
            let buffer = self.take(class)?;
            let (bytes, to) = (part.len(), buffer.start.as_ptr().cast());
            let sent = queue.send("cuMemcpyDtoHAsync", |stream| {
                // SAFETY: the buffer has that many bytes, and no code accesses or frees it until the mark after the
                // copy is reached.
                unsafe { api::cuMemcpyDtoHAsync_v2(to, from, bytes, stream) }
            });
            let mark = self.mark_behind(class, buffer, queue, sent)?;
            under_way.push_back((mark, part));
            from += bytes as u64;
        }
        while !under_way.is_empty() {
            self.finish(class, &mut under_way)?;
        }
        Ok(())
    }

    /// Waits for the first of the copies, and copies its bytes to the target.
    fn finish(&self, class: usize, under_way: &mut VecDeque<(InFlightCopy<'_>, &mut [u8])>) -> Result<()> {
        let Some((flight, part)) = under_way.pop_front() else { return Ok(()) };
        let buffer = flight.land()?;
        part.copy_from_slice(&buffer.bytes()[..part.len()]);
        self.class(class).waiting.push_front((buffer, None));
        Ok(())
    }

    /// Makes a buffer available again after the work just sent, which uses it.
    fn put_behind(&self, class: usize, buffer: PinnedBuffer, queue: &Arc<Queue>, sent: Result<()>) -> Result<()> {
        // Dropping the copy in flight returns its buffer.
        self.mark_behind(class, buffer, queue, sent).map(drop)
    }

    /// Marks the end of the work just sent, which uses a buffer.
    fn mark_behind(
        &self,
        class: usize,
        buffer: PinnedBuffer,
        queue: &Arc<Queue>,
        sent: Result<()>,
    ) -> Result<InFlightCopy<'_>> {
        let mark = sent.and_then(|()| queue.mark());
        let mark = mark.inspect_err(|_| {
            // Without a mark, it is unknown when the buffer is free. Waiting fails only if the device is lost, and then
            // nothing is freed: see the drop of `PinnedBuffer`.
            let _ = queue.synchronize();
            self.class(class).made -= 1;
        })?;
        Ok(InFlightCopy { staging: self, class, content: Some((buffer, mark)) })
    }

    /// Takes a buffer that no work uses: an idle one, a new one, or the least recently used one once it is idle.
    fn take(&self, class: usize) -> Result<PinnedBuffer> {
        let (size, most) = CLASSES[class];
        let mut buffers = self.class(class);
        let first_is_idle = match buffers.waiting.front() {
            Some((_, Some(mark))) => mark.is_reached()?,
            Some((_, None)) => true,
            None => false,
        };
        if !first_is_idle && buffers.made < most {
            buffers.made += 1;
            drop(buffers);
            return PinnedBuffer::new(&self.context, size).inspect_err(|_| self.class(class).made -= 1);
        }
        match buffers.waiting.pop_front() {
            Some((buffer, mark)) => {
                drop(buffers);
                mark.map_or(Ok(()), |mark| mark.wait())?;
                Ok(buffer)
            }
            // Other threads hold all buffers: allocate one more, which is kept.
            None => {
                buffers.made += 1;
                drop(buffers);
                PinnedBuffer::new(&self.context, size).inspect_err(|_| self.class(class).made -= 1)
            }
        }
    }

    fn class(&self, class: usize) -> MutexGuard<'_, SizeClass> {
        // Nothing panics while the lock is held.
        self.classes[class].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the smallest class whose buffers fit a copy of this size, or the largest class if none does.
fn class_of(bytes: usize) -> usize {
    CLASSES.iter().position(|(size, _)| bytes <= *size).unwrap_or(CLASSES.len() - 1)
}

/// Buffer that a copy in flight uses. Dropping it makes the buffer available, with its mark.
struct InFlightCopy<'a> {
    staging: &'a Staging,
    class: usize,
    /// Present until dropped or landed.
    content: Option<(PinnedBuffer, QueueMark)>,
}

impl InFlightCopy<'_> {
    /// Waits for the copy, and returns the buffer.
    fn land(mut self) -> Result<PinnedBuffer> {
        if let Some((_, mark)) = &self.content {
            mark.wait()?;
        }
        self.content
            .take()
            .map(|(buffer, _)| buffer)
            .ok_or_else(|| Error::internal("a staging copy has already returned its buffer"))
    }
}

impl Drop for InFlightCopy<'_> {
    fn drop(&mut self) {
        if let Some((buffer, mark)) = self.content.take() {
            self.staging.class(self.class).waiting.push_back((buffer, Some(mark)));
        }
    }
}

/// Pinned (page-locked) host memory, which the device reads and writes directly. [`Staging`] provides it while no work
/// uses it.
#[derive(Debug)]
struct PinnedBuffer {
    context: Arc<Context>,
    start: NonNull<u8>,
    size: usize,
}

// SAFETY: it is plain memory, owned by this value.
unsafe impl Send for PinnedBuffer {}
// SAFETY: shared access only reads.
unsafe impl Sync for PinnedBuffer {}

impl PinnedBuffer {
    /// `cuMemHostAlloc`: allocates `size` zeroed bytes; at least one.
    fn new(context: &Arc<Context>, size: usize) -> Result<PinnedBuffer> {
        let mut start = std::ptr::null_mut();
        let flags = sys::CU_MEMHOSTALLOC_PORTABLE;
        // SAFETY: the pointer is to a live pointer.
        context.call("cuMemHostAlloc", || unsafe { api::cuMemHostAlloc(&mut start, size, flags) })?;
        let start = NonNull::new(start.cast::<u8>());
        let start = start.ok_or_else(|| Error::internal("cuMemHostAlloc returned no address"))?;
        // SAFETY: the memory has that many bytes and no other owner. From here on all of them are initialised.
        unsafe { start.as_ptr().write_bytes(0, size) };
        Ok(PinnedBuffer { context: context.clone(), start, size })
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: that many bytes are initialised; the buffer was handed out when no work used it, or has landed.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.size) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and it is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.size) }
    }
}

impl Drop for PinnedBuffer {
    fn drop(&mut self) {
        // SAFETY: the memory came from cuMemHostAlloc and is freed once; work that used it is done, or the device is
        // lost, in which case the call is not made and the memory is leaked.
        let _ = self.context.call("cuMemFreeHost", || unsafe { api::cuMemFreeHost(self.start.as_ptr().cast()) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_take_the_smallest_buffers_that_suffice() {
        assert_eq!([0, 1, 65_536, 65_537, 4 << 20, (4 << 20) + 1, usize::MAX].map(class_of), [0, 0, 0, 1, 1, 1, 1]);
    }
}
