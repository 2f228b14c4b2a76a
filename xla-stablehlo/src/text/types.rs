//! Parser of types: elements, tensors, functions, tuples, tokens.

use xla_hlo::ElementType::{Pred, S2, S4, S8, S16, S32, S64, U2, U4, U8, U16, U32, U64};
use xla_hlo::{ElementType, Result};

use super::reader::Reader;
use crate::ir::{Attribute, Type, TypeId};

impl<'t> Reader<'t> {
    /// Parses a type.
    pub(super) fn ty(&mut self) -> Result<TypeId> {
        self.nested(Self::ty_here)
    }

    fn ty_here(&mut self) -> Result<TypeId> {
        let start = self.cursor.offset();
        if self.cursor.is("(") {
            return self.function_type();
        }
        if self.cursor.eat("!") {
            let name = self.cursor.suffix("the name of a type")?;
            return match self.type_alias(name) {
                Some(ty) => Ok(ty),
                None => self.dialect_type(start, name),
            };
        }
        let name = self.cursor.word("a type")?;
        if !self.cursor.is("<") {
            return match named(name) {
                Some(ty) => Ok(self.push_type(name, ty)),
                None => Err(self.cursor.error_at(start, format!("`{name}` is not a type"))),
            };
        }
        // Types are repetitive, so each distinct text is parsed once.
        let mut end = self.cursor.clone();
        end.expect("<")?;
        end.skip_to_closing_angle()?;
        end.expect(">")?;
        let text = end.since(start);
        if let Some(&known) = self.types.get(text) {
            self.cursor = end;
            return Ok(known);
        }
        let ty = self.parameterized_type(start, name)?;
        Ok(self.push_type(text, ty))
    }

    fn push_type(&mut self, text: &'t str, ty: Type) -> TypeId {
        if let Some(&known) = self.types.get(text) {
            return known;
        }
        let id = self.module.types.push(ty);
        self.types.insert(text, id);
        id
    }

    /// Parses a function type.
    pub(super) fn function_type(&mut self) -> Result<TypeId> {
        let (inputs, results) = self.signature()?;
        Ok(self.module.types.push(Type::Function { inputs, results }))
    }

    /// Parses `(types) -> types`.
    pub(super) fn signature(&mut self) -> Result<(Vec<TypeId>, Vec<TypeId>)> {
        let inputs = self.list(["(", ")"], Self::ty)?;
        self.cursor.expect("->")?;
        Ok((inputs, self.result_types()?))
    }

    /// Parses one type, or several in parentheses.
    pub(super) fn result_types(&mut self) -> Result<Vec<TypeId>> {
        if self.cursor.is("(") { self.list(["(", ")"], Self::ty) } else { Ok(vec![self.ty()?]) }
    }

    /// Parses a comma-separated list of types.
    pub(super) fn types(&mut self) -> Result<Vec<TypeId>> {
        let mut types = vec![self.ty()?];
        while self.cursor.eat(",") {
            types.push(self.ty()?);
        }
        Ok(types)
    }

    fn dialect_type(&mut self, start: usize, name: &str) -> Result<TypeId> {
        let ty = match name {
            "stablehlo.token" | "mhlo.token" => Type::Token,
            "stablehlo.future" => Type::Future(self.list(["<", ">"], Self::ty)?),
            "quant.uniform" => {
                self.cursor.expect("<")?;
                self.cursor.skip_to_closing_angle()?;
                self.cursor.expect(">")?;
                Type::Foreign("quantized")
            }
            _ => return Err(self.cursor.unimplemented_at(start, format!("type !{name} is unknown here"))),
        };
        Ok(self.module.types.push(ty))
    }

    fn parameterized_type(&mut self, start: usize, name: &str) -> Result<Type> {
        match name {
            "tensor" => self.tensor(),
            "memref" => match self.tensor()? {
                Type::Tensor { dims, element, .. } => Ok(Type::Buffer { dims, element }),
                other => Ok(other),
            },
            "complex" => {
                self.cursor.expect("<")?;
                let element = self.ty()?;
                self.cursor.expect(">")?;
                Ok(Type::Complex(element))
            }
            "tuple" => Ok(Type::Tuple(self.list(["<", ">"], Self::ty)?)),
            _ => Err(self.cursor.unimplemented_at(start, format!("type {name} is unknown here"))),
        }
    }

    fn tensor(&mut self) -> Result<Type> {
        self.cursor.expect("<")?;
        if self.cursor.eat_prefix("*x") {
            let element = self.ty()?;
            self.cursor.expect(">")?;
            return Ok(Type::UnrankedTensor(element));
        }
        let mut dims = Vec::new();
        while let Some(extent) = self.cursor.extent()? {
            dims.push(extent);
        }
        let element = self.ty()?;
        let encoding = if self.cursor.eat(",") { Some(self.attribute()?) } else { None };
        self.cursor.expect(">")?;
        Ok(Type::Tensor { dims, element, encoding })
    }

    /// Parses the bounds of dynamic dimensions, such as `<?, 6>`, in the given brackets.
    pub(super) fn bounds(&mut self, brackets: [&str; 2]) -> Result<Attribute> {
        let bound = |reader: &mut Self| {
            if reader.cursor.eat("?") { Ok(i64::MIN) } else { reader.cursor.integer("a bound or `?`") }
        };
        Ok(Attribute::TypeExtensions(self.list(brackets, bound)?))
    }
}

/// Returns the type that a single word denotes.
fn named(name: &str) -> Option<Type> {
    let integer = |width: &str, signed: bool| {
        Some(match (width, signed) {
            ("1", true) => Pred,
            ("2", true) => S2,
            ("4", true) => S4,
            ("8", true) => S8,
            ("16", true) => S16,
            ("32", true) => S32,
            ("64", true) => S64,
            ("2", false) => U2,
            ("4", false) => U4,
            ("8", false) => U8,
            ("16", false) => U16,
            ("32", false) => U32,
            ("64", false) => U64,
            _ => return None,
        })
    };
    let element = match name {
        "index" => return Some(Type::Index),
        "none" => return Some(Type::None),
        "tf32" => return Some(Type::Foreign("tf32")),
        "f80" => return Some(Type::Foreign("f80")),
        "f128" => return Some(Type::Foreign("f128")),
        _ if name.starts_with("ui") => integer(&name[2..], false),
        _ if name.starts_with("si") => integer(&name[2..], true),
        _ if name.starts_with('i') => integer(&name[1..], true),
        _ => ElementType::from_name(&name.to_ascii_lowercase()).filter(|ty| ty.is_float()),
    };
    element.map(Type::Element)
}
