//! Tests of the reader of the primitive encodings of bytecode.

use proptest::prelude::*;
use xla_hlo::Result;
use xla_stablehlo::internals::{Reader, TableSizes};

fn reader(bytes: &[u8]) -> Reader<'_> {
    Reader::new(bytes, 100, "test", TableSizes { target: None, strings: 3, attributes: 0, types: 1 })
}

/// Encodes a varint in `bytes` bytes as specified: the value, followed by a one bit and `bytes - 1` zero bits below
/// it.
fn varint(value: u64, bytes: u32) -> Vec<u8> {
    if bytes == 9 {
        return [&[0][..], &value.to_le_bytes()].concat();
    }
    let wide = (value << bytes) | 1 << (bytes - 1);
    wide.to_le_bytes()[..bytes as usize].to_vec()
}

fn strings_and_types(reader: &mut Reader<'_>) -> Result<()> {
    while !reader.is_at_end() {
        reader.string()?;
        reader.ty()?;
        reader.optional_attribute()?;
    }
    Ok(())
}

proptest! {
    #[test]
    fn varints_of_every_length(value: u64, bytes in 1u32..=9) {
        let value = if bytes < 9 { value & ((1 << (7 * bytes)) - 1) } else { value };
        let encoded = varint(value, bytes);
        let mut r = reader(&encoded);
        prop_assert_eq!(r.varint().unwrap(), value);
        prop_assert!(r.is_at_end());
        for length in 0..encoded.len() {
            prop_assert!(reader(&encoded[..length]).varint().is_err());
        }
    }

    #[test]
    fn signs_are_in_the_lowest_bit(value: i64) {
        let zigzag = ((value as u64) << 1) ^ ((value >> 63) as u64);
        prop_assert_eq!(reader(&varint(zigzag, 9)).signed().unwrap(), value);
    }

    #[test]
    fn whatever_comes_is_a_value_or_an_error(bytes: Vec<u8>) {
        let _ = reader(&bytes).list(Reader::signed);
        let _ = reader(&bytes).dims();
        let _ = strings_and_types(&mut reader(&bytes));
    }
}

#[test]
fn errors_name_byte_and_section() {
    let error = reader(&[7]).string().unwrap_err().to_string();
    assert_eq!(error, "bytecode, byte 100 (section test): string 3 is out of range: the bytecode has 3");
    let error = reader(&[0x81, 1]).blob().unwrap_err().to_string();
    assert_eq!(error, "bytecode, byte 100 (section test): a count is 64, but 1 bytes are left");
    let error = reader(&[2]).varint().unwrap_err().to_string();
    assert_eq!(error, "bytecode, byte 101 (section test): 1 bytes are needed, 0 are left");
}
