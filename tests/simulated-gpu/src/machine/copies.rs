//! `cp.async`: asynchronous copies of a thread, which are executed as late as possible: when the thread waits for them.
//!
//! From the start of a copy its destination counts as written by this thread, with uninitialised content, so that an
//! early read is detected as a read of uninitialised memory.

use super::pending::Copy;
use super::reach::{InvalidAccess, Reach, described};
use crate::code::{ALL_COPIES, MemoryOperand};
use crate::finding::{Class, Problem};

impl Reach<'_> {
    /// Starts a copy of `bytes` bytes, of which `read` come from the source; the others are zero.
    pub fn begin_copy(
        &mut self,
        to: (&MemoryOperand, u64),
        from: (&MemoryOperand, u64),
        (bytes, read): (u32, u32),
    ) -> Result<(), InvalidAccess> {
        if read > bytes {
            let message = format!("{read} bytes are copied to {bytes} bytes of shared memory");
            return Err((Problem::new(Class::Bounds, message), None));
        }
        let copy = Copy { to: (*to.0, to.1), from: (*from.0, from.1), bytes: bytes as usize, read: read as usize };
        let checked = self.memory.checks_written();
        let (store, at, watched) = self.locate(to.0, to.1, copy.bytes)?;
        store
            .renounce(at..at + copy.bytes, checked, watched)
            .map_err(|wrong| described(wrong, to.0, to.1, copy.bytes, "writes"))?;
        self.read_source(&copy)?;
        self.copies.open.push(copy);
        Ok(())
    }

    /// Ends a group of copies.
    pub fn end_copy_group(&mut self) {
        let open = std::mem::take(&mut self.copies.open);
        self.copies.groups.push_back(open);
    }

    /// Executes all copies but those of the last `pending` groups.
    pub fn wait_for_copies(&mut self, pending: u32) -> Result<(), InvalidAccess> {
        if pending == ALL_COPIES {
            self.end_copy_group();
        }
        let kept = if pending == ALL_COPIES { 0 } else { pending as usize };
        while self.copies.groups.len() > kept {
            for copy in self.copies.groups.pop_front().unwrap_or_default() {
                self.finish_copy(&copy)?;
            }
        }
        Ok(())
    }

    fn finish_copy(&mut self, copy: &Copy) -> Result<(), InvalidAccess> {
        let (mut content, mut written) = self.read_source(copy)?;
        content.resize(copy.bytes, 0);
        written.resize(copy.bytes, 1);
        let (place, address) = &copy.to;
        let (store, at, watched) = self.locate(place, *address, copy.bytes)?;
        let done = store.put(at, &content, &written, watched);
        done.map_err(|wrong| described(wrong, place, *address, copy.bytes, "writes"))
    }

    /// Returns the bytes of a copy's source, and a flag for each that it is initialised.
    fn read_source(&mut self, copy: &Copy) -> Result<(Vec<u8>, Vec<u8>), InvalidAccess> {
        let (place, address) = &copy.from;
        if address & (copy.bytes as u64 - 1) != 0 {
            let message = format!("{} bytes at {address:#x} are not aligned to their size", copy.bytes);
            return Err((Problem::new(Class::Alignment, message), None));
        }
        if copy.read == 0 {
            return Ok((Vec::new(), Vec::new()));
        }
        let (who, granule) = (self.who, self.kernel.granules.global);
        let (store, at) = self.memory.locate(*address, copy.read).map_err(|problem| (problem, None))?;
        let range = at..at + copy.read;
        let taken = store.take(range, Some((&who, granule)));
        taken.map_err(|wrong| described(wrong, place, *address, copy.read, "reads"))
    }
}
