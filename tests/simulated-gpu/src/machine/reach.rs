//! Memory accesses of a thread: loads, stores and atomics in every state space.

use super::access::{Party, Who};
use super::memory::Memory;
use super::pending::Copies;
use super::store::{Store, StoreError, Watched};
use super::{LOCAL_WINDOW, PARAMETER_WINDOW, SHARED_WINDOW};
use crate::code::{Kernel, MemoryOperand, Slots};
use crate::finding::{Class, Problem};
use crate::ptx::Space;

/// Error of an access, with the other access if it is a race.
pub(super) type InvalidAccess = (Problem, Option<(u64, u64)>);

/// Racing or uninitialised read, and its instruction. It is reported only if the thread later has effects that may
/// depend on it: compilers hoist loads above a test and discard the value if the test fails.
pub(super) type Doubt = Box<(InvalidAccess, usize)>;

/// Memory that a thread can access.
pub(super) struct Reach<'b> {
    pub memory: &'b mut Memory,
    pub shared: &'b mut Store,
    pub local: &'b mut Store,
    pub parameters: &'b [u8],
    pub kernel: &'b Kernel,
    /// Accessor of global memory.
    pub who: Who<'b>,
    /// Accessor of shared memory.
    pub here: Who<'b>,
    /// Pending copies.
    pub copies: &'b mut Copies,
    /// First read that may be an error.
    pub doubt: Option<Doubt>,
    /// Index of the current instruction.
    pub at: usize,
}

impl Reach<'_> {
    #[inline]
    pub fn load(&mut self, place: &MemoryOperand, into: Slots, registers: &mut [u64]) -> Result<(), InvalidAccess> {
        let (size, count) = (usize::from(place.bytes), into.count as usize);
        let address = registers[place.base as usize].wrapping_add(place.offset as i64 as u64);
        if place.space == Space::Param {
            return self.load_parameter(address as usize, place, into, registers);
        }
        if place.space == Space::Generic
            && let (Space::Param, at) = resolved(address)
        {
            return self.load_parameter(at as usize, place, into, registers);
        }
        let kernel = self.kernel;
        let mut doubt = None;
        let (store, start, watched) = self.locate(place, address, size * count)?;
        for (element, &slot) in kernel.list(into).iter().enumerate() {
            let at = start + element * size;
            let value = store.load(at, size, place.is_strong, watched).unwrap_or_else(|wrong| {
                doubt = Some(wrong);
                store.peek(at, size)
            });
            registers[slot as usize] = extended(value, place);
        }
        if let Some(wrong) = doubt {
            let at = self.at;
            self.doubt.get_or_insert_with(|| Box::new((described(wrong, place, address, size, "reads"), at)));
        }
        Ok(())
    }

    fn load_parameter(
        &self,
        at: usize,
        place: &MemoryOperand,
        into: Slots,
        registers: &mut [u64],
    ) -> Result<(), InvalidAccess> {
        let size = usize::from(place.bytes);
        for (element, &slot) in self.kernel.list(into).iter().enumerate() {
            let start = at + element * size;
            let Some(bytes) = self.parameters.get(start..start + size) else {
                let message = format!("{size} bytes at {start} are outside of the kernel's parameters");
                return Err((Problem::new(Class::Bounds, message), None));
            };
            let value = bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
            registers[slot as usize] = extended(value, place);
        }
        Ok(())
    }

    #[inline]
    pub fn store(&mut self, place: &MemoryOperand, from: Slots, registers: &[u64]) -> Result<(), InvalidAccess> {
        let (size, count) = (usize::from(place.bytes), from.count as usize);
        let address = registers[place.base as usize].wrapping_add(place.offset as i64 as u64);
        let kernel = self.kernel;
        let (store, start, watched) = self.locate(place, address, size * count)?;
        for (element, &slot) in kernel.list(from).iter().enumerate() {
            let stored = store.store(start + element * size, size, registers[slot as usize], place.is_strong, watched);
            stored.map_err(|wrong| described(wrong, place, address, size, "writes"))?;
        }
        Ok(())
    }

    /// Reads an element for a lane in a collective load.
    pub fn read(&mut self, place: &MemoryOperand, address: u64) -> Result<u64, InvalidAccess> {
        let size = usize::from(place.bytes);
        let (store, at, watched) = self.locate(place, address, size)?;
        store.load(at, size, false, watched).map_err(|wrong| described(wrong, place, address, size, "reads"))
    }

    /// Changes an element and returns its old value.
    pub fn atomic(
        &mut self,
        place: &MemoryOperand,
        base: u64,
        change: impl FnOnce(u64) -> u64,
    ) -> Result<u64, InvalidAccess> {
        let size = usize::from(place.bytes);
        let address = base.wrapping_add(place.offset as i64 as u64);
        let (store, start, watched) = self.locate(place, address, size)?;
        // This is one access; the check of the write is the stricter one.
        let changed = store.load(start, size, true, None).and_then(|old| {
            store.store(start, size, change(old), true, watched)?;
            Ok(old)
        });
        changed.map_err(|wrong| described(wrong, place, address, size, "changes"))
    }

    /// Returns the memory that contains a range, the offset in it, and the accessor to record.
    #[inline]
    pub fn locate(
        &mut self,
        place: &MemoryOperand,
        address: u64,
        bytes: usize,
    ) -> Result<(&mut Store, usize, Watched<'_>), InvalidAccess> {
        if address & (bytes as u64 - 1) != 0 {
            let message = format!("{bytes} bytes at {address:#x} are not aligned to their size");
            return Err((Problem::new(Class::Alignment, message), None));
        }
        let granules = self.kernel.granules;
        let (space, at) = match place.space {
            Space::Generic => resolved(address),
            space => (space, address),
        };
        match space {
            Space::Shared => match at.checked_add(bytes as u64) {
                Some(end) if end <= self.shared.len() as u64 => {
                    Ok((self.shared, at as usize, Some((&self.here, granules.shared))))
                }
                _ => Err(outside("shared", at, bytes, self.shared.len())),
            },
            Space::Local => match at.checked_add(bytes as u64) {
                Some(end) if end <= self.local.len() as u64 => Ok((self.local, at as usize, None)),
                _ => Err(outside("local", at, bytes, self.local.len())),
            },
            _ => {
                let (store, start) = self.memory.locate(address, bytes).map_err(|problem| (problem, None))?;
                Ok((store, start, Some((&self.who, granules.global))))
            }
        }
    }
}

/// Returns the space of a generic address, and the address within the space.
pub(super) fn resolved(address: u64) -> (Space, u64) {
    const SIZE: u64 = LOCAL_WINDOW - SHARED_WINDOW;
    match address {
        SHARED_WINDOW..LOCAL_WINDOW => (Space::Shared, address - SHARED_WINDOW),
        _ if address.wrapping_sub(LOCAL_WINDOW) < SIZE => (Space::Local, address - LOCAL_WINDOW),
        _ if address.wrapping_sub(PARAMETER_WINDOW) < SIZE => (Space::Param, address - PARAMETER_WINDOW),
        _ => (Space::Global, address),
    }
}

#[inline]
fn extended(value: u64, place: &MemoryOperand) -> u64 {
    match (place.is_signed, place.bytes) {
        (true, 1) => value as i8 as u64,
        (true, 2) => value as i16 as u64,
        (true, 4) => value as i32 as u64,
        _ => value,
    }
}

#[cold]
fn outside(what: &str, at: u64, bytes: usize, size: usize) -> InvalidAccess {
    let message = format!("{bytes} bytes at {at:#x} are outside of the {size} bytes of {what} memory");
    (Problem::new(Class::Bounds, message), None)
}

#[cold]
pub(super) fn described(
    wrong: StoreError,
    place: &MemoryOperand,
    address: u64,
    bytes: usize,
    does: &str,
) -> InvalidAccess {
    let space = match place.space {
        Space::Shared => "shared",
        Space::Local => "local",
        Space::Generic => "generic",
        _ => "global",
    };
    match wrong {
        StoreError::Unwritten(_) => {
            let message =
                format!("the thread {does} {bytes} bytes of {space} memory at {address:#x} that nobody has written");
            (Problem::new(Class::Unwritten, message), None)
        }
        StoreError::Race(other) => {
            let did = match (other.party, other.wrote) {
                (Party::Thread, true) => "with nothing between to order it, were written",
                (Party::Thread, false) => "with nothing between to order it, were read",
                (Party::Unfenced, _) => "without fence.proxy.async after it, were written",
                (Party::Copy, _) => "with no wait for its mbarrier that it knows of, are written by a bulk copy begun",
                (Party::Product, _) => "with no wgmma.wait_group that it knows of, are read by a wgmma begun",
            };
            let message = format!("the thread {does} {bytes} bytes of {space} memory at {address:#x} that, {did}");
            (Problem::new(Class::Race, message), Some((other.thread, other.segment)))
        }
    }
}
