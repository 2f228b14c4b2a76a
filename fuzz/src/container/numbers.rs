//! Varints of MLIR's bytecode: decoding from the front of a slice, encoding to the end of a vector.

/// Bytes that are not decoded yet.
#[derive(Clone, Copy)]
pub struct Numbers<'a>(pub &'a [u8]);

impl<'a> Numbers<'a> {
    pub fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub fn varint(&mut self) -> Option<u64> {
        let first = self.byte()?;
        let more = first.trailing_zeros() as usize;
        let mut wide = [0; 8];
        if more == 8 {
            wide.copy_from_slice(self.take(8)?);
            return Some(u64::from_le_bytes(wide));
        }
        wide[0] = first;
        wide[1..=more].copy_from_slice(self.take(more)?);
        Some(u64::from_le_bytes(wide) >> (more + 1))
    }

    /// Decodes elements that are preceded by their count; each takes at least a byte.
    pub fn list<T>(&mut self, mut element: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.varint()?;
        if count > self.0.len() as u64 {
            return None;
        }
        (0..count).map(|_| element(self)).collect()
    }

    /// Decodes a list like [`Numbers::list`]; at the end of the input, returns an empty list.
    pub fn list_if_any<T>(&mut self, element: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        if self.0.is_empty() { Some(Vec::new()) } else { self.list(element) }
    }
}

/// Appends a varint of minimum length.
pub fn put(bytes: &mut Vec<u8>, value: u64) {
    for count in 1..=8 {
        if value < 1 << (7 * count) {
            bytes.extend(&((value << count) | 1 << (count - 1)).to_le_bytes()[..count]);
            return;
        }
    }
    bytes.push(0);
    bytes.extend(value.to_le_bytes());
}
