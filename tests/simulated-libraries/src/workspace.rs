//! Workspace of a library call. It is overwritten as NVIDIA's libraries do; a concurrent write to it is a finding.

use std::sync::atomic::{AtomicU64, Ordering};

use simulated_gpu::driver::Status;
use simulated_gpu::finding::{Class, Problem};
use simulated_gpu::libraries::enqueue;
use simulated_gpu::machine::Memory;

/// Workspace of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Workspace {
    pub address: u64,
    pub bytes: usize,
    /// Content between the first and the last step of the call.
    mark: u64,
}

impl Workspace {
    /// Creates the workspace that a program passes to a call.
    pub fn new(address: u64, bytes: usize) -> Workspace {
        static CALLS: AtomicU64 = AtomicU64::new(1);
        Workspace { address, bytes, mark: CALLS.fetch_add(1, Ordering::Relaxed) }
    }

    /// Submits a call's work: a step that writes the whole workspace, if there is one, and a step that expects that
    /// content.
    pub fn enqueue(
        self,
        stream: u64,
        name: &str,
        work: impl Fn(&mut Memory) -> Result<(), Problem> + Send + Sync + 'static,
    ) -> Result<(), Status> {
        if self.bytes == 0 {
            return enqueue(stream, name, work);
        }
        enqueue(stream, name, move |memory| self.begin(memory))?;
        enqueue(stream, name, move |memory| self.end(memory).and_then(|()| work(memory)))
    }

    /// First step: fills the workspace.
    fn begin(self, memory: &mut Memory) -> Result<(), Problem> {
        memory.write(self.address, &self.content())
    }

    /// Last step: checks the workspace, and leaves its content uninitialised.
    fn end(self, memory: &mut Memory) -> Result<(), Problem> {
        if memory.read(self.address, self.bytes)? != self.content() {
            let message = format!("others have written into {} bytes of workspace at {:#x}", self.bytes, self.address);
            return Err(Problem { class: Class::Race, message });
        }
        memory.forget(self.address, self.bytes)
    }

    fn content(self) -> Vec<u8> {
        self.mark.to_le_bytes().into_iter().cycle().take(self.bytes).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_in_the_same_memory_at_the_same_time_are_found() {
        let mut memory = Memory::new(1 << 20, true);
        let address = memory.allocate(256).unwrap();
        let [one, two] = [(); 2].map(|()| Workspace::new(address, 256));
        one.begin(&mut memory).unwrap();
        one.end(&mut memory).unwrap();
        assert!(memory.read(address, 1).is_err(), "nothing is left there");
        one.begin(&mut memory).unwrap();
        two.begin(&mut memory).unwrap();
        let problem = one.end(&mut memory).unwrap_err();
        assert_eq!(problem.class, Class::Race);
        assert!(problem.message.starts_with("others have written into 256 bytes of workspace"), "{}", problem.message);
        let outside = Workspace::new(address, 257).begin(&mut memory).unwrap_err();
        assert_eq!(outside.class, Class::Bounds);
    }
}
