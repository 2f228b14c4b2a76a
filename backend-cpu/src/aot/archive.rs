//! `libNAME.a`: static library of one object file, with the symbol index that linkers need.

use std::io::Cursor;

use ar_archive_writer::{ArchiveKind, DEFAULT_OBJECT_READER, NewArchiveMember, write_archive_to_stream};
use xla_hlo::{Error, Result};
use xla_llvm::target::Target;

/// Returns the file name in the form that linkers search for.
pub(super) fn name(name: &str, target: &Target) -> String {
    match kind(target.triple()) {
        ArchiveKind::Coff => format!("{name}.lib"),
        _ => format!("lib{name}.a"),
    }
}

/// Builds a static library of the object file. The output is deterministic.
pub(super) fn of(object: &[u8], name: &str, target: &Target) -> Result<Vec<u8>> {
    let member = NewArchiveMember::new(object, &DEFAULT_OBJECT_READER, format!("{name}.o"));
    let mut bytes = Cursor::new(Vec::new());
    write_archive_to_stream(&mut bytes, &[member], kind(target.triple()), false, None)
        .map_err(|reason| Error::internal(format!("the library cannot be written: {reason}")))?;
    Ok(bytes.into_inner())
}

/// Returns the archive format for the linkers of the target's system.
fn kind(triple: &str) -> ArchiveKind {
    let has = |part: &str| triple.split('-').any(|name| name.starts_with(part));
    match () {
        () if ["apple", "darwin", "macos", "ios"].iter().any(|part| has(part)) => ArchiveKind::Darwin,
        () if has("windows") && has("msvc") => ArchiveKind::Coff,
        () => ArchiveKind::Gnu,
    }
}
