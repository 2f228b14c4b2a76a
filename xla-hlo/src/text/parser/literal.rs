//! Parser of literals: elements are parsed from their tokens directly into bytes.

use super::super::diagnostic::{Failure, Parse};
use super::super::lexer::TokenKind;
use super::super::numbers::parse_float;
use super::super::tokens::Tokens;
use crate::{ArrayShape, ElementKind, ElementType, Literal, Shape};

impl Tokens<'_> {
    /// Parses the literal of a known shape. `omitted` counts arrays whose data is omitted, `{...}`; they become zeros.
    pub(super) fn literal(&mut self, shape: &Shape, omitted: &mut usize) -> Parse<Literal> {
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
            Shape::Token | Shape::Opaque | Shape::Buffer(_) => Err(self.fail(format!("{shape} has no literal"))),
        }
    }

    /// Parses a literal whose leaves carry their shapes: `( s32[] 1, f32[2] {1, 2} )`.
    pub(in crate::text) fn literal_with_shapes(&mut self, omitted: &mut usize) -> Parse<Literal> {
        if self.kind() != TokenKind::LeftParen {
            let shape = self.array_shape_of_literal()?;
            return self.dense(&shape, omitted);
        }
        self.nested(|t| {
            let element = |t: &mut Self| t.literal_with_shapes(omitted);
            t.list(TokenKind::LeftParen, TokenKind::RightParen, "a literal", element).map(Literal::tuple)
        })
    }

    fn dense(&mut self, shape: &ArrayShape, omitted: &mut usize) -> Parse<Literal> {
        let at = self.at();
        let ty = shape.element_type();
        let count = shape.checked_element_count().map_err(|e| Failure::new(at, e))?;
        if shape.is_scalar() || self.kind() != TokenKind::LeftBrace {
            return self.one_for_all(shape);
        }
        let elements = Elements { shape, count, counts: vec![0; shape.rank()], level: 0, bytes: Vec::new() };
        let literal = match elements.read(self)? {
            Some(bytes) => Literal::from_bytes(shape, bytes).map(Literal::compact),
            None => {
                *omitted += 1;
                Literal::splat_of_bytes(shape, &[0; 16][..ty.byte_width()])
            }
        };
        literal.map_err(|e| Failure::new(at, e))
    }

    /// Parses the value of a scalar; or a zero that represents an array of zeros, as in XLA's text.
    fn one_for_all(&mut self, shape: &ArrayShape) -> Parse<Literal> {
        let at = self.at();
        let ty = shape.element_type();
        let mut element = Vec::new();
        self.element(ty, &mut element)?;
        if !shape.is_scalar() && element.iter().any(|&byte| byte != 0) {
            let shape = shape.clone().with_layout(None);
            let message = format!(
                "one number is not a literal of {shape}, unless it is 0; write `c = {ty}[] constant(...)` and \
                 `{shape} broadcast(c), dimensions={{}}`"
            );
            return Err(Failure::invalid(at, message));
        }
        Literal::splat_of_bytes(shape, &element).map_err(|e| Failure::new(at, e))
    }

    /// Parses one element and appends it to `out` in the literal's storage format.
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

    /// Parses an integer in the range of the type, extended to 64 bits.
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

/// Parser of the nested braces of an array, without recursion.
struct Elements<'a> {
    shape: &'a ArrayShape,
    count: usize,
    /// Number of entries so far in the open brace of each level.
    counts: Vec<usize>,
    /// Number of open braces.
    level: usize,
    bytes: Vec<u8>,
}

impl Elements<'_> {
    /// Parses all elements and returns their bytes; `None` if they are omitted.
    fn read(mut self, tokens: &mut Tokens<'_>) -> Parse<Option<Vec<u8>>> {
        let mut is_omitted = false;
        let (ty, rank) = (self.shape.element_type(), self.shape.rank());
        // An element takes at least two characters, so short text does not reserve memory for a large shape.
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
                        return Ok((!is_omitted).then_some(self.bytes));
                    }
                }
                TokenKind::Comma if self.level > 0 => {}
                TokenKind::Dots if self.level == 1 && self.counts[0] == 0 => {
                    is_omitted = true;
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

    /// Counts an entry of the innermost open brace; fails if the dimension is full.
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
