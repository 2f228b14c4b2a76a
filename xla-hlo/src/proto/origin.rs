//! Origins of values: text in a module, a list of leaves in protobuf.

use super::messages::{OriginalArrayProto, OriginalValueElementProto, OriginalValueProto};
use super::numbers::{indices, longs};
use crate::text::{Failure, Parse, TokenKind, Tokens, quoted};
use crate::{Error, Result};

const SYNTHETIC: &str = "{[synthetic_call]}";

/// Maximum length of a path into a tuple.
const MAX_NESTING: usize = 100;

/// Leaf of the value: its path, and the original value, if known.
type Leaf<'a> = (Vec<usize>, Option<&'a OriginalArrayProto>);

/// Returns the text of an origin: `{{"a"}}`, or `{({"a"}, {"b" {0}})}` for a tuple.
pub(super) fn read(proto: &OriginalValueProto) -> Result<String> {
    if proto.is_synthetic_call {
        return Ok(SYNTHETIC.to_string());
    }
    let mut leaves: Vec<Leaf<'_>> = Vec::with_capacity(proto.elements.len());
    for element in &proto.elements {
        leaves.push((indices("shape_index", &element.shape_index)?, element.original_array.as_ref()));
    }
    leaves.sort_by(|a, b| a.0.cmp(&b.0));
    let mut out = "{".to_string();
    push_tree(&leaves, 0, &mut out)?;
    out.push('}');
    Ok(out)
}

/// Appends the part of the value that consists of `leaves`; the first `depth` steps of their paths lead to it.
fn push_tree(leaves: &[Leaf<'_>], depth: usize, out: &mut String) -> Result<()> {
    if let [(path, array)] = leaves
        && path.len() == depth
    {
        return push_leaf(*array, out);
    }
    out.push('(');
    for (i, part) in leaves.chunk_by(|a, b| a.0.get(depth) == b.0.get(depth)).enumerate() {
        if part[0].0.get(depth) != Some(&i) || depth == MAX_NESTING {
            let path = &part[0].0[..part[0].0.len().min(MAX_NESTING)];
            let message = format!("shape_index {path:?} does not fit a tuple whose leaves are all named once");
            return Err(Error::invalid_argument(message));
        }
        if i > 0 {
            out.push_str(", ");
        }
        push_tree(part, depth + 1, out)?;
    }
    out.push(')');
    Ok(())
}

fn push_leaf(array: Option<&OriginalArrayProto>, out: &mut String) -> Result<()> {
    out.push('{');
    if let Some(array) = array {
        out.push_str(&quoted(&array.instruction_name));
        if !array.shape_index.is_empty() {
            let path: Vec<String> = array.shape_index.iter().map(i64::to_string).collect();
            out.push_str(&format!(" {{{}}}", path.join(",")));
        }
    }
    out.push('}');
    Ok(())
}

/// Writes an origin from its text in a module.
pub(super) fn write(text: &str) -> Result<OriginalValueProto> {
    let mut proto = OriginalValueProto::default();
    if text == SYNTHETIC {
        proto.is_synthetic_call = true;
        return Ok(proto);
    }
    let mut tokens = Tokens::over(text, 0, text.len());
    whole(&mut tokens, &mut proto.elements).map_err(|failure| failure.into_error(text))?;
    Ok(proto)
}

fn whole(t: &mut Tokens<'_>, elements: &mut Vec<OriginalValueElementProto>) -> Parse<()> {
    t.expect(TokenKind::LeftBrace, "`{`")?;
    tree(t, &mut Vec::new(), elements)?;
    t.expect(TokenKind::RightBrace, "`}`")?;
    t.expect_end("the end of the origin")
}

fn tree(t: &mut Tokens<'_>, path: &mut Vec<i64>, elements: &mut Vec<OriginalValueElementProto>) -> Parse<()> {
    if t.kind() != TokenKind::LeftParen {
        let original_array = leaf(t)?;
        elements.push(OriginalValueElementProto { shape_index: path.clone(), original_array });
        return Ok(());
    }
    path.push(0);
    t.nested(|t| {
        t.list(TokenKind::LeftParen, TokenKind::RightParen, "the parts of a tuple", |t| {
            tree(t, path, elements)?;
            if let Some(last) = path.last_mut() {
                *last += 1;
            }
            Ok(())
        })
    })?;
    path.pop();
    Ok(())
}

/// Parses `{"a" {0}}`, or `{}` if the origin is unknown.
fn leaf(t: &mut Tokens<'_>) -> Parse<Option<OriginalArrayProto>> {
    t.expect(TokenKind::LeftBrace, "`{` or `(`")?;
    if t.accept(TokenKind::RightBrace) {
        return Ok(None);
    }
    let instruction_name = t.string("the quoted name of an instruction")?;
    let mut shape_index = Vec::new();
    if t.kind() == TokenKind::LeftBrace {
        let at = t.at();
        let path = t.braced_indices("a path such as {0}")?;
        shape_index = longs("a path", &path).map_err(|e| Failure::new(at, e))?;
    }
    t.expect(TokenKind::RightBrace, "`}`")?;
    Ok(Some(OriginalArrayProto { instruction_name, shape_index }))
}
