//! Module image: the device code of one program, as kernels and the code objects that contain them.

use serde::{Deserialize, Serialize};

use super::kernel_map::KernelMap;

/// Device code of one program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ModuleImage {
    /// Kernels, by the index that launches use.
    pub functions: Vec<KernelFunction>,
    /// Code objects; each may contain many kernels.
    pub objects: Vec<CodeObject>,
}

impl ModuleImage {
    /// Whether the image contains cubins.
    pub fn has_machine_code(&self) -> bool {
        self.objects.iter().any(|object| matches!(object, CodeObject::Cubin(_)))
    }
}

/// Code that is loaded as a unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum CodeObject {
    /// PTX, which the driver assembles.
    Ptx(String),
    /// Cubin: machine code for one GPU architecture.
    Cubin(Vec<u8>),
    /// Object file for the host.
    HostObject(Vec<u8>),
}

/// Kernel as the device loads it. Its parameters are 64-bit addresses and numbers, followed by tensor maps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KernelFunction {
    /// Symbol of the kernel.
    pub name: String,
    /// Index of its code object in the image.
    pub object: usize,
    /// Number of threads of a block, at most 1024.
    pub threads: u32,
    /// Dynamic shared memory of a block in bytes, in addition to the static one that the code declares. On the host,
    /// all shared memory is dynamic.
    pub shared_bytes: u32,
    /// Whether the threads of a block synchronise or shuffle.
    pub together: bool,
    /// Number of its 64-bit parameters.
    pub parameters: usize,
    /// Parameters that are tensor maps; only on GPUs.
    pub maps: Vec<KernelMap>,
}
