//! Argument shapes with which a program is refined.

use std::collections::BTreeMap;
use std::str::FromStr;

use xla_hlo::text::parse_shape;
use xla_hlo::{ArrayShape, Dynamism, ElementType, Error, Result, Shape};

/// Extent that replaces dynamic ones in the examples of error messages.
const EXAMPLE: usize = 8;

/// Shapes for the arguments of a program with dynamic dimensions, by argument number.
///
/// ```
/// use xla_stablehlo::{ArgumentShapes, refine, text};
///
/// # fn main() -> xla_hlo::Result<()> {
/// let program = text::read("module { func.func @main(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
///   %0 = stablehlo.add %x, %x : tensor<?x4xf32>
///   return %0 : tensor<?x4xf32>
/// } }");
/// let module = refine(&program?, &"arg0=f32[8,4]".parse::<ArgumentShapes>()?)?;
/// assert_eq!(module.entry().result_shape().to_string(), "f32[8,4]{1,0}");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArgumentShapes(BTreeMap<usize, Given>);

/// Shape that is given for an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Given {
    /// Element type; `None` if only the extents are given.
    element: Option<ElementType>,
    dims: Vec<usize>,
}

impl ArgumentShapes {
    /// Sets the shape of an argument.
    pub fn set(&mut self, argument: usize, shape: &ArrayShape) {
        let given = Given { element: Some(shape.element_type()), dims: shape.dims().to_vec() };
        self.0.insert(argument, given);
    }

    /// Sets the extents of an argument, unless its shape is set. They apply only to dimensions that the program leaves
    /// dynamic.
    pub fn set_extents(&mut self, argument: usize, dims: &[usize]) {
        let given = Given { element: None, dims: dims.to_vec() };
        self.0.entry(argument).or_insert(given);
    }

    /// Whether a complete shape was set for some argument.
    pub fn has_shapes(&self) -> bool {
        self.0.values().any(|given| given.element.is_some())
    }

    /// Returns static argument shapes for the declared shapes `written`, without layouts.
    ///
    /// Errors: `Error::InvalidArgument` for a given shape that does not fit the declared one, an argument number that
    /// does not exist, and a dynamic argument without a given shape.
    pub(crate) fn of_arguments(&self, written: Vec<Shape>) -> Result<Vec<Shape>> {
        if let Some((&last, given)) = self.0.last_key_value().filter(|(last, _)| **last >= written.len())
            && given.element.is_some()
        {
            return Err(Error::invalid_argument(format!(
                "a shape is given for arg{last}, but main has {} arguments",
                written.len()
            )));
        }
        written.into_iter().enumerate().map(|(i, shape)| self.of_argument(i, shape)).collect()
    }

    fn of_argument(&self, i: usize, shape: Shape) -> Result<Shape> {
        let Shape::Array(written) = &shape else {
            return match self.0.get(&i) {
                Some(Given { element: Some(_), .. }) => {
                    Err(Error::invalid_argument(format!("argument {i} is {shape}, which takes no shape")))
                }
                _ => Ok(shape),
            };
        };
        let is_open = (0..written.rank()).any(|d| written.dynamism(d) == Dynamism::Unbounded);
        match self.0.get(&i) {
            Some(given) if is_open || given.element.is_some() => given.fitted(i, written).map(Shape::Array),
            None if is_open => Err(missing(i, written)),
            _ => Ok(shape),
        }
    }
}

impl Given {
    /// Returns the shape of argument `i`; an error unless it fits the declared shape `written`.
    fn fitted(&self, i: usize, written: &ArrayShape) -> Result<ArrayShape> {
        let shape = ArrayShape::new(self.element.unwrap_or(written.element_type()), self.dims.clone());
        let wrong = |why: String| {
            Error::invalid_argument(format!("argument {i} is {}, and cannot be {shape}: {why}", text(written)))
        };
        if shape.element_type() != written.element_type() {
            return Err(wrong(format!("its elements are {}", written.element_type())));
        }
        if shape.rank() != written.rank() {
            return Err(wrong(format!("it has {} dimensions", written.rank())));
        }
        for (d, (&extent, &is)) in written.dims().iter().zip(&self.dims).enumerate() {
            match written.dynamism(d) {
                Dynamism::Static if is != extent => return Err(wrong(format!("dimension {d} is {extent}"))),
                Dynamism::Bounded if is > extent => {
                    return Err(wrong(format!("dimension {d} is at most {extent}")));
                }
                _ => {}
            }
        }
        // Bounded dimensions keep their bounds.
        let is_bounded = |d: usize| written.dynamism(d) == Dynamism::Bounded;
        let dims = (0..shape.rank()).map(|d| if is_bounded(d) { written.dims()[d] } else { self.dims[d] });
        let dynamism = (0..shape.rank()).map(|d| if is_bounded(d) { Dynamism::Bounded } else { Dynamism::Static });
        let shape = ArrayShape::new(written.element_type(), dims.collect::<Vec<_>>()).with_dynamism(dynamism.collect());
        shape.checked_element_count()?;
        Ok(shape)
    }
}

/// Formats a shape in HLO syntax, with `?` for an unbounded extent.
fn text(shape: &ArrayShape) -> String {
    let extent = |d: usize| match shape.dynamism(d) {
        Dynamism::Unbounded => "?".to_string(),
        Dynamism::Bounded => format!("<={}", shape.dims()[d]),
        Dynamism::Static => shape.dims()[d].to_string(),
    };
    let extents: Vec<String> = (0..shape.rank()).map(extent).collect();
    format!("{}[{}]", shape.element_type(), extents.join(","))
}

fn missing(i: usize, written: &ArrayShape) -> Error {
    let open: Vec<usize> = (0..written.rank()).filter(|&d| written.dynamism(d) == Dynamism::Unbounded).collect();
    let dims = (0..written.rank()).map(|d| if open.contains(&d) { EXAMPLE } else { written.dims()[d] });
    let example = ArrayShape::new(written.element_type(), dims.collect::<Vec<_>>());
    let dimensions = match &open[..] {
        [one] => format!("dimension {one} has no size"),
        all => format!("dimensions {all:?} have no sizes"),
    };
    Error::invalid_argument(format!(
        "argument {i} is {}: {dimensions}; give the argument a shape, such as --shapes arg{i}={example}",
        text(written)
    ))
}

impl FromStr for ArgumentShapes {
    type Err = Error;

    /// Parses a list such as `arg0=f32[8,4],arg2=s32[8]`.
    fn from_str(text: &str) -> Result<ArgumentShapes> {
        let mut shapes = ArgumentShapes::default();
        let (mut depth, mut start) = (0usize, 0);
        for (at, c) in text.char_indices().chain([(text.len(), ',')]) {
            match c {
                '[' | '{' | '(' => depth += 1,
                ']' | '}' | ')' => depth = depth.saturating_sub(1),
                ',' if depth == 0 || at == text.len() => {
                    let (argument, shape) = entry(text[start..at].trim())?;
                    if shapes.0.contains_key(&argument) {
                        return Err(Error::invalid_argument(format!("arg{argument} has two shapes")));
                    }
                    shapes.set(argument, &shape);
                    start = (at + 1).min(text.len());
                }
                _ => {}
            }
        }
        Ok(shapes)
    }
}

/// Parses one entry, such as `arg0=f32[8,4]`.
fn entry(text: &str) -> Result<(usize, ArrayShape)> {
    let wrong =
        || Error::invalid_argument(format!("{text:?} is not the shape of an argument, such as arg0=f32[{EXAMPLE},4]"));
    let (name, shape) = text.split_once('=').ok_or_else(wrong)?;
    let argument = name.trim().strip_prefix("arg").and_then(|number| number.parse().ok()).ok_or_else(wrong)?;
    match parse_shape(shape.trim()).map_err(|error| error.context(format!("the shape of arg{argument}")))? {
        Shape::Array(array) if array.is_static() => Ok((argument, array.with_layout(None))),
        _ => Err(wrong()),
    }
}
