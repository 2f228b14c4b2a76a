//! Module image: the device code of one program, as kernels and the code objects that hold them.

use serde::{Deserialize, Serialize};

use super::kernel_map::KernelMap;

/// Device code of one program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ModuleImage {
    /// Functions, by the number that launches name them by.
    pub functions: Vec<KernelFunction>,
    /// Code objects; one holds many functions.
    pub objects: Vec<CodeObject>,
}

impl ModuleImage {
    /// Whether it holds machine code of a GPU.
    pub fn has_machine_code(&self) -> bool {
        self.objects.iter().any(|object| matches!(object, CodeObject::Cubin(_)))
    }
}

/// Code that is loaded as one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum CodeObject {
    /// PTX text, for the driver to assemble.
    Ptx(String),
    /// Machine code for one GPU.
    Cubin(Vec<u8>),
    /// An object file for the host.
    HostObject(Vec<u8>),
}

/// A kernel as the device sees it. Its parameters have 64 bits, addresses and numbers; maps follow them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KernelFunction {
    /// Its symbol.
    pub name: String,
    /// Its code object, by its number in the image.
    pub object: usize,
    /// Threads of a block; at most 1024.
    pub threads: u32,
    /// Bytes of shared memory of a block that the launch brings, beside those that the code declares.
    pub shared_bytes: u32,
    /// Whether the threads of a block wait for each other, or shuffle.
    pub together: bool,
    /// Number of its parameters of 64 bits.
    pub parameters: usize,
    /// Those that are maps; on GPUs alone.
    pub maps: Vec<KernelMap>,
}
