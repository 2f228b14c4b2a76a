//! Context that shape rules receive.

use crate::{ArrayShape, CompId, Computation, ElementType, Error, Module, ModuleAttributes, Result, Shape};

/// Context of a shape rule: operand shapes, called computations, and the result shape written in the program.
#[derive(Clone, Copy)]
pub struct ShapeContext<'a> {
    module: &'a Module,
    operands: &'a [&'a Shape],
    written: Option<&'a Shape>,
}

impl<'a> ShapeContext<'a> {
    /// Creates a context from the operands' shapes and, if there is one, the result shape written in the program.
    pub fn new(module: &'a Module, operands: &'a [&'a Shape], written: Option<&'a Shape>) -> Self {
        ShapeContext { module, operands, written }
    }

    /// Returns the attributes of the module's header.
    pub fn attributes(&self) -> &'a ModuleAttributes {
        self.module.attributes()
    }

    /// Returns the shapes of the operands.
    pub fn operands(&self) -> &'a [&'a Shape] {
        self.operands
    }

    /// Returns the shape of operand `i`.
    pub fn operand(&self, i: usize) -> Result<&'a Shape> {
        self.operands.get(i).copied().ok_or_else(|| Error::invalid_argument(format!("operand {i} is missing")))
    }

    /// Returns the shape of operand `i`, which must be an array.
    pub fn array(&self, i: usize) -> Result<&'a ArrayShape> {
        let shape = self.operand(i)?;
        shape.as_array().ok_or_else(|| Error::invalid_argument(format!("operand {i} must be an array, it is {shape}")))
    }

    /// Returns the written result shape, or an error if there is none: the operation cannot be inferred without it.
    pub fn written(&self) -> Result<&'a Shape> {
        self.written.ok_or_else(|| Error::invalid_argument("the result shape must be written for this operation"))
    }

    /// Returns the written result shape, which must be an array.
    pub fn written_array(&self) -> Result<&'a ArrayShape> {
        let shape = self.written()?;
        shape.as_array().ok_or_else(|| Error::invalid_argument(format!("the result must be an array, it is {shape}")))
    }

    /// Returns the element type written for an array result, or `default` if no shape was written.
    pub fn written_element_type_or(&self, default: ElementType) -> ElementType {
        self.written.and_then(Shape::element_type).unwrap_or(default)
    }

    /// Returns a called computation.
    pub fn computation(&self, id: CompId) -> Result<&'a Computation> {
        self.module.get(id).ok_or_else(|| Error::invalid_argument("the called computation does not exist"))
    }

    /// Returns the shapes of a called computation's parameters.
    pub fn parameter_shapes(&self, id: CompId) -> Result<Vec<&'a Shape>> {
        let computation = self.computation(id)?;
        Ok(computation.parameters().iter().map(|&p| computation[p].shape()).collect())
    }

    /// Returns the shape of a called computation's result.
    pub fn result_shape(&self, id: CompId) -> Result<&'a Shape> {
        let computation = self.computation(id)?;
        let root = computation.root_if_set();
        root.map(|root| computation[root].shape())
            .ok_or_else(|| Error::invalid_argument(format!("computation {} has no root", computation.name())))
    }

    /// Checks that a called computation takes parameters of the expected shapes.
    pub fn expect_parameters(&self, id: CompId, expected: &[&Shape]) -> Result<()> {
        let found = self.parameter_shapes(id)?;
        if found.len() == expected.len() && found.iter().zip(expected).all(|(a, b)| a.compatible(b)) {
            return Ok(());
        }
        let list =
            |shapes: &[&Shape]| shapes.iter().map(|s| s.without_layout().to_string()).collect::<Vec<_>>().join(", ");
        Err(Error::invalid_argument(format!(
            "computation {} takes ({}), but is called with ({})",
            self.computation(id)?.name(),
            list(&found),
            list(expected)
        )))
    }
}
