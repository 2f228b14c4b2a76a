//! Text form of domains.

use super::Domain;
use crate::text::{AttributeCursor, AttributeValue, AttributeWriter, TokenKind};
use crate::{Error, Result};

impl AttributeValue for Domain {
    const WHAT: &'static str = "a border such as {kind=\"sharding\", entry={replicated}, exit={manual}}";

    fn read(cursor: &mut AttributeCursor<'_>) -> Result<Self> {
        cursor.expect(TokenKind::LeftBrace, "`{`")?;
        field(cursor, "kind")?;
        let kind = cursor.string("the kind of the domain")?;
        cursor.expect(TokenKind::Comma, "`,`")?;
        field(cursor, "entry")?;
        let entry = cursor.sharding()?;
        cursor.expect(TokenKind::Comma, "`,`")?;
        field(cursor, "exit")?;
        let exit = cursor.sharding()?;
        cursor.expect(TokenKind::RightBrace, "`}`")?;
        if kind != "sharding" {
            return Err(Error::invalid_argument(format!("the kind of a domain must be \"sharding\", not {kind:?}")));
        }
        Ok(Domain { kind, entry, exit })
    }

    fn write(&self, w: &mut AttributeWriter<'_>) {
        w.push("{kind=");
        w.quoted(&self.kind);
        w.push(", entry=");
        w.sharding(&self.entry);
        w.push(", exit=");
        w.sharding(&self.exit);
        w.push("}");
    }
}

fn field(cursor: &mut AttributeCursor<'_>, name: &str) -> Result<()> {
    let found = cursor.expect(TokenKind::AttributeName, &format!("`{name}=`"))?;
    if found == name { Ok(()) } else { Err(Error::invalid_argument(format!("expected `{name}=`, found `{found}=`"))) }
}
