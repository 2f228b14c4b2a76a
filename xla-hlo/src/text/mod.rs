//! Text form of modules, compatible with XLA in both directions.
//!
//! [`parse_module`] goes from text to a [`Module`](crate::Module); `Display` and [`print_module`] go back, and
//! `print(parse(x))` is a fixed point. Decisions of the reader where the text leaves them open:
//!
//! - An array without a layout is row major. Scalars have no layout unless one says more than the (empty) order.
//! - A literal whose data was left out, `{...}`, is zeros: all bits, so 2^-127 for `f8e8m0fnu`. (XLA's reader counts
//!   through its bytes.) `0` for an array is zeros, too; large ones are printed so, since XLA reads it.
//! - `-0` is the negative zero in floating-point literals. (XLA prints it so and reads it back as +0; it is printed
//!   here as `-0.0`, which both read rightly.)
//! - Escapes in strings must make UTF-8; binary strings are refused.
//! - Nesting is limited to 200 levels where XLA allows 8192.
//!
//! Errors are [`Error::InvalidArgument`](crate::Error::InvalidArgument) (or `Unimplemented`, naming the operation) with
//! line, column, the source line with a caret, and the expected token. Reading is linear in the length of the text, and
//! memory is a small multiple of it: a literal of equal elements takes the memory of one.

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
