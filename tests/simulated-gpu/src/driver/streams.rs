//! Streams and events, and the scheduling of their work.

use super::handle::{DriverResult, Handle, misuse};
use super::objects::{Event, Graph, Stream};
use super::work::{Gate, HostBytes, StreamWork};
use super::{DEFAULT_STREAM, Driver, Status};

/// Maximum length of a queue; at the limit its first work is executed.
const LONGEST_QUEUE: usize = 512;

/// Every query of an event with a multiple of this number executes work.
const QUERIES_FOR_A_STEP: u64 = 16;

impl Driver {
    pub fn create_stream(&mut self) -> Handle {
        let handle = self.fresh();
        self.streams.insert(handle, Stream::default());
        handle
    }

    /// Destroys a stream after all its work, which is executed at once.
    pub fn destroy_stream(&mut self, handle: Handle) -> DriverResult {
        if handle == DEFAULT_STREAM {
            return misuse("cuStreamDestroy of the default stream", Status::INVALID_HANDLE);
        }
        let until = self.stream(handle)?.sent();
        self.finish(handle, until)?;
        self.streams.remove(&handle);
        Ok(())
    }

    fn stream(&mut self, handle: Handle) -> DriverResult<&mut Stream> {
        match self.streams.get_mut(&handle) {
            Some(stream) => Ok(stream),
            None => misuse("a stream is used that does not exist, or not any more", Status::INVALID_HANDLE),
        }
    }

    fn event(&self, handle: Handle) -> DriverResult<Event> {
        match self.events.get(&handle) {
            Some(event) => Ok(*event),
            None => misuse("an event is used that does not exist, or not any more", Status::INVALID_HANDLE),
        }
    }

    pub fn create_event(&mut self, keeps_time: bool) -> Handle {
        let handle = self.fresh();
        self.events.insert(handle, Event { keeps_time, ..Event::default() });
        handle
    }

    pub fn destroy_event(&mut self, handle: Handle) -> DriverResult {
        self.event(handle)?;
        self.events.remove(&handle);
        Ok(())
    }

    pub fn record_event(&mut self, event: Handle, stream: Handle) -> DriverResult {
        let Event { keeps_time, .. } = self.event(event)?;
        let found = self.stream(stream)?;
        if found.capture.is_some() {
            return misuse("an event is recorded in a stream that is captured", Status::STREAM_CAPTURE_UNSUPPORTED);
        }
        // Writing the time is separate work, which precedes the event.
        let at = Some((stream, found.sent() + u64::from(keeps_time)));
        self.events.insert(event, Event { at, keeps_time, time: None });
        if keeps_time { self.send(stream, StreamWork::Stamp { event }) } else { Ok(()) }
    }

    /// `cuEventElapsedTime`: returns the milliseconds between two events.
    pub fn elapsed(&self, from: Handle, to: Handle) -> DriverResult<f32> {
        let time = |handle| {
            let event = self.event(handle)?;
            match (event.keeps_time, event.at, event.time) {
                (false, ..) => misuse("the time of an event that keeps none is asked for", Status::INVALID_HANDLE),
                (true, None, _) => {
                    misuse("the time of an event is asked for that was never recorded", Status::INVALID_HANDLE)
                }
                (true, Some(_), None) => Err(Status::NOT_READY),
                (true, Some(_), Some(time)) => Ok(time as f64),
            }
        };
        Ok(((time(to)? - time(from)?) / 1e6) as f32)
    }

    /// `cuEventQuery`: whether the work before an event is done. The query may execute some of it.
    pub fn is_reached(&mut self, event: Handle) -> DriverResult<bool> {
        let Some((stream, until)) = self.event(event)?.at else { return Ok(true) };
        // A program may wait by queries alone, so some of them make progress with every seed.
        self.queries += 1;
        if self.device.random.below(3) == 2 || self.queries.is_multiple_of(QUERIES_FOR_A_STEP) {
            self.advance(stream)?;
        }
        Ok(self.streams.get(&stream).is_none_or(|stream| stream.done >= until))
    }

    pub fn wait_for_event(&mut self, event: Handle) -> DriverResult {
        match self.event(event)?.at {
            Some((stream, until)) => self.finish(stream, until),
            None => Ok(()),
        }
    }

    pub fn stream_waits(&mut self, stream: Handle, event: Handle) -> DriverResult {
        let event = self.event(event)?;
        let found = self.stream(stream)?;
        if found.capture.is_some() {
            return misuse("a stream that is captured waits for an event", Status::STREAM_CAPTURE_UNSUPPORTED);
        }
        match event.at {
            Some((other, until)) if other != stream => self.send(stream, StreamWork::Wait { stream: other, until }),
            _ => Ok(()),
        }
    }

    pub fn synchronize(&mut self, stream: Handle) -> DriverResult {
        let found = self.stream(stream)?;
        if found.capture.is_some() {
            return misuse("cuStreamSynchronize of a stream that is captured", Status::STREAM_CAPTURE_UNSUPPORTED);
        }
        let until = found.sent();
        self.finish(stream, until)
    }

    /// `cuStreamQuery`: whether all work of a stream is done.
    pub fn is_idle(&mut self, stream: Handle) -> DriverResult<bool> {
        self.stream(stream).map(|stream| stream.queue.is_empty())
    }

    pub fn synchronize_all(&mut self) -> DriverResult {
        if self.streams.values().any(|stream| stream.capture.is_some()) {
            return misuse("a context is waited for while a stream is captured", Status::STREAM_CAPTURE_UNSUPPORTED);
        }
        let streams: Vec<(Handle, u64)> =
            self.streams.iter().map(|(handle, stream)| (*handle, stream.sent())).collect();
        streams.into_iter().try_for_each(|(handle, until)| self.finish(handle, until))
    }

    /// Submits work to a stream's queue, or to the graph that captures the stream.
    pub fn send(&mut self, handle: Handle, work: StreamWork) -> DriverResult {
        let stream = self.stream(handle)?;
        if let Some((graph, last)) = &mut stream.capture {
            *last = Some(graph.add(work, last.iter().copied().collect()));
            return Ok(());
        }
        stream.queue.push_back(work);
        if stream.queue.len() > LONGEST_QUEUE {
            self.advance(handle)?;
        }
        if self.device.random.below(8) >= 5 {
            self.step_anywhere()?;
        }
        Ok(())
    }

    /// Executes work until a stream has executed a given number of commands; other streams may advance as well.
    /// [`Status::BLOCKED`] if the next work waits for another device.
    fn finish(&mut self, handle: Handle, until: u64) -> DriverResult {
        while self.streams.get(&handle).is_some_and(|stream| stream.done < until) {
            if self.device.random.below(4) == 3 {
                self.step_anywhere()?;
            }
            self.step(handle)?;
        }
        self.alive()
    }

    fn step_anywhere(&mut self) -> DriverResult {
        let busy: Vec<Handle> =
            self.streams.iter().filter(|(_, stream)| !stream.queue.is_empty()).map(|(handle, _)| *handle).collect();
        if busy.is_empty() {
            return Ok(());
        }
        let chosen = busy[self.device.random.below(busy.len())];
        self.advance(chosen)
    }

    /// Executes the first work of a stream like [`Driver::step`], unless it waits for another device.
    fn advance(&mut self, handle: Handle) -> DriverResult {
        match self.step(handle) {
            Err(Status::BLOCKED) => Ok(()),
            done => done,
        }
    }

    /// Executes the first work of each stream, unless it waits for another device.
    pub fn advance_all(&mut self) -> DriverResult {
        let busy = |(handle, stream): (&Handle, &Stream)| (!stream.queue.is_empty()).then_some(*handle);
        let busy: Vec<Handle> = self.streams.iter().filter_map(busy).collect();
        busy.into_iter().try_for_each(|handle| self.advance(handle))
    }

    /// Whether a stream of this device has this handle.
    pub fn has_stream(&self, handle: Handle) -> bool {
        self.streams.contains_key(&handle)
    }

    /// Sends a gate to a stream, which must not be captured.
    pub fn send_gate(&mut self, handle: Handle, gate: Gate) -> DriverResult {
        if self.stream(handle)?.capture.is_some() {
            let message = "work of several devices is sent to a stream that is captured";
            return misuse(message, Status::STREAM_CAPTURE_UNSUPPORTED);
        }
        self.send(handle, StreamWork::Gate(gate))
    }

    /// Executes the first work of a stream, or work that it depends on. [`Status::BLOCKED`] if it waits for another
    /// device.
    fn step(&mut self, handle: Handle) -> DriverResult {
        self.alive()?;
        // A wait depends only on work submitted before it, so this loop terminates.
        let mut handle = handle;
        loop {
            let Some(stream) = self.streams.get_mut(&handle) else { return Ok(()) };
            match stream.queue.front() {
                Some(StreamWork::Wait { stream: other, until }) => {
                    let (other, until) = (*other, *until);
                    if self.streams.get(&other).is_some_and(|stream| stream.done < until) {
                        handle = other;
                        continue;
                    }
                }
                Some(StreamWork::Gate(Gate(is_open))) if !is_open() => return Err(Status::BLOCKED),
                Some(_) => {}
                None => return Ok(()),
            }
            break;
        }
        let Some(stream) = self.streams.get_mut(&handle) else { return Ok(()) };
        let Some(work) = stream.queue.pop_front() else { return Ok(()) };
        stream.done += 1;
        if let StreamWork::Stamp { event } = work {
            let here = Some((handle, stream.done));
            // If the event was recorded again in the meantime, only its new position sets the time.
            if let Some(event) = self.events.get_mut(&event).filter(|event| event.at == here) {
                event.time = Some(self.device.now());
            }
        }
        self.device.perform(&work).map_err(|(status, why)| self.lose(status, &why))
    }

    /// Submits a copy from the host. Pageable memory is read immediately.
    pub fn upload(
        &mut self,
        to: u64,
        from: usize,
        bytes: usize,
        stream: Handle,
        staged: impl FnOnce() -> Vec<u8>,
    ) -> DriverResult {
        self.check_range("cuMemcpyHtoDAsync", to, bytes)?;
        let from = match self.device.pinned.find(from, bytes).is_some() {
            true => HostBytes::Pinned(from, bytes),
            false if self.stream(stream)?.capture.is_some() => {
                let message = "a copy from memory that is not pinned is sent to a stream that is captured";
                return misuse(message, Status::STREAM_CAPTURE_UNSUPPORTED);
            }
            false => HostBytes::Staged(staged().into()),
        };
        self.send(stream, StreamWork::Upload { from, to })
    }

    /// Submits a copy to the host. For pageable memory it is executed immediately: the returned bytes must be stored at
    /// `to`.
    pub fn download(&mut self, from: u64, to: usize, bytes: usize, stream: Handle) -> DriverResult<Option<Vec<u8>>> {
        self.check_range("cuMemcpyDtoHAsync", from, bytes)?;
        if self.device.pinned.find(to, bytes).is_some() {
            return self.send(stream, StreamWork::Download { from, to, bytes }).map(|()| None);
        }
        self.synchronize(stream)?;
        match self.device.memory.read(from, bytes) {
            Ok(bytes) => Ok(Some(bytes.to_vec())),
            Err(problem) => Err(self.lose(Status::LAUNCH_FAILED, &problem.message)),
        }
    }

    pub fn copy(&mut self, from: u64, to: u64, bytes: usize, stream: Handle) -> DriverResult {
        self.check_range("cuMemcpyDtoDAsync", from, bytes)?;
        self.check_range("cuMemcpyDtoDAsync", to, bytes)?;
        self.send(stream, StreamWork::Copy { from, to, bytes })
    }

    pub fn fill(&mut self, to: u64, value: u32, size: usize, count: usize, stream: Handle) -> DriverResult {
        self.check_range("cuMemsetAsync", to, size.saturating_mul(count))?;
        self.send(stream, StreamWork::Fill { to, value, size, count })
    }

    pub fn begin_capture(&mut self, stream: Handle) -> DriverResult {
        if stream == DEFAULT_STREAM {
            return misuse("the default stream is captured", Status::STREAM_CAPTURE_UNSUPPORTED);
        }
        let found = self.stream(stream)?;
        if found.capture.is_some() {
            return misuse("a stream is captured that is being captured", Status::STREAM_CAPTURE_INVALIDATED);
        }
        found.capture = Some((Graph::default(), None));
        Ok(())
    }

    pub fn end_capture(&mut self, stream: Handle) -> DriverResult<Handle> {
        match self.stream(stream)?.capture.take() {
            Some((graph, _)) => Ok(self.keep_graph(graph)),
            None => misuse("the capture of a stream ends that is not captured", Status::INVALID_VALUE),
        }
    }
}
