//! Signatures: the array leaves of parameters and result, in order.

use std::sync::Arc;

use xla_hlo::dynamic_result::{self, RESULT, SIZES, dynamic_dimensions_of};
use xla_hlo::{
    ArrayShape, Error, Literal, Module, ModuleAttributes, ParameterLeaf, ProgramShape, Result, ResultExt, Shape,
};

/// Array leaves of the entry's parameters and of its root, depth first. Tokens carry no data and are omitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    parameters: Vec<Shape>,
    arguments: Vec<ArgumentLeaf>,
    result: Shape,
    results: Vec<ResultLeaf>,
    outputs: Vec<ResultLeaf>,
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
    /// Whether the module allows or requires its donation.
    pub donation: Donation,
}

/// Whether a module allows or requires the donation of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Donation {
    /// Donation has no effect: a donated argument is dropped after the run.
    Unused,
    /// If donated, its memory is reused for a result or a temporary; otherwise the program copies it where necessary.
    Welcome,
    /// Donation is required, because a result must reuse its memory (`must-alias`).
    Required,
}

/// One array of the results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultLeaf {
    /// Path into the result's tuple shape; empty for an array.
    pub path: Vec<usize>,
    /// Shape on the device, layout included. Dimensions of dynamic size (`<=`) have their bound.
    pub shape: Arc<ArrayShape>,
}

impl Signature {
    /// Computes the signature of a module's entry. `device_shape` returns the device layout for an array of a parameter
    /// or result, given its requested layout in [`Module::entry_layout`].
    pub fn new(module: &Module, device_shape: impl Fn(&ArrayShape) -> Result<ArrayShape>) -> Result<Signature> {
        // Checks the attribute of a padded result.
        dynamic_result::caller_result(module)?;
        Signature::with_shapes(module, &module.caller_layout(), device_shape)
    }

    /// Computes the signature of one device's shards of a module, with these shapes.
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
        let results = results(&asked.result, &device_shape).context(|| "the result")?;
        let outputs = outputs(&asked.result, &results, &device_shape).context(|| "the result")?;
        Ok(Signature {
            parameters: asked.parameters.iter().map(Shape::without_layout).collect(),
            arguments,
            result: asked.result.without_layout(),
            results,
            outputs,
        })
    }

    /// Returns the shapes of the parameters, including tuples, without layouts.
    pub fn parameters(&self) -> &[Shape] {
        &self.parameters
    }

    /// Returns the arrays that the program takes.
    pub fn arguments(&self) -> &[ArgumentLeaf] {
        &self.arguments
    }

    /// Returns the numbers of the arguments that must be donated.
    pub fn required_donations(&self) -> impl Iterator<Item = usize> + '_ {
        let leaves = self.arguments.iter().enumerate();
        leaves.filter(|(_, leaf)| leaf.donation == Donation::Required).map(|(number, _)| number)
    }

    /// Returns the shape of the result, including tuples, without layouts. Dimensions of dynamic size (`<=`) have their
    /// bounds.
    pub fn result(&self) -> &Shape {
        &self.result
    }

    /// Returns the arrays that the program returns to its caller.
    pub fn results(&self) -> &[ResultLeaf] {
        &self.results
    }

    /// Returns the arrays of static shape that an [executable](crate::Executable) returns: the
    /// [results](Signature::results) at their bounds and, if any of them has a dynamic size, an additional array with
    /// the actual sizes. See [`dynamic_result`]. Paths refer to the padded module.
    pub fn outputs(&self) -> &[ResultLeaf] {
        &self.outputs
    }

    /// Returns the number of the output that holds the sizes of dynamic results; `None` if there are no dynamic
    /// results.
    pub fn sizes_output(&self) -> Option<usize> {
        (self.outputs.len() > self.results.len()).then_some(self.results.len())
    }

    /// Returns the arrays of the outputs for a value of the root, which is a padded result or has arrays at their
    /// actual sizes.
    pub fn outputs_of(&self, result: Literal) -> Result<Vec<Literal>> {
        let leaves = ungroup(result);
        if leaves.len() == self.outputs.len() {
            return Ok(leaves);
        }
        dynamic_result::padded_leaves(leaves, self.results.iter().map(|leaf| &*leaf.shape))
    }

    /// Converts arrays of the outputs to arrays of the results at their actual sizes.
    pub fn results_of(&self, mut outputs: Vec<Literal>) -> Result<Vec<Literal>> {
        let Some(sizes) = self.sizes_output().and_then(|at| (at < outputs.len()).then(|| outputs.remove(at))) else {
            return Ok(outputs);
        };
        let mut sizes = (0..sizes.array_shape().element_count()).map(|i| dynamic_result::size(&sizes, i));
        let at_size = |(output, leaf): (Literal, &ResultLeaf)| {
            output.reflowed(&dynamic_result::real_dims(&leaf.shape, &mut sizes), &leaf.shape.minor_to_major())
        };
        outputs.into_iter().zip(&self.results).map(at_size).collect()
    }

    /// Groups the arrays of the arguments to one value for each parameter.
    pub fn group_arguments(&self, leaves: Vec<Literal>) -> Result<Vec<Literal>> {
        let mut leaves = leaves.into_iter();
        self.parameters.iter().map(|shape| group(shape, &mut leaves)).collect()
    }

    /// Groups the arrays of the results to the value of the root.
    pub fn group_results(&self, leaves: Vec<Literal>) -> Result<Literal> {
        group(&self.result, &mut leaves.into_iter())
    }
}

impl ArgumentLeaf {
    /// Describes the argument for error messages: `argument 3 (parameter 1 "state", element {0})`.
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

/// Returns the arrays of a result, with bounds of dynamic dimensions.
fn results(shape: &Shape, device_shape: impl Fn(&ArrayShape) -> Result<ArrayShape>) -> Result<Vec<ResultLeaf>> {
    let asked = shape.leaves().into_iter().filter_map(|(_, leaf)| leaf.as_array());
    let at_bounds = arrays(&shape.at_bounds(), device_shape)?;
    let leaf = |((path, shape), asked): (ArrayLeaf, &ArrayShape)| {
        if asked.is_static() {
            return ResultLeaf { path, shape };
        }
        let dynamism = (0..asked.rank()).map(|d| asked.dynamism(d)).collect();
        ResultLeaf { path, shape: Arc::new((*shape).clone().with_dynamism(dynamism)) }
    };
    Ok(at_bounds.into_iter().zip(asked).map(leaf).collect())
}

/// Returns the arrays that an executable returns for these results.
fn outputs(
    shape: &Shape,
    results: &[ResultLeaf],
    device_shape: impl Fn(&ArrayShape) -> Result<ArrayShape>,
) -> Result<Vec<ResultLeaf>> {
    if !results.iter().any(|leaf| dynamic_dimensions_of(&leaf.shape).next().is_some()) {
        return Ok(results.to_vec());
    }
    let output = |leaf: &ResultLeaf| {
        let shape = (*leaf.shape).clone().with_dynamism(Vec::new());
        ResultLeaf { path: [&[RESULT], &leaf.path[..]].concat(), shape: Arc::new(shape) }
    };
    let sizes = device_shape(&dynamic_result::sizes_shape(shape))?;
    let sizes = ResultLeaf { path: vec![SIZES], shape: Arc::new(sizes) };
    Ok(results.iter().map(output).chain([sizes]).collect())
}

/// Path of a leaf and its shape on the device.
type ArrayLeaf = (Vec<usize>, Arc<ArrayShape>);

fn arrays(shape: &Shape, device_shape: impl Fn(&ArrayShape) -> Result<ArrayShape>) -> Result<Vec<ArrayLeaf>> {
    let mut out = Vec::new();
    for (path, leaf) in shape.leaves() {
        match leaf {
            Shape::Array(array) if !array.is_static() => {
                return Err(Error::unimplemented(format!(
                    "{array}, whose size is dynamic, cannot be passed to a program; pass its bound and the \
                     size, and use set-dimension-size"
                )));
            }
            Shape::Array(array) => out.push((path, Arc::new(device_shape(array)?))),
            Shape::Token => {}
            Shape::Opaque | Shape::Buffer(_) | Shape::Tuple(_) => {
                return Err(Error::unimplemented(format!(
                    "values of shape {leaf} cannot be parameters or results of a program"
                )));
            }
        }
    }
    Ok(out)
}

/// Builds a value of this shape from arrays in depth-first order.
pub fn group(shape: &Shape, leaves: &mut dyn Iterator<Item = Literal>) -> Result<Literal> {
    match shape {
        Shape::Tuple(elements) => Ok(Literal::tuple(elements.iter().map(|e| group(e, leaves)).collect::<Result<_>>()?)),
        Shape::Token => Ok(Literal::token()),
        Shape::Array(_) | Shape::Buffer(_) => {
            leaves.next().ok_or_else(|| Error::internal(format!("an array for a leaf of shape {shape} is missing")))
        }
        Shape::Opaque => Err(Error::unimplemented("an opaque value has no literal")),
    }
}

/// Returns the arrays of a value in depth-first order; omits tokens.
pub fn ungroup(literal: Literal) -> Vec<Literal> {
    match literal.shape() {
        Shape::Tuple(_) => literal.into_elements().into_iter().flat_map(ungroup).collect(),
        Shape::Token => Vec::new(),
        Shape::Array(_) | Shape::Buffer(_) | Shape::Opaque => vec![literal],
    }
}
