//! Search for the MPI library.

use std::path::{Path, PathBuf};

use crate::abi::Family;

/// Environment variable with the path of the library.
pub(crate) const VARIABLE: &str = "XLARS_MPI_LIBRARY";

/// Libraries by family, best first.
const LIBRARIES: [(Family, &str); 3] =
    [(Family::Standard, "libmpi_abi.so.1"), (Family::Mpich, "libmpi.so.12"), (Family::OpenMpi, "libmpi.so.40")];

/// Variables that launchers set for the processes that they start.
const LAUNCHERS: [(&str, Family); 3] =
    [("OMPI_COMM_WORLD_SIZE", Family::OpenMpi), ("PMI_SIZE", Family::Mpich), ("HYDI_CONTROL_FD", Family::Mpich)];

/// Environment of the search.
#[derive(Debug)]
pub(crate) struct Environment {
    /// Value of [`VARIABLE`].
    pub library: Option<PathBuf>,
    /// Family of the launcher that has started this process.
    pub launcher: Option<Family>,
    /// Folder of libraries of the `mpiexec` in the search path.
    pub folder: Option<PathBuf>,
}

impl Environment {
    /// Returns the environment of this process.
    pub fn of_process() -> Environment {
        let launcher = LAUNCHERS.iter().find(|(variable, _)| std::env::var_os(variable).is_some());
        let folders = std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
        Environment {
            library: std::env::var_os(VARIABLE).map(PathBuf::from),
            launcher: launcher.map(|(_, family)| *family),
            folder: library_folder(folders),
        }
    }

    /// Returns the names and paths to try, in order.
    pub fn candidates(&self) -> Vec<PathBuf> {
        if let Some(library) = &self.library {
            return vec![library.clone()];
        }
        // A library of another family would start as a job of one process.
        let is_possible = |family: Family| match self.launcher {
            None => true,
            Some(Family::OpenMpi) => family == Family::OpenMpi,
            Some(Family::Mpich | Family::Standard) => family != Family::OpenMpi,
        };
        let names = LIBRARIES.iter().filter(|(family, _)| is_possible(*family)).map(|(_, name)| *name);
        let here = self.folder.iter().flat_map(|folder| names.clone().map(|name| folder.join(name)));
        here.filter(|path| path.exists()).chain(names.clone().map(PathBuf::from)).collect()
    }
}

/// Returns the names of the libraries that another part of the process may have loaded.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    LIBRARIES.iter().map(|(_, name)| *name)
}

/// Returns the folder of libraries of the first `mpiexec` in these folders.
fn library_folder(folders: Vec<PathBuf>) -> Option<PathBuf> {
    let folder = folders.iter().find(|folder| folder.join("mpiexec").exists())?;
    // Packages may link `mpiexec` from a folder elsewhere.
    let real = std::fs::canonicalize(folder.join("mpiexec")).ok();
    let prefixes = [Some(folder.clone()), real.as_deref().and_then(Path::parent).map(Path::to_path_buf)];
    let lib = |bin: PathBuf| Some(bin.parent()?.join("lib"));
    let has_library = |lib: &PathBuf| names().any(|name| lib.join(name).exists());
    prefixes.into_iter().flatten().filter_map(lib).find(has_library)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(library: Option<&str>, launcher: Option<Family>) -> Vec<String> {
        let environment = Environment { library: library.map(PathBuf::from), launcher, folder: None };
        environment.candidates().iter().map(|path| path.display().to_string()).collect()
    }

    #[test]
    fn the_launcher_selects_the_libraries() {
        assert_eq!(candidates(None, None), ["libmpi_abi.so.1", "libmpi.so.12", "libmpi.so.40"]);
        assert_eq!(candidates(None, Some(Family::Mpich)), ["libmpi_abi.so.1", "libmpi.so.12"]);
        assert_eq!(candidates(None, Some(Family::OpenMpi)), ["libmpi.so.40"]);
        assert_eq!(candidates(Some("/opt/libmpi.so"), Some(Family::OpenMpi)), ["/opt/libmpi.so"]);
    }

    #[test]
    fn libraries_are_found_with_mpiexec() {
        let folder = std::env::temp_dir().join(format!("xla-mpi-find-{}", std::process::id()));
        let [bin, lib] = ["bin", "lib"].map(|name| folder.join(name));
        [&bin, &lib].into_iter().for_each(|folder| std::fs::create_dir_all(folder).unwrap());
        let search = || library_folder(vec![folder.clone(), bin.clone()]);
        std::fs::write(bin.join("mpiexec"), "").unwrap();
        assert_eq!(search(), None);
        std::fs::write(lib.join("libmpi.so.12"), "").unwrap();
        let environment = Environment { library: None, launcher: Some(Family::Mpich), folder: search() };
        assert_eq!(environment.candidates()[0], lib.join("libmpi.so.12"));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
