//! Small called computations over scalars: reducers, comparators, the bodies of map and scatter.

use super::Evaluator;
use crate::{CompId, ElementType, Error, Literal, Module, Result, Scalar, Shape};

/// A computation whose parameters are scalars and whose result is a scalar or a tuple of scalars, ready to be called
/// for each element of something.
pub struct ScalarFunction {
    computation: CompId,
    parameters: Vec<ElementType>,
    result_types: Vec<ElementType>,
    results: Vec<Scalar>,
}

impl ScalarFunction {
    /// Prepares a computation. An error says which parameter or result is no scalar.
    pub fn new(module: &Module, computation: CompId) -> Result<ScalarFunction> {
        let callee =
            module.get(computation).ok_or_else(|| Error::invalid_argument("the called computation does not exist"))?;
        let parameters = callee.parameters().iter().map(|&p| scalar_type(callee[p].shape())).collect::<Result<_>>()?;
        let result_types =
            callee.result_shape().leaves().into_iter().map(|(_, leaf)| scalar_type(leaf)).collect::<Result<_>>()?;
        Ok(ScalarFunction { computation, parameters, result_types, results: Vec::new() })
    }

    /// Element types of the parameters.
    pub fn parameter_types(&self) -> &[ElementType] {
        &self.parameters
    }

    /// Element types of the results.
    pub fn result_types(&self) -> &[ElementType] {
        &self.result_types
    }

    /// The results for those arguments, one for each parameter and of its type; several when the computation gives a tuple.
    pub fn call(&mut self, evaluator: &mut Evaluator<'_>, arguments: &[Scalar]) -> Result<&[Scalar]> {
        let literals = self.parameters.iter().zip(arguments).map(|(&ty, &x)| Literal::scalar(ty, x)).collect();
        let result = evaluator.call(self.computation, literals)?;
        self.results.clear();
        self.results.extend(result.leaves().into_iter().map(|leaf| leaf.get(0)));
        Ok(&self.results)
    }
}

fn scalar_type(shape: &Shape) -> Result<ElementType> {
    match shape {
        Shape::Array(array) if array.is_scalar() => Ok(array.element_type()),
        other => Err(Error::invalid_argument(format!("expected a scalar, found {}", other.without_layout()))),
    }
}
