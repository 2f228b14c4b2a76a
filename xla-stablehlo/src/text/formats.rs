//! Table-driven pretty forms of operations: the keywords after the operands, and the attributes that they set.
//!
//! Every such form is `name %a, %b, keyword = value, ... {attributes} : types`.

use xla_hlo::{ElementType, Result};

use super::attributes::Entries;
use super::reader::Reader;
use crate::ir::{AttrId, Attribute, EnumKind, Type};

/// Syntax of a keyword's value.
#[derive(Clone, Copy)]
enum Kind {
    /// `3`
    Integer,
    /// `[1, 2]`
    Integers,
    /// Any attribute, in its own syntax.
    Any,
    /// `"text"`, without a type.
    Text,
    /// `HIGHEST`
    Enum(EnumKind),
    /// `[HIGHEST, DEFAULT]`
    Precisions,
    /// `[0] x [1]`; the second list sets the attribute with this name.
    Pair(&'static str),
    /// `<lhs_precision_type = tf32, ...>`, which sets several attributes.
    Fields,
    /// `e5m10`
    FloatFormat,
}

struct Keyword(&'static str, &'static str, Kind);

use Kind::{Any, Enum, Fields, FloatFormat, Integer, Integers, Pair, Precisions, Text};

/// Returns the optional keywords of an operation, in textual order.
fn keywords(operation: &str) -> &'static [Keyword] {
    match operation {
        "broadcast_in_dim" | "dynamic_broadcast_in_dim" => &[Keyword("dims", "broadcast_dimensions", Integers)],
        "broadcast" => &[Keyword("sizes", "broadcast_sizes", Integers)],
        "transpose" => &[Keyword("dims", "permutation", Integers)],
        "reverse" => &[Keyword("dims", "dimensions", Integers)],
        "iota" | "dynamic_iota" => &[Keyword("dim", "iota_dimension", Integer)],
        "concatenate" | "get_dimension_size" | "set_dimension_size" => &[Keyword("dim", "dimension", Integer)],
        "pad" => &[
            Keyword("low", "edge_padding_low", Integers),
            Keyword("high", "edge_padding_high", Integers),
            Keyword("interior", "interior_padding", Integers),
        ],
        "dynamic_slice" => &[Keyword("sizes", "slice_sizes", Integers)],
        "fft" => &[Keyword("type", "fft_type", Enum(EnumKind::FftType)), Keyword("length", "fft_length", Integers)],
        "rng" => &[Keyword("distribution", "rng_distribution", Enum(EnumKind::RngDistribution))],
        "rng_bit_generator" => &[Keyword("algorithm", "rng_algorithm", Enum(EnumKind::RngAlgorithm))],
        "cholesky" => &[Keyword("lower", "lower", Any)],
        "top_k" => &[Keyword("k", "k", Integer)],
        "topk" => &[Keyword("k", "k", Integer), Keyword("largest", "largest", Any)],
        "einsum" | "unary_einsum" => &[Keyword("config", "einsum_config", Text)],
        "dot" => &[Keyword("precision", "precision_config", Precisions)],
        "dot_general" => &[
            Keyword("batching_dims", "lhs_batching_dimensions", Pair("rhs_batching_dimensions")),
            Keyword("contracting_dims", "lhs_contracting_dimensions", Pair("rhs_contracting_dimensions")),
            Keyword("precision", "precision_config", Precisions),
            Keyword("algorithm", "algorithm", Fields),
        ],
        "reduce_precision" => &[Keyword("format", "exponent_bits", FloatFormat)],
        _ => &[],
    }
}

impl Reader<'_> {
    /// Parses the keywords of an operation and their values. `follows` is whether a comma must precede the first one.
    pub(super) fn keywords(&mut self, operation: &str, mut follows: bool, entries: &mut Entries) -> Result<()> {
        for &Keyword(keyword, attribute, kind) in keywords(operation) {
            let mut ahead = self.cursor.clone();
            if (follows && !ahead.eat(",")) || !ahead.eat(keyword) || !ahead.eat("=") {
                continue;
            }
            self.cursor = ahead;
            follows = true;
            let value = match kind {
                Integer => {
                    let value = self.cursor.integer("an integer")?;
                    self.push_integer(value)
                }
                Integers => self.integers(["[", "]"])?,
                Any => self.attribute()?,
                Text => {
                    let text = self.cursor.string("a string")?;
                    self.push_string(&text)
                }
                Enum(kind) => self.enumerator(kind)?,
                Precisions => {
                    let list = self.list(["[", "]"], |reader| reader.enumerator(EnumKind::Precision))?;
                    self.push(Attribute::Array(list))
                }
                Pair(second) => {
                    let first = self.integers(["[", "]"])?;
                    if !self.cursor.eat_prefix("x") {
                        return Err(self.cursor.expected("`x`"));
                    }
                    let value = self.integers(["[", "]"])?;
                    self.set(entries, second, value);
                    first
                }
                Fields => {
                    entries.extend(self.fields()?);
                    continue;
                }
                FloatFormat => {
                    let [exponent, mantissa] = self.float_format()?;
                    self.set(entries, "mantissa_bits", mantissa);
                    exponent
                }
            };
            self.set(entries, attribute, value);
        }
        Ok(())
    }

    /// Adds an attribute to `entries`.
    pub(super) fn set(&mut self, entries: &mut Entries, name: &str, value: AttrId) {
        let name = self.module.intern(name.as_bytes());
        entries.push((name, value));
    }

    /// Parses a float format such as `e5m10` into the numbers of exponent and mantissa bits.
    fn float_format(&mut self) -> Result<[AttrId; 2]> {
        let at = self.cursor.offset();
        let word = self.cursor.word("a format such as e5m10")?;
        let bits = word.strip_prefix('e').and_then(|rest| rest.split_once('m'));
        let bits = bits.and_then(|(exponent, mantissa)| Some([exponent.parse().ok()?, mantissa.parse().ok()?]));
        let bits: [i64; 2] =
            bits.ok_or_else(|| self.cursor.error_at(at, format!("`{word}` is not a format such as e5m10")))?;
        let ty = self.element(ElementType::S32);
        Ok(bits.map(|value: i64| self.push(Attribute::Integer { ty, value })))
    }

    /// Returns the type of a constant's value if it is a tensor.
    pub(super) fn type_of(&self, value: AttrId) -> Option<crate::ir::TypeId> {
        let ty = self.module.attributes[value].ty()?;
        matches!(self.module.types[ty], Type::Tensor { .. }).then_some(ty)
    }
}
