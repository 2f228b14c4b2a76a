//! Reads machine code from a cubin, which is a 64-bit ELF file.

use anyhow::{Context, Result};

/// The code of each kernel, with its name.
pub fn kernels(file: &[u8]) -> Result<Vec<(String, Vec<u8>)>> {
    let sections = Sections::read(file).context("the cubin is cut off, or no ELF file")?;
    let mut found = Vec::new();
    for number in 0..sections.count {
        let section = sections.section(number).with_context(|| format!("section {number} of the cubin is cut off"))?;
        if let Some(name) = section.name.strip_prefix(".text.") {
            found.push((name.to_owned(), section.bytes.to_vec()));
        }
    }
    Ok(found)
}

/// Section header table.
struct Sections<'f> {
    file: &'f [u8],
    /// Offset, entry size, number of entries, and index of the section name string table.
    start: usize,
    entry: usize,
    count: usize,
    names: usize,
}

struct Section<'f> {
    name: String,
    bytes: &'f [u8],
}

impl<'f> Sections<'f> {
    fn read(file: &'f [u8]) -> Option<Sections<'f>> {
        let half = |place: usize| Some(usize::from(u16::from_le_bytes(array(file, place)?)));
        file.strip_prefix(b"\x7fELF")?;
        Some(Sections { file, start: word(file, 0x28)?, entry: half(0x3a)?, count: half(0x3c)?, names: half(0x3e)? })
    }

    fn section(&self, number: usize) -> Option<Section<'f>> {
        let (names, _) = self.place(self.names)?;
        let (bytes, name) = self.place(number)?;
        let name = names.get(name..)?.split(|&byte| byte == 0).next()?;
        Some(Section { name: String::from_utf8_lossy(name).into_owned(), bytes })
    }

    /// Bytes of a section, and the offset of its name in the string table.
    fn place(&self, number: usize) -> Option<(&'f [u8], usize)> {
        let start = self.start.checked_add(number.checked_mul(self.entry)?)?;
        let header = self.file.get(start..start.checked_add(self.entry)?)?;
        let name = u32::from_le_bytes(array(header, 0)?) as usize;
        let kind = u32::from_le_bytes(array(header, 4)?);
        let (offset, size) = (word(header, 0x18)?, word(header, 0x20)?);
        // `SHT_NOBITS` has no bytes in the file.
        let size = if kind == 8 { 0 } else { size };
        Some((self.file.get(offset..offset.checked_add(size)?)?, name))
    }
}

fn array<const N: usize>(bytes: &[u8], place: usize) -> Option<[u8; N]> {
    bytes.get(place..place.checked_add(N)?)?.try_into().ok()
}

fn word(bytes: &[u8], place: usize) -> Option<usize> {
    usize::try_from(u64::from_le_bytes(array(bytes, place)?)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with a section of code and one of names.
    fn file() -> Vec<u8> {
        let names = b"\0.text.k0_add\0.names\0";
        let mut file = vec![0; 64];
        file[..4].copy_from_slice(b"\x7fELF");
        file.extend([7u8; 16]);
        file.extend(names);
        let table = file.len();
        let mut header = |name: u32, offset: usize, size: usize| {
            let mut entry = vec![0; 64];
            entry[..4].copy_from_slice(&name.to_le_bytes());
            entry[0x18..0x20].copy_from_slice(&(offset as u64).to_le_bytes());
            entry[0x20..0x28].copy_from_slice(&(size as u64).to_le_bytes());
            file.extend(entry);
        };
        header(1, 64, 16);
        header(14, 80, names.len());
        file[0x28..0x30].copy_from_slice(&(table as u64).to_le_bytes());
        file[0x3a..0x40].copy_from_slice(&[64, 0, 2, 0, 1, 0]);
        file
    }

    #[test]
    fn kernels_are_sections_of_code() {
        assert_eq!(kernels(&file()).unwrap(), [("k0_add".to_owned(), vec![7; 16])]);
    }

    #[test]
    fn damaged_files_are_refused() {
        let whole = file();
        for end in 0..whole.len() {
            assert!(kernels(&whole[..end]).is_err(), "{end}");
        }
        for place in 0..whole.len() {
            let mut garbled = whole.clone();
            garbled[place] = 0xff;
            let _ = kernels(&garbled);
        }
    }
}
