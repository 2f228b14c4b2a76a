//! Host executor: pooled memory, and streams that execute each call immediately on the calling thread.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use xla_hlo::{Error, Result};

use super::external_memory::ExternalMemory;
use super::machine::machine;
use super::memory::MEMORY_ALIGNMENT;
use super::pool::{HostMemory, MemoryPool, PoolLimits};
use crate::executor::{DeviceDescription, DeviceMemory, Event, MemoryStats, Stream, StreamExecutor, Timing};

/// Cache size assumed for timing, in bytes: at least the caches of most processors; large servers have more.
const CACHE_BYTES: usize = 64 << 20;

/// Memory and cores of the host as one device. Its memory type is [`HostMemory`].
#[derive(Debug)]
pub struct HostExecutor {
    description: DeviceDescription,
    pool: MemoryPool,
}

impl HostExecutor {
    /// Maximum number of devices that a host may be split into.
    pub const MOST_DEVICES: usize = 4096;

    /// Creates device `ordinal` of a host platform, with its own memory pool.
    pub fn new(platform: &str, ordinal: usize, limits: PoolLimits) -> HostExecutor {
        let machine = machine();
        let description = DeviceDescription {
            platform: platform.to_string(),
            ordinal,
            model: machine.processor.clone(),
            cores: machine.cores,
            memory_bytes: machine.memory_bytes,
            memory_alignment: MEMORY_ALIGNMENT,
            attributes: Vec::new(),
        };
        HostExecutor { description, pool: MemoryPool::new(limits) }
    }

    /// Returns this device and further virtual devices of the same host, which share its memory pool: `count` in total,
    /// or only this one. [`Error::InvalidArgument`] for more than [`HostExecutor::MOST_DEVICES`].
    pub fn devices(self: &Arc<Self>, count: Option<usize>) -> Result<Vec<Arc<dyn StreamExecutor>>> {
        let (count, most) = (count.unwrap_or(1), HostExecutor::MOST_DEVICES);
        if count > most {
            return Err(Error::invalid_argument(format!("the host platform has at most {most} devices, not {count}")));
        }
        let device = |ordinal| -> Arc<dyn StreamExecutor> {
            if ordinal == self.description.ordinal { self.clone() } else { Arc::new(self.device(ordinal)) }
        };
        Ok((0..count).map(device).collect())
    }

    /// Returns another virtual device of the same host, which shares the memory pool.
    pub fn device(&self, ordinal: usize) -> HostExecutor {
        let description = DeviceDescription { ordinal, ..self.description.clone() };
        HostExecutor { description, pool: self.pool.clone() }
    }

    /// Adds an attribute to the device's description.
    #[must_use]
    pub fn with_attribute(mut self, name: impl Into<String>, value: impl Into<String>) -> HostExecutor {
        self.description.attributes.push((name.into(), value.into()));
        self
    }

    /// Replaces the memory pool by a [dirty](MemoryPool::dirty) one, for tests.
    #[must_use]
    pub fn with_dirty_memory(mut self, limits: PoolLimits) -> HostExecutor {
        self.pool = MemoryPool::dirty(limits);
        self
    }

    /// Returns the memory pool.
    pub fn pool(&self) -> &MemoryPool {
        &self.pool
    }
}

impl StreamExecutor for HostExecutor {
    fn description(&self) -> &DeviceDescription {
        &self.description
    }

    fn allocate(&self, bytes: usize) -> Result<DeviceMemory> {
        Ok(DeviceMemory::new(self.pool.allocate(bytes)?))
    }

    fn memory_stats(&self) -> MemoryStats {
        self.pool.stats()
    }

    fn create_stream(&self) -> Result<Box<dyn Stream>> {
        Ok(Box::new(HostStream))
    }

    fn timing(&self) -> Option<&dyn Timing> {
        Some(self)
    }

    fn adopt(&self, memory: ExternalMemory) -> Result<DeviceMemory, ExternalMemory> {
        if !memory.bytes().as_ptr().addr().is_multiple_of(MEMORY_ALIGNMENT) {
            return Err(memory);
        }
        Ok(DeviceMemory::new(HostMemory::outside(memory)))
    }
}

/// The device clock is the host clock.
impl Timing for HostExecutor {
    fn cache_bytes(&self) -> usize {
        CACHE_BYTES
    }

    fn time(&self, _: &dyn Stream, send: &mut dyn FnMut() -> Result<()>) -> Result<Duration> {
        let begin = Instant::now();
        send()?;
        Ok(begin.elapsed())
    }
}

/// Synchronous stream: each call completes its work before it returns.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostStream;

impl Stream for HostStream {
    fn copy_to_device(&self, source: &[u8], target: &mut DeviceMemory, offset: usize) -> Result<()> {
        part_mut(target.downcast_mut::<HostMemory>()?, offset, source.len())?.copy_from_slice(source);
        Ok(())
    }

    fn copy_to_host(&self, source: &DeviceMemory, offset: usize, target: &mut [u8]) -> Result<()> {
        target.copy_from_slice(part(source.downcast::<HostMemory>()?, offset, target.len())?);
        Ok(())
    }

    fn copy(&self, source: &DeviceMemory, range: Range<usize>, target: &mut DeviceMemory, offset: usize) -> Result<()> {
        let source = part(source.downcast::<HostMemory>()?, range.start, range.len())?;
        self.copy_to_device(source, target, offset)
    }

    fn copy_within(&self, memory: &mut DeviceMemory, range: Range<usize>, offset: usize) -> Result<()> {
        let memory = memory.downcast_mut::<HostMemory>()?;
        part(memory, range.start, range.len())?;
        part(memory, offset, range.len())?;
        memory.bytes_mut().copy_within(range, offset);
        Ok(())
    }

    fn record_event(&self) -> Result<Event> {
        Ok(Event::reached())
    }

    fn wait_for(&self, event: &Event) -> Result<()> {
        event.wait()
    }

    fn synchronize(&self) -> Result<()> {
        Ok(())
    }
}

pub(super) fn part(memory: &HostMemory, offset: usize, len: usize) -> Result<&[u8]> {
    let bytes = memory.bytes();
    let end = offset.checked_add(len);
    end.and_then(|end| bytes.get(offset..end)).ok_or_else(|| out_of_range(bytes.len(), offset, len))
}

pub(super) fn part_mut(memory: &mut HostMemory, offset: usize, len: usize) -> Result<&mut [u8]> {
    let bytes = memory.bytes_mut();
    let (size, end) = (bytes.len(), offset.checked_add(len));
    end.and_then(|end| bytes.get_mut(offset..end)).ok_or_else(|| out_of_range(size, offset, len))
}

fn out_of_range(size: usize, offset: usize, len: usize) -> Error {
    Error::internal(format!("{len} bytes at offset {offset} are not inside a memory of {size} bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn executor() -> HostExecutor {
        HostExecutor::new("test", 0, PoolLimits { in_use: Some(1 << 20), retained: 1 << 20 })
    }

    #[test]
    fn copies_go_where_they_should() {
        let device = executor();
        let stream = device.create_stream().unwrap();
        let mut a = device.allocate(16).unwrap();
        let mut b = device.allocate(16).unwrap();
        stream.copy_to_device(&[0; 16], &mut b, 0).unwrap();
        stream.copy_to_device(&(0..16).collect::<Vec<u8>>(), &mut a, 0).unwrap();
        stream.copy(&a, 4..8, &mut b, 10).unwrap();
        stream.copy_within(&mut a, 0..8, 2).unwrap();
        let (mut x, mut y) = ([0; 16], [0; 6]);
        stream.copy_to_host(&a, 0, &mut x).unwrap();
        stream.copy_to_host(&b, 9, &mut y).unwrap();
        assert_eq!(x, [0, 1, 0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 14, 15]);
        assert_eq!(y, [0, 4, 5, 6, 7, 0]);
    }

    #[test]
    fn ranges_outside_are_errors() {
        let device = executor();
        let stream = device.create_stream().unwrap();
        let mut a = device.allocate(16).unwrap();
        assert!(stream.copy_to_device(&[0; 8], &mut a, 9).is_err());
        assert!(stream.copy_to_host(&a, usize::MAX, &mut [0; 2]).is_err());
        assert!(stream.copy_within(&mut a, 0..8, 9).is_err());
        assert!(stream.copy_within(&mut a, 12..20, 0).is_err());
    }

    #[test]
    fn foreign_memory_is_refused() {
        #[derive(Debug)]
        struct Elsewhere;
        impl crate::executor::Allocation for Elsewhere {
            fn byte_size(&self) -> usize {
                16
            }
        }
        let stream = executor().create_stream().unwrap();
        let mut foreign = DeviceMemory::new(Elsewhere);
        let error = stream.copy_to_device(&[1], &mut foreign, 0).unwrap_err();
        assert!(matches!(error, Error::InvalidArgument(_)), "{error}");
        assert!(stream.copy_to_host(&foreign, 0, &mut [0]).is_err());
    }
}
