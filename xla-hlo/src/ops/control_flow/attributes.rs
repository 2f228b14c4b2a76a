//! Text form of fusions.

use super::{FusionKind, OutputOperandAlias};
use crate::Result;
use crate::text::{AttributeCursor, AttributeValue, AttributeWriter, TokenKind, attribute_words};

attribute_words! {
    FusionKind, "kLoop, kInput, kOutput or kCustom":
    "kLoop" => FusionKind::Loop,
    "kInput" => FusionKind::Input,
    "kOutput" => FusionKind::Output,
    "kCustom" => FusionKind::Custom,
}

impl AttributeValue for Vec<OutputOperandAlias> {
    const WHAT: &'static str = "aliases such as {{0}: (1, {})}";

    fn read(cursor: &mut AttributeCursor<'_>) -> Result<Self> {
        cursor.braced(|c| {
            let output = c.indices()?;
            c.expect(TokenKind::Colon, "`:`")?;
            c.expect(TokenKind::LeftParen, "`(` and an operand number")?;
            let operand = c.unsigned()?;
            c.expect(TokenKind::Comma, "`,`")?;
            let path = c.indices()?;
            c.expect(TokenKind::RightParen, "`)`")?;
            Ok(OutputOperandAlias { output, operand, path })
        })
    }

    fn write(&self, w: &mut AttributeWriter<'_>) {
        w.push("{");
        w.join(self, ", ", |w, alias| {
            w.indices(&alias.output);
            w.display(format_args!(": ({}, ", alias.operand));
            w.indices(&alias.path);
            w.push(")");
        });
        w.push("}");
    }
}
