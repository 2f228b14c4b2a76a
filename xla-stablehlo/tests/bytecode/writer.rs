//! Writer of containers, for files that no tool would write.

#![allow(dead_code, reason = "each user needs a part of it")]

/// Dialects by number.
pub const BUILTIN: usize = 0;
pub const VHLO: usize = 1;
/// Added to the number of a dialect if the payload is text.
pub const TEXT: usize = 16;

/// Parts of a file, in the form of their sections.
pub struct File {
    pub version: u8,
    pub producer: &'static str,
    /// Names of operations after `builtin.module`, which has number 0; all of VHLO.
    pub operations: Vec<&'static str>,
    /// Other strings; their numbers follow those of `builtin`, `vhlo` and `module`.
    pub strings: Vec<&'static str>,
    /// Dialects and payloads of attributes.
    pub attributes: Vec<(usize, Vec<u8>)>,
    /// Dialects and payloads of types.
    pub types: Vec<(usize, Vec<u8>)>,
    pub properties: Vec<Vec<u8>>,
    pub ir: Vec<u8>,
}

/// Returns a varint of minimal length.
pub fn varint(value: usize) -> Vec<u8> {
    let value = value as u64;
    for bytes in 1..=8 {
        if value < 1 << (7 * bytes) {
            return ((value << bytes) | 1 << (bytes - 1)).to_le_bytes()[..bytes].to_vec();
        }
    }
    [&[0][..], &value.to_le_bytes()].concat()
}

/// Returns varints preceded by their number.
pub fn list(values: &[usize]) -> Vec<u8> {
    std::iter::once(values.len()).chain(values.iter().copied()).flat_map(varint).collect()
}

fn section(number: u8, payload: &[u8]) -> Vec<u8> {
    [&[number][..], &varint(payload.len()), payload].concat()
}

/// Returns the sizes of the entries of a table, in groups of one dialect.
fn groups(entries: &[(usize, Vec<u8>)]) -> Vec<u8> {
    let group = |group: &[(usize, Vec<u8>)]| {
        let sizes = group.iter().flat_map(|(_, payload)| varint(payload.len() << 1 | usize::from(group[0].0 < TEXT)));
        [varint(group[0].0 % TEXT), varint(group.len())].concat().into_iter().chain(sizes).collect::<Vec<u8>>()
    };
    entries.chunk_by(|a, b| a.0 == b.0).flat_map(group).collect()
}

impl File {
    /// Creates a file whose first attribute is an unknown location.
    pub fn new() -> File {
        File {
            version: 6,
            producer: "test",
            operations: Vec::new(),
            strings: Vec::new(),
            attributes: vec![(BUILTIN, varint(15))],
            types: Vec::new(),
            properties: Vec::new(),
            ir: Vec::new(),
        }
    }

    fn all_strings(&self) -> Vec<&'static str> {
        ["builtin", "vhlo", "module"].iter().chain(&self.strings).chain(&self.operations).copied().collect()
    }

    /// Adds a string; returns its number.
    pub fn string(&mut self, text: &'static str) -> usize {
        self.strings.push(text);
        2 + self.strings.len()
    }

    /// Adds an attribute; returns its number.
    pub fn attribute(&mut self, dialect: usize, payload: Vec<u8>) -> usize {
        self.attributes.push((dialect, payload));
        self.attributes.len() - 1
    }

    /// Adds a type; returns its number.
    pub fn ty(&mut self, dialect: usize, payload: Vec<u8>) -> usize {
        self.types.push((dialect, payload));
        self.types.len() - 1
    }

    pub fn write(&self) -> Vec<u8> {
        let strings = self.all_strings();
        let lengths = strings.iter().rev().flat_map(|text| varint(text.len() + 1));
        let texts = strings.iter().flat_map(|text| [text.as_bytes(), &[0]].concat());
        let strings: Vec<u8> = varint(strings.len()).into_iter().chain(lengths).chain(texts).collect();
        // Two dialects without versions, and the names in each.
        let mut dialects =
            [list(&[0, 2]), varint(1 + self.operations.len()), varint(BUILTIN), list(&[2 << 1])].concat();
        if !self.operations.is_empty() {
            let names: Vec<usize> = (0..self.operations.len()).map(|i| (3 + self.strings.len() + i) << 1).collect();
            dialects.extend([varint(VHLO), list(&names)].concat());
        }
        let tables = [varint(self.attributes.len()), varint(self.types.len())].concat();
        let offsets = [tables, groups(&self.attributes), groups(&self.types)].concat();
        let entries: Vec<u8> = self.attributes.iter().chain(&self.types).flat_map(|(_, entry)| entry.clone()).collect();
        let properties = self.properties.iter().flat_map(|entry| [varint(entry.len()), entry.clone()].concat());
        let properties: Vec<u8> = varint(self.properties.len()).into_iter().chain(properties).collect();
        let head = [&b"ML\xEFR"[..], &varint(self.version.into()), self.producer.as_bytes(), b"\0"].concat();
        let sections = [(0, &strings), (1, &dialects), (2, &entries), (3, &offsets), (4, &self.ir), (8, &properties)];
        let sections = sections.into_iter().flat_map(|(number, payload)| section(number, payload));
        head.into_iter().chain(sections).collect()
    }
}

/// Returns one region of one block without values, up to the number of its operations.
pub fn region() -> Vec<u8> {
    [varint(1 << 1), varint(1), varint(0)].concat()
}

/// Returns the IR of a module without operations, with bytes after its location.
pub fn empty_module(mask: u8, rest: &[u8]) -> Vec<u8> {
    module(mask | 0x10, &[rest, &region(), &varint(0)].concat())
}

/// Returns the IR of a module with bytes after its location, and the mask that describes them.
pub fn module(mask: u8, rest: &[u8]) -> Vec<u8> {
    [&varint(1 << 1), &varint(0)[..], &[mask], &varint(0), rest].concat()
}

/// Adds a program of one VHLO operation between the arguments and results of its function.
pub fn program(
    file: &mut File,
    operation: &'static str,
    operands: &[usize],
    results: &[usize],
    properties: &[usize],
    body: &[u8],
) {
    file.operations = vec!["func_v1", "return_v1", operation];
    let text = |file: &mut File, text| {
        let string = file.string(text);
        file.attribute(BUILTIN, [varint(2), varint(string)].concat())
    };
    let (name, visibility) = (text(file, "main"), text(file, "public"));
    let function = file.ty(VHLO, [varint(8), list(operands), list(results)].concat());
    let function = file.attribute(BUILTIN, [varint(6), varint(function)].concat());
    let no_list = file.attribute(BUILTIN, [varint(0), varint(0)].concat());
    let references = |numbers: &[usize]| numbers.iter().copied().flat_map(varint).collect();
    file.properties = vec![references(&[no_list, function, no_list, name, visibility]), references(properties)];
    let numbers = |range: std::ops::Range<usize>| list(&range.collect::<Vec<_>>());
    let (count, all) = (operands.len(), operands.len() + results.len());
    let arguments: Vec<u8> = operands.iter().flat_map(|ty| varint(ty << 1)).collect();
    let mask = |bit: u8, is_there: bool| if is_there { bit } else { 0 };
    // Two operations; arguments without locations and without an order of uses.
    let mut block = varint(2 << 1 | usize::from(count > 0));
    if count > 0 {
        block.extend([varint(count), arguments, vec![0]].concat());
    }
    let parts = mask(0x02, !results.is_empty()) | mask(0x04, count > 0) | mask(0x10, !body.is_empty());
    block.extend([varint(3), vec![0x40 | parts], varint(0), varint(1)].concat());
    if !results.is_empty() {
        block.extend(list(results));
    }
    if count > 0 {
        block.extend(numbers(0..count));
    }
    block.extend(body);
    block.extend([varint(2), vec![mask(0x04, !results.is_empty())], varint(0)].concat());
    if !results.is_empty() {
        block.extend(numbers(count..all));
    }
    let inner = [varint(1 << 1), varint(1), varint(all), block].concat();
    let function = [&varint(1)[..], &[0x50], &varint(0), &varint(0), &inner].concat();
    file.ir = module(0x10, &[region(), varint(1 << 1), function].concat());
}
