//! Typed access to an operation's attributes.

use xla_hlo::{ArrayShape, ElementType, Error, Literal, Result, Scalar, Shape};

use super::types;
use crate::ir::{AttrId, Attribute, EnumKind, Module, OpId, Type, TypeId};

/// Attributes of one operation.
#[derive(Clone, Copy)]
pub(super) struct Attributes<'s> {
    pub module: &'s Module,
    pub op: OpId,
}

impl<'s> Attributes<'s> {
    /// Returns an attribute of the operation, or of the operation that a composite or custom call wraps.
    pub fn get(self, name: &str) -> Option<AttrId> {
        let within = |dictionary| lookup(self.module, self.module.attribute(self.op, dictionary)?, name);
        let own = self.module.attribute(self.op, name);
        own.or_else(|| within("composite_attributes")).or_else(|| within("mhlo.attributes"))
    }

    fn required(self, name: &str) -> Result<&'s Attribute> {
        let id = self.get(name).ok_or_else(|| Error::invalid_argument(format!("attribute {name} is missing")))?;
        Ok(&self.module.attributes[id])
    }

    fn wrong<T>(self, name: &str, what: &str) -> Result<T> {
        let text = self.get(name).map_or_else(String::new, |id| self.module.attribute_text(id));
        Err(Error::invalid_argument(format!("attribute {name} must be {what}, not {text}")))
    }

    pub fn int(self, name: &str) -> Result<i64> {
        match self.required(name)? {
            Attribute::Integer { value, .. } => Ok(*value),
            _ => self.wrong(name, "an integer"),
        }
    }

    pub fn index(self, name: &str) -> Result<usize> {
        match usize::try_from(self.int(name)?) {
            Ok(index) => Ok(index),
            Err(_) => self.wrong(name, "an integer of at least 0"),
        }
    }

    pub fn flag(self, name: &str) -> Result<bool> {
        match self.required(name)? {
            Attribute::Bool(value) => Ok(*value),
            _ => self.wrong(name, "true or false"),
        }
    }

    pub fn float(self, name: &str) -> Result<f32> {
        match self.required(name)? {
            Attribute::Float { ty, bits } => match types::element_type(self.module, *ty)? {
                ElementType::F32 => Ok(f32::from_bits(*bits as u32)),
                ElementType::F64 => Ok(f64::from_bits(*bits) as f32),
                _ => self.wrong(name, "an f32"),
            },
            _ => self.wrong(name, "a float"),
        }
    }

    /// Returns a number as a scalar of its type.
    pub fn number(self, name: &str) -> Result<Literal> {
        let (ty, bits) = match self.required(name)? {
            Attribute::Bool(flag) => return Ok(Literal::scalar(ElementType::Pred, Scalar::Pred(*flag))),
            Attribute::Integer { ty, value } => (*ty, *value as u64),
            Attribute::Float { ty, bits } => (*ty, *bits),
            _ => return self.literal(name),
        };
        let ty = types::element_type(self.module, ty)?;
        Ok(Literal::scalar(ty, Scalar::read(ty, &bits.to_le_bytes()[..ty.byte_width()])))
    }

    pub fn string(self, name: &str) -> Result<String> {
        match self.required(name)? {
            Attribute::String(string) => match std::str::from_utf8(&self.module.strings[*string]) {
                Ok(text) => Ok(text.to_string()),
                Err(error) => {
                    let at = error.valid_up_to();
                    Err(Error::invalid_argument(format!("{name} must be text, but is not UTF-8 at byte {at}")))
                }
            },
            _ => self.wrong(name, "a string"),
        }
    }

    /// Returns the name of a symbol, or the text of a string.
    pub fn symbol(self, name: &str) -> Result<String> {
        match self.required(name)? {
            Attribute::Symbol(path) if path.len() == 1 => {
                let text = self.module.string_attribute(path[0]).map(std::borrow::Cow::into_owned);
                text.map_or_else(|| self.wrong(name, "a symbol"), Ok)
            }
            _ => self.string(name),
        }
    }

    pub fn enumeration(self, name: &str, kind: EnumKind) -> Result<&'static str> {
        match self.required(name)? {
            Attribute::Enum(found, value) if *found == kind => Ok(kind.names()[*value as usize]),
            _ => self.wrong(name, &format!("one of {:?}", kind.names())),
        }
    }

    pub fn array(self, name: &str) -> Result<&'s [AttrId]> {
        match self.required(name)? {
            Attribute::Array(list) => Ok(list),
            _ => self.wrong(name, "a list"),
        }
    }

    /// Returns the integers of a tensor.
    pub fn ints(self, name: &str) -> Result<Vec<i64>> {
        self.required(name)?;
        let found = self.get(name).map_or_else(|| Ok(Vec::new()), |id| integers(self.module, id));
        found.or_else(|_| self.wrong(name, "integers"))
    }

    /// Returns the integers of a tensor, which must be non-negative.
    pub fn indices(self, name: &str) -> Result<Vec<usize>> {
        let index = |value: i64| usize::try_from(value).ok();
        let found = self.ints(name)?.into_iter().map(index).collect::<Option<_>>();
        found.map_or_else(|| self.wrong(name, "integers of at least 0"), Ok)
    }

    /// Returns the non-negative integers of a tensor that is an element of the list attribute `name`.
    pub fn indices_of(self, name: &str, id: AttrId) -> Result<Vec<usize>> {
        let found = integers(self.module, id).ok();
        let found: Option<Vec<usize>> =
            found.and_then(|list| list.into_iter().map(|value| usize::try_from(value).ok()).collect());
        found.map_or_else(|| self.wrong(name, "a list of tensors of integers of at least 0"), Ok)
    }

    /// Returns the rows of a tensor of rank 2.
    pub fn rows(self, name: &str) -> Result<Vec<Vec<i64>>> {
        let literal = self.literal(name)?;
        let &[rows, columns] = literal.array_shape().dims() else {
            // jaxlib writes an empty list of pairs with rank 1.
            return if literal.array_shape().element_count() == 0 {
                Ok(vec![])
            } else {
                self.wrong(name, "a tensor of rank 2")
            };
        };
        let ints = self.ints(name)?;
        Ok((0..rows).map(|row| ints[row * columns..(row + 1) * columns].to_vec()).collect())
    }

    /// Returns the elements of a tensor.
    pub fn literal(self, name: &str) -> Result<Literal> {
        self.required(name)?;
        let found = self.get(name).map_or(Ok(None), |id| literal(self.module, id));
        match found.map_err(|error| error.context(format!("attribute {name}")))? {
            Some(literal) => Ok(literal),
            None => self.wrong(name, "a tensor"),
        }
    }
}

/// Returns the integers of a tensor or list.
pub(super) fn integers(module: &Module, id: AttrId) -> Result<Vec<i64>> {
    let wrong = || Error::invalid_argument(format!("{} is not a list of integers", module.attribute_text(id)));
    let int = |value: Scalar| value.as_i128().and_then(|value| i64::try_from(value).ok()).ok_or_else(wrong);
    if let Attribute::Array(list) = &module.attributes[id] {
        let one = |&id: &AttrId| match module.attributes[id] {
            Attribute::Integer { value, .. } => Ok(value),
            _ => Err(wrong()),
        };
        return list.iter().map(one).collect();
    }
    let literal = literal(module, id)?.ok_or_else(wrong)?;
    (0..literal.array_shape().element_count()).map(|i| int(literal.get(i))).collect()
}

/// Returns the elements of a tensor or dense array; `None` for another attribute.
pub(super) fn literal(module: &Module, id: AttrId) -> Result<Option<Literal>> {
    match &module.attributes[id] {
        Attribute::Dense { ty, bytes } => match tensor(module, *ty)? {
            Shape::Array(shape) => dense(&shape, bytes).map(Some),
            _ => Ok(None),
        },
        Attribute::DenseArray { element, bytes } => {
            let ty = types::element_type(module, *element)?;
            let shape = ArrayShape::new(ty, [bytes.len() / ty.byte_width()]);
            Literal::from_bytes(&shape, bytes.to_vec()).map(Some)
        }
        _ => Ok(None),
    }
}

/// Returns the shape of an attribute's type, with `index` elements as 64-bit integers.
fn tensor(module: &Module, ty: TypeId) -> Result<Shape> {
    match &module.types[ty] {
        Type::Tensor { dims, element, .. } if module.types[*element] == Type::Index => {
            let dims: Option<Vec<usize>> = dims.iter().map(|dim| usize::try_from((*dim)?).ok()).collect();
            let dims = dims.ok_or_else(|| Error::invalid_argument("an attribute has the type of a dynamic tensor"))?;
            Ok(Shape::array(ElementType::S64, dims))
        }
        _ => types::shape(module, ty),
    }
}

/// Returns the value of a dictionary entry.
pub(super) fn lookup(program: &Module, dictionary: AttrId, wanted: &str) -> Option<AttrId> {
    let Attribute::Dictionary(entries) = &program.attributes[dictionary] else { return None };
    let has_name = |name| program.string_attribute(name).is_some_and(|name| name == wanted);
    entries.iter().find(|(name, _)| has_name(*name)).map(|&(_, value)| value)
}

/// Decodes dense elements: a splat, packed bits, or each element in whole bytes.
fn dense(shape: &ArrayShape, bytes: &[u8]) -> Result<Literal> {
    let (count, width) = (shape.checked_element_count()?, shape.element_type().byte_width());
    let size =
        || Error::invalid_argument(format!("dense elements have {} bytes, which does not fit {shape}", bytes.len()));
    if shape.element_type() == ElementType::Pred {
        let is_splat = bytes.len() == 1 && matches!(bytes[0], 0 | 0xff) && count != 1;
        let bit = |i: usize| bytes.get(i / 8).map(|byte| byte >> (i % 8) & 1);
        return match bytes.len() {
            1 if is_splat || count == 1 => Literal::splat(shape, Scalar::Pred(bytes[0] & 1 != 0)),
            length if length == count.div_ceil(8) => {
                let bits = (0..count).map(bit).collect::<Option<Vec<u8>>>().ok_or_else(size)?;
                Literal::from_bytes(shape, bits)
            }
            length if length == count => Literal::from_bytes(shape, bytes.iter().map(|&b| u8::from(b != 0)).collect()),
            _ => Err(size()),
        };
    }
    if bytes.len() == count * width {
        return Literal::from_bytes(shape, bytes.to_vec());
    }
    // Programs may also store one element for an array without elements.
    if bytes.len() == width {
        return Literal::splat(shape, Scalar::read(shape.element_type(), bytes));
    }
    Err(size())
}
