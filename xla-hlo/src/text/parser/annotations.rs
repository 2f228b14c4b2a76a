//! Parser of annotations: metadata, frontend attributes and statistics.

use super::super::diagnostic::{Failure, Parse, shown};
use super::super::lexer::TokenKind;
use super::super::tokens::Tokens;
use crate::{FrontendAttributes, Metadata};

impl<'t> Tokens<'t> {
    /// Parses `{key="value",key2={"a": 1}}`.
    pub fn frontend_attributes(&mut self) -> Parse<FrontendAttributes> {
        let pair = |t: &mut Self| {
            let key = t.attribute_name("a key such as `name=`")?;
            Ok((key.to_string(), t.string_or_dictionary("a quoted string or a JSON dictionary")?))
        };
        Ok(self.braced("frontend attributes in braces", pair)?.into_iter().collect())
    }

    /// Parses `{visualizing_index=0, stat=1.5}`: names and the text of their numbers.
    pub fn statistics(&mut self) -> Parse<Vec<(String, String)>> {
        let statistic = |t: &mut Self| {
            let name = t.attribute_name("a statistic such as `name=`")?;
            let number = t.peek();
            t.number("a number")?;
            Ok((name.to_string(), t.text(number).to_string()))
        };
        self.braced("statistics in braces", statistic)
    }

    /// Parses a word that is followed by `=`; returns the word.
    pub fn attribute_name(&mut self, what: &str) -> Parse<&'t str> {
        let token = self.expect(TokenKind::AttributeName, what)?;
        Ok(self.text(token))
    }

    /// Parses `{op_name="a" source_line=3}`, separated by white space or commas.
    pub fn metadata(&mut self) -> Parse<Metadata> {
        const FIELD: &str = "`}` or a field of metadata: op_type, op_name, source_file, source_line, source_end_line, \
             source_column, source_end_column, profile_type, deduplicated_name, scheduling_name, stack_frame_id or \
             metadata_payload";
        self.expect(TokenKind::LeftBrace, "metadata in braces")?;
        let mut metadata = Metadata::default();
        while !self.accept(TokenKind::RightBrace) {
            if self.kind() != TokenKind::AttributeName {
                return Err(self.unexpected(FIELD));
            }
            let name = self.bump();
            match self.text(name) {
                "op_type" => metadata.op_type = self.string("a string")?,
                "op_name" => metadata.op_name = self.string("a string")?,
                "source_file" => metadata.source_file = self.string("a string")?,
                "source_line" => metadata.source_line = self.integer("a line")?,
                "source_end_line" => metadata.source_end_line = self.integer("a line")?,
                "source_column" => metadata.source_column = self.integer("a column")?,
                "source_end_column" => metadata.source_end_column = self.integer("a column")?,
                "profile_type" => {
                    metadata.profile_types = self.braced("profile types in braces", |t| t.integer("an integer"))?;
                }
                "deduplicated_name" => metadata.deduplicated_name = self.string("a string")?,
                "scheduling_name" => metadata.scheduling_name = self.string("a string")?,
                "stack_frame_id" => metadata.stack_frame_id = self.integer("an id")?,
                "metadata_payload" => metadata.payload = self.string("a string")?,
                other => {
                    return Err(Failure::invalid(name.start, format!("expected {FIELD}, found `{}`", shown(other))));
                }
            }
            self.accept(TokenKind::Comma);
        }
        Ok(metadata)
    }

    /// Parses `{a=1 b=2}` with fields from `names` in any order; missing fields are 0.
    pub fn integer_fields<const N: usize>(&mut self, names: [&str; N]) -> Parse<[i64; N]> {
        let mut values = [0; N];
        self.expect(TokenKind::LeftBrace, "`{`")?;
        while !self.accept(TokenKind::RightBrace) {
            let field = self.expect(TokenKind::AttributeName, "`}` or a field such as `line=`")?;
            let i = names.iter().position(|n| *n == self.text(field));
            let i = i.ok_or_else(|| Failure::invalid(field.start, format!("the fields are {}", names.join(", "))))?;
            values[i] = self.integer("an integer")?;
            self.accept(TokenKind::Comma);
        }
        Ok(values)
    }
}
