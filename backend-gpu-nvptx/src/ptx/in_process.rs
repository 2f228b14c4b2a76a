//! Cubins for the programs that this process loads: assembled once, then cached on disk.

use std::sync::OnceLock;

use xla_service::CompileOptions;

use super::assembler::Assemble;
use super::cache::CubinCache;
use super::ptxas::Ptxas;
use crate::program::image::{CodeObject, ModuleImage};

/// Maximum size of a cubin cache in bytes.
const MOST_BYTES: u64 = 256 << 20;

/// Source of cubins for all programs of a platform.
#[derive(Debug)]
pub(crate) struct InProcess {
    /// Cubin cache. Without one, the driver assembles programs when it loads them.
    cache: Option<CubinCache>,
    /// Assembler, which is searched for on first use.
    ptxas: OnceLock<Option<Ptxas>>,
}

impl InProcess {
    /// Creates the source with the cache that the options name.
    pub fn new(options: &CompileOptions) -> InProcess {
        let cache = options.cache_dir.as_ref().map(|folder| CubinCache::new(folder.join("cubin"), MOST_BYTES));
        InProcess { cache, ptxas: OnceLock::new() }
    }

    /// Returns the image with cubins for an architecture in place of its PTX. They come from the cache, from `driver`
    /// (the driver's linker, if it has one), or otherwise from `ptxas`. `None` without a cache, or if nothing was
    /// assembled; the driver then takes the PTX.
    pub fn machine_code(
        &self,
        image: &ModuleImage,
        architecture: &str,
        driver: Option<&dyn Assemble>,
    ) -> Option<ModuleImage> {
        let cache = self.cache.as_ref()?;
        // The driver's linker needs no installation, and the driver accepts its code.
        let assembler = driver.or_else(|| self.ptxas().map(|ptxas| ptxas as &dyn Assemble))?;
        let mut is_changed = false;
        let objects = image.objects.iter().map(|object| match object {
            CodeObject::Ptx(text) => match cache.assemble(assembler, text, architecture) {
                Ok(cubin) => {
                    is_changed = true;
                    CodeObject::Cubin(cubin.bytes)
                }
                // Loading the PTX reports the error again, or succeeds.
                Err(error) => {
                    tracing::debug!(%error, "PTX cannot be assembled ahead of loading; the driver assembles it");
                    object.clone()
                }
            },
            CodeObject::Cubin(_) | CodeObject::HostObject(_) => object.clone(),
        });
        let objects = objects.collect();
        is_changed.then(|| ModuleImage { functions: image.functions.clone(), objects })
    }

    fn ptxas(&self) -> Option<&Ptxas> {
        let find = || {
            Ptxas::find(None)
                .inspect_err(|error| tracing::debug!(%error, "ptxas is not available; machine code is not cached"))
                .ok()
        };
        self.ptxas.get_or_init(find).as_ref()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::path::PathBuf;

    use xla_hlo::{Error, Result};

    use super::super::assembler::Cubin;
    use super::super::report::Report;
    use super::*;

    /// Assembler that counts its calls.
    #[derive(Default)]
    struct Counting {
        version: u32,
        asked: Cell<u32>,
    }

    impl Assemble for Counting {
        fn tool(&self) -> String {
            format!("counting {}", self.version)
        }

        fn assemble(&self, ptx: &str, target: &str) -> Result<Cubin> {
            self.asked.set(self.asked.get() + 1);
            if ptx == "bad" {
                return Err(Error::internal("it is bad"));
            }
            Ok(Cubin { bytes: format!("\x7fELF {target} {ptx}").into_bytes(), report: Report::default() })
        }
    }

    fn image(objects: &[&str]) -> ModuleImage {
        ModuleImage {
            functions: Vec::new(),
            objects: objects.iter().map(|text| CodeObject::Ptx(text.to_string())).collect(),
        }
    }

    fn started(folder: Option<PathBuf>) -> InProcess {
        InProcess::new(&CompileOptions { cache_dir: folder, ..CompileOptions::default() })
    }

    #[test]
    fn the_second_start_assembles_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let assembler = Counting::default();
        let start = |assembler: &Counting, architecture: &str| {
            started(Some(folder.path().to_path_buf())).machine_code(&image(&["a", "b"]), architecture, Some(assembler))
        };
        let first = start(&assembler, "sm_90").expect("machine code");
        assert_eq!(first.objects[0], CodeObject::Cubin(b"\x7fELF sm_90 a".to_vec()));
        assert_eq!(assembler.asked.get(), 2);
        assert_eq!(start(&assembler, "sm_90"), Some(first));
        assert_eq!(assembler.asked.get(), 2);
        start(&assembler, "sm_80");
        assert_eq!(assembler.asked.get(), 4, "for another GPU");
        let newer = Counting { version: 2, ..Counting::default() };
        start(&newer, "sm_90");
        assert_eq!(newer.asked.get(), 2, "of another version");
    }

    #[test]
    fn without_a_cache_the_driver_takes_the_ptx() {
        let assembler = Counting::default();
        assert_eq!(started(None).machine_code(&image(&["a"]), "sm_90", Some(&assembler)), None);
        assert_eq!(assembler.asked.get(), 0);
    }

    #[test]
    fn what_cannot_be_assembled_is_left_to_the_driver() {
        let folder = tempfile::tempdir().unwrap();
        let assembler = Counting::default();
        let process = started(Some(folder.path().to_path_buf()));
        let made = process.machine_code(&image(&["bad", "a"]), "sm_90", Some(&assembler)).expect("machine code of one");
        assert_eq!(made.objects[0], CodeObject::Ptx("bad".to_string()));
        assert_eq!(process.machine_code(&image(&["bad"]), "sm_90", Some(&assembler)), None);
    }
}
