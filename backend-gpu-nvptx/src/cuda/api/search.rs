//! Names and folders of NVIDIA's libraries of CUDA 12 and 13: on the loader's path, in toolkits, in Python packages.

use std::path::{Path, PathBuf};

use xla_hlo::Error;

/// Library to look for.
#[derive(Debug)]
pub(crate) struct Wanted {
    /// Name for messages.
    pub name: &'static str,
    /// File names by the CUDA version that they belong to, the newest first.
    pub files: &'static [(i32, &'static str)],
    /// Folders of its Python packages, relative to the folder of all packages.
    pub folders: &'static [&'static str],
    /// Names of the Python packages that contain it.
    pub packages: &'static str,
}

/// Folders that may have libraries although the loader does not search them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Places {
    /// Folders of Python packages.
    pub packages: Vec<PathBuf>,
    /// Library folders of toolkits.
    pub toolkits: Vec<PathBuf>,
}

impl Wanted {
    /// Returns the file names in the order of the search.
    pub fn names(&self, driver: i32) -> Vec<&'static str> {
        let (mut served, newer): (Vec<_>, Vec<_>) =
            self.files.iter().partition(|(version, _)| version / 1000 <= driver / 1000);
        // A library newer than the driver may still work, with the driver's compatibility package.
        served.extend(newer);
        served.into_iter().map(|(_, name)| name).collect()
    }

    /// Returns the existing files with these names, in the order of the search.
    pub fn files(&self, driver: i32, places: &Places) -> Vec<PathBuf> {
        let packages = places.packages.iter().flat_map(|all| self.folders.iter().map(move |folder| all.join(folder)));
        let folders: Vec<PathBuf> = packages.chain(places.toolkits.iter().cloned()).collect();
        let names = self.names(driver).into_iter();
        let files = names.flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
        files.filter(|file| file.exists()).collect()
    }

    /// Returns the error for a library that was not found.
    pub fn missing(&self) -> Error {
        let files: Vec<&str> = self.files.iter().map(|(_, name)| *name).collect();
        Error::failed_precondition(format!(
            "{} is not installed: {} was not found; install the CUDA toolkit or the Python package {}, or add the folder of the \
             library to LD_LIBRARY_PATH",
            self.name,
            files.join(" or "),
            self.packages
        ))
    }
}

impl Places {
    /// Returns the folders of this machine and of this process.
    pub fn of_this_machine() -> Places {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        Places { packages: package_folders(&maps), toolkits: toolkit_folders(&["/usr/local", "/opt"].map(Path::new)) }
    }
}

/// Returns the folders of Python packages from which this process has loaded files, such as this library. `maps` is the
/// content of `/proc/self/maps`.
pub(super) fn package_folders(maps: &str) -> Vec<PathBuf> {
    let files = maps.lines().filter_map(|line| line.find('/').map(|start| Path::new(&line[start..])));
    let is_folder = |path: &&Path| path.ends_with("site-packages") || path.ends_with("dist-packages");
    let mut folders = Vec::new();
    for folder in files.filter_map(|file| file.ancestors().find(is_folder)) {
        if !folders.iter().any(|known| known == folder) {
            folders.push(folder.to_path_buf());
        }
    }
    folders
}

/// Returns the library folders of the toolkits in some folders: `cuda` before `cuda-13.0` before `cuda-12.8`.
pub(super) fn toolkit_folders(roots: &[&Path]) -> Vec<PathBuf> {
    let mut toolkits = Vec::new();
    for entry in roots.iter().filter_map(|root| root.read_dir().ok()).flatten().flatten() {
        let name = entry.file_name();
        let Some(rest) = name.to_str().and_then(|name| name.strip_prefix("cuda")) else { continue };
        let version: Option<Vec<u32>> = match rest.strip_prefix('-') {
            None if rest.is_empty() => Some(vec![u32::MAX]),
            None => None,
            Some(version) => version.split('.').map(|part| part.parse().ok()).collect(),
        };
        toolkits.extend(version.map(|version| (version, entry.path())));
    }
    toolkits.sort_by(|a, b| b.cmp(a));
    let target = if cfg!(target_arch = "aarch64") { "targets/sbsa-linux/lib" } else { "targets/x86_64-linux/lib" };
    let folders = toolkits.iter().flat_map(|(_, toolkit)| ["lib64", target].map(|folder| toolkit.join(folder)));
    folders.filter(|folder| folder.is_dir()).collect()
}
