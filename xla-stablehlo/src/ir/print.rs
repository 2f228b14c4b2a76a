//! Printer of programs in MLIR's generic form, without locations, for diagnostics and tests.
//!
//! Long and deeply nested attributes are truncated, so the text of any program is short relative to its file.

use std::fmt::{self, Display, Formatter, Write};

use xla_hlo::entity::EntityId;

use super::attribute::Attribute;
use super::ids::{AttrId, BlockId, Name, OpId, TypeId};
use super::module::Module;
use super::sharding::Sharding;
use super::types::Type;

/// Limit on the characters of an attribute or type in the output.
const LONGEST: usize = 400;
/// Limit on the nesting depth of an attribute or type in the output.
const DEEPEST: usize = 32;
/// Limit on the bytes of dense elements in the output.
const MOST_BYTES: usize = 32;

impl Display for Module {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(version) = self.version {
            writeln!(f, "// VHLO {version}")?;
        }
        let mut stack: Vec<Step> = self.top.map(Step::Operation).into_iter().collect();
        let mut depth = 0;
        while let Some(step) = stack.pop() {
            match step {
                Step::Operation(op) => self.operation(f, op, depth, &mut stack)?,
                Step::Region => {
                    writeln!(f, "{:1$}{{", "", 2 * depth)?;
                    depth += 1;
                }
                Step::Block(block) => self.arguments(f, block, depth)?,
                Step::End => {
                    depth -= 1;
                    writeln!(f, "{:1$}}}", "", 2 * depth)?;
                }
            }
        }
        Ok(())
    }
}

/// Part of the output that is still to be written.
enum Step {
    Operation(OpId),
    Region,
    Block(BlockId),
    End,
}

impl Module {
    fn operation(&self, f: &mut Formatter<'_>, op: OpId, depth: usize, stack: &mut Vec<Step>) -> fmt::Result {
        let operation = &self.operations[op];
        write!(f, "{:1$}", "", 2 * depth)?;
        for (i, result) in operation.results.iter().enumerate() {
            write!(f, "{}{result}", if i > 0 { ", " } else { "" })?;
        }
        if !operation.results.is_empty() {
            f.write_str(" = ")?;
        }
        f.write_str(&self.text(operation.name))?;
        for (i, operand) in operation.operands.iter().enumerate() {
            write!(f, "{}{operand}", if i > 0 { ", " } else { " " })?;
        }
        if !operation.attributes.is_empty() {
            f.write_str(" {")?;
            for (i, &(name, value)) in operation.attributes.iter().enumerate() {
                write!(f, "{}{} = {}", if i > 0 { ", " } else { "" }, self.text(name), self.short(Part::Attr(value)))?;
            }
            f.write_char('}')?;
        }
        for (i, &result) in operation.results.iter().enumerate() {
            write!(f, "{}{}", if i > 0 { ", " } else { " : " }, self.short(Part::Type(self.values[result].ty)))?;
        }
        writeln!(f)?;
        for &region in operation.regions.iter().rev() {
            stack.push(Step::End);
            for &block in self.regions[region].blocks.iter().rev() {
                stack.extend(self.blocks[block].operations.iter().rev().map(|&op| Step::Operation(op)));
                stack.push(Step::Block(block));
            }
            stack.push(Step::Region);
        }
        Ok(())
    }

    fn arguments(&self, f: &mut Formatter<'_>, block: BlockId, depth: usize) -> fmt::Result {
        let arguments = &self.blocks[block].arguments;
        if arguments.is_empty() {
            return Ok(());
        }
        write!(f, "{:1$}^", "", 2 * depth)?;
        for (i, &argument) in arguments.iter().enumerate() {
            let ty = self.short(Part::Type(self.values[argument].ty));
            write!(f, "{}{argument}: {ty}", if i > 0 { ", " } else { "" })?;
        }
        writeln!(f)
    }

    /// Returns the text of an attribute, truncated if it is long.
    pub fn attribute_text(&self, id: AttrId) -> String {
        self.short(Part::Attr(id))
    }

    /// Returns the text of a type, truncated if it is long.
    pub fn type_text(&self, id: TypeId) -> String {
        self.short(Part::Type(id))
    }

    fn short(&self, part: Part) -> String {
        let mut text = Text { module: self, written: String::new(), depth: 0 };
        text.part(part);
        text.written
    }
}

#[derive(Clone, Copy)]
enum Part {
    Attr(AttrId),
    Type(TypeId),
}

struct Text<'m> {
    module: &'m Module,
    written: String,
    depth: usize,
}

impl Text<'_> {
    fn put(&mut self, text: impl Display) {
        // Writing to a string cannot fail.
        let _ = write!(self.written, "{text}");
    }

    fn part(&mut self, part: Part) {
        if self.written.len() > LONGEST || self.depth > DEEPEST {
            return self.put("...");
        }
        self.depth += 1;
        match part {
            Part::Attr(id) => self.attribute(id),
            Part::Type(id) => self.ty(id),
        }
        self.depth -= 1;
    }

    fn list<T>(&mut self, open: &str, items: &[T], close: &str, mut item: impl FnMut(&mut Self, &T)) {
        self.put(open);
        for (i, one) in items.iter().enumerate() {
            if i > 0 {
                self.put(", ");
            }
            if self.written.len() > LONGEST {
                self.put("...");
                break;
            }
            item(self, one);
        }
        self.put(close);
    }

    fn attributes(&mut self, list: &[AttrId]) {
        self.list("[", list, "]", |s, &id| s.part(Part::Attr(id)));
    }

    fn types(&mut self, open: &str, list: &[TypeId], close: &str) {
        self.list(open, list, close, |s, &id| s.part(Part::Type(id)));
    }

    fn attribute(&mut self, id: AttrId) {
        let module = self.module;
        match &module.attributes[id] {
            Attribute::Unit => self.put("unit"),
            Attribute::Bool(value) => self.put(value),
            Attribute::Integer { ty, value } => {
                self.put(format_args!("{value} : "));
                self.part(Part::Type(*ty));
            }
            Attribute::Float { ty, bits } => {
                self.put(format_args!("{bits:#x} : "));
                self.part(Part::Type(*ty));
            }
            Attribute::String(string) => {
                let text = module.text(*string);
                let kept: String = text.chars().take(LONGEST).collect();
                self.put(format_args!("{kept:?}"));
            }
            Attribute::Symbol(names) => self.list("@", names, "", |s, &id| s.part(Part::Attr(id))),
            Attribute::Type(ty) => self.part(Part::Type(*ty)),
            Attribute::Array(list) => self.attributes(list),
            Attribute::Dictionary(entries) => self.list("{", entries, "}", |s, &(name, value)| {
                s.part(Part::Attr(name));
                s.put(" = ");
                s.part(Part::Attr(value));
            }),
            Attribute::Dense { ty, bytes } => {
                self.bytes(bytes);
                self.put(" : ");
                self.part(Part::Type(*ty));
            }
            Attribute::DenseArray { element, bytes } => {
                self.bytes(bytes);
                self.put(" : array of ");
                self.part(Part::Type(*element));
            }
            Attribute::Location(_) => self.put("loc"),
            Attribute::Enum(kind, value) => self.put(kind.names().get(*value as usize).unwrap_or(&"?")),
            Attribute::OutputOperandAlias { output, operand, operand_path } => {
                self.put(format_args!("alias {output:?} = {operand} {operand_path:?}"));
            }
            Attribute::TypeExtensions(bounds) => self.put(format_args!("bounds {bounds:?}")),
            Attribute::ResultAccuracy(accuracy) => {
                let [absolute, relative] = [accuracy.absolute, accuracy.relative].map(f64::from_bits);
                self.put(format_args!("accuracy {absolute} {relative} {} ", accuracy.ulps));
                self.part(Part::Attr(accuracy.mode));
            }
            Attribute::Sharding(sharding) => self.sharding(sharding),
            Attribute::Foreign(name) => self.put(name),
            Attribute::Unknown(code) => self.put(format_args!("unknown attribute {code}")),
            Attribute::Text => self.put("attribute as text"),
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.put("0x");
        for byte in bytes.iter().take(MOST_BYTES) {
            self.put(format_args!("{byte:02x}"));
        }
        if bytes.len() > MOST_BYTES {
            self.put(format_args!("... {} bytes", bytes.len()));
        }
    }

    fn name(&mut self, name: Name) {
        match name {
            Name::String(string) => self.put(format_args!("{:?}", self.module.text(string))),
            Name::Attribute(id) => self.part(Part::Attr(id)),
        }
    }

    fn sharding(&mut self, sharding: &Sharding) {
        match sharding {
            Sharding::MeshAxis { name, size } => {
                self.name(*name);
                self.put(format_args!("={size}"));
            }
            Sharding::AxisRef { name, sub_axis } => {
                self.name(*name);
                if let Some(part) = sub_axis {
                    self.put(":");
                    self.part(Part::Attr(*part));
                }
            }
            Sharding::SubAxis { pre_size, size } => self.put(format_args!("({pre_size}){size}")),
            Sharding::Mesh { axes, device_ids } => {
                self.put("mesh");
                self.attributes(axes);
                if !device_ids.is_empty() {
                    self.put(format_args!(" of {device_ids:?}"));
                }
            }
            Sharding::Dimension { axes, is_closed, priority } => {
                self.attributes(axes);
                self.put(if *is_closed { "" } else { "?" });
                if let Some(priority) = priority {
                    self.put(format_args!("p{priority}"));
                }
            }
            Sharding::Tensor { mesh, dims, replicated, unreduced, reduction } => {
                self.put("<");
                self.part(Part::Attr(*mesh));
                self.put(", ");
                self.attributes(dims);
                if !replicated.is_empty() {
                    self.put(", replicated ");
                    self.attributes(replicated);
                }
                if !unreduced.is_empty() {
                    self.put(format_args!(", unreduced by operation {reduction} "));
                    self.attributes(unreduced);
                }
                self.put(">");
            }
            other => {
                let name = format!("{other:?}");
                self.put(name.split([' ', '(']).next().unwrap_or_default());
                self.attributes(&other.attributes());
            }
        }
    }

    fn dims(&mut self, dims: &[Option<u64>], element: TypeId) {
        for dim in dims {
            match dim {
                Some(extent) => self.put(format_args!("{extent}x")),
                None => self.put("?x"),
            }
        }
        self.part(Part::Type(element));
    }

    fn ty(&mut self, id: TypeId) {
        match &self.module.types[id] {
            Type::Element(element) => self.put(element.name()),
            Type::Complex(element) => {
                self.put("complex<");
                self.part(Part::Type(*element));
                self.put(">");
            }
            Type::Index => self.put("index"),
            Type::None => self.put("none"),
            Type::Token => self.put("token"),
            Type::Function { inputs, results } => {
                self.types("(", inputs, ") -> ");
                self.types("(", results, ")");
            }
            Type::Tensor { dims, element, encoding } => {
                self.put("tensor<");
                self.dims(dims, *element);
                if let Some(encoding) = encoding {
                    self.put(", ");
                    self.part(Part::Attr(*encoding));
                }
                self.put(">");
            }
            Type::UnrankedTensor(element) => {
                self.put("tensor<*x");
                self.part(Part::Type(*element));
                self.put(">");
            }
            Type::Buffer { dims, element } => {
                self.put("buffer<");
                self.dims(dims, *element);
                self.put(">");
            }
            Type::Tuple(types) => self.types("tuple<", types, ">"),
            Type::Future(types) => self.types("future<", types, ">"),
            Type::Foreign(name) => self.put(name),
            Type::Unknown(code) => self.put(format_args!("unknown type {code}")),
            Type::Text => self.put(format_args!("type {} as text", id.index())),
        }
    }
}
