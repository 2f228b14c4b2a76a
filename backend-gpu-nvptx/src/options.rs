//! What a process may keep on disk and try out when it runs programs on GPUs.

use std::path::{Path, PathBuf};

/// How programs run on GPUs; how they are compiled does not depend on it, but for Fourier transforms.
///
/// By default nothing is read or written on disk and nothing is measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GpuOptions {
    /// A folder for what takes long to find out again; made when it is needed. `None`: nothing is kept from one process to the next.
    ///
    /// It holds machine code of kernels (`cubin`, at most 256 MiB) and which of several ways to compute something was the fastest
    /// (`choices`). Processes may share it. Its files may be deleted at any time; garbled ones count as absent.
    pub cache: Option<PathBuf>,
    /// Whether several ways to compute the same, a library's and those of our kernels, are measured where a program first needs it. Otherwise
    /// what is in the cache decides, and where nothing is, the library's own judgement. Ways may differ in how they round.
    pub autotune: bool,
}

impl GpuOptions {
    /// Where a user's cache is, by the rules of freedesktop.org: in `cache_home` (`XDG_CACHE_HOME`) if that is an absolute path, else in `.cache`
    /// of `home`. Whoever may read the environment hands both in.
    pub fn user_cache(cache_home: Option<&Path>, home: Option<&Path>) -> Option<PathBuf> {
        let caches = cache_home.filter(|path| path.is_absolute()).map(Path::to_path_buf);
        let caches = caches.or_else(|| home.filter(|path| path.is_absolute()).map(|home| home.join(".cache")));
        caches.map(|caches| caches.join("xla"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_folder_follows_the_rules() {
        let folder =
            |caches, home| GpuOptions::user_cache(Option::map(caches, Path::new), Option::map(home, Path::new));
        assert_eq!(folder(Some("/caches"), Some("/me")), Some(PathBuf::from("/caches/xla")));
        assert_eq!(folder(Some("relative"), Some("/me")), Some(PathBuf::from("/me/.cache/xla")));
        assert_eq!(folder(None, Some("")), None);
    }
}
