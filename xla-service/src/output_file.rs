//! Output files that are written completely or not at all.
//!
//! A file is written under a temporary name in its folder, flushed to disk, and renamed. If the disk is full or the
//! process is killed, an existing file of that name is unchanged.

use std::fs::{self, File, Metadata};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use xla_hlo::{Error, Result};

use crate::temporary::Temporary;

/// Name prefix of temporary files.
const TEMPORARY: &str = ".xla-";

/// Maximum number of symbolic links that are followed from one name, as on Linux.
const LINKS: usize = 40;

/// File under construction. If it is dropped without [`OutputFile::finish`], nothing on disk changes.
///
/// Pipes, devices, sockets and the standard streams by their names (`/dev/stdout`, `/proc/self/fd/3`) are written
/// directly. So is an existing file in a folder where no file can be created.
#[derive(Debug)]
pub struct OutputFile {
    path: PathBuf,
    target: Target,
}

#[derive(Debug)]
enum Target {
    /// Temporary file, its handle, and its final name. It is written through a plain [`File`]: errors of the `tempfile`
    /// type would name the temporary file.
    Renamed(BufWriter<File>, Temporary, PathBuf),
    Direct(BufWriter<File>),
}

impl OutputFile {
    /// Creates the file. [`Error::FailedPrecondition`] names a file that cannot be created or written.
    pub fn create(path: &Path) -> Result<OutputFile> {
        let target = Target::create(path).map_err(|error| cannot_write(path, error))?;
        Ok(OutputFile { path: path.to_path_buf(), target })
    }

    /// Whether the file supports seeking; `false` for a file that is written directly.
    pub fn is_seekable(&self) -> bool {
        matches!(self.target, Target::Renamed(..))
    }

    /// Returns the [`Error::FailedPrecondition`] for an error from a write to this file.
    pub fn error(&self, error: io::Error) -> Error {
        cannot_write(&self.path, error)
    }

    /// Replaces the file of that name once all bytes are on disk. On an error the existing file stays.
    pub fn finish(mut self) -> Result<()> {
        self.sync()?;
        self.finish_without_sync()
    }

    /// Replaces the file of that name without waiting until the bytes are on disk: after a power failure the file may
    /// be incomplete.
    pub fn finish_without_sync(self) -> Result<()> {
        let OutputFile { path, target } = self;
        let finished = match target {
            Target::Renamed(mut file, temporary, name) => file.flush().and_then(|()| temporary.persist(&name)),
            Target::Direct(mut file) => file.flush(),
        };
        finished.map_err(|error| cannot_write(&path, error))
    }

    /// Flushes all bytes to disk.
    fn sync(&mut self) -> Result<()> {
        let synced = self.flush().and_then(|()| match &self.target {
            Target::Renamed(file, ..) => file.get_ref().sync_all(),
            // Pipes and terminals do not support syncing.
            Target::Direct(_) => Ok(()),
        });
        synced.map_err(|error| self.error(error))
    }
}

/// Writes a file completely or not at all; see [`OutputFile`].
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    write_files([(path.to_path_buf(), bytes)])
}

/// Writes several files. All are on disk under temporary names before the first is renamed; see [`OutputFile`].
pub fn write_files<'a>(files: impl IntoIterator<Item = (PathBuf, &'a [u8])>) -> Result<()> {
    let mut written = Vec::new();
    for (path, bytes) in files {
        let mut file = OutputFile::create(&path)?;
        file.write_all(bytes).map_err(|error| file.error(error))?;
        file.sync()?;
        written.push(file);
    }
    written.into_iter().try_for_each(OutputFile::finish_without_sync)
}

impl Target {
    fn create(path: &Path) -> io::Result<Target> {
        let (path, is_descriptor) = follow_links(path)?;
        if is_descriptor {
            return open_descriptor(&path).map(|file| Target::Direct(BufWriter::new(file)));
        }
        let old = match fs::metadata(&path) {
            Ok(facts) => Some(facts),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        if let Some(facts) = &old {
            // Also checks write permission, which a rename does not check.
            let file = File::options().write(true).open(&path)?;
            if !facts.is_file() {
                return Ok(Target::Direct(BufWriter::new(file)));
            }
        }
        match create_temporary(&path, old.as_ref()) {
            Ok((file, temporary)) => Ok(Target::Renamed(BufWriter::new(file), temporary, path)),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && old.is_some() => {
                let file = File::options().write(true).truncate(true).open(&path)?;
                Ok(Target::Direct(BufWriter::new(file)))
            }
            Err(error) => Err(error),
        }
    }
}

/// Creates a temporary file in the folder of `path`, with the permissions of the existing file or default ones.
fn create_temporary(path: &Path, old: Option<&Metadata>) -> io::Result<(File, Temporary)> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(TEMPORARY).suffix(".tmp");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let file = builder.tempfile_in(folder)?;
    if let Some(facts) = old {
        file.as_file().set_permissions(facts.permissions())?;
    }
    let (file, path) = file.into_parts();
    Ok((file, Temporary::new(path)))
}

/// Follows symbolic links. Returns the final path, which need not exist, and whether it names an open file descriptor.
fn follow_links(path: &Path) -> io::Result<(PathBuf, bool)> {
    let mut path = path.to_path_buf();
    for _ in 0..LINKS {
        if names_descriptor(&path) {
            return Ok((path, true));
        }
        match fs::read_link(&path) {
            Ok(target) => path = path.parent().unwrap_or(Path::new("")).join(target),
            // Not a symbolic link, or the path does not exist yet.
            Err(_) => return Ok((path, false)),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

/// Whether a path names a file descriptor of a process. On Linux its link leads to a file that a rename would replace.
fn names_descriptor(path: &Path) -> bool {
    ["/dev/stdout", "/dev/stderr", "/dev/stdin"].iter().any(|name| path == Path::new(name))
        || path.starts_with("/dev/fd")
        || path.starts_with("/proc")
}

/// Opens a file descriptor of a process by its name. The standard streams keep their positions.
#[cfg(unix)]
fn open_descriptor(path: &Path) -> io::Result<File> {
    use std::os::fd::AsFd;

    let is = |names: [&str; 3]| names.iter().any(|name| path == Path::new(name));
    if is(["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"]) {
        return Ok(io::stdout().as_fd().try_clone_to_owned()?.into());
    }
    if is(["/dev/stderr", "/dev/fd/2", "/proc/self/fd/2"]) {
        return Ok(io::stderr().as_fd().try_clone_to_owned()?.into());
    }
    let is_file = fs::metadata(path)?.is_file();
    File::options().write(true).append(is_file).open(path)
}

#[cfg(not(unix))]
fn open_descriptor(path: &Path) -> io::Result<File> {
    File::options().write(true).open(path)
}

fn cannot_write(path: &Path, error: io::Error) -> Error {
    Error::failed_precondition(format!("cannot write {}: {error}", path.display())).with_source(error)
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.target {
            Target::Renamed(file, ..) => file.write(bytes),
            Target::Direct(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.target {
            Target::Renamed(file, ..) => file.flush(),
            Target::Direct(file) => file.flush(),
        }
    }
}

impl Seek for OutputFile {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        match &mut self.target {
            Target::Renamed(file, ..) => file.seek(position),
            Target::Direct(file) => file.seek(position),
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn an_old_file_stays_until_the_new_one_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        write_file(&path, b"old").unwrap();
        let mut file = OutputFile::create(&path).unwrap();
        file.write_all(b"ne").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        drop(file);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        write_file(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(folder.path()), ["out"]);
    }

    #[test]
    fn several_files_are_written_all_or_none() {
        let folder = tempfile::tempdir().unwrap();
        let [first, second] = ["first", "none/second"].map(|name| folder.path().join(name));
        let error = write_files([(first, &b"1"[..]), (second.clone(), b"2")]).unwrap_err();
        assert!(error.message().starts_with(&format!("cannot write {}: ", second.display())), "{error}");
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn permissions_and_links_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let [path, link, dangling] = ["file", "link", "dangling"].map(|name| folder.path().join(name));
        write_file(&path, b"1").unwrap();
        fs::write(folder.path().join("usual"), "").unwrap();
        let mode = |name: &str| folder.path().join(name).metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode("file"), mode("usual"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        symlink("file", &link).unwrap();
        write_file(&link, b"2").unwrap();
        assert!(link.is_symlink());
        assert_eq!((fs::read(&path).unwrap(), mode("file")), (b"2".to_vec(), 0o640));
        symlink("later", &dangling).unwrap();
        write_file(&dangling, b"3").unwrap();
        assert_eq!(fs::read(folder.path().join("later")).unwrap(), b"3");
        symlink("circle", folder.path().join("circle")).unwrap();
        assert!(write_file(&folder.path().join("circle"), b"4").is_err());
    }

    #[test]
    fn devices_are_written_directly_and_their_errors_are_reported() {
        write_file(Path::new("/dev/null"), b"1").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
        if Path::new("/dev/full").exists() {
            let error = write_file(Path::new("/dev/full"), b"1").unwrap_err();
            assert!(error.message().starts_with("cannot write /dev/full: No space left on device"), "{error}");
        }
        assert!(write_file(Path::new("/"), b"1").is_err());
        assert!(write_file(Path::new(""), b"1").is_err());
    }
}
