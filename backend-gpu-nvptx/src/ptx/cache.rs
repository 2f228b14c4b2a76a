//! Machine code on disk, found again by what it was made from: PTX, GPU and version of the assembler.
//!
//! One file an entry, named by the SHA-256 of its key. Files are written under another name and renamed, so that readers, of other
//! processes too, see all of a file or none of it; one that is garbled or half there after a crash of the machine has a hash that
//! does not fit, and counts as absent. When the files take more than the limit, those used longest ago go. Nothing here fails a
//! compilation: a cache that cannot be read or written is as good as empty.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest, Sha256};
use xla_hlo::Result;

use super::Assemble;
use super::ptxas::Cubin;
use super::report::Report;

/// At the start of each file; another form of files takes another number, which is part of the key too.
const MAGIC: &[u8] = b"XLA cubin 1\n";

/// How the files are named.
const EXTENSION: &str = "cubin";

/// A folder of machine code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CubinCache {
    folder: PathBuf,
    limit: u64,
}

impl CubinCache {
    /// A cache in `folder`, which is made when it is needed, of at most `limit` bytes.
    pub fn new(folder: PathBuf, limit: u64) -> CubinCache {
        CubinCache { folder, limit }
    }

    /// The machine code of that PTX for that GPU, from the cache or by assembling it. Errors are those of the assembler.
    pub fn assemble(&self, assembler: &dyn Assemble, ptx: &str, target: &str) -> Result<Cubin> {
        let key = key(&assembler.tool(), target, ptx);
        if let Some(cubin) = self.read(&key) {
            return Ok(cubin);
        }
        let cubin = assembler.assemble(ptx, target)?;
        if let Err(error) = self.write(&key, &cubin) {
            tracing::debug!(folder = %self.folder.display(), %error, "machine code was not cached");
        }
        Ok(cubin)
    }

    fn path(&self, key: &str) -> PathBuf {
        self.folder.join(key).with_extension(EXTENSION)
    }

    /// What is in the cache under that key.
    fn read(&self, key: &str) -> Option<Cubin> {
        let path = self.path(key);
        let cubin = decode(&fs::read(&path).ok()?)?;
        // When it was used last. A file that may only be read is used all the same.
        let now = File::options().append(true).open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        if let Err(error) = now {
            tracing::trace!(path = %path.display(), %error, "the time of use was not kept");
        }
        Some(cubin)
    }

    fn write(&self, key: &str, cubin: &Cubin) -> std::io::Result<()> {
        let bytes = encode(cubin);
        if bytes.len() as u64 > self.limit {
            return Ok(());
        }
        fs::create_dir_all(&self.folder)?;
        let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
        file.write_all(&bytes)?;
        file.persist(self.path(key)).map_err(|error| error.error)?;
        self.evict()
    }

    /// Deletes the files used longest ago until the rest is within the limit. Several processes may do so at once.
    fn evict(&self) -> std::io::Result<()> {
        let mut files: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            // Others may have deleted it meanwhile.
            if let (true, Ok(facts)) = (path.extension().is_some_and(|e| e == EXTENSION), path.metadata()) {
                files.push((facts.modified()?, facts.len(), path));
            }
        }
        files.sort();
        let mut total: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        for (_, bytes, path) in &files {
            if total <= self.limit {
                break;
            }
            // One that another process has deleted already is gone as well.
            delete(path)?;
            total -= bytes;
        }
        Ok(())
    }
}

fn delete(path: &Path) -> std::io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// The name of what is made from these.
fn key(tool: &str, target: &str, ptx: &str) -> String {
    let mut hash = Sha256::new();
    // With lengths, so that no two lists of parts run together to the same bytes.
    for part in [MAGIC, tool.as_bytes(), target.as_bytes(), ptx.as_bytes()] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `MAGIC | SHA-256 of the rest | report: length u64, text as of ptxas | machine code`.
fn encode(cubin: &Cubin) -> Vec<u8> {
    let report = cubin.report.as_ptxas_writes();
    let rest = [&(report.len() as u64).to_le_bytes(), report.as_bytes(), &cubin.bytes].concat();
    [MAGIC, &Sha256::digest(&rest)[..], &rest].concat()
}

fn decode(bytes: &[u8]) -> Option<Cubin> {
    let (hash, rest) = bytes.strip_prefix(MAGIC)?.split_at_checked(32)?;
    if hash != &Sha256::digest(rest)[..] {
        return None;
    }
    let (length, rest) = rest.split_first_chunk()?;
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
    fn every_part_of_the_key_counts() {
        let keys = [
            key("V1", "sm_90", "abc"),
            key("V2", "sm_90", "abc"),
            key("V1", "sm_9", "0abc"),
            key("V1", "sm_90", "abd"),
        ];
        for (number, key) in keys.iter().enumerate() {
            assert_eq!(keys.iter().position(|k| k == key), Some(number));
            assert_eq!(key.len(), 64);
        }
    }

    #[test]
    fn what_was_written_is_read_and_garbled_files_are_absent() {
        let (_folder, cache) = cache(1 << 20);
        assert_eq!(cache.read("key"), None);
        cache.write("key", &cubin(100)).unwrap();
        assert_eq!(cache.read("key"), Some(cubin(100)));
        let whole = fs::read(cache.path("key")).unwrap();
        for place in 0..whole.len() {
            let mut garbled = whole.clone();
            garbled[place] ^= 1;
            assert_eq!(decode(&garbled), None, "byte {place}");
            assert_eq!(decode(&whole[..place]), None, "{place} bytes");
        }
    }

    #[test]
    fn files_used_longest_ago_go() {
        let (_folder, cache) = cache(4500);
        let old = SystemTime::UNIX_EPOCH;
        for (name, age) in [("a", 1), ("b", 2), ("c", 3)] {
            cache.write(name, &cubin(1000)).unwrap();
            let file = File::options().append(true).open(cache.path(name)).unwrap();
            file.set_modified(old + std::time::Duration::from_secs(age)).unwrap();
        }
        assert!(cache.read("a").is_some());
        cache.write("d", &cubin(1000)).unwrap();
        assert!(!cache.path("b").exists() && cache.path("a").exists() && cache.path("d").exists());
        cache.write("huge", &cubin(5000)).unwrap();
        assert!(!cache.path("huge").exists() && cache.path("d").exists());
    }

    #[test]
    fn many_threads_write_the_same() {
        let (_folder, cache) = cache(2000);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let cache = &cache;
                scope.spawn(move || {
                    for i in 0..30 {
                        let name = format!("k{}", (i + thread) % 3);
                        cache.write(&name, &cubin(500)).unwrap();
                        assert!(cache.read(&name).is_none_or(|found| found == cubin(500)));
                    }
                });
            }
        });
        let left = fs::read_dir(&cache.folder).unwrap().map(|e| e.unwrap().metadata().unwrap().len());
        assert!(left.sum::<u64>() <= 2000);
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
        let kept = cache.path(&key(&ptxas.tool(), "sm_90", PTX));
        // Seen by what is in the file and nowhere else.
        fs::write(&kept, encode(&cubin(3))).unwrap();
        assert_eq!(cache.assemble(&ptxas, PTX, "sm_90").unwrap(), cubin(3));
        fs::write(&kept, "garbled").unwrap();
        assert_eq!(cache.assemble(&ptxas, PTX, "sm_90").unwrap(), first);
    }
}
