//! Recursive descent parser, with one file for each subject.

mod annotations;
mod asynchronous;
mod computation;
mod header;
mod instruction;
mod literal;
mod operands;
mod shape;
mod sharding;

use super::attributes::InlineComputations;
use super::diagnostic::Parse;
use super::tokens::Tokens;
use crate::{Literal, Module, Result, Shape, Sharding};

/// Parses a module, with or without a header, or a lone instruction such as `f32[2] add(f32[2] x, f32[2] y)`.
///
/// The module is well-formed; [`crate::VerifiedModule`] checks that it is a valid program. The error is the first one
/// found, with its position in the text.
pub fn parse_module(text: &str) -> Result<Module> {
    parse_module_counting_omitted(text).map(|(module, _)| module)
}

/// Parses a module like [`parse_module`], and counts the constants without data, `{...}`, which become zeros.
pub fn parse_module_counting_omitted(text: &str) -> Result<(Module, usize)> {
    let mut omitted = 0;
    let module = Parser::new(text, &mut omitted).module().map_err(|failure| failure.into_error(text))?;
    Ok((module, omitted))
}

/// Parses a shape such as `(f32[2,3]{1,0}, s32[])`. Arrays of rank 1 and above without a layout become row-major.
pub fn parse_shape(text: &str) -> Result<Shape> {
    whole(text, Tokens::shape)
}

/// Parses a sharding such as `{devices=[2,1]0,1}` or, for a tuple, `{{replicated}, {manual}}`.
pub fn parse_sharding(text: &str) -> Result<Sharding> {
    whole(text, Tokens::sharding)
}

/// Parses a literal whose arrays carry their shapes: `f32[2] {1, 2.5}` or `(s32[] 1, pred[2] {1, 0})`.
pub fn parse_literal(text: &str) -> Result<Literal> {
    whole(text, |tokens| tokens.literal_with_shapes(&mut 0))
}

/// Applies a rule to a whole text.
fn whole<'t, T>(text: &'t str, rule: impl FnOnce(&mut Tokens<'t>) -> Parse<T>) -> Result<T> {
    let mut tokens = Tokens::over(text, 0, text.len());
    let result = rule(&mut tokens).and_then(|value| {
        tokens.expect_end("the end of the text")?;
        Ok(value)
    });
    result.map_err(|failure| failure.into_error(text))
}

/// State of the parser of a module.
struct Parser<'t> {
    text: &'t str,
    tokens: Tokens<'t>,
    module: Module,
    /// Computations written inline in place of a name.
    inline: InlineComputations,
    /// Number of literals without data.
    omitted: &'t mut usize,
    /// Whether an undefined operand becomes a parameter, as in a lone instruction.
    free_operands: bool,
}

impl<'t> Parser<'t> {
    fn new(text: &'t str, omitted: &'t mut usize) -> Parser<'t> {
        Parser {
            text,
            tokens: Tokens::over(text, 0, text.len()),
            module: Module::new(""),
            inline: InlineComputations::new(),
            omitted,
            free_operands: false,
        }
    }
}
