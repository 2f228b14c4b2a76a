//! Cache of cubins on disk, keyed by PTX, architecture and version of the assembler.

use std::path::PathBuf;

use xla_hlo::Result;
use xla_service::FileCache;

use super::assembler::{Assemble, Cubin};
use super::report::Report;

/// Part of each key, which changes with the format of the files.
const FORM: &[u8] = b"XLA cubin 2";

/// Folder of cubins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CubinCache(FileCache);

impl CubinCache {
    /// Creates a cache of at most `limit` bytes in `folder`, which is created on first use.
    pub fn new(folder: PathBuf, limit: u64) -> CubinCache {
        CubinCache(FileCache::new(folder, "cubin", limit))
    }

    /// Returns the cubin of PTX for an architecture, from the cache or by assembling it. Errors are those of the
    /// assembler.
    pub fn assemble(&self, assembler: &dyn Assemble, ptx: &str, target: &str) -> Result<Cubin> {
        let key = key(&assembler.tool(), target, ptx);
        if let Some(cubin) = self.0.get(&key).and_then(|bytes| decode(&bytes)) {
            return Ok(cubin);
        }
        let cubin = assembler.assemble(ptx, target)?;
        self.0.put(&key, &encode(&cubin));
        Ok(cubin)
    }
}

fn key(tool: &str, target: &str, ptx: &str) -> String {
    FileCache::key(&[FORM, tool.as_bytes(), target.as_bytes(), ptx.as_bytes()])
}

/// Encodes a file: `report: length u64, text as of ptxas | machine code`.
fn encode(cubin: &Cubin) -> Vec<u8> {
    let report = cubin.report.as_ptxas_writes();
    [&(report.len() as u64).to_le_bytes(), report.as_bytes(), &cubin.bytes].concat()
}

fn decode(bytes: &[u8]) -> Option<Cubin> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (report, code) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    Some(Cubin { bytes: code.to_vec(), report: Report::parse(std::str::from_utf8(report).ok()?) })
}

#[cfg(test)]
mod tests {
    use super::super::ptxas::tests::{PTX, ptxas};
    use super::super::report::KernelReport;
    use super::*;

    fn cubin(size: usize) -> Cubin {
        let kernel = KernelReport {
            name: "k".to_string(),
            registers: 32,
            barriers: 1,
            stack_bytes: 8,
            spill_store_bytes: 4,
            spill_load_bytes: 12,
            shared_bytes: 1024,
        };
        let warnings = vec!["ptxas warning : beware".to_string()];
        Cubin { bytes: vec![7; size], report: Report { kernels: vec![kernel], warnings } }
    }

    fn cache(limit: u64) -> (tempfile::TempDir, CubinCache) {
        let folder = tempfile::tempdir().unwrap();
        let cache = CubinCache::new(folder.path().join("deep/inside"), limit);
        (folder, cache)
    }

    #[test]
    fn a_report_comes_back() {
        assert_eq!(decode(&encode(&cubin(100))), Some(cubin(100)));
        let bytes = encode(&cubin(0));
        assert!((0..bytes.len()).all(|end| decode(&bytes[..end]).is_none()));
    }

    #[test]
    fn a_cache_that_cannot_be_written_fails_nothing() {
        let Some(ptxas) = ptxas() else { return };
        let file = tempfile::NamedTempFile::new().unwrap();
        let cache = CubinCache::new(file.path().join("inside of a file"), 1 << 20);
        assert!(cache.assemble(&ptxas, PTX, "sm_90").is_ok());
    }

    #[test]
    fn a_kernel_is_assembled_once() {
        let Some(ptxas) = ptxas() else { return };
        let (_folder, cache) = cache(1 << 20);
        let first = cache.assemble(&ptxas, PTX, "sm_90").unwrap();
        let key = key(&ptxas.tool(), "sm_90", PTX);
        // A different entry in the file shows that the file is used.
        cache.0.put(&key, &encode(&cubin(3)));
        assert_eq!(cache.assemble(&ptxas, PTX, "sm_90").unwrap(), cubin(3));
        std::fs::write(cache.0.path(&key), "garbled").unwrap();
        assert_eq!(cache.assemble(&ptxas, PTX, "sm_90").unwrap(), first);
    }
}
