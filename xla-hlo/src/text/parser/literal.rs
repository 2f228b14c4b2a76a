//! Literals: elements are read from their tokens straight into bytes.

use super::super::diagnostic::{Failure, Parse};
use super::super::lexer::TokenKind;
use super::super::numbers::parse_float;
use super::super::tokens::Tokens;
use crate::{ArrayShape, ElementKind, ElementType, Error, Literal, Scalar, Shape};

/// What literals whose data was left out are filled with.
#[derive(Clone, Debug)]
pub(in crate::text) struct Omitted {
    counter: u32,
    bytes_left: usize,
    /// How many bytes there were at first.
    limit: usize,
}

/// Omitted literals of one text take no more bytes than this in all: a few characters must not demand all memory.
const OMITTED_BYTES: usize = 1 << 30;

impl Default for Omitted {
    fn default() -> Omitted {
        Omitted { counter: 0, bytes_left: OMITTED_BYTES, limit: OMITTED_BYTES }
    }
}

impl Omitted {
    /// For literals whose data must be there.
    pub(in crate::text) fn refused() -> Omitted {
        Omitted { counter: 0, bytes_left: 0, limit: 0 }
    }

    /// The next `count` elements of the pattern.
    fn fill(&mut self, ty: ElementType, count: usize) -> Result<Vec<u8>, Error> {
        let size = count * ty.byte_width();
        self.bytes_left = self.bytes_left.checked_sub(size).ok_or_else(|| {
            Error::resource_exhausted(format!("literals left out as {{...}} would take more than {} bytes", self.limit))
        })?;
        let mut bytes = Vec::with_capacity(size.next_multiple_of(4));
        while bytes.len() < size {
            bytes.extend_from_slice(&self.counter.to_le_bytes());
            self.counter = self.counter.wrapping_add(1);
        }
        bytes.truncate(size);
        if ty.bit_width() < 8 {
            // Only some patterns are values: keep the low bits, in the form that values of the type have.
            for byte in &mut bytes {
                *byte &= (1 << ty.bit_width()) - 1;
                Scalar::read(ty, &[*byte]).write(ty, std::slice::from_mut(byte));
            }
        }
        Ok(bytes)
    }
}

impl Tokens<'_> {
    /// The literal of a shape that is known.
    pub(super) fn literal(&mut self, shape: &Shape, omitted: &mut Omitted) -> Parse<Literal> {
        match shape {
            Shape::Array(array) => self.dense(array, omitted),
            Shape::Tuple(elements) => self.nested(|t| {
                t.expect(TokenKind::LeftParen, "`(` of a tuple literal")?;
                let mut literals = Vec::with_capacity(elements.len());
                for (i, element) in elements.iter().enumerate() {
                    if i > 0 {
                        t.expect(TokenKind::Comma, "`,` between the elements of a tuple literal")?;
                    }
                    literals.push(t.literal(element, omitted)?);
                }
                t.expect(TokenKind::RightParen, "`)` at the end of a tuple literal")?;
                Ok(Literal::tuple(literals))
            }),
            Shape::Token | Shape::Opaque | Shape::Buffer(_) => {
                Err(self.fail(format!("there is no literal of {shape}")))
            }
        }
    }

    /// A literal whose leaves carry their shapes: `( s32[] 1, f32[2] {1, 2} )`.
    pub(in crate::text) fn literal_with_shapes(&mut self, omitted: &mut Omitted) -> Parse<Literal> {
        if self.kind() != TokenKind::LeftParen {
            let shape = self.array_shape_of_literal()?;
            return self.dense(&shape, omitted);
        }
        self.nested(|t| {
            let element = |t: &mut Self| t.literal_with_shapes(omitted);
            t.list(TokenKind::LeftParen, TokenKind::RightParen, "a literal", element).map(Literal::tuple)
        })
    }

    fn dense(&mut self, shape: &ArrayShape, omitted: &mut Omitted) -> Parse<Literal> {
        let at = self.at();
        let ty = shape.element_type();
        let count = shape.checked_element_count().map_err(|e| Failure::new(at, e))?;
        let bytes = if shape.is_scalar() {
            let mut bytes = Vec::new();
            self.element(ty, &mut bytes)?;
            bytes
        } else {
            Elements { shape, count, counts: vec![0; shape.rank()], level: 0, bytes: Vec::new() }.read(self, omitted)?
        };
        Literal::from_bytes(shape, bytes).map_err(|e| Failure::new(at, e))
    }

    /// One element, appended to `out` as the literal stores it.
    fn element(&mut self, ty: ElementType, out: &mut Vec<u8>) -> Parse<()> {
        match ty.kind() {
            ElementKind::Pred => out.push(u8::from(self.truth()?)),
            ElementKind::Signed | ElementKind::Unsigned => {
                let value = self.integer_of(ty)?;
                out.extend_from_slice(&value.to_le_bytes()[..ty.byte_width()]);
            }
            ElementKind::Float => self.float_of(ty, out)?,
            ElementKind::Complex => {
                self.expect(TokenKind::LeftParen, "a complex number such as (1, -2)")?;
                self.float_of(ty.real_part(), out)?;
                self.expect(TokenKind::Comma, "`,` and the imaginary part")?;
                self.float_of(ty.real_part(), out)?;
                self.expect(TokenKind::RightParen, "`)`")?;
            }
        }
        Ok(())
    }

    fn truth(&mut self) -> Parse<bool> {
        match (self.kind(), self.next_text()) {
            (TokenKind::Integer, "0") | (TokenKind::Word, "false") => {
                self.bump();
                Ok(false)
            }
            (TokenKind::Integer, "1") | (TokenKind::Word, "true") => {
                self.bump();
                Ok(true)
            }
            _ => Err(self.unexpected("true, false, 1 or 0")),
        }
    }

    /// An integer in the range of the type, as 64 bits.
    fn integer_of(&mut self, ty: ElementType) -> Parse<i64> {
        let at = self.at();
        let value = self.integer("an integer")?;
        let bits = ty.bit_width() as u32;
        let fits = match ty.kind() {
            _ if bits == 64 => true,
            ElementKind::Signed => value >> (bits - 1) == value >> 63,
            _ => value >> bits == 0,
        };
        if fits { Ok(value) } else { Err(Failure::invalid(at, format!("{value} is out of the range of {ty}"))) }
    }

    fn float_of(&mut self, ty: ElementType, out: &mut Vec<u8>) -> Parse<()> {
        let (TokenKind::Integer | TokenKind::Decimal) = self.kind() else {
            return Err(self.unexpected(&format!("a number of {ty}")));
        };
        let bits = parse_float(ty, self.next_text()).map_err(|complaint| self.fail(complaint))?;
        self.bump();
        out.extend_from_slice(&bits.to_le_bytes()[..ty.byte_width()]);
        Ok(())
    }
}

/// Reads the nested braces of an array without recursion.
struct Elements<'a> {
    shape: &'a ArrayShape,
    count: usize,
    /// How many entries the open brace of each level has so far.
    counts: Vec<usize>,
    /// How many braces are open.
    level: usize,
    bytes: Vec<u8>,
}

impl Elements<'_> {
    fn read(mut self, tokens: &mut Tokens<'_>, omitted: &mut Omitted) -> Parse<Vec<u8>> {
        let (ty, rank) = (self.shape.element_type(), self.shape.rank());
        // An element takes two characters or more, so short text does not reserve memory for a large shape.
        let likely = self.count.min(tokens.bytes_left() / 2 + 1);
        self.bytes.reserve(likely * ty.byte_width());
        loop {
            match tokens.kind() {
                TokenKind::LeftBrace if self.level < rank => {
                    self.count_entry(tokens)?;
                    self.counts[self.level] = 0;
                    self.level += 1;
                }
                TokenKind::RightBrace if self.level > 0 => {
                    self.close(tokens)?;
                    if self.level == 0 {
                        tokens.bump();
                        return Ok(self.bytes);
                    }
                }
                TokenKind::Comma if self.level > 0 => {}
                TokenKind::Dots if self.level == 1 && self.counts[0] == 0 => {
                    self.bytes = omitted.fill(ty, self.count).map_err(|e| Failure::new(tokens.at(), e))?;
                    self.counts[0] = self.shape.dims()[0];
                }
                _ if self.level == rank => {
                    self.count_entry(tokens)?;
                    tokens.element(ty, &mut self.bytes)?;
                    continue;
                }
                _ => return Err(tokens.unexpected(&format!("`{{` of dimension {} of the literal", self.level))),
            }
            tokens.bump();
        }
    }

    /// Counts an entry of the innermost open brace, which must have room for it.
    fn count_entry(&mut self, tokens: &Tokens<'_>) -> Parse<()> {
        let Some(d) = self.level.checked_sub(1) else { return Ok(()) };
        self.counts[d] += 1;
        if self.counts[d] > self.shape.dims()[d] {
            return Err(tokens.fail(self.complaint(d, "more")));
        }
        Ok(())
    }

    fn close(&mut self, tokens: &Tokens<'_>) -> Parse<()> {
        self.level -= 1;
        if self.counts[self.level] < self.shape.dims()[self.level] {
            return Err(tokens.fail(self.complaint(self.level, &format!("only {}", self.counts[self.level]))));
        }
        Ok(())
    }

    fn complaint(&self, d: usize, found: &str) -> String {
        let shape = Shape::Array(self.shape.clone()).without_layout();
        format!("dimension {d} of {shape} has {} entries, the literal has {found}", self.shape.dims()[d])
    }
}
