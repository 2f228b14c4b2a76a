//! Parser of shapes and layouts.

use super::super::diagnostic::{Failure, Parse};
use super::super::lexer::TokenKind;
use super::super::tokens::Tokens;
use crate::{ArrayShape, Dynamism, ElementType, Layout, Shape, SplitConfig, Tile, TileDim};

const WHAT: &str = "a shape such as f32[2,3]";

/// Returns the layout of an array whose text states none: row-major, and none for scalars.
pub(super) fn default_layout(array: &ArrayShape) -> Option<Layout> {
    array.layout().cloned().or_else(|| (array.rank() > 0).then(|| Layout::row_major(array.rank())))
}

impl Tokens<'_> {
    /// Whether a shape comes next.
    pub fn at_shape(&self) -> bool {
        match self.kind() {
            TokenKind::LeftParen => true,
            TokenKind::Word => match self.next_text() {
                "token" | "opaque" => self.peek_second().kind == TokenKind::LeftBracket,
                "b" => self.peek_second().kind == TokenKind::LeftParen,
                word => ElementType::from_name(word).is_some() && self.peek_second().kind == TokenKind::LeftBracket,
            },
            _ => false,
        }
    }

    /// Parses a shape. Arrays of rank 1 and above always have a layout afterwards.
    pub fn shape(&mut self) -> Parse<Shape> {
        match self.kind() {
            TokenKind::LeftParen => self
                .nested(|t| t.list(TokenKind::LeftParen, TokenKind::RightParen, WHAT, Tokens::shape))
                .map(Shape::Tuple),
            TokenKind::Word => match self.next_text() {
                "token" => self.no_data().map(|()| Shape::Token),
                "opaque" => self.no_data().map(|()| Shape::Opaque),
                "b" => self.buffer(),
                _ => self.array_shape().map(Shape::Array),
            },
            _ => Err(self.unexpected(WHAT)),
        }
    }

    /// Parses `token[]` or `opaque[]`, starting at the word.
    fn no_data(&mut self) -> Parse<()> {
        self.bump();
        self.expect(TokenKind::LeftBracket, "`[]`")?;
        self.expect(TokenKind::RightBracket, "`]`").map(drop)
    }

    fn buffer(&mut self) -> Parse<Shape> {
        self.bump();
        self.expect(TokenKind::LeftParen, "`(` after the b of a buffer")?;
        let array = self.array_shape()?;
        self.expect(TokenKind::RightParen, "`)`")?;
        Ok(Shape::Buffer(Box::new(array)))
    }

    /// Parses an array shape.
    pub fn array_shape(&mut self) -> Parse<ArrayShape> {
        let shape = self.bare_array_shape()?;
        let layout = if self.at_layout() { Some(self.layout(shape.rank())?) } else { default_layout(&shape) };
        Ok(shape.with_layout(layout))
    }

    /// Parses the shape in front of an array's literal, whose braces are not a layout; a layout is skipped.
    pub fn array_shape_of_literal(&mut self) -> Parse<ArrayShape> {
        let shape = self.bare_array_shape()?;
        let mut ahead = self.clone();
        let is_layout = self.at_layout() && ahead.layout(shape.rank()).is_ok();
        if is_layout && (shape.is_scalar() || ahead.kind() == TokenKind::LeftBrace) {
            *self = ahead;
        }
        Ok(shape)
    }

    /// Parses an element type and dimensions.
    fn bare_array_shape(&mut self) -> Parse<ArrayShape> {
        let at = self.at();
        let ty = ElementType::from_name(self.next_text()).filter(|_| self.kind() == TokenKind::Word);
        let ty = ty.ok_or_else(|| self.unexpected(WHAT))?;
        self.bump();
        let dims = self.list(TokenKind::LeftBracket, TokenKind::RightBracket, "`[` and dimensions", Tokens::dim)?;
        let (dims, dynamism): (Vec<usize>, Vec<Dynamism>) = dims.into_iter().unzip();
        let shape = ArrayShape::new(ty, dims).with_dynamism(dynamism);
        shape.checked_element_count().map_err(|e| Failure::new(at, e))?;
        Ok(shape)
    }

    fn dim(&mut self) -> Parse<(usize, Dynamism)> {
        if self.accept(TokenKind::Question) {
            return Ok((0, Dynamism::Unbounded));
        }
        let dynamism = if self.accept(TokenKind::LessEqual) { Dynamism::Bounded } else { Dynamism::Static };
        Ok((self.unsigned("the size of a dimension")?, dynamism))
    }

    /// Whether the next brace opens a layout: a dimension or `:` follows. Otherwise it opens a computation's body.
    fn at_layout(&self) -> bool {
        self.kind() == TokenKind::LeftBrace && matches!(self.peek_second().kind, TokenKind::Integer | TokenKind::Colon)
    }

    fn layout(&mut self, rank: usize) -> Parse<Layout> {
        let at = self.at();
        self.expect(TokenKind::LeftBrace, "a layout")?;
        let mut layout = Layout::from_minor_to_major(Vec::with_capacity(rank));
        if self.kind() == TokenKind::Integer {
            layout.minor_to_major.push(self.unsigned("a dimension number")?);
            while self.accept(TokenKind::Comma) {
                layout.minor_to_major.push(self.unsigned("a dimension number")?);
            }
        }
        if !layout.is_permutation_of(rank) {
            return Err(Failure::invalid(at, format!("the layout must name each of the {rank} dimensions once")));
        }
        if self.accept(TokenKind::Colon) {
            while self.kind() != TokenKind::RightBrace {
                self.layout_item(&mut layout)?;
            }
        }
        self.expect(TokenKind::RightBrace, "`}` at the end of the layout")?;
        Ok(layout)
    }

    fn layout_item(&mut self, layout: &mut Layout) -> Parse<()> {
        const ITEM: &str = "a layout item, one of T, L, #, *, E, S, SC, M";
        if self.accept(TokenKind::Hash) {
            layout.index_type = Some(self.type_in_parens()?);
            return Ok(());
        }
        if self.accept(TokenKind::Star) {
            layout.pointer_type = Some(self.type_in_parens()?);
            return Ok(());
        }
        if self.kind() != TokenKind::Word {
            return Err(self.unexpected(ITEM));
        }
        let item = self.peek();
        match self.text(item) {
            "D" => {
                self.bump();
                self.dim_level_types()
            }
            "T" => {
                self.bump();
                layout.tiles = self.tiles()?;
                Ok(())
            }
            "SC" => {
                self.bump();
                layout.split_configs = self.split_configs()?;
                Ok(())
            }
            "L" => self.count_in_parens().map(|n| layout.tail_padding_alignment = n as u64),
            "E" => {
                let n = self.count_in_parens()?;
                let bits = u32::try_from(n).map_err(|_| Failure::invalid(item.start, format!("{n} bits are too many")));
                layout.element_size_in_bits = bits?;
                Ok(())
            }
            "S" => self.count_in_parens().map(|n| layout.memory_space = n as i64),
            "M" => self.count_in_parens().map(|n| layout.dynamic_metadata_bytes = n as u64),
            "P" => Err(self.fail("a physical shape has no meaning in the layout of a dense array")),
            _ => Err(self.unexpected(ITEM)),
        }
    }

    /// Parses `X(n)`, starting at the letter.
    fn count_in_parens(&mut self) -> Parse<usize> {
        self.bump();
        self.expect(TokenKind::LeftParen, "`(`")?;
        let n = self.unsigned("a number")?;
        self.expect(TokenKind::RightParen, "`)`")?;
        Ok(n)
    }

    fn type_in_parens(&mut self) -> Parse<ElementType> {
        self.expect(TokenKind::LeftParen, "`(`")?;
        let ty = ElementType::from_name(self.next_text());
        let ty = ty.ok_or_else(|| self.unexpected("an element type such as u32"))?;
        self.bump();
        self.expect(TokenKind::RightParen, "`)`")?;
        Ok(ty)
    }

    /// Skips `(D+,C~)` of legacy sparse arrays, as XLA does.
    fn dim_level_types(&mut self) -> Parse<()> {
        let kind = |t: &mut Self| {
            t.expect(TokenKind::Word, "a dimension level type")?;
            t.accept(TokenKind::Plus);
            t.accept(TokenKind::Tilde);
            Ok(())
        };
        self.list(TokenKind::LeftParen, TokenKind::RightParen, "`(`", kind).map(drop)
    }

    fn tiles(&mut self) -> Parse<Vec<Tile>> {
        let dim = |t: &mut Self| {
            Ok(if t.accept(TokenKind::Star) {
                TileDim::Combine
            } else {
                TileDim::Size(t.unsigned("a tile size")? as u64)
            })
        };
        let mut tiles = Vec::new();
        loop {
            tiles.push(Tile(self.list(TokenKind::LeftParen, TokenKind::RightParen, "`(` of a tile", dim)?));
            if self.kind() != TokenKind::LeftParen {
                return Ok(tiles);
            }
        }
    }

    fn split_configs(&mut self) -> Parse<Vec<SplitConfig>> {
        let mut splits = Vec::new();
        loop {
            self.expect(TokenKind::LeftParen, "`(` of a split")?;
            let dimension = self.unsigned("a dimension number")?;
            self.expect(TokenKind::Colon, "`:`")?;
            let mut indices = vec![self.unsigned("an index")? as u64];
            while self.accept(TokenKind::Comma) {
                indices.push(self.unsigned("an index")? as u64);
            }
            self.expect(TokenKind::RightParen, "`)`")?;
            splits.push(SplitConfig { dimension, indices });
            if self.kind() != TokenKind::LeftParen {
                return Ok(splits);
            }
        }
    }
}
