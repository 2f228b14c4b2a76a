//! Parser of MLIR's own attributes: numbers, strings, lists, dictionaries, symbols, types, dense arrays.

use xla_hlo::{ElementType, Error, Result, Scalar};

use super::reader::Reader;
use crate::ir::{AttrId, Attribute, StringId, Type, TypeId};

/// Attributes of an operation, by name.
pub(super) type Entries = Vec<(StringId, AttrId)>;

impl<'t> Reader<'t> {
    /// Parses an attribute.
    pub(super) fn attribute(&mut self) -> Result<AttrId> {
        self.nested(Self::attribute_here)
    }

    fn attribute_here(&mut self) -> Result<AttrId> {
        let start = self.cursor.offset();
        if self.cursor.is("[") {
            let list = self.list(["[", "]"], Self::attribute)?;
            return Ok(self.push(Attribute::Array(list)));
        }
        if self.cursor.is("{") {
            return self.dictionary();
        }
        if self.cursor.is("\"") {
            let text = self.cursor.string("a string")?;
            let id = self.push_string(&text);
            if self.cursor.eat(":") {
                self.ty()?;
            }
            return Ok(id);
        }
        if self.cursor.is("@") {
            return self.symbol();
        }
        if self.cursor.eat("#") {
            return self.hash(start);
        }
        if self.cursor.is("-") || self.cursor.is_digit() {
            return self.number();
        }
        if self.cursor.is("loc") {
            return self.location();
        }
        if self.cursor.eat("dense") {
            return self.dense();
        }
        if self.cursor.eat("array") {
            return self.dense_array();
        }
        for (word, attribute) in
            [("true", Attribute::Bool(true)), ("false", Attribute::Bool(false)), ("unit", Attribute::Unit)]
        {
            if self.cursor.eat(word) {
                return Ok(self.push(attribute));
            }
        }
        for word in ["dense_resource", "sparse", "distinct", "affine_map", "affine_set", "strided"] {
            if self.cursor.eat(word) {
                return self.without_counterpart(word);
            }
        }
        let ty = self.ty()?;
        Ok(self.push(Attribute::Type(ty)))
    }

    /// Parses the rest of an attribute without a counterpart in HLO: `<...>`, optionally with a list such as `[0]`
    /// before it and a type after it. The lowering reports an error only if an operation uses the attribute.
    fn without_counterpart(&mut self, word: &'static str) -> Result<AttrId> {
        if self.cursor.is("[") {
            self.list(["[", "]"], |reader| reader.cursor.integer("an integer"))?;
        }
        self.cursor.expect("<")?;
        self.cursor.skip_to_closing_angle()?;
        self.cursor.expect(">")?;
        if self.cursor.eat(":") {
            self.ty()?;
        }
        Ok(self.push(Attribute::Foreign(word)))
    }

    /// Parses a symbol: `@name`, `@"name"`, `@outer::@inner`.
    pub(super) fn symbol(&mut self) -> Result<AttrId> {
        let mut path = Vec::new();
        loop {
            self.cursor.expect("@")?;
            let name = if self.cursor.is("\"") {
                self.cursor.string("a name")?
            } else {
                self.cursor.suffix("a name")?.as_bytes().into()
            };
            path.push(self.push_string(&name));
            if !self.cursor.eat("::") {
                return Ok(self.push(Attribute::Symbol(path)));
            }
        }
    }

    fn dictionary(&mut self) -> Result<AttrId> {
        self.dictionaries += 1;
        let entries = self.entries(["{", "}"])?;
        self.dictionaries -= 1;
        let entry = |reader: &mut Self, (name, value)| (reader.push(Attribute::String(name)), value);
        let entries = entries.into_iter().map(|named| entry(self, named)).collect();
        Ok(self.push(Attribute::Dictionary(entries)))
    }

    /// Parses the entries of a dictionary: `{name = value, flag}`.
    pub(super) fn entries(&mut self, brackets: [&str; 2]) -> Result<Entries> {
        self.list(brackets, |reader| {
            let name = if reader.cursor.is("\"") {
                reader.cursor.string("a name")?
            } else {
                reader.cursor.word("the name of an attribute")?.as_bytes().into()
            };
            let name = reader.module.intern(&name);
            let value = if reader.cursor.eat("=") { reader.attribute()? } else { reader.push(Attribute::Unit) };
            Ok((name, value))
        })
    }

    /// Parses a number and its type. Without a type, an integer is `i64` and a float is `f64`.
    fn number(&mut self) -> Result<AttrId> {
        let start = self.cursor.offset();
        let text = self.cursor.number()?;
        let is_float = text.contains('.');
        let ty = if self.cursor.eat(":") {
            self.ty()?
        } else {
            self.element(if is_float { ElementType::F64 } else { ElementType::S64 })
        };
        let attribute = match self.module.types[ty] {
            Type::Element(element) if element.is_float() => {
                let value = self.scalar(text, element, start)?;
                Attribute::Float { ty, bits: value.to_bits(element) }
            }
            Type::Element(element) if !element.is_complex() => match self.scalar(text, element, start)? {
                Scalar::Signed(value) => Attribute::Integer { ty, value },
                Scalar::Unsigned(value) => Attribute::Integer { ty, value: value as i64 },
                value => Attribute::Bool(value.as_bool()),
            },
            Type::Index => match self.scalar(text, ElementType::S64, start)? {
                Scalar::Signed(value) => Attribute::Integer { ty, value },
                _ => return Err(Error::internal("an index is not an integer")),
            },
            _ => return Err(self.cursor.error_at(start, "the type of a number is not numeric")),
        };
        Ok(self.push(attribute))
    }

    /// Returns the id of an element type.
    pub(super) fn element(&mut self, ty: ElementType) -> TypeId {
        self.module.element(ty)
    }

    /// Parses `array<i64: 1, 2>`. The result is a tensor of rank 1, as in VHLO, except within a dictionary, where
    /// custom call handlers distinguish arrays from tensors.
    fn dense_array(&mut self) -> Result<AttrId> {
        let start = self.cursor.offset();
        self.cursor.expect("<")?;
        let element = self.ty()?;
        let Type::Element(ty) = self.module.types[element] else {
            return Err(self.cursor.error_at(start, "the element type of an array is not numeric"));
        };
        let mut bytes = Vec::new();
        if self.cursor.eat(":") {
            self.list_up_to(">", |reader| reader.scalar_bytes(ty, &mut bytes))?;
        } else {
            self.cursor.expect(">")?;
        }
        if self.dictionaries > 0 {
            return Ok(self.push(Attribute::DenseArray { element, bytes: bytes.into() }));
        }
        Ok(self.module.push_tensor(element, ty, bytes.into()))
    }

    /// Parses a list of integers in brackets as a tensor of rank 1.
    pub(super) fn integers(&mut self, brackets: [&str; 2]) -> Result<AttrId> {
        let values = self.list(brackets, |reader| reader.cursor.integer("an integer"))?;
        Ok(self.push_integers(&values))
    }

    pub(super) fn push_integers(&mut self, values: &[i64]) -> AttrId {
        self.module.push_integers(values)
    }

    /// Adds a 64-bit integer attribute.
    pub(super) fn push_integer(&mut self, value: i64) -> AttrId {
        self.module.push_integer(value)
    }
}
