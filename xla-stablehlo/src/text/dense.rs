//! Parser of dense elements: nested lists of numbers, one number for all elements, or bytes in hexadecimal.

use xla_hlo::{ElementKind, ElementType, Result, Scalar};

use super::reader::Reader;
use crate::ir::{AttrId, Attribute, Type, TypeId, extend_signs};

impl Reader<'_> {
    /// Parses `<[[1, 2], [3, 4]]> : tensor<2x2xi32>`. The type follows the elements, so the elements are skipped first
    /// and parsed once the type is known.
    pub(super) fn dense(&mut self) -> Result<AttrId> {
        self.cursor.expect("<")?;
        let elements = self.cursor.offset();
        self.cursor.skip_to_closing_angle()?;
        self.cursor.expect(">")?;
        self.cursor.expect(":")?;
        let at = self.cursor.offset();
        let ty = self.ty()?;
        let after = self.cursor.clone();
        let Some((dims, element)) = self.static_tensor(ty) else {
            return Err(self.cursor.error_at(at, "dense elements need a static tensor of numbers"));
        };
        self.cursor = self.cursor.at(elements);
        let bytes = self.elements_of(&dims, element)?;
        self.cursor.expect(">")?;
        self.cursor = after;
        Ok(self.push(Attribute::Dense { ty, bytes: bytes.into() }))
    }

    /// Returns the extents and element type of a static tensor type.
    fn static_tensor(&self, ty: TypeId) -> Option<(Vec<u64>, ElementType)> {
        let Type::Tensor { dims, element, .. } = &self.module.types[ty] else { return None };
        let element = match &self.module.types[*element] {
            Type::Element(element) => *element,
            Type::Index => ElementType::S64,
            Type::Complex(part) => match &self.module.types[*part] {
                Type::Element(ElementType::F32) => ElementType::C64,
                Type::Element(ElementType::F64) => ElementType::C128,
                _ => return None,
            },
            _ => return None,
        };
        Some((dims.iter().copied().collect::<Option<_>>()?, element))
    }

    fn elements_of(&mut self, dims: &[u64], ty: ElementType) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        if self.cursor.is(">") {
            return if dims.contains(&0) { Ok(bytes) } else { Err(self.cursor.expected("elements")) };
        }
        if self.cursor.is("\"") {
            let mut bytes = self.hexadecimal()?;
            extend_signs(ty, &mut bytes);
            return Ok(bytes);
        }
        if self.cursor.is("[") {
            self.rows(dims, ty, &mut bytes)?;
            return Ok(if ty == ElementType::Pred { packed(&bytes) } else { bytes });
        }
        self.scalar_bytes(ty, &mut bytes)?;
        if ty == ElementType::Pred && bytes[0] != 0 {
            bytes[0] = 0xff;
        }
        Ok(bytes)
    }

    /// Parses lists that are nested as deep as the tensor has dimensions.
    fn rows(&mut self, dims: &[u64], ty: ElementType, bytes: &mut Vec<u8>) -> Result<()> {
        let Some((&extent, inner)) = dims.split_first() else { return self.scalar_bytes(ty, bytes) };
        let at = self.cursor.offset();
        let rows = self.nested(|reader| reader.list(["[", "]"], |reader| reader.rows(inner, ty, bytes)))?;
        if rows.len() as u64 != extent {
            return Err(self
                .cursor
                .error_at(at, format!("the list has {} elements, but the dimension has {extent}", rows.len())));
        }
        Ok(())
    }

    /// Parses `"0x00FF..."`: the bytes of the elements in memory order.
    fn hexadecimal(&mut self) -> Result<Vec<u8>> {
        let at = self.cursor.offset();
        let text = self.cursor.string("hexadecimal digits")?;
        let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
        let byte = |pair: &[u8]| Some(digit(pair[0])? << 4 | digit(*pair.get(1)?)?);
        let bytes = text.strip_prefix(b"0x").and_then(|digits| digits.chunks(2).map(byte).collect::<Option<Vec<u8>>>());
        bytes.ok_or_else(|| self.cursor.error_at(at, "expected \"0x\" and pairs of hexadecimal digits"))
    }

    /// Parses one element and appends its bytes.
    pub(super) fn scalar_bytes(&mut self, ty: ElementType, bytes: &mut Vec<u8>) -> Result<()> {
        let value = if ty.is_complex() {
            self.cursor.expect("(")?;
            let real = self.scalar_here(ty.real_part())?;
            self.cursor.expect(",")?;
            let imaginary = self.scalar_here(ty.real_part())?;
            self.cursor.expect(")")?;
            match (real, imaginary) {
                (Scalar::Float(real), Scalar::Float(imaginary)) => Scalar::Complex(real, imaginary),
                _ => Scalar::Complex(0.0, 0.0),
            }
        } else {
            self.scalar_here(ty)?
        };
        let start = bytes.len();
        bytes.resize(start + ty.byte_width(), 0);
        value.write(ty, &mut bytes[start..]);
        Ok(())
    }

    fn scalar_here(&mut self, ty: ElementType) -> Result<Scalar> {
        if self.cursor.eat("true") {
            return Ok(Scalar::from_i64(ty, 1));
        }
        if self.cursor.eat("false") {
            return Ok(Scalar::from_i64(ty, 0));
        }
        let at = self.cursor.offset();
        let text = self.cursor.number()?;
        self.scalar(text, ty, at)
    }

    /// Converts the text of a number to an element of type `ty`. Hexadecimal digits are the bit pattern of a float.
    pub(super) fn scalar(&self, text: &str, ty: ElementType, at: usize) -> Result<Scalar> {
        let out_of_range = || self.cursor.error_at(at, format!("{text} is not a number of type {ty}"));
        let (is_negative, magnitude) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        if ty.is_float() && !text.starts_with("0x") {
            let value: f64 = text.parse().map_err(|_| out_of_range())?;
            return Ok(Scalar::Float(value).rounded(ty));
        }
        let integer = match magnitude.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => magnitude.parse::<u64>().ok(),
        };
        let bits = integer.ok_or_else(out_of_range)?;
        if ty.is_float() {
            return Ok(Scalar::from_bits(ty, bits));
        }
        let value = if is_negative { -i128::from(bits) } else { i128::from(bits) };
        let scalar = match ty.kind() {
            ElementKind::Signed => i64::try_from(value).ok().map(Scalar::Signed),
            ElementKind::Unsigned => u64::try_from(value).ok().map(Scalar::Unsigned),
            _ => (value == 0 || value == 1).then_some(Scalar::Pred(value == 1)),
        };
        scalar.filter(|scalar| scalar.rounded(ty) == *scalar).ok_or_else(out_of_range)
    }
}

/// Packs booleans into bits, the first in the least significant bit.
fn packed(values: &[u8]) -> Vec<u8> {
    let byte = |bits: &[u8]| bits.iter().enumerate().map(|(i, bit)| bit << i).sum();
    values.chunks(8).map(byte).collect()
}
