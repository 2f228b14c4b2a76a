//! A kernel: a fusion (or one operation) as a function over a range of work items.
//!
//! The function takes an array of pointers (operands, then results), the first work item, and the one past the last.
//! Work items are independent, and if there are several threads, no two items write to the same place; a caller may run
//! ranges of them on several threads. On targets with many threads, each thread executes the work item of its number.

use xla_hlo::{Error, Result};

use crate::denormals::Denormals;
use crate::emitter::Emitter;
use crate::simt::TensorMap;
use crate::target::Simt;

/// Interface of a kernel: all facts that a caller needs to run it.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    /// Name of the function.
    pub name: String,
    /// Number of independent work items; the caller covers `0..work_items` in total, or launches one thread per item.
    pub work_items: u64,
    /// Number of threads that execute a work item together, unless one does it alone; see [`crate::simt`].
    pub block: Option<u32>,
    /// Bytes of shared memory of a block.
    pub shared_bytes: u64,
    /// Bytes of shared memory that a GPU launch must request dynamically; the code declares the rest statically.
    pub dynamic_shared_bytes: u64,
    /// Tensor maps of arrays that it copies by TMA, on a GPU: the parameters after the 64-bit words.
    pub maps: Vec<TensorMap>,
    /// Bytes of scratch memory, aligned to 64, that the caller allocates. Its address follows those of the arrays. Two
    /// threads must not share it.
    pub scratch_bytes: u64,
    /// Rough cost of all work items of a fusion together, in elementary operations on one element; CPUs distribute
    /// large kernels over threads. 0 for kernels of other kinds, which only GPUs run or which have one work item.
    pub work: f64,
    /// Treatment of subnormal numbers.
    pub denormals: Denormals,
    /// Name of the strategy that computes the results, then its parameters.
    pub strategy: String,
}

impl Kernel {
    /// Returns the strategy as an LLVM IR comment, for dumps.
    pub fn comment(&self) -> String {
        format!("; {}: {}\n", self.name, self.strategy)
    }

    /// Ends the function that the emitter is writing.
    pub(crate) fn end(
        emitter: &Emitter<'_>,
        name: &str,
        Launch { work_items, block }: Launch,
        strategy: String,
    ) -> Result<Kernel> {
        emitter.end_kernel()?;
        if emitter.target().simt() == Some(Simt::Nvptx) && emitter.maps().len() != emitter.map_count() {
            return Err(Error::internal(format!("kernel {name} has tensor map parameters that it does not use")));
        }
        Ok(Kernel {
            name: name.to_string(),
            work_items,
            block,
            shared_bytes: emitter.shared_bytes(),
            dynamic_shared_bytes: emitter.dynamic_shared_bytes(),
            maps: emitter.maps(),
            scratch_bytes: emitter.scratch_bytes(),
            work: 0.0,
            denormals: Denormals::Preserve,
            strategy,
        })
    }
}

/// Number of work items, and of threads per item.
pub(crate) struct Launch {
    pub work_items: u64,
    pub block: Option<u32>,
}

impl Launch {
    /// Describes work items that are executed by one thread each.
    pub fn alone(work_items: u64) -> Launch {
        Launch { work_items, block: None }
    }
}
