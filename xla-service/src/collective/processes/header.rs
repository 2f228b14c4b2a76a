//! First message of a process in a collective: spec, arguments, and operands if they are small.

use xla_hlo::{Error, Result};

use crate::collective::{CollectiveSpec, MemberArguments, RowMove};

/// Identifies the format of messages. Changes with it.
const FORMAT: u32 = 0x584c_0001;

/// Contents of a header.
#[derive(Debug, PartialEq)]
pub(super) struct Header {
    /// Hash of the spec.
    pub digest: u64,
    /// Spec, for messages.
    pub text: String,
    /// Arguments of the process's members, in the order of their ranks.
    pub arguments: Vec<MemberArguments>,
    /// Operands, unless they follow in other messages.
    pub operands: Option<Vec<u8>>,
}

/// Returns a header as bytes.
pub(super) fn encode(spec: &CollectiveSpec, arguments: &[MemberArguments], operands: Option<&[u8]>) -> Vec<u8> {
    let (digest, text) = spec.identity();
    let mut bytes = Vec::with_capacity(64 + text.len() + operands.map_or(0, <[u8]>::len));
    bytes.extend(FORMAT.to_le_bytes());
    bytes.extend(digest.to_le_bytes());
    list(&mut bytes, text.bytes(), |bytes, byte| bytes.push(byte));
    list(&mut bytes, arguments.iter(), argument);
    bytes.push(u8::from(operands.is_some()));
    bytes.extend(operands.unwrap_or_default());
    bytes
}

fn list<T>(bytes: &mut Vec<u8>, values: impl ExactSizeIterator<Item = T>, mut put: impl FnMut(&mut Vec<u8>, T)) {
    bytes.extend((values.len() as u64).to_le_bytes());
    values.for_each(|value| put(bytes, value));
}

fn index(bytes: &mut Vec<u8>, index: &usize) {
    bytes.extend((*index as u64).to_le_bytes());
}

fn argument(bytes: &mut Vec<u8>, argument: &MemberArguments) {
    match argument {
        MemberArguments::None => bytes.push(0),
        MemberArguments::Root(root) => {
            bytes.push(1);
            index(bytes, root);
        }
        MemberArguments::Slices { read_at, write_at } => {
            bytes.push(2);
            list(bytes, read_at.iter(), index);
            list(bytes, write_at.iter(), index);
        }
        MemberArguments::Rows(rows) => {
            bytes.push(3);
            list(bytes, rows.iter(), |bytes, row| {
                [row.read_at, row.write_at, row.count].iter().for_each(|x| bytes.extend(x.to_le_bytes()));
            });
        }
    }
}

/// Returns the header of these bytes. Fails if they are no header of this format.
pub(super) fn decode(bytes: Vec<u8>) -> Result<Header> {
    let mut reader = Reader(&bytes);
    if reader.array().map(u32::from_le_bytes) != Some(FORMAT) {
        return Err(Error::failed_precondition("a process sent messages of another format")
            .note("all processes must run the same version of this library"));
    }
    reader.header().ok_or_else(|| Error::internal("a process sent a header that is cut off"))
}

/// Rest of a message. Each read returns `None` at its end.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn header(&mut self) -> Option<Header> {
        let digest = u64::from_le_bytes(self.array()?);
        let text = self.list(1, |reader| Some(reader.array::<1>()?[0]))?;
        let arguments = self.list(1, Reader::argument)?;
        let [has_operands] = self.array()?;
        let operands = (has_operands == 1).then(|| self.0.to_vec());
        Some(Header { digest, text: String::from_utf8_lossy(&text).into_owned(), arguments, operands })
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*array)
    }

    fn index(&mut self) -> Option<usize> {
        usize::try_from(u64::from_le_bytes(self.array()?)).ok()
    }

    /// Reads a list of elements of at least `size` bytes.
    fn list<T>(&mut self, size: usize, mut element: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.index()?;
        if count > self.0.len() / size {
            return None;
        }
        (0..count).map(|_| element(self)).collect()
    }

    fn argument(&mut self) -> Option<MemberArguments> {
        Some(match self.array()? {
            [0] => MemberArguments::None,
            [1] => MemberArguments::Root(self.index()?),
            [2] => MemberArguments::Slices {
                read_at: self.list(8, Reader::index)?,
                write_at: self.list(8, Reader::index)?,
            },
            [3] => MemberArguments::Rows(self.list(24, |reader| {
                let [read_at, write_at, count] =
                    [reader.array()?, reader.array()?, reader.array()?].map(i64::from_le_bytes);
                Some(RowMove { read_at, write_at, count })
            })?),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use xla_hlo::ElementType;

    use super::*;
    use crate::collective::{Operation, Part};

    #[test]
    fn headers_are_read_as_written_and_cut_ones_are_errors() {
        let spec = CollectiveSpec::new(Operation::AllGather, vec![Part::whole(ElementType::F16, 3)], 2).unwrap();
        let row = RowMove { read_at: -1, write_at: i64::MAX, count: 3 };
        let arguments = vec![
            MemberArguments::None,
            MemberArguments::Root(7),
            MemberArguments::Slices { read_at: vec![1, 2], write_at: vec![] },
            MemberArguments::Rows(vec![row, row]),
        ];
        for operands in [None, Some(&b"abc"[..])] {
            let bytes = encode(&spec, &arguments, operands);
            let header = decode(bytes.clone()).unwrap();
            assert_eq!((&header.arguments, header.operands.as_deref()), (&arguments, operands));
            assert_eq!((header.digest, &header.text[..]), (spec.identity().0, "all-gather of f16[3]"));
            let least = bytes.len() - operands.map_or(0, <[u8]>::len);
            assert!((0..least).all(|length| decode(bytes[..length].to_vec()).is_err()));
        }
        let mut huge = encode(&spec, &[], None);
        huge[12..20].fill(0xff);
        assert!(decode(huge).unwrap_err().to_string().contains("cut off"));
        assert!(decode(vec![1, 2, 3, 4]).unwrap_err().to_string().contains("the same version"));
    }
}
