//! Text form of modules, compatible with XLA in both directions.
//!
//! [`parse_module`] converts text to a [`Module`](crate::Module); `Display` and [`print_module`] convert back, and
//! `print(parse(x))` is a fixpoint. The text form leaves some decisions open, which the parser makes as follows:
//!
//! - An array without a layout is row-major. A scalar has a layout only if it states more than the (empty) order.
//! - A literal whose data is omitted, `{...}`, has all bits zero; for `f8e8m0fnu` this is 2^-127. (XLA's reader fills
//!   in consecutive byte values.) `0` for an array means zeros too; large arrays of zeros are printed in this form,
//!   because XLA reads it.
//! - `-0` is negative zero in floating-point literals. (XLA prints it in this form and reads it back as +0; here it is
//!   printed as `-0.0`, which both read correctly.)
//! - Escapes in strings must form valid UTF-8; binary strings are rejected.
//! - Nesting is limited to 200 levels; XLA allows 8192.
//!
//! Errors are [`Error::InvalidArgument`](crate::Error::InvalidArgument) (or `Unimplemented`, naming the operation) with
//! line, column, the source line with a caret, and the expected token. Parsing takes time linear in the length of the
//! text, and memory that is a small multiple of it: a literal of equal elements takes the memory of one.

mod attributes;
mod diagnostic;
mod lexer;
mod mlir;
mod numbers;
mod parser;
mod printer;
mod strings;
mod suggest;
mod tokens;

pub use attributes::{AttributeCursor, AttributeReader, AttributeValue, AttributeWriter};
pub(crate) use attributes::{AttributeWord, TokenKind, attribute_words};
pub use diagnostic::error_at;
pub(crate) use diagnostic::{Failure, Parse, shown};
pub(crate) use mlir::{MlirReader, name as mlir_name, quoted as mlir_quoted, quoted_bytes as mlir_quoted_bytes};
pub use parser::{parse_literal, parse_module, parse_module_counting_omitted, parse_shape, parse_sharding};
pub(crate) use printer::print_metadata;
pub use printer::{PrintOptions, print_computation, print_instruction, print_module};
pub(crate) use strings::quoted;
pub use suggest::did_you_mean;
pub(crate) use tokens::Tokens;
