//! Launch of a kernel: its grid, its parameters, and its requests to the driver.

use crate::code::Kernel;

/// A launch of a kernel.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Bytes of shared memory of a block beyond those that the kernel declares.
    pub dynamic_shared: usize,
    /// The parameters as they lie in memory.
    pub parameters: &'a [u8],
    /// Blocks and threads that need not wait for each other run in the opposite order.
    pub backwards: bool,
}

/// Effects of kernels outside of memory.
pub trait Outside {
    /// Sets the condition of a loop of a graph; false if there is no such loop.
    fn set_condition(&mut self, handle: u64, value: u32) -> bool;
}

/// A number by its dimensions, of which the first one is the fastest.
pub(super) fn coordinates(number: u64, sizes: [u32; 3]) -> [u32; 3] {
    let [x, y, _] = sizes.map(|size| u64::from(size).max(1));
    [(number % x) as u32, (number / x % y) as u32, (number / x / y) as u32]
}
