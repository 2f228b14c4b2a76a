//! Archives of named arrays in numpy's `.npz` format.
//!
//! Element types that numpy lacks are stored as raw bytes, one element per item, as `ml_dtypes` does.

mod npy;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use xla_hlo::{ArrayShape, Error, Literal, Result};
use xla_service::OutputFile;
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use npy::Header;

/// Suffix that numpy appends to the names of arrays.
const SUFFIX: &str = ".npy";

/// Source of an archive's bytes.
trait Source: Read + Seek {}

impl<T: Read + Seek> Source for T {}

/// Archive for reading.
pub struct Archive {
    path: PathBuf,
    zip: ZipArchive<Box<dyn Source>>,
    names: BTreeSet<String>,
}

impl Archive {
    /// Opens an archive and lists its arrays. Errors name the file.
    pub fn open(path: &Path) -> Result<Archive> {
        let file = File::open(path).map_err(|e| Error::not_found(format!("cannot open {}: {e}", path.display())))?;
        Archive::new(path, Box::new(BufReader::new(file)))
    }

    /// Opens an archive in memory; errors name it by `path`.
    pub fn from_bytes(path: impl AsRef<Path>, bytes: Vec<u8>) -> Result<Archive> {
        Archive::new(path.as_ref(), Box::new(Cursor::new(bytes)))
    }

    fn new(path: &Path, source: Box<dyn Source>) -> Result<Archive> {
        let refuse = |what: String| Error::invalid_argument(format!("{}: {what}", path.display()));
        let zip = ZipArchive::new(source).map_err(|error| refuse(unreadable(&error)))?;
        let mut names = BTreeSet::new();
        for name in zip.file_names() {
            let name = name.map_err(|error| refuse(unreadable(&error)))?;
            names.insert(name.strip_suffix(SUFFIX).unwrap_or(&name).to_string());
        }
        Ok(Archive { path: path.to_path_buf(), zip, names })
    }

    /// Returns the file as the user named it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the names of the arrays.
    pub fn names(&self) -> &BTreeSet<String> {
        &self.names
    }

    /// Returns the extents of an array; `None` if it does not exist or cannot be read.
    pub fn extents(&mut self, name: &str) -> Option<Vec<usize>> {
        let mut member = self.zip.by_name(&format!("{name}{SUFFIX}")).ok()?;
        Some(Header::read(&mut member).ok()?.dims)
    }

    /// Reads an array, which must have the element type and dimensions of `shape`. Errors name the array and the file.
    pub fn read(&mut self, name: &str, shape: &ArrayShape) -> Result<Literal> {
        let member = self.zip.by_name(&format!("{name}{SUFFIX}"));
        let member = member.map_err(|error| Error::invalid_argument(format!("cannot be read: {}", unreadable(&error))));
        let read = member.and_then(|mut member| Header::read(&mut member)?.read_data(&mut member, shape));
        read.map_err(|error| {
            let message = format!("{name} of {} {}", self.path.display(), error.message());
            match error {
                Error::ResourceExhausted(_) => Error::resource_exhausted(message),
                _ => Error::invalid_argument(message),
            }
        })
    }
}

/// Writes an archive of the arrays `out0`, `out1`, ... without compression, as `numpy.savez` does.
///
/// The file is written atomically ([`OutputFile`]). [`Error::FailedPrecondition`] names a file that cannot be written.
pub fn write(path: &Path, outputs: &[Literal]) -> Result<()> {
    write_named(path, outputs.iter().enumerate().map(|(i, literal)| (format!("out{i}"), literal)))
}

/// Writes an archive of arrays with names, like [`write()`].
pub fn write_named<'a>(path: &Path, outputs: impl IntoIterator<Item = (String, &'a Literal)>) -> Result<()> {
    let mut file = FirstError { inner: OutputFile::create(path)?, failed: false, position: 0 };
    let written = if file.inner.is_seekable() {
        write_members(ZipWriter::new(&mut file), outputs)
    } else {
        write_members(ZipWriter::new_stream(&mut file), outputs)
    };
    written.map_err(|error| {
        let error = match error {
            ZipError::Io(error) => error,
            error => std::io::Error::other(error),
        };
        file.inner.error(error)
    })?;
    file.inner.finish()
}

fn write_members<'a, W: Write + Seek>(
    mut zip: ZipWriter<W>,
    outputs: impl IntoIterator<Item = (String, &'a Literal)>,
) -> zip::result::ZipResult<()> {
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    for (name, literal) in outputs {
        let large = u32::try_from(literal.byte_len().saturating_add(1 << 16)).is_err();
        zip.start_file(format!("{name}{SUFFIX}"), options.large_file(large))?;
        npy::write(&mut zip, literal)?;
    }
    Ok(zip.finish()?.flush()?)
}

/// Writer that returns the first error of a file and then discards all further data. A [`ZipWriter`] that is dropped
/// after an error completes its archive, and would print a second error.
struct FirstError {
    inner: OutputFile,
    failed: bool,
    position: u64,
}

impl Write for FirstError {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = if self.failed { Ok(bytes.len()) } else { self.inner.write(bytes) };
        match &written {
            Ok(count) => self.position += *count as u64,
            Err(error) => self.failed = error.kind() != std::io::ErrorKind::Interrupted,
        }
        written
    }

    fn flush(&mut self) -> std::io::Result<()> {
        if self.failed {
            return Ok(());
        }
        self.inner.flush().inspect_err(|_| self.failed = true)
    }
}

impl Seek for FirstError {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        if self.failed {
            let moved = |from: u64, by: i64| from.saturating_add_signed(by);
            self.position = match to {
                SeekFrom::Start(position) => position,
                SeekFrom::End(by) | SeekFrom::Current(by) => moved(self.position, by),
            };
        } else {
            self.position = self.inner.seek(to).inspect_err(|_| self.failed = true)?;
        }
        Ok(self.position)
    }
}

/// Describes the error of an archive for the user.
fn unreadable(error: &ZipError) -> String {
    match error {
        ZipError::InvalidArchive(what) => format!("not a complete .npz archive: {what}"),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xla_hlo::{ElementType, Scalar};

    #[test]
    fn what_was_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.npz");
        let shape = ArrayShape::new(ElementType::BF16, [3]);
        let literal = Literal::splat(&shape, Scalar::Float(2.5)).unwrap();
        write(&path, &[literal.clone(), Literal::scalar(ElementType::Pred, Scalar::Pred(true))]).unwrap();
        let mut archive = Archive::open(&path).unwrap();
        assert_eq!(archive.names().iter().collect::<Vec<_>>(), ["out0", "out1"]);
        assert_eq!(archive.read("out0", &shape).unwrap(), literal);
        let error = archive.read("out1", &shape).unwrap_err();
        assert!(error.message().ends_with("out.npz is pred[], not bf16[3]"), "{error}");
        assert!(archive.read("out2", &shape).unwrap_err().message().contains("out.npz cannot be read: "));
    }

    #[test]
    fn damaged_archives_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in.npz");
        let shape = ArrayShape::new(ElementType::F32, [1000]);
        write(&path, &[Literal::zeros(&shape).unwrap()]).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for length in [0, 1, 30, 100, 2000, whole.len() - 1] {
            std::fs::write(&path, &whole[..length]).unwrap();
            assert!(Archive::open(&path).is_err(), "{length}");
        }
        let mut flipped = whole.clone();
        flipped[3000] ^= 1;
        std::fs::write(&path, &flipped).unwrap();
        let error = Archive::open(&path).unwrap().read("out0", &shape).unwrap_err();
        assert!(error.message().to_lowercase().contains("checksum"), "{error}");
        assert!(Archive::open(folder.path()).is_err() && Archive::open(&folder.path().join("none")).is_err());
    }
}
