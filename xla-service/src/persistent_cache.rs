//! Persistent cache: compiled programs on disk, for other processes to find.
//!
//! A program is found by everything that it was made from: the module, the options, the platform and the target of its
//! code ([`LoadExecutable::cache_target`]), and this very build of the compiler. [`FileCache`] says how files are kept.

use std::hash::Hasher;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use sha2::{Digest, Sha256};
use xla_hlo::Module;

use crate::compiler::{Compiler, LoadExecutable};
use crate::executable::Executable;
use crate::file_cache::{FileCache, hex};
use crate::fingerprint::hash_module;
use crate::options::CompileOptions;

/// Bytes that all programs in a folder may take.
const MOST_BYTES: u64 = 1 << 30;

/// The place of one program in the cache.
pub(crate) struct PersistentCache<'a> {
    files: FileCache,
    loader: &'a dyn LoadExecutable,
    key: String,
}

impl<'a> PersistentCache<'a> {
    /// The place of a program; `None` where programs are not kept: the options ask for no cache or for dumps of what a
    /// compilation does, or the platform's serialised programs hold no code.
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

    /// The program, if it is there and can be used.
    pub fn load(&self, options: &CompileOptions) -> Option<Arc<dyn Executable>> {
        let bytes = self.files.get(&self.key)?;
        let loaded = self.loader.load(&bytes, options);
        if let Err(error) = &loaded {
            let path = self.files.path(&self.key);
            tracing::warn!(path = %path.display(), %error, "a program of the cache is compiled anew");
        }
        loaded.ok()
    }

    /// Keeps the program.
    pub fn store(&self, executable: &dyn Executable) {
        match executable.serializer().map(|serializer| serializer.serialize()) {
            Some(Ok(bytes)) => self.files.put(&self.key, &bytes),
            Some(Err(error)) => tracing::debug!(%error, "a program cannot be kept"),
            None => {}
        }
    }
}

/// Identity of this build of the compiler: its version, and size and time of the program that it is part of. Another
/// build must not trust private entries, such as code that calls functions of the runtime.
pub fn build_identity() -> String {
    let facts = std::env::current_exe().and_then(|path| path.metadata());
    let time = facts.as_ref().ok().and_then(|facts| facts.modified().ok()?.duration_since(UNIX_EPOCH).ok());
    format!("{} {} {time:?}", env!("CARGO_PKG_VERSION"), facts.map_or(0, |facts| facts.len()))
}

fn module_key(module: &Module) -> String {
    let mut hasher = Cryptographic(Sha256::new());
    hash_module(module, &mut hasher);
    hex(hasher.0)
}

/// Hashes the output of [`std::hash::Hash`] so that nobody can make two modules of one hash.
struct Cryptographic(Sha256);

impl Hasher for Cryptographic {
    /// Of no use: the digest is taken from inside.
    fn finish(&self) -> u64 {
        0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }
}
