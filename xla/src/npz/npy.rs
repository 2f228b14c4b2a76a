//! Arrays in numpy's `.npy` format, as literals: a strict parser for untrusted headers, and a writer for every element
//! type.
//!
//! Errors are predicates (`is truncated`), to which the reader of the archive adds the name of the array.
//!
//! The crate `npyz` (0.9.1) cannot replace the parser. It allocates the claimed length of a header (4 GiB for a file of
//! 12 bytes, which aborts the process if memory is limited). Its parser of Python literals takes exponential time (14
//! times `{` 9 s, 20 times `[` 2.7 s, in release builds). It also rejects the type `=f4` and sizes such as `2L`.

use std::io::{Read, Write};

use xla_hlo::out_of_memory::fallible;
use xla_hlo::{ArrayShape, ElementKind, ElementType, Error, Literal, Result, Scalar, strides};

/// Magic number at the start of every file.
const MAGIC: &[u8] = b"\x93NUMPY";
/// Limit on the length of a header in bytes. numpy writes 118 bytes for most arrays, and refuses to read more than
/// 10,000.
const HEADER_LIMIT: usize = 1 << 16;

/// Header of an array's file.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    descr: Descr,
    fortran_order: bool,
    /// Extents of the array.
    pub dims: Vec<usize>,
}

/// Type of the stored elements, such as `<f4`: byte order, kind, bytes.
#[derive(Clone, Debug, PartialEq)]
struct Descr {
    big_endian: bool,
    kind: char,
    size: usize,
}

/// Returns the storage type of an element type: numpy's own type if there is one, otherwise raw bytes, one element per
/// item, as `ml_dtypes` does.
const fn stored(ty: ElementType) -> &'static str {
    match ty {
        ElementType::Pred => "|b1",
        ElementType::S8 => "|i1",
        ElementType::S16 => "<i2",
        ElementType::S32 => "<i4",
        ElementType::S64 => "<i8",
        ElementType::U8 => "|u1",
        ElementType::U16 => "<u2",
        ElementType::U32 => "<u4",
        ElementType::U64 => "<u8",
        ElementType::F16 => "<f2",
        ElementType::F32 => "<f4",
        ElementType::F64 => "<f8",
        ElementType::C64 => "<c8",
        ElementType::C128 => "<c16",
        ElementType::BF16 => "|V2",
        ElementType::S1 | ElementType::S2 | ElementType::S4 => "|V1",
        ElementType::U1 | ElementType::U2 | ElementType::U4 => "|V1",
        ElementType::F4E2M1FN | ElementType::F6E3M2FN | ElementType::F6E2M3FN => "|V1",
        ElementType::F8E5M2 | ElementType::F8E4M3 | ElementType::F8E4M3FN | ElementType::F8E4M3B11FNUZ => "|V1",
        ElementType::F8E3M4 | ElementType::F8E5M2FNUZ | ElementType::F8E4M3FNUZ | ElementType::F8E8M0FNU => "|V1",
    }
}

/// Writes an array in format version 1.0, row-major, little-endian.
pub fn write(out: &mut impl Write, literal: &Literal) -> std::io::Result<()> {
    let shape = literal.array_shape();
    let dims: Vec<String> = shape.dims().iter().map(usize::to_string).collect();
    let dims = dims.join(", ") + if dims.len() == 1 { "," } else { "" };
    let descr = stored(shape.element_type());
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({dims}), }}");
    // The data begins at a multiple of 64 bytes, and a line feed ends the header.
    let prefix = MAGIC.len() + 4;
    let padded = (prefix + header.len() + 1).next_multiple_of(64) - prefix;
    header.extend(std::iter::repeat_n(' ', padded - 1 - header.len()));
    header.push('\n');
    let length = u16::try_from(header.len()).map_err(std::io::Error::other)?;
    out.write_all(MAGIC)?;
    out.write_all(&[1, 0])?;
    out.write_all(&length.to_le_bytes())?;
    out.write_all(header.as_bytes())?;
    let Some(element) = literal.as_splat() else { return out.write_all(literal.bytes()) };
    // A block holds a whole number of elements of every width.
    let block = element.repeat(1 << 16);
    let mut left = literal.byte_len();
    while left > 0 {
        let part = left.min(block.len());
        out.write_all(&block[..part])?;
        left -= part;
    }
    Ok(())
}

impl Header {
    /// Reads the header and leaves the reader at the start of the data.
    pub fn read(reader: &mut impl Read) -> Result<Header> {
        let mut start = [0; 8];
        read_exact(reader, &mut start)?;
        if !start.starts_with(MAGIC) {
            return Err(Error::invalid_argument("is not a .npy array: the first bytes are not \"\\x93NUMPY\""));
        }
        let mut length = [0; 4];
        match start[6] {
            1 => read_exact(reader, &mut length[..2])?,
            2 | 3 => read_exact(reader, &mut length)?,
            version => return Err(Error::invalid_argument(format!("has the unknown .npy version {version}"))),
        }
        let length = u32::from_le_bytes(length) as usize;
        if length > HEADER_LIMIT {
            return Err(Error::invalid_argument(format!("claims a header of {length} bytes")));
        }
        let mut text = vec![0; length];
        read_exact(reader, &mut text)?;
        Dictionary::parse(&String::from_utf8_lossy(&text))
            .ok_or_else(|| Error::invalid_argument("has a malformed header"))?
            .header()
    }

    /// Reads the data as an array of `shape`. The file must have its element type and dimensions.
    ///
    /// Raw bytes are accepted for any element type of their width, and 32-bit floats for any narrower float.
    pub fn read_data(&self, reader: &mut impl Read, shape: &ArrayShape) -> Result<Literal> {
        let how = self.reading(shape.element_type()).filter(|_| self.dims == shape.dims());
        let how =
            how.ok_or_else(|| Error::invalid_argument(format!("is {self}, not {}", shape.clone().with_layout(None))))?;
        // The sizes in the file now equal those of the shape, which is addressable. The amount of data in the file is
        // checked when it is read.
        let count = shape.checked_element_count()?;
        let bytes = count.checked_mul(self.descr.size).ok_or_else(|| Error::resource_exhausted("is too large"))?;
        let mut data = read_all(reader, bytes)?;
        if self.descr.big_endian {
            let unit = if self.descr.kind == 'c' { self.descr.size / 2 } else { self.descr.size };
            data.chunks_exact_mut(unit).for_each(<[u8]>::reverse);
        }
        if self.fortran_order && shape.rank() > 1 {
            data = row_major(&data, self.descr.size, shape.dims());
        }
        match how {
            Reading::AsIs => {
                normalise(shape.element_type(), &mut data);
                Literal::from_bytes(shape, data)
            }
            Reading::FromF32 => Literal::from_fn(shape, |i| Scalar::read(ElementType::F32, &data[i * 4..i * 4 + 4])),
        }
    }

    /// Returns the conversion of stored elements to this type, if there is one.
    fn reading(&self, ty: ElementType) -> Option<Reading> {
        let descr = &self.descr;
        let same = descr.kind == kind_of(ty) && descr.size == ty.byte_width();
        let raw = descr.kind == 'V' && descr.size == ty.byte_width();
        let narrow_integer = ty.is_integer() && ty.bit_width() < 8 && descr.size == 1 && "iu".contains(descr.kind);
        let widened = ty.is_float() && ty.bit_width() < 32 && descr.kind == 'f' && descr.size == 4;
        if same || raw || narrow_integer { Some(Reading::AsIs) } else { widened.then_some(Reading::FromF32) }
    }
}

/// Conversion of stored elements to those of a literal.
enum Reading {
    AsIs,
    FromF32,
}

/// Formats the type in HLO's syntax, or as numpy names it if HLO has no such type: `f32[2,3]`, `|V2[4]`.
impl std::fmt::Display for Header {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Descr { kind, size, .. } = self.descr;
        let native = |ty: &&ElementType| stored(**ty)[1..] == format!("{kind}{size}") && kind != 'V';
        match ElementType::ALL.iter().find(native) {
            Some(ty) => write!(f, "{ty}")?,
            None => write!(f, "|{kind}{size}")?,
        }
        let dims: Vec<String> = self.dims.iter().map(usize::to_string).collect();
        write!(f, "[{}]", dims.join(","))
    }
}

fn kind_of(ty: ElementType) -> char {
    match ty.kind() {
        ElementKind::Pred => 'b',
        ElementKind::Signed => 'i',
        ElementKind::Unsigned => 'u',
        ElementKind::Float => 'f',
        ElementKind::Complex => 'c',
    }
}

/// Normalizes elements narrower than a byte to the form of a literal: sign-extended or zero-extended.
fn normalise(ty: ElementType, data: &mut [u8]) {
    if ty.bit_width() >= 8 {
        return;
    }
    let unused = 8 - ty.bit_width();
    for byte in data {
        *byte = match ty.kind() {
            ElementKind::Pred => u8::from(*byte != 0),
            ElementKind::Signed => ((*byte << unused) as i8 >> unused) as u8,
            ElementKind::Unsigned | ElementKind::Float | ElementKind::Complex => *byte << unused >> unused,
        };
    }
}

/// Converts elements from column-major to row-major order.
fn row_major(data: &[u8], width: usize, dims: &[usize]) -> Vec<u8> {
    let first_dimension_fastest: Vec<usize> = (0..dims.len()).collect();
    let steps = strides(dims, &first_dimension_fastest);
    let mut index = vec![0; dims.len()];
    let mut source = 0;
    let mut out = Vec::with_capacity(data.len());
    for _ in 0..data.len() / width {
        out.extend_from_slice(&data[source * width..(source + 1) * width]);
        for d in (0..dims.len()).rev() {
            index[d] += 1;
            source += steps[d];
            if index[d] < dims[d] {
                break;
            }
            source -= steps[d] * dims[d];
            index[d] = 0;
        }
    }
    out
}

fn read_exact(reader: &mut impl Read, target: &mut [u8]) -> Result<()> {
    reader.read_exact(target).map_err(broken)
}

/// Reads `bytes` bytes, followed by the end of the file. The memory is reserved first; a failure to do so is an error.
fn read_all(reader: &mut impl Read, bytes: usize) -> Result<Vec<u8>> {
    let mut data = Vec::new();
    fallible(|| data.try_reserve_exact(bytes)).map_err(|e| {
        Error::resource_exhausted(format!("takes {bytes} bytes, more memory than is available")).with_source(e)
    })?;
    reader.take(bytes as u64).read_to_end(&mut data).map_err(broken)?;
    if data.len() < bytes {
        let found = data.len();
        return Err(Error::invalid_argument(format!("is truncated: it has {found} of {bytes} bytes of data")));
    }
    // This read also verifies the checksum of an archive member.
    if reader.read(&mut [0]).map_err(broken)? > 0 {
        return Err(Error::invalid_argument(format!("has more than the {bytes} bytes of data that its shape takes")));
    }
    Ok(data)
}

fn broken(error: std::io::Error) -> Error {
    let what = match error.kind() {
        std::io::ErrorKind::UnexpectedEof => "is truncated".to_string(),
        _ => format!("cannot be read: {error}"),
    };
    Error::invalid_argument(what).with_source(error)
}

/// Dictionary of a header in Python's syntax: a type, a boolean, a tuple of numbers.
#[derive(Default)]
struct Dictionary {
    descr: Option<String>,
    fortran_order: Option<bool>,
    shape: Option<Vec<String>>,
}

impl Dictionary {
    /// Parses `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`, with keys in any order.
    fn parse(text: &str) -> Option<Dictionary> {
        let mut rest = text.trim().strip_prefix('{')?.strip_suffix('}')?.trim();
        let mut found = Dictionary::default();
        while !rest.is_empty() {
            let (key, after) = quoted(rest)?;
            rest = after.trim_start().strip_prefix(':')?.trim_start();
            match key {
                "descr" => {
                    // A structured type is a list, which is stored verbatim and rejected later.
                    let (value, after) =
                        quoted(rest).or_else(|| rest.split_once(']').filter(|_| rest.starts_with('[')))?;
                    found.descr = Some(value.to_string());
                    rest = after;
                }
                "fortran_order" => {
                    let value = rest.starts_with("True");
                    rest = rest.strip_prefix(if value { "True" } else { "False" })?;
                    found.fortran_order = Some(value);
                }
                "shape" => {
                    let (inside, after) = rest.strip_prefix('(')?.split_once(')')?;
                    let sizes = inside.split(',').map(str::trim).filter(|size| !size.is_empty());
                    found.shape = Some(sizes.map(|size| size.trim_end_matches('L').to_string()).collect());
                    rest = after;
                }
                _ => return None,
            }
            rest = rest.trim_start();
            rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
        }
        Some(found)
    }

    fn header(self) -> Result<Header> {
        let (Some(descr), Some(fortran_order), Some(sizes)) = (self.descr, self.fortran_order, self.shape) else {
            return Err(Error::invalid_argument("has a header without descr, fortran_order or shape"));
        };
        let size = |text: &String| {
            let bad = |_| Error::invalid_argument(format!("has the impossible size {text} in its shape"));
            text.parse::<usize>().map_err(bad)
        };
        let dims = sizes.iter().map(size).collect::<Result<_>>()?;
        let read = Descr::parse(&descr);
        let descr =
            read.ok_or_else(|| Error::invalid_argument(format!("has elements of the unsupported type {descr:?}")))?;
        Ok(Header { descr, fortran_order, dims })
    }
}

/// Splits a string in single or double quotes from the front of `text`; returns it and the rest.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|c| *c == '\'' || *c == '"')?;
    text[1..].split_once(quote)
}

impl Descr {
    fn parse(text: &str) -> Option<Descr> {
        let rest = text.trim_start_matches(['<', '>', '|', '=']);
        let kind = rest.chars().next().filter(|c| "biufcV".contains(*c))?;
        let size = rest[1..].parse().ok().filter(|size| (1..=16).contains(size))?;
        Some(Descr { big_endian: text.starts_with('>'), kind, size })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        let mut file = MAGIC.to_vec();
        file.extend([1, 0]);
        file.extend((header.len() as u16).to_le_bytes());
        file.extend(header.as_bytes());
        file.extend(data);
        file
    }

    fn read(file: &[u8], ty: ElementType, dims: &[usize]) -> Result<Literal> {
        let reader = &mut &file[..];
        Header::read(reader)?.read_data(reader, &ArrayShape::new(ty, dims))
    }

    fn message(file: &[u8], ty: ElementType, dims: &[usize]) -> String {
        read(file, ty, dims).unwrap_err().to_string()
    }

    fn header(descr: &str, fortran: &str, shape: &str) -> String {
        format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}  \n")
    }

    #[test]
    fn every_element_type_comes_back_as_it_was_written() {
        for &ty in ElementType::ALL {
            for dims in [&[][..], &[5], &[2, 3], &[2, 0]] {
                let shape = ArrayShape::new(ty, dims);
                let literal = Literal::from_fn(&shape, |i| Scalar::from_i64(ty, i as i64 % 2)).unwrap();
                let mut file = Vec::new();
                write(&mut file, &literal).unwrap();
                assert_eq!((file.len() - literal.bytes().len()) % 64, 0);
                assert_eq!(read(&file, ty, dims).unwrap(), literal);
            }
        }
    }

    #[test]
    fn a_header_is_what_numpy_writes() {
        let literal = Literal::zeros(&ArrayShape::new(ElementType::F32, [8, 16])).unwrap();
        let mut file = Vec::new();
        write(&mut file, &literal).unwrap();
        let expected = b"\x93NUMPY\x01\0v\0{'descr': '<f4', 'fortran_order': False, 'shape': (8, 16), }";
        assert_eq!(&file[..expected.len()], expected);
        assert_eq!(file[127], b'\n');
    }

    #[test]
    fn other_byte_orders_and_column_major_arrays_are_converted() {
        let big = file(&header(">i2", "False", "(2,)"), &[1, 2, 3, 4]);
        assert_eq!(read(&big, ElementType::S16, &[2]).unwrap().get(0), Scalar::Signed(0x0102));
        let complex = file(&header(">c8", "False", "()"), &[0x3f, 0x80, 0, 0, 0xbf, 0x80, 0, 0]);
        assert_eq!(read(&complex, ElementType::C64, &[]).unwrap().get(0), Scalar::Complex(1.0, -1.0));
        let columns = file(&header("|u1", "True", "(2, 3)"), &[1, 4, 2, 5, 3, 6]);
        assert_eq!(read(&columns, ElementType::U8, &[2, 3]).unwrap().bytes(), [1, 2, 3, 4, 5, 6]);
        let cube = file(&header("<u2", "True", "(2, 2, 2)"), &[0, 0, 4, 0, 2, 0, 6, 0, 1, 0, 5, 0, 3, 0, 7, 0]);
        let cube = read(&cube, ElementType::U16, &[2, 2, 2]).unwrap();
        assert!((0..8).all(|i| cube.get(i) == Scalar::Unsigned(i as u64)));
    }

    #[test]
    fn narrow_types_are_raw_bytes_or_wide_numbers() {
        let raw = file(&header("|V1", "False", "(2,)"), &[0x0f, 0xf7]);
        assert_eq!(read(&raw, ElementType::S4, &[2]).unwrap().bytes(), [0xff, 0x07]);
        assert_eq!(read(&raw, ElementType::U4, &[2]).unwrap().bytes(), [0x0f, 0x07]);
        assert_eq!(read(&raw, ElementType::Pred, &[2]).unwrap().bytes(), [1, 1]);
        assert_eq!(read(&raw, ElementType::F8E4M3FN, &[2]).unwrap().bytes(), [0x0f, 0xf7]);
        let wide = file(&header("<f4", "False", "(1,)"), &1.5f32.to_le_bytes());
        for ty in [ElementType::BF16, ElementType::F16, ElementType::F8E5M2, ElementType::F4E2M1FN] {
            assert_eq!(read(&wide, ty, &[1]).unwrap().get(0), Scalar::Float(1.5));
        }
        let integers = file(&header("|i1", "False", "(1,)"), &[0xfe]);
        assert_eq!(read(&integers, ElementType::S2, &[1]).unwrap().get(0), Scalar::Signed(-2));
        let two = file(&header("<V2", "False", "()"), &[0x80, 0x3f]);
        assert_eq!(read(&two, ElementType::BF16, &[]).unwrap().get(0), Scalar::Float(1.0));
    }

    #[test]
    fn other_arrays_than_expected_are_named() {
        let array = file(&header("<f8", "False", "(2, 3)"), &[0; 48]);
        assert_eq!(message(&array, ElementType::F32, &[2, 3]), "is f64[2,3], not f32[2,3]");
        assert_eq!(message(&array, ElementType::F64, &[3, 2]), "is f64[2,3], not f64[3,2]");
        let raw = file(&header("|V3", "False", "()"), &[0; 3]);
        assert_eq!(message(&raw, ElementType::F32, &[]), "is |V3[], not f32[]");
    }

    #[test]
    fn hostile_files_are_refused() {
        let good = header("<f4", "False", "(2,)");
        let refused = |file: &[u8]| message(file, ElementType::F32, &[2]);
        assert!(refused(b"PK\x03\x04 and so on").starts_with("is not a .npy array"));
        assert_eq!(refused(b"\x93NUM"), "is truncated");
        assert_eq!(refused(b"\x93NUMPY\x02\0\xff\xff\xff\xff"), "claims a header of 4294967295 bytes");
        assert_eq!(refused(b"\x93NUMPY\x09\0\0\0"), "has the unknown .npy version 9");
        assert_eq!(refused(&file(&good, &[0; 7])), "is truncated: it has 7 of 8 bytes of data");
        assert!(refused(&file(&good, &[0; 9])).starts_with("has more than the 8 bytes"));
        assert_eq!(refused(&file("{'descr': '<f4'}", &[])), "has a header without descr, fortran_order or shape");
        assert!(refused(&file("{'shape': (((((", &[])).starts_with("has a malformed header"));
        assert!(refused(&file("", &[])).starts_with("has a malformed header"));
        let structured = "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }";
        assert!(refused(&file(structured, &[])).starts_with("has elements of the unsupported type"));
        assert!(refused(&file(&header("|O", "False", "(2,)"), &[])).contains("unsupported type \"|O\""));
        let huge = header("<f4", "False", "(99999999999999999999999,)");
        assert!(refused(&file(&huge, &[])).starts_with("has the impossible size"));
        let large = file(&header("<f4", "False", "(1000000000000000000,)"), &[]);
        assert!(message(&large, ElementType::F32, &[2]).contains("is f32[1000000000000000000], not f32[2]"));
        assert!(read(&large, ElementType::F32, &[1_000_000_000_000_000_000]).is_err());
    }
}
