//! Persistent cache: compiled programs on disk, shared between processes.
//!
//! The key of a program covers all inputs of its compilation: module, options, platform and code target
//! ([`LoadExecutable::cache_target`]), and the identity of this compiler build. [`FileCache`] documents the storage
//! format.

use std::fs::File;
use std::hash::Hasher;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use object::{Object, ReadCache};
use sha2::{Digest, Sha256};
use xla_hlo::Module;

use crate::compiler::{Compiler, LoadExecutable};
use crate::executable::Executable;
use crate::file_cache::{FileCache, hex};
use crate::fingerprint::hash_module;
use crate::options::CompileOptions;

/// Maximum size of all programs in a folder, in bytes.
const MOST_BYTES: u64 = 1 << 30;

/// Cache slot of one program.
pub(crate) struct PersistentCache<'a> {
    files: FileCache,
    loader: &'a dyn LoadExecutable,
    key: String,
}

impl<'a> PersistentCache<'a> {
    /// Returns the slot of a program. `None` if the program is not cached: the options disable the cache or request
    /// dumps of the compilation, or serialised programs of the platform contain no code.
    pub fn of(
        platform: &str,
        compiler: &'a dyn Compiler,
        module: &Module,
        options: &CompileOptions,
    ) -> Option<PersistentCache<'a>> {
        let folder = options.cache_dir.as_ref().filter(|_| options.cache_programs && options.dump_to.is_none())?;
        let loader = compiler.loader()?;
        let target = loader.cache_target()?;
        let own = CompileOptions { cache_dir: None, ..options.clone() };
        let options = format!("{own:?} on {} threads", options.thread_count());
        let key = FileCache::key(&[
            build_identity().as_bytes(),
            platform.as_bytes(),
            target.as_bytes(),
            options.as_bytes(),
            module_key(module).as_bytes(),
        ]);
        Some(PersistentCache { files: FileCache::new(folder.join("programs"), "xlax", MOST_BYTES), loader, key })
    }

    /// Returns the program if it is cached and usable.
    pub fn load(&self, options: &CompileOptions) -> Option<Arc<dyn Executable>> {
        let bytes = self.files.get(&self.key)?;
        let loaded = self.loader.load(&bytes, options);
        if let Err(error) = &loaded {
            let path = self.files.path(&self.key);
            tracing::warn!(path = %path.display(), %error, "a cached program cannot be loaded and is compiled again");
        }
        loaded.ok()
    }

    /// Stores the program.
    pub fn store(&self, executable: &dyn Executable) {
        match executable.serializer().map(|serializer| serializer.serialize()) {
            Some(Ok(bytes)) => self.files.put(&self.key, &bytes),
            Some(Err(error)) => tracing::debug!(%error, "a program cannot be serialised for the cache"),
            None => {}
        }
    }
}

/// Returns the identity of this compiler build: its version, and the contents of the file with its code. That file is a
/// program, or a library that a program has loaded (on systems that do not list mapped files, the program).
///
/// A copy of the file has the same identity, whatever its time stamp. Other builds must not trust its private entries,
/// such as code that calls functions of the runtime.
pub fn build_identity() -> String {
    static IDENTITY: OnceLock<String> = OnceLock::new();
    let identity = || {
        let path = own_file().or_else(|| std::env::current_exe().ok());
        let file = path.and_then(|path| contents_identity(&path).ok());
        // A deleted file cannot be hashed. Use the process id, which disables sharing with other processes.
        let file = file.unwrap_or_else(|| format!("process {}", std::process::id()));
        format!("{} {file}", env!("CARGO_PKG_VERSION"))
    };
    IDENTITY.get_or_init(identity).clone()
}

/// Returns the linker's build ID, a hash of the linked contents, or the hash of the whole file if it has none.
fn contents_identity(path: &Path) -> io::Result<String> {
    let file = ReadCache::new(File::open(path)?);
    let id = object::File::parse(&file).ok().and_then(|object| object.build_id().ok().flatten().map(<[u8]>::to_vec));
    if let Some(id) = id {
        return Ok(id.iter().map(|byte| format!("{byte:02x}")).collect());
    }
    let mut hasher = Sha256::new();
    let mut contents = File::open(path)?;
    let mut piece = vec![0; 1 << 16];
    loop {
        match contents.read(&mut piece)? {
            0 => return Ok(hex(hasher)),
            read => hasher.update(&piece[..read]),
        }
    }
}

/// Returns the file that this code was loaded from, if the system lists the mapped files of a process.
fn own_file() -> Option<PathBuf> {
    let address = build_identity as fn() -> String as usize;
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines().find_map(|line| mapped_file(line, address))
}

/// Parses a line `FROM-TO PERMISSIONS OFFSET DEVICE INODE PATH`; returns the file if its range contains the address.
fn mapped_file(line: &str, address: usize) -> Option<PathBuf> {
    let (range, rest) = line.split_once(' ')?;
    let (from, to) = range.split_once('-')?;
    let bound = |text| usize::from_str_radix(text, 16).ok();
    let path = rest.find('/').map(|start| PathBuf::from(&rest[start..]))?;
    (bound(from)?..bound(to)?).contains(&address).then_some(path)
}

fn module_key(module: &Module) -> String {
    let mut hasher = Cryptographic(Sha256::new());
    hash_module(module, &mut hasher);
    hex(hasher.0)
}

/// Adapter that feeds [`std::hash::Hash`] into SHA-256, so that colliding modules cannot be constructed.
struct Cryptographic(Sha256);

impl Hasher for Cryptographic {
    /// Unused: the digest is taken from the field.
    fn finish(&self) -> u64 {
        0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_file_with_this_code_is_the_one_that_is_mapped_at_its_address() {
        let line = "7f00a000-7f00c000 r-xp 00001000 fd:00 1234      /opt/a b/libplugin.so";
        let library = Some(PathBuf::from("/opt/a b/libplugin.so"));
        assert_eq!(mapped_file(line, 0x7f00_a000), library);
        assert_eq!(mapped_file(line, 0x7f00_bfff), library);
        assert_eq!(mapped_file(line, 0x7f00_c000), None);
        assert_eq!(mapped_file("7f00a000-7f00c000 rw-p 00000000 00:00 0", 0x7f00_a000), None);
        assert_eq!(mapped_file("no line", 0), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_build_is_known_by_its_file() {
        let program = std::env::current_exe().unwrap();
        assert_eq!(own_file().map(|path| path.canonicalize().unwrap()), Some(program.canonicalize().unwrap()));
        assert!(build_identity().contains(&contents_identity(&program).unwrap()), "{}", build_identity());
    }

    #[test]
    fn programs_for_other_numbers_of_devices_have_other_keys() {
        let key = |header: &str| {
            let text = format!("HloModule m{header}\nENTRY main {{ ROOT x = f32[2] parameter(0) }}");
            module_key(&xla_hlo::text::parse_module(&text).unwrap())
        };
        let keys = ["", ", replica_count=2", ", num_partitions=2", ", replica_count=2, num_partitions=2"].map(key);
        assert_eq!(HashSet::from(keys).len(), 4);
    }

    #[test]
    fn a_copy_of_a_build_is_the_same_build() {
        let folder = tempfile::tempdir().unwrap();
        let program = std::env::current_exe().unwrap();
        let copy = folder.path().join("copy");
        std::fs::copy(&program, &copy).unwrap();
        assert_eq!(contents_identity(&copy).unwrap(), contents_identity(&program).unwrap());
        // Without a build ID, files of equal size differ by their contents.
        let [one, other] = ["one", "two"].map(|contents| {
            let path = folder.path().join(contents);
            std::fs::write(&path, contents).unwrap();
            contents_identity(&path).unwrap()
        });
        assert_ne!(one, other);
    }
}
