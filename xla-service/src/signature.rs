//! Signatures: the array leaves of parameters and result, in order.

use std::sync::Arc;

use xla_hlo::{
    ArrayShape, Error, Literal, Module, ModuleAttributes, ParameterLeaf, ProgramShape, Result, ResultExt, Shape,
};

/// Leaves of the entry's parameters and of its root, depth first. Tokens carry no data and are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    parameters: Vec<Shape>,
    arguments: Vec<ArgumentLeaf>,
    result: Shape,
    results: Vec<ResultLeaf>,
}

/// One array of the arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentLeaf {
    /// Number of the parameter.
    pub parameter: usize,
    /// Path into the parameter's tuple shape; empty for an array.
    pub path: Vec<usize>,
    /// Name of the parameter.
    pub name: String,
    /// Shape on the device, layout included.
    pub shape: Arc<ArrayShape>,
    /// Whether the module lets it be donated.
    pub donation: Donation,
}

/// Whether a module lets an argument be donated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Donation {
    /// Nothing: a donated argument is dropped when the program has run.
    Unused,
    /// Its memory is reused for a result, or for anything, where it is donated; otherwise copies are made.
    Welcome,
    /// A result must live in its memory (`must-alias`), so it must be donated.
    Required,
}

/// One array of the results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultLeaf {
    /// Path into the result's tuple shape; empty for an array.
    pub path: Vec<usize>,
    /// Shape on the device, layout included.
    pub shape: Arc<ArrayShape>,
}

impl Signature {
    /// The signature of a module's entry, where `device_shape` tells how an array of a parameter or result lies on the
    /// device that is asked for in the layout of [`Module::entry_layout`].
    pub fn new(module: &Module, device_shape: impl Fn(&ArrayShape) -> Result<ArrayShape>) -> Result<Signature> {
        Signature::with_shapes(module, &module.entry_layout(), device_shape)
    }

    /// The signature of a module of which one device has parts, in these shapes.
    pub(crate) fn with_shapes(
        module: &Module,
        asked: &ProgramShape,
        device_shape: impl Fn(&ArrayShape) -> Result<ArrayShape>,
    ) -> Result<Signature> {
        let entry = module.entry();
        let mut arguments = Vec::new();
        for (number, (&id, shape)) in entry.parameters().iter().zip(&asked.parameters).enumerate() {
            let leaves = arrays(shape, &device_shape);
            for (path, shape) in leaves.context(|| format!("parameter {number} ({})", entry[id].name()))? {
                let donation = donation(module.attributes(), number, &path);
                let name = entry[id].name().to_string();
                arguments.push(ArgumentLeaf { parameter: number, path, name, shape, donation });
            }
        }
        // An array of dynamic size comes out at its bound, with zeros past the size.
        let result = asked.result.at_bounds();
        let results = arrays(&result, &device_shape).context(|| "the result")?;
        Ok(Signature {
            parameters: asked.parameters.iter().map(Shape::without_layout).collect(),
            arguments,
            result: result.without_layout(),
            results: results.into_iter().map(|(path, shape)| ResultLeaf { path, shape }).collect(),
        })
    }

    /// Shapes of the parameters, tuples and all, without layouts.
    pub fn parameters(&self) -> &[Shape] {
        &self.parameters
    }

    /// Arrays that the program takes.
    pub fn arguments(&self) -> &[ArgumentLeaf] {
        &self.arguments
    }

    /// Numbers of the arguments that must be donated.
    pub fn required_donations(&self) -> impl Iterator<Item = usize> + '_ {
        let leaves = self.arguments.iter().enumerate();
        leaves.filter(|(_, leaf)| leaf.donation == Donation::Required).map(|(number, _)| number)
    }

    /// Shape of the result, tuples and all, without layouts.
    pub fn result(&self) -> &Shape {
        &self.result
    }

    /// Arrays that the program returns.
    pub fn results(&self) -> &[ResultLeaf] {
        &self.results
    }

    /// Puts the arrays of the arguments together to one value for each parameter.
    pub fn group_arguments(&self, leaves: Vec<Literal>) -> Result<Vec<Literal>> {
        let mut leaves = leaves.into_iter();
        self.parameters.iter().map(|shape| group(shape, &mut leaves)).collect()
    }

    /// Puts the arrays of the results together to the value of the root.
    pub fn group_results(&self, leaves: Vec<Literal>) -> Result<Literal> {
        group(&self.result, &mut leaves.into_iter())
    }
}

impl ArgumentLeaf {
    /// Says which argument it is: `argument 3 (parameter 1 "state", element {0})`.
    pub fn describe(&self, index: usize) -> String {
        let path: Vec<String> = self.path.iter().map(usize::to_string).collect();
        let element = if path.is_empty() { String::new() } else { format!(", element {{{}}}", path.join(",")) };
        format!("argument {index} (parameter {} {:?}{element})", self.parameter, self.name)
    }
}

fn donation(attributes: &ModuleAttributes, parameter: usize, path: &[usize]) -> Donation {
    let is_it = |leaf: &ParameterLeaf| leaf.parameter == parameter && leaf.path == path;
    let alias = attributes.input_output_alias.iter().find(|alias| is_it(&alias.parameter));
    match alias {
        Some(alias) if alias.must_alias => Donation::Required,
        Some(_) => Donation::Welcome,
        None if attributes.buffer_donors.iter().any(is_it) => Donation::Welcome,
        None => Donation::Unused,
    }
}

/// A leaf's path and its shape on the device.
type ArrayLeaf = (Vec<usize>, Arc<ArrayShape>);

fn arrays(shape: &Shape, device_shape: impl Fn(&ArrayShape) -> Result<ArrayShape>) -> Result<Vec<ArrayLeaf>> {
    let mut out = Vec::new();
    for (path, leaf) in shape.leaves() {
        match leaf {
            Shape::Array(array) if !array.is_static() => {
                return Err(Error::unimplemented(format!(
                    "{array}, whose size is dynamic, cannot go into a program; take its bound and the \
                     size, and use set-dimension-size"
                )));
            }
            Shape::Array(array) => out.push((path, Arc::new(device_shape(array)?))),
            Shape::Token => {}
            Shape::Opaque | Shape::Buffer(_) | Shape::Tuple(_) => {
                return Err(Error::unimplemented(format!("values of shape {leaf} cannot go into or out of a program")));
            }
        }
    }
    Ok(out)
}

/// Builds a value of that shape from arrays in depth-first order.
pub fn group(shape: &Shape, leaves: &mut dyn Iterator<Item = Literal>) -> Result<Literal> {
    match shape {
        Shape::Tuple(elements) => Ok(Literal::tuple(elements.iter().map(|e| group(e, leaves)).collect::<Result<_>>()?)),
        Shape::Token => Ok(Literal::token()),
        Shape::Array(_) | Shape::Buffer(_) => {
            leaves.next().ok_or_else(|| Error::internal(format!("no array is left for a leaf of {shape}")))
        }
        Shape::Opaque => Err(Error::unimplemented("an opaque value has no literal")),
    }
}

/// The arrays of a value in depth-first order; tokens are left out.
pub fn ungroup(literal: Literal) -> Vec<Literal> {
    match literal.shape() {
        Shape::Tuple(_) => literal.into_elements().into_iter().flat_map(ungroup).collect(),
        Shape::Token => Vec::new(),
        Shape::Array(_) | Shape::Buffer(_) | Shape::Opaque => vec![literal],
    }
}
