//! Combiners: the computations called by reduce, reduce-window, select-and-scatter and scatter.

use super::checks::{self, ensure};
use super::{BinaryOp, Op, ShapeContext};
use crate::eval::{Evaluator, ScalarFunction};
use crate::{
    ArrayShape, CompId, Computation, ElementKind, ElementType, Error, InstrId, Literal, Result, Scalar, Shape,
};

/// Result signature of a combiner: one accumulator for each reduced array.
pub(super) struct Accumulators {
    types: Vec<ElementType>,
    is_tuple: bool,
}

impl Accumulators {
    /// Checks the signature of a combiner `(acc_0, ..., acc_N-1, x_0, ..., x_N-1) -> acc` for N arrays with the given
    /// types of elements and initial values.
    ///
    /// All parameters and results are scalars. Elements and initial values may have another float precision than their
    /// parameters, and integers may be narrower than their parameters.
    pub(super) fn check(
        cx: &ShapeContext<'_>,
        computation: CompId,
        elements: &[ElementType],
        inits: &[ElementType],
    ) -> Result<Accumulators> {
        let name = cx.computation(computation)?.name();
        let result = cx.result_shape(computation)?;
        let (results, is_tuple) = match result.as_tuple() {
            Some(results) => (results.iter().collect(), true),
            None => (vec![result], false),
        };
        let scalar_types = |shapes: &[&Shape]| -> Option<Vec<ElementType>> {
            shapes.iter().map(|s| s.as_array().filter(|a| a.is_scalar()).map(ArrayShape::element_type)).collect()
        };
        let types = scalar_types(&results).filter(|types| types.len() == elements.len());
        let parameters = scalar_types(&cx.parameter_shapes(computation)?).filter(|p| p.len() == 2 * elements.len());
        let (Some(types), Some(parameters)) = (types, parameters) else {
            let n = elements.len();
            return Err(Error::invalid_argument(format!(
                "the combiner {name} must take {n} accumulators and {n} elements and return {n} accumulators, all scalars"
            )));
        };
        let (into_accumulator, into_element) = parameters.split_at(elements.len());
        for (i, &accumulator) in types.iter().enumerate() {
            ensure!(
                accumulator == into_accumulator[i],
                "the combiner {name} returns {accumulator} as result {i}, but takes {} as accumulator {i}",
                into_accumulator[i]
            );
            for (what, from, to) in [
                ("initial values", inits[i], accumulator),
                ("elements", elements[i], into_element[i]),
                ("element parameters", into_element[i], accumulator),
            ] {
                ensure!(
                    checks::feeds(from, to),
                    "{what} of array {i} are {from}, which cannot be converted to {to} for the combiner {name}"
                );
            }
        }
        Ok(Accumulators { types, is_tuple })
    }

    /// Returns the element types of the accumulators.
    pub(super) fn types(&self) -> &[ElementType] {
        &self.types
    }

    /// Returns the shape of the result: accumulators in arrays of dimensions `dims`.
    pub(super) fn shape(&self, dims: &[usize]) -> Result<Shape> {
        let mut arrays = self.types.iter().map(|&ty| checks::array(ty, dims.to_vec())).collect::<Result<Vec<_>>>()?;
        match arrays.pop() {
            Some(array) if !self.is_tuple => Ok(array),
            last => {
                arrays.extend(last);
                Ok(Shape::Tuple(arrays))
            }
        }
    }
}

/// Class of a combiner.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// One associative and commutative operation on the two parameters.
    Associative,
    /// Returns the element and ignores the accumulator.
    Replaces,
    /// Any other computation.
    General,
}

/// A combiner that is ready to be called. Each call follows the rounding and wrapping of the computation.
#[derive(Clone)]
pub(super) struct Combiner {
    function: ScalarFunction,
    kind: Kind,
    /// Parameter type of each array's elements if they must be rounded to it before the call, otherwise `None`.
    rounded_to: Vec<Option<ElementType>>,
    arguments: Vec<Scalar>,
}

impl Combiner {
    /// Prepares a computation whose signature was verified for arrays of these element types.
    pub(super) fn new(ev: &Evaluator<'_>, computation: CompId, elements: &[ElementType]) -> Result<Combiner> {
        let function = ScalarFunction::new(ev.module(), computation)?;
        let kind = kind_of(&ev.module()[computation]);
        let taken_as = function.parameter_types().iter().skip(elements.len());
        let rounded_to = elements.iter().zip(taken_as).map(|(&from, &to)| (from != to).then_some(to)).collect();
        Ok(Combiner { function, kind, rounded_to, arguments: Vec::new() })
    }

    /// Returns the approximate cost of one call in nanoseconds, or `None` if only the evaluator's own thread may run
    /// it.
    pub(super) fn work(&self) -> Option<usize> {
        self.function.work()
    }

    /// Whether elements and partial results may be combined in any order.
    pub(super) fn is_associative(&self) -> bool {
        self.kind == Kind::Associative
    }

    /// Whether the combiner returns the element itself, bit for bit.
    pub(super) fn replaces(&self) -> bool {
        self.kind == Kind::Replaces
    }

    /// Converts initial values, possibly of other precisions, to accumulators.
    pub(super) fn accumulators(&self, inits: &[Scalar]) -> Vec<Scalar> {
        inits.iter().zip(self.function.result_types()).map(|(init, &ty)| init.rounded(ty)).collect()
    }

    /// Updates the accumulators with one element of each array.
    pub(super) fn combine(
        &mut self,
        ev: &mut Evaluator<'_>,
        accumulators: &mut [Scalar],
        elements: impl IntoIterator<Item = Scalar>,
    ) -> Result<()> {
        self.arguments.clear();
        self.arguments.extend_from_slice(accumulators);
        let taken_as = |(x, to): (Scalar, &Option<ElementType>)| to.map_or(x, |to| x.rounded(to));
        self.arguments.extend(elements.into_iter().zip(&self.rounded_to).map(taken_as));
        accumulators.copy_from_slice(self.function.call(ev, &self.arguments)?);
        Ok(())
    }

    /// Combines the accumulator with one element; for combiners of one array.
    pub(super) fn step(&mut self, ev: &mut Evaluator<'_>, accumulator: Scalar, element: Scalar) -> Result<Scalar> {
        let mut accumulators = [accumulator];
        self.combine(ev, &mut accumulators, [element])?;
        Ok(accumulators[0])
    }

    /// Combines two elements or partial results; for associative combiners of one array.
    pub(super) fn pair(&mut self, ev: &mut Evaluator<'_>, a: Scalar, b: Scalar) -> Result<Scalar> {
        let a = self.rounded_to[0].map_or(a, |to| a.rounded(to));
        self.step(ev, a, b)
    }
}

/// Classifies a combiner computation.
fn kind_of(computation: &Computation) -> Kind {
    match computation.parameters() {
        _ if is_order_free(computation) => Kind::Associative,
        &[accumulator, element]
            if computation.root() == element
                && computation[accumulator].shape().compatible(computation[element].shape()) =>
        {
            Kind::Replaces
        }
        _ => Kind::General,
    }
}

/// Whether elements and partial results may be combined in any order.
pub(super) fn is_order_free(computation: &Computation) -> bool {
    let mut shapes = computation.parameters().iter().map(|&p| computation[p].shape());
    let same_types = shapes.next().is_some_and(|first| shapes.all(|shape| shape.compatible(first)));
    same_types && simple_combiner(computation).is_some()
}

/// Returns the operation of a combiner that consists of one associative and commutative operation on its two
/// parameters.
pub fn simple_combiner(computation: &Computation) -> Option<BinaryOp> {
    let &[accumulator, element] = computation.parameters() else { return None };
    let root = &computation[computation.root()];
    let operands: &[InstrId] = root.operands();
    let takes_both = operands == [accumulator, element] || operands == [element, accumulator];
    match root.op() {
        Op::Binary(binary) if takes_both && is_associative(binary.op) => Some(binary.op),
        _ => None,
    }
}

/// Whether an operation is commutative and, up to rounding as in HLO, associative.
fn is_associative(op: BinaryOp) -> bool {
    match op {
        BinaryOp::Add
        | BinaryOp::And
        | BinaryOp::Maximum
        | BinaryOp::Minimum
        | BinaryOp::Multiply
        | BinaryOp::Or
        | BinaryOp::Xor => true,
        BinaryOp::Atan2
        | BinaryOp::Complex
        | BinaryOp::Divide
        | BinaryOp::Mulhi
        | BinaryOp::Power
        | BinaryOp::Remainder
        | BinaryOp::ShiftLeft
        | BinaryOp::ShiftRightArithmetic
        | BinaryOp::ShiftRightLogical
        | BinaryOp::Subtract => false,
    }
}

/// Returns the identity element of a simple combiner's operation, or `None` if the type has none.
pub fn combiner_identity(op: BinaryOp, ty: ElementType) -> Option<Scalar> {
    use ElementType as T;
    let float = |v: f64| matches!(ty, T::F16 | T::BF16 | T::F32 | T::F64 | T::F8E5M2).then_some(Scalar::Float(v));
    let bits = ty.bit_width() as u32;
    let (least, greatest) = match ty.kind() {
        ElementKind::Pred => (Scalar::Pred(false), Scalar::Pred(true)),
        ElementKind::Signed => (Scalar::Signed(i64::MIN >> (64 - bits)), Scalar::Signed(i64::MAX >> (64 - bits))),
        ElementKind::Unsigned => (Scalar::Unsigned(0), Scalar::Unsigned(u64::MAX >> (64 - bits))),
        ElementKind::Float => (float(f64::NEG_INFINITY)?, float(f64::INFINITY)?),
        ElementKind::Complex => (Scalar::Complex(0.0, 0.0), Scalar::Complex(0.0, 0.0)),
    };
    let all_ones = match ty.kind() {
        ElementKind::Signed => Scalar::Signed(-1),
        _ => greatest,
    };
    Some(match (op, ty.kind()) {
        (BinaryOp::Add, ElementKind::Float) => float(-0.0)?,
        (BinaryOp::Add, ElementKind::Complex) => Scalar::Complex(-0.0, -0.0),
        (BinaryOp::Add | BinaryOp::Or | BinaryOp::Xor, _) => Scalar::zero(ty),
        (BinaryOp::Multiply, ElementKind::Complex) => return None,
        (BinaryOp::Multiply, _) => Scalar::from_i64(ty, 1),
        (BinaryOp::And, _) => all_ones,
        (BinaryOp::Maximum | BinaryOp::Minimum, ElementKind::Complex) => return None,
        (BinaryOp::Maximum, _) => least,
        (BinaryOp::Minimum, _) => greatest,
        _ => return None,
    })
}

/// Operands of a reduction: N arrays followed by N initial values.
pub(super) struct ReduceOperands {
    pub(super) arrays: Vec<Literal>,
    pub(super) inits: Vec<Scalar>,
}

impl ReduceOperands {
    /// Splits the operands; the second half are the initial values.
    pub(super) fn new(mut operands: Vec<Literal>) -> ReduceOperands {
        let inits = operands.split_off(operands.len() / 2);
        ReduceOperands { arrays: operands, inits: inits.iter().map(|init| init.get(0)).collect() }
    }

    /// Checks the operands of a reduction, whose arrays must all have the same dimensions. Returns these dimensions,
    /// the element types of the arrays, and the element types of the initial values.
    pub(super) fn check<'a>(cx: &ShapeContext<'a>) -> Result<(&'a [usize], Vec<ElementType>, Vec<ElementType>)> {
        let count = cx.operands().len() / 2;
        ensure!(
            count > 0 && cx.operands().len() == 2 * count,
            "operands must be N arrays and N initial values, but their number is {}",
            cx.operands().len()
        );
        let dims = cx.array(0)?.dims();
        let (mut elements, mut inits) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for i in 0..count {
            let (array, init) = (cx.array(i)?, cx.array(count + i)?);
            ensure!(
                array.dims() == dims,
                "arrays must have the same dimensions, but operand 0 is {} and operand {i} is {array}",
                cx.array(0)?
            );
            checks::scalar(&format!("the initial value {i}"), init)?;
            elements.push(array.element_type());
            inits.push(init.element_type());
        }
        Ok((dims, elements, inits))
    }
}

/// Assembles the results of a reduction into one value: a tuple if `shape` is a tuple, otherwise the only array.
pub(super) fn reduction_result(shape: &Shape, mut results: Vec<Literal>) -> Result<Literal> {
    match shape {
        Shape::Tuple(_) => Ok(Literal::tuple(results)),
        Shape::Array(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_) => {
            results.pop().ok_or_else(checks::missing_operand)
        }
    }
}

/// Allocates zeroed arrays for the results of a reduction, one for each leaf of its shape.
pub(super) fn reduction_outputs(shape: &Shape) -> Result<Vec<Literal>> {
    shape.leaves().into_iter().map(|(_, leaf)| Literal::zeros(leaf.expect_array()?)).collect()
}
