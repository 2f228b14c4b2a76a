//! File cache: byte strings in a folder, keyed by the SHA-256 of their inputs.
//!
//! A file is written under a temporary name and renamed, so that readers, including other processes, see either a
//! complete file or none. Each file begins with the hash of its key and contents: a damaged file counts as absent, and
//! so does a file that was stored for another key. Files that another user owns or may write are ignored with a
//! warning, since cached files may contain machine code. When the total size exceeds the limit, the least recently used
//! files are deleted, and with them the temporary files of killed processes. The cache never fails a compilation: a
//! cache that cannot be read or written acts as an empty one.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};

/// Magic bytes at the start of each file.
const MAGIC: &[u8] = b"XLA cache 2\n";

/// Name prefix of temporary files.
const TEMPORARY: &str = ".tmp";

/// Minimum age of an abandoned temporary file. Writing a file takes only seconds.
const ABANDONED: Duration = Duration::from_secs(3600);

/// Cache in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileCache {
    folder: PathBuf,
    extension: &'static str,
    limit: u64,
}

impl FileCache {
    /// Creates a cache in `folder`, which is created on first use, with at most `limit` bytes in files with this
    /// extension.
    pub fn new(folder: PathBuf, extension: &'static str, limit: u64) -> FileCache {
        FileCache { folder, extension, limit }
    }

    /// Returns the key of a file derived from `parts`: 64 hexadecimal digits.
    pub fn key(parts: &[&[u8]]) -> String {
        let mut hash = Sha256::new();
        // Length prefixes make the encoding unambiguous: different lists of parts never yield the same bytes.
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        hex(hash)
    }

    /// Returns the path of a key's file.
    pub fn path(&self, key: &str) -> PathBuf {
        self.folder.join(key).with_extension(self.extension)
    }

    /// Returns the bytes stored under a key.
    pub fn get(&self, key: &str) -> Option<Vec<u8>> {
        let path = self.path(key);
        let file = File::open(&path).ok()?;
        if !is_private(&path, &file.metadata().ok()?) || !self.folder_is_private() {
            return None;
        }
        let contents = decode(key, read(file).ok()?);
        if contents.is_none() {
            tracing::warn!(path = %path.display(), "a cache file is ignored: it is damaged or has another key");
        }
        // Update the time of last use. This fails for a read-only file, which is used nevertheless.
        let now = File::options().append(true).open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        if let Err(error) = now {
            tracing::trace!(path = %path.display(), %error, "the time of last use cannot be updated");
        }
        contents
    }

    /// Stores bytes under a key. Failures are ignored.
    pub fn put(&self, key: &str, contents: &[u8]) {
        if let Err(error) = self.write(key, contents) {
            tracing::debug!(folder = %self.folder.display(), %error, "the cache cannot store a file");
        }
    }

    fn write(&self, key: &str, contents: &[u8]) -> io::Result<()> {
        let bytes = encode(key, contents);
        if bytes.len() as u64 > self.limit {
            return Ok(());
        }
        create_private(&self.folder)?;
        if !self.folder_is_private() {
            return Ok(());
        }
        let mut file = tempfile::Builder::new().prefix(TEMPORARY).tempfile_in(&self.folder)?;
        file.write_all(&bytes)?;
        file.persist(self.path(key)).map_err(|error| error.error)?;
        self.evict()
    }

    fn folder_is_private(&self) -> bool {
        self.folder.metadata().is_ok_and(|facts| is_private(&self.folder, &facts))
    }

    /// Deletes abandoned temporary files, then the least recently used files until the total is within the limit.
    /// Several processes may do so at once.
    fn evict(&self) -> io::Result<()> {
        delete_abandoned_files(&self.folder)?;
        let mut files: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            // Another process may have deleted the file in the meantime.
            if let (true, Ok(facts)) = (path.extension().is_some_and(|e| e == self.extension), path.metadata()) {
                files.push((facts.modified()?, facts.len(), path));
            }
        }
        files.sort();
        let mut total: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        for (_, bytes, path) in &files {
            if total <= self.limit {
                break;
            }
            // Also counts a file that another process has deleted already.
            delete(path)?;
            total -= bytes;
        }
        Ok(())
    }
}

/// Deletes the temporary files of processes that were killed while they wrote to a cache's folder.
pub fn delete_abandoned_files(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let is_temporary = entry.file_name().as_encoded_bytes().starts_with(TEMPORARY.as_bytes());
        // Another process may have deleted the file in the meantime.
        let age = entry.metadata().ok().and_then(|facts| facts.modified().ok()?.elapsed().ok());
        if is_temporary && age.is_some_and(|age| age > ABANDONED) {
            delete(&entry.path())?;
        }
    }
    Ok(())
}

/// Encodes `MAGIC | SHA-256 of key and contents | contents`.
fn encode(key: &str, contents: &[u8]) -> Vec<u8> {
    [MAGIC, &digest(key, contents)[..], contents].concat()
}

/// Inverse of [`encode`]: returns the contents if the hash matches the key.
fn decode(key: &str, mut bytes: Vec<u8>) -> Option<Vec<u8>> {
    let (hash, contents) = bytes.strip_prefix(MAGIC)?.split_at_checked(32)?;
    if hash != digest(key, contents) {
        return None;
    }
    bytes.drain(..MAGIC.len() + 32);
    Some(bytes)
}

/// Hashes the key, prefixed by its length, and the contents.
fn digest(key: &str, contents: &[u8]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update((key.len() as u64).to_le_bytes());
    hash.update(key);
    hash.update(contents);
    hash.finalize().into()
}

fn read(mut file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut file, &mut bytes)?;
    Ok(bytes)
}

fn delete(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Returns the digest in hexadecimal.
pub(crate) fn hex(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Creates a folder, and missing parent folders, with access only for this user.
#[cfg(unix)]
fn create_private(folder: &Path) -> io::Result<()> {
    std::os::unix::fs::DirBuilderExt::mode(fs::DirBuilder::new().recursive(true), 0o700).create(folder)
}

#[cfg(not(unix))]
fn create_private(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)
}

/// Whether a file or folder belongs to this user and no other user may write to it; warns otherwise.
#[cfg(unix)]
fn is_private(path: &Path, facts: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;

    let is_private = facts.uid() == rustix::process::geteuid().as_raw() && facts.mode() & 0o022 == 0;
    if !is_private {
        tracing::warn!(path = %path.display(), "the cache ignores a path that belongs to another user or that others can write");
    }
    is_private
}

#[cfg(not(unix))]
fn is_private(_: &Path, _: &fs::Metadata) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(limit: u64) -> (tempfile::TempDir, FileCache) {
        let folder = tempfile::tempdir().unwrap();
        let cache = FileCache::new(folder.path().join("deep/inside"), "bin", limit);
        (folder, cache)
    }

    #[test]
    fn every_part_of_the_key_counts() {
        let keys = [["V1", "sm_90", "abc"], ["V2", "sm_90", "abc"], ["V1", "sm_9", "0abc"], ["V1", "sm_90", "abd"]];
        let keys = keys.map(|parts| FileCache::key(&parts.map(str::as_bytes)));
        for (number, key) in keys.iter().enumerate() {
            assert_eq!(keys.iter().position(|k| k == key), Some(number));
            assert_eq!(key.len(), 64);
        }
    }

    #[test]
    fn what_was_written_is_read_and_damaged_files_are_absent() {
        let (_folder, cache) = cache(1 << 20);
        assert_eq!(cache.get("key"), None);
        cache.put("key", b"contents");
        assert_eq!(cache.get("key").as_deref(), Some(&b"contents"[..]));
        let whole = fs::read(cache.path("key")).unwrap();
        for place in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[place] ^= 1;
            assert_eq!(decode("key", damaged), None, "byte {place}");
            assert_eq!(decode("key", whole[..place].to_vec()), None, "{place} bytes");
        }
        fs::write(cache.path("key"), "damaged").unwrap();
        assert_eq!(cache.get("key"), None);
    }

    #[test]
    fn a_file_under_the_name_of_another_key_is_absent() {
        let (_folder, cache) = cache(1 << 20);
        cache.put("sine", b"code of a sine");
        cache.put("cosine", b"code of a cosine");
        fs::copy(cache.path("sine"), cache.path("cosine")).unwrap();
        assert_eq!(cache.get("cosine"), None);
        assert_eq!(cache.get("sine").as_deref(), Some(&b"code of a sine"[..]));
        cache.put("cosine", b"code of a cosine");
        assert_eq!(cache.get("cosine").as_deref(), Some(&b"code of a cosine"[..]));
    }

    #[test]
    fn temporary_files_of_killed_processes_are_deleted() {
        let (_folder, cache) = cache(1 << 20);
        cache.put("a", &[7; 10]);
        let [abandoned, recent] = [".tmpOld", ".tmpNew"].map(|name| cache.folder.join(name));
        fs::write(&abandoned, [7; 100]).unwrap();
        fs::write(&recent, [7; 100]).unwrap();
        let time = SystemTime::now() - 2 * ABANDONED;
        File::options().append(true).open(&abandoned).unwrap().set_modified(time).unwrap();
        cache.put("b", &[7; 10]);
        assert!(!abandoned.exists() && recent.exists());
        assert!(cache.get("a").is_some() && cache.get("b").is_some());
    }

    #[cfg(unix)]
    #[test]
    fn what_others_may_write_is_ignored() {
        use std::os::unix::fs::PermissionsExt;

        let (_folder, cache) = cache(1 << 20);
        let allow = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        cache.put("key", b"contents");
        for (path, usual) in [(cache.path("key"), 0o600), (cache.folder.clone(), 0o700)] {
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, usual);
            allow(&path, 0o777);
            assert_eq!(cache.get("key"), None);
            allow(&path, usual);
            assert!(cache.get("key").is_some());
        }
        allow(&cache.folder, 0o777);
        cache.put("other", b"contents");
        assert!(!cache.path("other").exists());
    }

    #[test]
    fn files_used_longest_ago_go() {
        let (_folder, cache) = cache(4500);
        let old = SystemTime::UNIX_EPOCH;
        for (name, age) in [("a", 1), ("b", 2), ("c", 3)] {
            cache.put(name, &[7; 1200]);
            let file = File::options().append(true).open(cache.path(name)).unwrap();
            file.set_modified(old + Duration::from_secs(age)).unwrap();
        }
        assert!(cache.get("a").is_some());
        cache.put("d", &[7; 1200]);
        assert!(!cache.path("b").exists() && cache.path("a").exists() && cache.path("d").exists());
        cache.put("huge", &[7; 5000]);
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
                        cache.put(&name, &[7; 600]);
                        assert!(cache.get(&name).is_none_or(|found| found == [7; 600]));
                    }
                });
            }
        });
        let left = fs::read_dir(&cache.folder).unwrap().map(|e| e.unwrap().metadata().unwrap().len());
        assert!(left.sum::<u64>() <= 2000);
    }

    #[test]
    fn a_cache_that_cannot_be_written_fails_nothing() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let cache = FileCache::new(file.path().join("inside of a file"), "bin", 1 << 20);
        cache.put("key", b"contents");
        assert_eq!(cache.get("key"), None);
    }
}
