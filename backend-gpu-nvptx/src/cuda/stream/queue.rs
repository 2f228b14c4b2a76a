//! Streams and events of the driver: work is executed in order and counted, so that memory can be freed in that order.
#![expect(unsafe_code, reason = "the driver is a C library")]

use std::cell::RefCell;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys::{self, CUevent, CUstream};
use xla_hlo::Result;

use crate::cuda::api::driver::{self as api, CUresult};
use crate::cuda::context::Context;
use crate::cuda::memory::pool::PoolQueue;

/// Stream of the driver. The work that it receives is numbered from 1.
pub(crate) struct Queue {
    context: Arc<Context>,
    raw: CUstream,
    id: u32,
    sent: AtomicU64,
    done: AtomicU64,
    idle_events: Mutex<Vec<RawEvent>>,
}

/// Point in a queue's work, marked by an event.
pub(crate) struct QueueMark {
    queue: Arc<Queue>,
    number: u64,
    /// Present until dropped.
    event: Option<RawEvent>,
}

struct RawEvent(CUevent);

// SAFETY: the driver accepts calls from any thread with any of its handles.
unsafe impl Send for RawEvent {}
// SAFETY: as above.
unsafe impl Sync for RawEvent {}
// SAFETY: as above; everything else in it is safe to share.
unsafe impl Send for Queue {}
// SAFETY: as above.
unsafe impl Sync for Queue {}

thread_local! {
    /// Place in the program that the calling thread's work belongs to, for errors.
    static PLACE: RefCell<Arc<str>> = RefCell::new("platform gpu".into());
}

/// Sets the place that owns the work which the calling thread sends from now on, to any queue.
pub(crate) fn annotate(place: &str) {
    PLACE.set(place.into());
}

impl Queue {
    /// `cuStreamCreate`: creates a stream that does not synchronise with others, including the default one. `id` is
    /// unique within the context.
    pub fn new(context: &Arc<Context>, id: u32) -> Result<Queue> {
        let mut raw = std::ptr::null_mut();
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: the pointer is to a live pointer.
        context.call("cuStreamCreate", || unsafe { api::cuStreamCreate(&mut raw, flags) })?;
        let [sent, done] = [AtomicU64::new(0), AtomicU64::new(0)];
        Ok(Queue { context: context.clone(), raw, id, sent, done, idle_events: Mutex::default() })
    }

    /// Returns the context of the queue.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Sends work: `work` makes the driver call named `name` with the stream that it receives. The call must not wait
    /// for the device.
    pub fn send(&self, name: &str, work: impl FnOnce(CUstream) -> CUresult) -> Result<()> {
        self.sending(|| self.context.call(name, || work(self.raw)))
    }

    /// Sends work by a library call.
    pub fn send_to_library(&self, work: impl FnOnce(CUstream) -> Result<()>) -> Result<()> {
        self.sending(|| self.context.with(|| work(self.raw))?)
    }

    /// Captures the work that `work` sends between `begin` and `end`, both of which receive the stream. `end` is always
    /// called; the error of `work` takes precedence.
    pub fn end_capture<T>(
        &self,
        begin: impl FnOnce(CUstream) -> Result<()>,
        work: impl FnOnce() -> Result<()>,
        end: impl FnOnce(CUstream) -> Result<T>,
    ) -> Result<T> {
        begin(self.raw)?;
        let worked = work();
        let ended = end(self.raw);
        // In errors, captured work is not in flight. For memory, it counts until the stream is next synchronised.
        self.context.in_flight().completed(self.id);
        worked.and(ended)
    }

    fn sending(&self, work: impl FnOnce() -> Result<()>) -> Result<()> {
        PLACE.with_borrow(|place| self.context.in_flight().sent(self.id, place));
        work()?;
        // Counted once it is in the stream: all work up to a number that is read has reached the stream.
        self.sent.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// `cuMemcpyDtoDAsync`: copies device memory; the ranges must not overlap.
    pub fn copy(&self, from: u64, to: u64, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the driver returns an error for addresses outside of device memory.
        self.send("cuMemcpyDtoDAsync", |stream| unsafe { api::cuMemcpyDtoDAsync_v2(to, from, bytes, stream) })
    }

    /// `cuMemsetD8Async`: fills device memory with zeros.
    pub fn zero(&self, to: u64, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the driver returns an error for addresses outside of device memory.
        self.send("cuMemsetD8Async", |stream| unsafe { api::cuMemsetD8Async(to, 0, bytes, stream) })
    }

    /// `cuEventRecord`: marks the end of all work sent so far.
    pub fn mark(self: &Arc<Self>) -> Result<QueueMark> {
        let mut event = self.idle_events().pop().map_or_else(|| self.new_event(), Ok)?;
        let number = self.sent.load(Ordering::Acquire);
        let raw = &mut event.0;
        // SAFETY: both handles are alive and of this context.
        self.context.call("cuEventRecord", || unsafe { api::cuEventRecord(*raw, self.raw) })?;
        Ok(QueueMark { queue: self.clone(), number, event: Some(event) })
    }

    /// `cuStreamWaitEvent`: makes later work wait for a mark of any queue of this device.
    pub fn wait_for(&self, mark: &QueueMark) -> Result<()> {
        match &mark.event {
            // Work of one stream is in order anyway.
            Some(RawEvent(event)) if !mark.queue.is(self) && !mark.queue.is_done(mark.number) => {
                // SAFETY: both handles are alive. The driver uses the event's last record at the time of the call, not
                // later ones.
                self.context.call("cuStreamWaitEvent", || unsafe { api::cuStreamWaitEvent(self.raw, *event, 0) })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Makes later work wait for work of other queues.
    pub fn wait_for_work(&self, work: &[(Arc<Queue>, u64)]) -> Result<()> {
        let mut open = work.iter().filter(|(queue, number)| !queue.is(self) && !queue.is_done(*number));
        open.try_for_each(|(queue, _)| self.wait_for(&queue.mark()?))
    }

    /// `cuStreamSynchronize`: waits until all work sent so far is done.
    pub fn synchronize(&self) -> Result<()> {
        let number = self.sent.load(Ordering::Acquire);
        // SAFETY: the stream is alive.
        self.context.call("cuStreamSynchronize", || unsafe { api::cuStreamSynchronize(self.raw) })?;
        self.settle(number);
        Ok(())
    }

    /// Records that all work up to `number` is done.
    fn settle(&self, number: u64) {
        self.done.fetch_max(number, Ordering::AcqRel);
        if number == self.sent.load(Ordering::Acquire) {
            self.context.in_flight().completed(self.id);
        }
    }

    fn new_event(&self) -> Result<RawEvent> {
        let mut raw = std::ptr::null_mut();
        let flags = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
        // SAFETY: the pointer is to a live pointer.
        self.context.call("cuEventCreate", || unsafe { api::cuEventCreate(&mut raw, flags) })?;
        Ok(RawEvent(raw))
    }

    fn idle_events(&self) -> std::sync::MutexGuard<'_, Vec<RawEvent>> {
        self.idle_events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PoolQueue for Arc<Queue> {
    fn sent(&self) -> u64 {
        self.sent.load(Ordering::Acquire)
    }

    fn is_done(&self, number: u64) -> bool {
        Queue::is_done(self, number)
    }

    fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(self, other)
    }
}

impl Queue {
    /// Whether both are one queue. Ids are unique only among the queues of one platform object.
    fn is(&self, other: &Queue) -> bool {
        std::ptr::eq(self, other)
    }

    /// Whether the work up to `number` is known to be done.
    fn is_done(&self, number: u64) -> bool {
        self.done.load(Ordering::Acquire) >= number
    }
}

impl QueueMark {
    /// `cuEventQuery`: returns whether all work before the mark is done.
    pub fn is_reached(&self) -> Result<bool> {
        let Some(RawEvent(event)) = &self.event else { return Ok(true) };
        // SAFETY: the event is alive.
        let status = self.queue.context.query("cuEventQuery", || unsafe { api::cuEventQuery(*event) })?;
        match status {
            CUresult::CUDA_SUCCESS => self.queue.settle(self.number),
            CUresult::CUDA_ERROR_NOT_READY => return Ok(false),
            status => crate::cuda::driver::check("cuEventQuery", status)?,
        }
        Ok(true)
    }

    /// `cuEventSynchronize`: waits until all work before the mark is done.
    pub fn wait(&self) -> Result<()> {
        let Some(RawEvent(event)) = &self.event else { return Ok(()) };
        // SAFETY: the event is alive.
        self.queue.context.call("cuEventSynchronize", || unsafe { api::cuEventSynchronize(*event) })?;
        self.queue.settle(self.number);
        Ok(())
    }

    /// Returns the queue whose work is marked.
    pub fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }
}

impl Drop for QueueMark {
    /// Makes the event available for reuse: waits on it already refer to this record.
    fn drop(&mut self) {
        self.queue.idle_events().extend(self.event.take());
    }
}

impl Drop for Queue {
    /// Waits for its work. Errors mean that the device is lost, which every later call reports, too.
    fn drop(&mut self) {
        let _ = self.synchronize();
        for RawEvent(event) in std::mem::take(&mut *self.idle_events()) {
            // SAFETY: the event is alive, and destroyed once.
            let _ = self.context.call("cuEventDestroy", || unsafe { api::cuEventDestroy_v2(event) });
        }
        // SAFETY: the stream is alive, and destroyed once.
        let _ = self.context.call("cuStreamDestroy", || unsafe { api::cuStreamDestroy_v2(self.raw) });
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Queue({} of GPU {})", self.id, self.context.ordinal())
    }
}

impl fmt::Debug for QueueMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mark({} of {:?})", self.number, self.queue)
    }
}
