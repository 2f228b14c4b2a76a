//! Launch of a kernel: grid, parameters, and side effects in the driver.

use crate::code::Kernel;

/// Launch of a kernel.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// Kernel.
    pub kernel: &'a Kernel,
    /// Grid dimensions.
    pub grid: [u32; 3],
    /// Block dimensions.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: usize,
    /// Parameter values, in their memory layout.
    pub parameters: &'a [u8],
    /// Whether blocks, and threads that do not wait for each other, run in descending order.
    pub backwards: bool,
}

/// Side effects of kernels on the driver.
pub trait Outside {
    /// Sets the condition of a conditional graph node; false if no running graph has it.
    fn set_condition(&mut self, handle: u64, value: u32) -> bool;
}

/// Splits a linear index into coordinates; the first dimension is the fastest.
pub(super) fn coordinates(number: u64, sizes: [u32; 3]) -> [u32; 3] {
    let [x, y, _] = sizes.map(|size| u64::from(size).max(1));
    [(number % x) as u32, (number / x % y) as u32, (number / x / y) as u32]
}
