//! A kernel: a fusion (or one operation) as a function over a range of work items.
//!
//! The function takes an array of pointers (operands, then results) and the first and the last-but-one work item. Work
//! items are independent, and where there are several threads no two write to one place; a caller may run ranges of
//! them on several threads. On a target whose threads run kernels
//! side by side, each thread does the work item of its number.

use xla_hlo::{Error, Result};

use crate::denormals::Denormals;
use crate::emitter::Emitter;
use crate::simt::TensorMap;
use crate::target::Simt;

/// Interface of a kernel: all that a caller must know to run it.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    /// The function's name.
    pub name: String,
    /// Independent work items; run with `0..work_items` in all, or by as many threads.
    pub work_items: u64,
    /// Threads that do a work item together, where one does not do it alone; see [`crate::simt`].
    pub block: Option<u32>,
    /// Bytes of memory that they share.
    pub shared_bytes: u64,
    /// Of those the ones that a launch brings on a GPU; the code declares the rest.
    pub brought_bytes: u64,
    /// Maps of arrays that it copies in bulk, on a GPU: its parameters after the 64-bit words.
    pub maps: Vec<TensorMap>,
    /// Bytes of memory, aligned to 64, that the caller brings for what the kernel needs beside its arrays: its address
    /// follows theirs. Two threads must not share it.
    pub scratch_bytes: u64,
    /// Rough cost of all work items together, in elementary operations on one element.
    pub work: f64,
    /// Treatment of subnormal numbers.
    pub denormals: Denormals,
    /// Strategy that computes the results: its name, then its parameters.
    pub strategy: String,
}

impl Kernel {
    /// The strategy as a comment of LLVM IR, for dumps.
    pub fn comment(&self) -> String {
        format!("; {}: {}\n", self.name, self.strategy)
    }

    /// Ends the function that the emitter is writing.
    pub(crate) fn end(
        emitter: &Emitter<'_>,
        name: &str,
        Launch { work_items, block }: Launch,
        (work, strategy): (f64, String),
    ) -> Result<Kernel> {
        emitter.end_kernel()?;
        if emitter.target().simt() == Some(Simt::Nvptx) && emitter.maps().len() != emitter.map_count() {
            return Err(Error::internal(format!("kernel {name} has maps that it does not use")));
        }
        Ok(Kernel {
            name: name.to_string(),
            work_items,
            block,
            shared_bytes: emitter.shared_bytes(),
            brought_bytes: emitter.brought_bytes(),
            maps: emitter.maps(),
            scratch_bytes: emitter.scratch_bytes(),
            work,
            denormals: Denormals::Preserve,
            strategy,
        })
    }
}

/// Number of work items, and threads of each.
pub(crate) struct Launch {
    pub work_items: u64,
    pub block: Option<u32>,
}

impl Launch {
    /// Work items that one thread does each.
    pub fn alone(work_items: u64) -> Launch {
        Launch { work_items, block: None }
    }
}
