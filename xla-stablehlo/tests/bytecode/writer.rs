//! Writer of containers, for files that no tool would write.

/// The parts of a file, each as the section has it.
pub struct File {
    pub version: u8,
    pub strings: Vec<&'static str>,
    /// Payloads of attributes, all in the encoding of `builtin`.
    pub attributes: Vec<Vec<u8>>,
    /// Payloads of types, all in the encoding of `builtin`.
    pub types: Vec<Vec<u8>>,
    pub ir: Vec<u8>,
}

/// A varint of the least length.
pub fn varint(value: usize) -> Vec<u8> {
    let value = value as u64;
    for bytes in 1..=8 {
        if value < 1 << (7 * bytes) {
            return ((value << bytes) | 1 << (bytes - 1)).to_le_bytes()[..bytes].to_vec();
        }
    }
    [&[0][..], &value.to_le_bytes()].concat()
}

fn section(number: u8, payload: &[u8]) -> Vec<u8> {
    [&[number][..], &varint(payload.len()), payload].concat()
}

impl File {
    /// A file whose strings are the dialect `builtin` and its operation `module`.
    pub fn new() -> File {
        let strings = vec!["builtin", "module"];
        // Attribute 0 is an unknown location.
        File { version: 6, strings, attributes: vec![varint(15)], types: Vec::new(), ir: Vec::new() }
    }

    pub fn write(&self) -> Vec<u8> {
        let count = varint(self.strings.len());
        let lengths = self.strings.iter().rev().flat_map(|text| varint(text.len() + 1));
        let texts = self.strings.iter().flat_map(|text| [text.as_bytes(), &[0]].concat());
        let strings: Vec<u8> = count.into_iter().chain(lengths).chain(texts).collect();
        // One dialect without a version; one name in it.
        let dialects = [varint(1), varint(0), varint(1), varint(0), varint(1), varint(2)].concat();
        let group = |entries: &[Vec<u8>]| {
            let sizes = entries.iter().flat_map(|entry| varint(entry.len() << 1 | 1));
            let head = if entries.is_empty() { Vec::new() } else { [varint(0), varint(entries.len())].concat() };
            head.into_iter().chain(sizes).collect::<Vec<u8>>()
        };
        let tables = [varint(self.attributes.len()), varint(self.types.len())].concat();
        let offsets = [tables, group(&self.attributes), group(&self.types)].concat();
        let entries = [self.attributes.concat(), self.types.concat()].concat();
        let head = [&b"ML\xEFR"[..], &varint(self.version.into()), b"test\0"].concat();
        let sections = [(0, &strings), (1, &dialects), (2, &entries), (3, &offsets), (4, &self.ir)];
        let sections = sections.into_iter().flat_map(|(number, payload)| section(number, payload));
        head.into_iter().chain(sections).chain(section(8, &varint(0))).collect()
    }
}

/// The IR of a module with these bytes behind its location, and the mask that says what they are.
pub fn module(mask: u8, rest: &[u8]) -> Vec<u8> {
    [&varint(1 << 1), &varint(0)[..], &[mask], &varint(0), rest].concat()
}
