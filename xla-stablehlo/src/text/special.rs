//! Parser of the pretty forms with syntax beyond operands and keywords: functions, loops, reductions, constants,
//! convolutions.

use xla_hlo::{ElementType, Result};

use super::operations::{Parts, canonical};
use super::reader::Reader;
use super::regions::Argument;
use crate::ir::{AttrId, Attribute, Block, EnumKind, Operation, Region, RegionId, Type, TypeId, Value, ValueId};

impl<'t> Reader<'t> {
    /// Parses an operation with its own syntax; `None` for another operation.
    pub(super) fn special(&mut self, name: &str, results: usize) -> Result<Option<Parts>> {
        Ok(Some(match name {
            "builtin.module" => self.nested_module()?,
            "func.func" => self.function()?,
            "func.call" => self.call()?,
            "stablehlo.constant" | "chlo.constant" => self.constant()?,
            "arith.constant" => self.arith_constant()?,
            "shape.const_shape" => self.shape_constant()?,
            "tensor.cast" => self.cast()?,
            "stablehlo.compare" => self.compare()?,
            "stablehlo.slice" => self.slice()?,
            "stablehlo.get_tuple_element" => self.get_tuple_element()?,
            "stablehlo.custom_call" => self.custom_call()?,
            "stablehlo.composite" => self.composite()?,
            "stablehlo.convolution" | "stablehlo.dynamic_conv" => self.convolution()?,
            "chlo.scan" => self.scan()?,
            "stablehlo.reduce" => self.reduce()?,
            "stablehlo.while" => self.while_loop(results)?,
            _ => return self.shardy(name, results),
        }))
    }

    /// Parses `@name` and returns the name as a string attribute.
    pub(super) fn symbol_name(&mut self) -> Result<AttrId> {
        let symbol = self.symbol()?;
        Ok(match &self.module.attributes[symbol] {
            Attribute::Symbol(path) => path[0],
            _ => symbol,
        })
    }

    /// Parses `public @name(%a: type {attributes}, ...) -> (type {attributes}, ...) attributes {...} {body}`.
    fn function(&mut self) -> Result<Parts> {
        let mut parts = Parts::new(Vec::new());
        for visibility in ["public", "private", "nested"] {
            if self.cursor.eat(visibility) {
                let value = self.push_string(visibility.as_bytes());
                self.set(&mut parts.attributes, "sym_visibility", value);
            }
        }
        let name = self.symbol_name()?;
        self.set(&mut parts.attributes, "sym_name", name);
        let mut dictionaries = Vec::new();
        let arguments: Vec<Argument<'t>> = self.list(["(", ")"], |reader| {
            let name = if reader.cursor.is("%") {
                let name = reader.value_name()?;
                reader.cursor.expect(":")?;
                name
            } else {
                ""
            };
            let ty = reader.ty()?;
            dictionaries.push(reader.dictionary_or_empty()?);
            Ok((name, ty, reader.location_if_any()?))
        })?;
        self.set_list(&mut parts, "arg_attrs", dictionaries);
        let mut dictionaries = Vec::new();
        let results = match self.cursor.eat("->") {
            false => Vec::new(),
            true if self.cursor.is("(") => self.list(["(", ")"], |reader| {
                let ty = reader.ty()?;
                dictionaries.push(reader.dictionary_or_empty()?);
                Ok(ty)
            })?,
            true => vec![self.ty()?],
        };
        self.set_list(&mut parts, "res_attrs", dictionaries);
        let inputs = arguments.iter().map(|&(_, ty, _)| ty).collect();
        let ty = self.module.types.push(Type::Function { inputs, results });
        let ty = self.push(Attribute::Type(ty));
        self.set(&mut parts.attributes, "function_type", ty);
        if self.cursor.eat("attributes") {
            parts.attributes.extend(self.entries(["{", "}"])?);
        }
        // The region of a declaration has no blocks.
        let body = match self.cursor.is("{") {
            true => self.isolated_region(arguments)?,
            false => self.module.regions.push(Region { blocks: Vec::new() }),
        };
        parts.regions.push(body);
        Ok(parts)
    }

    fn dictionary_or_empty(&mut self) -> Result<AttrId> {
        if self.cursor.is("{") { self.attribute() } else { Ok(self.push(Attribute::Dictionary(Vec::new()))) }
    }

    fn set_list(&mut self, parts: &mut Parts, name: &str, list: Vec<AttrId>) {
        let list = self.push(Attribute::Array(list));
        self.set(&mut parts.attributes, name, list);
    }

    /// Parses `@callee(%a, %b) {attributes} : (types) -> types`.
    fn call(&mut self) -> Result<Parts> {
        let callee = self.symbol()?;
        let mut parts = self.called()?;
        self.set(&mut parts.attributes, "callee", callee);
        Ok(parts)
    }

    /// Parses `(%a, %b) {attributes} : (types) -> types`.
    fn called(&mut self) -> Result<Parts> {
        let operands = self.list(["(", ")"], Self::value)?;
        self.attributes_and_signature(Parts::new(operands))
    }

    pub(super) fn attributes_and_signature(&mut self, mut parts: Parts) -> Result<Parts> {
        self.attribute_dictionary(&mut parts)?;
        self.cursor.expect(":")?;
        parts.results = self.signature()?.1;
        Ok(parts)
    }

    /// Parses `@target(%a, %b) {attributes} : (types) -> types`.
    fn custom_call(&mut self) -> Result<Parts> {
        let target = self.symbol_name()?;
        let mut parts = self.called()?;
        self.set(&mut parts.attributes, "call_target_name", target);
        Ok(parts)
    }

    /// Parses `"name" %a, %b {attributes} : (types) -> types`.
    fn composite(&mut self) -> Result<Parts> {
        let name = self.cursor.string("the name of the composite")?;
        let name = self.push_string(&name);
        let operands = self.values()?;
        let mut parts = self.attributes_and_signature(Parts::new(operands))?;
        self.set(&mut parts.attributes, "name", name);
        Ok(parts)
    }

    /// Parses `{attributes} dense<...> : type`, or the older `() {value = dense<...> : type} : () -> type`.
    fn constant(&mut self) -> Result<Parts> {
        let mut parts = Parts::new(Vec::new());
        if self.cursor.eat("(") {
            self.cursor.expect(")")?;
            return self.attributes_and_signature(parts);
        }
        self.attribute_dictionary(&mut parts)?;
        let at = self.cursor.offset();
        let value = self.attribute()?;
        let Some(ty) = self.type_of(value) else {
            return Err(self.cursor.error_at(at, "a constant must be dense elements of a tensor"));
        };
        self.set(&mut parts.attributes, "value", value);
        parts.results = vec![ty];
        Ok(parts)
    }

    /// Parses `{attributes} dense<...> : type`, or a number with its type.
    fn arith_constant(&mut self) -> Result<Parts> {
        let mut parts = Parts::new(Vec::new());
        self.attribute_dictionary(&mut parts)?;
        let at = self.cursor.offset();
        let value = self.attribute()?;
        let ty = match self.module.attributes[value] {
            Attribute::Bool(_) => Some(self.element(ElementType::Pred)),
            ref other => other.ty(),
        };
        self.set(&mut parts.attributes, "value", value);
        parts.results = vec![ty.ok_or_else(|| self.cursor.error_at(at, "a constant must be elements or a number"))?];
        Ok(parts)
    }

    /// Parses `{attributes} [4, 32] : tensor<2xindex>`.
    fn shape_constant(&mut self) -> Result<Parts> {
        let mut parts = Parts::new(Vec::new());
        self.attribute_dictionary(&mut parts)?;
        let extents = self.integers(["[", "]"])?;
        self.set(&mut parts.attributes, "shape", extents);
        parts.results = self.types_of_results(1)?;
        Ok(parts)
    }

    /// Parses `%a {attributes} : type to type`.
    fn cast(&mut self) -> Result<Parts> {
        let mut parts = Parts::new(vec![self.value()?]);
        self.attribute_dictionary(&mut parts)?;
        self.cursor.expect(":")?;
        self.ty()?;
        self.cursor.expect("to")?;
        parts.results = vec![self.ty()?];
        Ok(parts)
    }

    /// Parses `LT, %a, %b, FLOAT : (types) -> type`.
    fn compare(&mut self) -> Result<Parts> {
        let direction = self.enumerator(EnumKind::ComparisonDirection)?;
        self.cursor.expect(",")?;
        let mut parts = Parts::new(self.values()?);
        self.set(&mut parts.attributes, "comparison_direction", direction);
        if self.cursor.eat(",") {
            let ty = self.enumerator(EnumKind::ComparisonType)?;
            self.set(&mut parts.attributes, "compare_type", ty);
        }
        self.attributes_and_signature(parts)
    }

    /// Parses `%a [start:limit:stride, ...] : (type) -> type`.
    fn slice(&mut self) -> Result<Parts> {
        let mut parts = Parts::new(vec![self.value()?]);
        let (mut starts, mut limits, mut strides) = (Vec::new(), Vec::new(), Vec::new());
        self.list(["[", "]"], |reader| {
            starts.push(reader.cursor.integer("a start")?);
            reader.cursor.expect(":")?;
            limits.push(reader.cursor.integer("a limit")?);
            strides.push(if reader.cursor.eat(":") { reader.cursor.integer("a stride")? } else { 1 });
            Ok(())
        })?;
        for (name, list) in [("start_indices", starts), ("limit_indices", limits), ("strides", strides)] {
            let list = self.push_integers(&list);
            self.set(&mut parts.attributes, name, list);
        }
        self.attributes_and_signature(parts)
    }

    /// Parses `%a[0] : (type) -> type`.
    fn get_tuple_element(&mut self) -> Result<Parts> {
        let mut parts = Parts::new(vec![self.value()?]);
        self.cursor.expect("[")?;
        let index = self.cursor.integer("an index")?;
        self.cursor.expect("]")?;
        let ty = self.element(ElementType::S32);
        let index = self.push(Attribute::Integer { ty, value: index });
        self.set(&mut parts.attributes, "index", index);
        self.attributes_and_signature(parts)
    }

    /// Parses
    /// `(%a, %b) dim_numbers = [b, f]x[i, o]->[b, f], window = {stride = [], ...} {attributes} : (types) -> type`.
    fn convolution(&mut self) -> Result<Parts> {
        let mut parts = Parts::new(self.list(["(", ")"], Self::value)?);
        self.cursor.expect("dim_numbers")?;
        self.cursor.expect("=")?;
        parts.attributes = self.convolution_dims()?;
        self.cursor.expect(",")?;
        self.cursor.expect("window")?;
        self.cursor.expect("=")?;
        self.cursor.expect("{")?;
        self.entries_up_to("}", |reader| reader.window_entry(&mut parts))?;
        self.attributes_and_signature(parts)
    }

    fn window_entry(&mut self, parts: &mut Parts) -> Result<()> {
        let at = self.cursor.offset();
        let name = self.cursor.word("an entry of a window")?;
        self.cursor.expect("=")?;
        let (attribute, value) = match name {
            "stride" => ("window_strides", self.integers(["[", "]"])?),
            "lhs_dilate" => ("lhs_dilation", self.integers(["[", "]"])?),
            "rhs_dilate" => ("rhs_dilation", self.integers(["[", "]"])?),
            "pad" => {
                let rows = self.list(["[", "]"], |reader| {
                    reader.cursor.expect("[")?;
                    let low = reader.cursor.integer("a padding")?;
                    reader.cursor.expect(",")?;
                    let high = reader.cursor.integer("a padding")?;
                    reader.cursor.expect("]")?;
                    Ok([low, high])
                })?;
                ("padding", self.push_rows(&rows))
            }
            "reverse" => {
                let flags =
                    self.list(["[", "]"], |reader| match reader.cursor.eat("true") || reader.cursor.eat("1") {
                        true => Ok(1),
                        false if reader.cursor.eat("false") || reader.cursor.eat("0") => Ok(0),
                        false => Err(reader.cursor.expected("true or false")),
                    })?;
                ("window_reversal", self.push_integers(&flags))
            }
            _ => return Err(self.cursor.error_at(at, format!("a window has no {name}"))),
        };
        self.set(&mut parts.attributes, attribute, value);
        Ok(())
    }

    /// Parses `(%a init: %b), ... applies stablehlo.add across dimensions = [0] : types`, or the form with the types
    /// first and `reducer(%x: type, %y: type) ... {body}` after them.
    fn reduce(&mut self) -> Result<Parts> {
        let (mut inputs, mut inits) = (Vec::new(), Vec::new());
        loop {
            self.cursor.expect("(")?;
            inputs.push(self.value()?);
            self.cursor.expect("init")?;
            self.cursor.expect(":")?;
            inits.push(self.value()?);
            self.cursor.expect(")")?;
            if !self.cursor.eat(",") {
                break;
            }
        }
        let types: Vec<TypeId> = inits.iter().map(|&init| self.module.values[init].ty).collect();
        inputs.extend(inits);
        let mut parts = Parts::new(inputs);
        let applied = if self.cursor.eat("applies") { Some(self.cursor.word("an operation")?) } else { None };
        self.cursor.expect("across")?;
        self.cursor.expect("dimensions")?;
        self.cursor.expect("=")?;
        let dimensions = self.integers(["[", "]"])?;
        self.set(&mut parts.attributes, "dimensions", dimensions);
        let mut parts = self.attributes_and_signature(parts)?;
        let body = match applied {
            Some(name) => self.applied(name, types[0]),
            None => self.reducer()?,
        };
        parts.regions.push(body);
        Ok(parts)
    }

    /// Parses `(%a, %b) inits(%c) dimension = 0 attributes {...} {body} : (types) -> (types)`.
    fn scan(&mut self) -> Result<Parts> {
        let inputs = self.list(["(", ")"], Self::value)?;
        self.cursor.expect("inits")?;
        let inits = self.list(["(", ")"], Self::value)?;
        let carries = inits.len();
        let segments = self.segments(inputs.len(), carries);
        self.cursor.expect("dimension")?;
        self.cursor.expect("=")?;
        let dimension = self.cursor.integer("a dimension")?;
        let dimension = self.push_integer(dimension);
        let mut parts = Parts::new([inputs, inits].concat());
        if self.cursor.eat("attributes") {
            parts.attributes = self.entries(["{", "}"])?;
        }
        self.set(&mut parts.attributes, "operandSegmentSizes", segments);
        self.set(&mut parts.attributes, "dimension", dimension);
        parts.regions.push(self.isolated_region(Vec::new())?);
        self.cursor.expect(":")?;
        parts.results = self.signature()?.1;
        let segments = self.segments(parts.results.len().saturating_sub(carries), carries);
        self.set(&mut parts.attributes, "resultSegmentSizes", segments);
        Ok(parts)
    }

    /// Adds a tensor with the sizes of two groups of operands or results.
    fn segments(&mut self, first: usize, second: usize) -> AttrId {
        let element = self.element(ElementType::S32);
        let bytes = [first, second].iter().flat_map(|&size| (size as i32).to_le_bytes()).collect();
        self.module.push_tensor(element, ElementType::S32, bytes)
    }

    /// Adds a region that applies an operation to its two arguments and returns the result.
    fn applied(&mut self, name: &str, ty: TypeId) -> RegionId {
        let module = &mut self.module;
        let mut value = || module.values.push(Value { ty, location: None });
        let [a, b, result] = [value(), value(), value()];
        let offset = self.cursor.offset();
        let mut operation = |name: &str, operands: Vec<ValueId>, results: Vec<ValueId>| {
            let name = canonical(name);
            let name = self.module.intern(name.as_bytes());
            let (attributes, regions) = Default::default();
            let (operands, results) = (operands.into(), results.into());
            let operation = Operation { name, operands, results, attributes, regions, location: None, offset };
            self.module.operations.push(operation)
        };
        let operations =
            vec![operation(name, vec![a, b], vec![result]), operation("stablehlo.return", vec![result], Vec::new())];
        let block = self.module.blocks.push(Block { arguments: vec![a, b], operations });
        self.module.regions.push(Region { blocks: vec![block] })
    }

    /// Parses `reducer(%x0: type, %y0: type) (%x1: type, %y1: type) {body}`. The region's arguments are x0, x1, ...,
    /// y0, y1, ...
    fn reducer(&mut self) -> Result<RegionId> {
        self.cursor.expect("reducer")?;
        let (mut left, mut right) = (Vec::new(), Vec::new());
        while self.cursor.is("(") {
            let at = self.cursor.offset();
            let &[x, y] = &self.arguments()?[..] else {
                return Err(self.cursor.error_at(at, "expected two arguments for each input"));
            };
            left.push(x);
            right.push(y);
        }
        left.extend(right);
        self.region(left)
    }

    /// Parses `(%x = %a, ...) : types attributes {...} cond {...} do {...}`.
    fn while_loop(&mut self, results: usize) -> Result<Parts> {
        let at = self.cursor.offset();
        let bound = self.list(["(", ")"], |reader| {
            let name = reader.value_name()?;
            reader.cursor.expect("=")?;
            Ok((name, reader.value()?))
        })?;
        if bound.len() != results {
            return Err(self
                .cursor
                .error_at(at, format!("the loop has {} values, but {results} results", bound.len())));
        }
        let mut parts = Parts::new(bound.iter().map(|&(_, value)| value).collect());
        let arguments: Vec<Argument<'t>> =
            bound.iter().map(|&(name, value)| (name, self.module.values[value].ty, None)).collect();
        parts.results = self.types_of_results(results)?;
        let location = self.location_if_any()?;
        if self.cursor.eat("attributes") {
            parts.attributes = self.entries(["{", "}"])?;
        }
        let arguments: Vec<Argument<'t>> = arguments.into_iter().map(|(name, ty, _)| (name, ty, location)).collect();
        self.cursor.expect("cond")?;
        parts.regions.push(self.region(arguments.clone())?);
        self.cursor.expect("do")?;
        parts.regions.push(self.region(arguments)?);
        Ok(parts)
    }
}
