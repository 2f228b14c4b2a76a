//! Libraries of this process: their names and folders; each is opened on first use.

use std::sync::OnceLock;

use xla_hlo::{Error, Result};

use crate::cuda::api::library::Library;
use crate::cuda::api::search::Wanted;
use crate::cuda::api::{cublaslt, cudnn, cufft, nccl};
use crate::cuda::driver::Driver;

/// NVIDIA library that programs can do without.
pub(crate) struct OptionalLibrary {
    pub wanted: Wanted,
    /// Name of one of its functions.
    function: &'static str,
    bind: fn(&Library) -> std::result::Result<(), &'static str>,
    opened: OnceLock<Result<Library>>,
}

/// cuBLASLt.
pub(crate) static BLAS: OptionalLibrary = OptionalLibrary {
    wanted: Wanted {
        name: "cuBLASLt",
        files: &[(13_000, "libcublasLt.so.13"), (12_000, "libcublasLt.so.12")],
        folders: &["nvidia/cu13/lib", "nvidia/cublas/lib"],
        packages: "nvidia-cublas (CUDA 13) or nvidia-cublas-cu12",
    },
    function: "cublasLtCreate",
    bind: cublaslt::bind,
    opened: OnceLock::new(),
};

/// cuDNN. Version 9 has the same name for CUDA 12 and 13.
pub(crate) static DNN: OptionalLibrary = OptionalLibrary {
    wanted: Wanted {
        name: "cuDNN",
        files: &[(12_000, "libcudnn.so.9")],
        folders: &["nvidia/cudnn/lib"],
        packages: "nvidia-cudnn-cu13 or nvidia-cudnn-cu12",
    },
    function: "cudnnCreate",
    bind: cudnn::bind,
    opened: OnceLock::new(),
};

/// NCCL. It has the same name for CUDA 12 and 13.
pub(crate) static NCCL: OptionalLibrary = OptionalLibrary {
    wanted: Wanted {
        name: "NCCL",
        files: &[(12_000, "libnccl.so.2")],
        folders: &["nvidia/nccl/lib"],
        packages: "nvidia-nccl-cu13 or nvidia-nccl-cu12",
    },
    function: "ncclGetVersion",
    bind: nccl::bind,
    opened: OnceLock::new(),
};

/// cuFFT. Its version numbers differ from those of CUDA.
pub(crate) static FFT: OptionalLibrary = OptionalLibrary {
    wanted: Wanted {
        name: "cuFFT",
        files: &[(13_000, "libcufft.so.12"), (12_000, "libcufft.so.11")],
        folders: &["nvidia/cu13/lib", "nvidia/cufft/lib"],
        packages: "nvidia-cufft (CUDA 13) or nvidia-cufft-cu12",
    },
    function: "cufftCreate",
    bind: cufft::bind,
    opened: OnceLock::new(),
};

impl OptionalLibrary {
    /// Opens the library and looks up all functions, once. [`Error::FailedPrecondition`] names the missing part.
    pub fn get(&self) -> Result<&Library> {
        let open = || {
            let library = Library::open(&self.wanted, Driver::get()?.version)?;
            (self.bind)(&library).map_err(|function| library.lacks(&self.wanted, function))?;
            let file = self.file_of(&library);
            tracing::info!(library = self.wanted.name, file, "opened");
            Ok(library)
        };
        self.opened.get_or_init(open).as_ref().map_err(Error::again)
    }

    /// Returns the file that was opened.
    pub fn file(&self) -> Result<String> {
        Ok(self.file_of(self.get()?))
    }

    fn file_of(&self, library: &Library) -> String {
        let file = library.file(self.function);
        file.map_or_else(|| "an unknown file".to_string(), |file| file.display().to_string())
    }
}
