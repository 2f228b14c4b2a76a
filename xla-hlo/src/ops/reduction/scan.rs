//! Scans: the operation, its shape rule and its evaluator.

use super::{OpRules, Opcode, ReadAttributes, ShapeContext};
use crate::eval::Evaluator;
use crate::ops::checks::{self, ensure};
use crate::ops::movement::strided::{View, copy_slice};
use crate::text::{AttributeReader, AttributeWriter};
use crate::{ArrayShape, CompId, Error, Literal, Result, Shape};

/// `scan`: a loop over one dimension. Each step takes a slice of every input and the carries, and returns a slice of
/// every output and the next carries.
///
/// Operands are the inputs, followed by the initial carries. The computation takes the slices of the inputs (without
/// the dimension) and then the carries. It returns the slices of the outputs and then the next carries. The result is
/// the outputs followed by the last carries: a tuple if the computation returns a tuple, which is optional for a single
/// array.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Scan {
    /// The dimension of inputs and outputs over which steps iterate.
    pub dimension: usize,
    /// Number of carries, which are the last operands.
    pub num_carries: usize,
    /// Whether steps run from the last slice to the first. Each output slice has the index of its input slice in both
    /// cases.
    pub is_reverse: bool,
    /// Whether the computation is associative in its carries, so that steps may be regrouped.
    pub is_associative: bool,
    /// Computation of one step.
    pub computation: CompId,
}

impl ReadAttributes for Scan {
    fn read(_: Opcode, r: &mut AttributeReader<'_>) -> Result<Self> {
        let dimensions: Vec<usize> = r.required("dimensions")?;
        let &[dimension] = &dimensions[..] else {
            return Err(Error::invalid_argument(format!("scan must have exactly one dimension, not {dimensions:?}")));
        };
        Ok(Scan {
            dimension,
            num_carries: r.required("num_carries")?,
            is_reverse: r.optional("is_reverse")?.unwrap_or(false),
            is_associative: r.optional("is_associative")?.unwrap_or(false),
            computation: r.required("to_apply")?,
        })
    }
}

impl OpRules for Scan {
    fn opcode(&self) -> Opcode {
        Opcode::Scan
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        infer_shape(self, cx)
    }

    fn write_attributes(&self, w: &mut AttributeWriter<'_>) {
        w.attribute("dimensions", &vec![self.dimension]);
        w.attribute("num_carries", &self.num_carries);
        if self.is_reverse {
            w.attribute("is_reverse", &true);
        }
        w.attribute("is_associative", &self.is_associative);
        w.attribute("to_apply", &self.computation);
    }

    fn evaluate(&self, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        evaluate(self, ev, operands, shape)
    }

    fn called_computations(&self) -> Vec<CompId> {
        vec![self.computation]
    }

    fn visit_called_computations(&mut self, f: &mut dyn FnMut(&mut CompId)) {
        f(&mut self.computation);
    }
}

fn infer_shape(op: &Scan, cx: &ShapeContext<'_>) -> Result<Shape> {
    let count = cx.operands().len();
    let inputs = count.checked_sub(op.num_carries).ok_or_else(|| {
        Error::invalid_argument(format!("scan has {count} operands, of which {} cannot be carries", op.num_carries))
    })?;
    let arrays = (0..count).map(|i| cx.array(i)).collect::<Result<Vec<_>>>()?;
    let steps = steps(op, cx, &arrays[..inputs])?;
    let slices = arrays[..inputs].iter().map(|array| sliced(array, op.dimension)).collect::<Vec<_>>();
    let carries: Vec<Shape> = arrays[inputs..].iter().map(|&array| array.clone().with_layout(None).into()).collect();
    cx.expect_parameters(op.computation, &slices.iter().chain(&carries).collect::<Vec<_>>())?;
    let result = cx.result_shape(op.computation)?;
    let given: &[Shape] = result.as_tuple().unwrap_or(std::slice::from_ref(result));
    let outputs = given.len().checked_sub(op.num_carries);
    let name = cx.computation(op.computation)?.name();
    let Some(outputs) = outputs.filter(|&n| given[n..].iter().zip(&carries).all(|(a, b)| a.compatible(b))) else {
        return Err(Error::invalid_argument(format!(
            "computation {name} must return outputs and then {} carries of the shapes it takes, it returns {}",
            op.num_carries,
            result.without_layout()
        )));
    };
    let stacked = given[..outputs].iter().map(|slice| stacked(slice, op.dimension, steps));
    let mut results = stacked.collect::<Result<Vec<_>>>()?;
    results.extend(carries);
    match (result.as_tuple(), results.pop()) {
        (None, Some(only)) => Ok(only),
        (_, last) => {
            results.extend(last);
            Ok(Shape::Tuple(results))
        }
    }
}

/// Returns the number of steps, which is the size of the scanned dimension in the inputs or, without inputs, in the
/// written result.
fn steps(op: &Scan, cx: &ShapeContext<'_>, inputs: &[&ArrayShape]) -> Result<usize> {
    let d = op.dimension;
    let Some(first) = inputs.first() else {
        let written = cx.written().map_err(|e| e.context("scan without inputs"))?;
        let first = written.as_tuple().map_or(Some(written), <[Shape]>::first).and_then(Shape::as_array);
        return first.and_then(|array| array.dims().get(d)).copied().ok_or_else(|| {
            Error::invalid_argument(format!("scan without inputs must have an output with dimension {d}"))
        });
    };
    for (i, input) in inputs.iter().enumerate() {
        ensure!(d < input.rank(), "scan is over dimension {d}, which input {i} ({input}) does not have");
        ensure!(
            input.dims()[d] == first.dims()[d],
            "inputs of scan must be equally long in dimension {d}, but input 0 is {first} and input {i} is {input}"
        );
    }
    Ok(first.dims()[d])
}

/// Returns the shape of an array without one dimension.
fn sliced(array: &ArrayShape, dimension: usize) -> Shape {
    let mut dims = array.dims().to_vec();
    dims.remove(dimension);
    Shape::array(array.element_type(), dims)
}

/// Returns the shape of `steps` slices stacked along a new dimension.
fn stacked(slice: &Shape, dimension: usize, steps: usize) -> Result<Shape> {
    let array = slice.as_array().ok_or_else(|| {
        Error::invalid_argument(format!(
            "outputs of scan must be arrays, but its computation returns {}",
            slice.without_layout()
        ))
    })?;
    let mut dims = array.dims().to_vec();
    ensure!(dimension <= dims.len(), "an output slice {array} cannot be stacked along dimension {dimension}");
    dims.insert(dimension, steps);
    checks::array(array.element_type(), dims)
}

fn evaluate(op: &Scan, ev: &mut Evaluator<'_>, mut operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
    let mut carries = operands.split_off(operands.len().saturating_sub(op.num_carries));
    let inputs = operands;
    let results: &[Shape] = shape.as_tuple().unwrap_or(std::slice::from_ref(shape));
    let outputs = &results[..results.len().saturating_sub(op.num_carries)];
    let mut outputs = outputs.iter().map(|s| Literal::zeros(s.expect_array()?)).collect::<Result<Vec<_>>>()?;
    let steps = inputs.first().or(outputs.first()).map_or(0, |array| array.array_shape().dims()[op.dimension]);
    for step in 0..steps {
        let at = if op.is_reverse { steps - 1 - step } else { step };
        let mut arguments =
            inputs.iter().map(|input| read_slice(input, op.dimension, at)).collect::<Result<Vec<_>>>()?;
        arguments.append(&mut carries);
        let mut given = ev.call(op.computation, arguments)?.into_elements();
        carries = given.split_off(outputs.len());
        for (output, slice) in outputs.iter_mut().zip(&given) {
            write_slice(output, op.dimension, at, slice);
        }
    }
    outputs.append(&mut carries);
    match (shape, outputs.pop()) {
        (Shape::Array(_), Some(only)) => Ok(only),
        (_, last) => Ok(Literal::tuple(outputs.into_iter().chain(last).collect())),
    }
}

/// Returns the view of the slice at index `at`, which has all dimensions but `dimension`.
fn slice_view(dims: &[usize], dimension: usize, at: usize) -> View {
    let mut view = View::row_major(dims);
    view.advance(dimension, at);
    view.select((0..dims.len()).filter(|&d| d != dimension).map(Some))
}

fn read_slice(input: &Literal, dimension: usize, at: usize) -> Result<Literal> {
    let shape = sliced(input.array_shape(), dimension);
    let shape = shape.expect_array()?;
    let mut slice = Literal::zeros(shape)?;
    let from = slice_view(input.array_shape().dims(), dimension, at);
    let width = shape.element_type().byte_width();
    copy_slice(shape.dims(), width, (input.bytes(), &from), (slice.bytes_mut(), &View::row_major(shape.dims())));
    Ok(slice)
}

fn write_slice(output: &mut Literal, dimension: usize, at: usize, slice: &Literal) {
    let to = slice_view(output.array_shape().dims(), dimension, at);
    let shape = slice.array_shape();
    let width = shape.element_type().byte_width();
    copy_slice(shape.dims(), width, (slice.bytes(), &View::row_major(shape.dims())), (output.bytes_mut(), &to));
}
