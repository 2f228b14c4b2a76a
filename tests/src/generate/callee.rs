//! Callees: computations that generated steps call, by role, with their parameters.

use std::cell::Cell;
use std::rc::Rc;

use xla_hlo::builder::ComputationBuilder;
use xla_hlo::ops::BinaryOp;
use xla_hlo::{ArrayShape, CompId, ElementType, InstrId, Result, Shape};

use super::idioms::CalledIdiom;
use super::numbers::Numbers;
use super::random::Random;

/// Operand or result of a computation, and the range of its values.
#[derive(Clone, Debug)]
pub struct Slot {
    pub shape: ArrayShape,
    pub numbers: Numbers,
}

impl Slot {
    /// Whether an argument is within the range that the computation was generated for.
    pub(super) fn accepts(&self, argument: &Numbers) -> bool {
        argument.is_settled() && argument.bound <= self.numbers.bound && argument.grid >= self.numbers.grid
    }
}

/// Computation to be called.
#[derive(Clone, Debug)]
pub struct Callee {
    /// The computation: for a loop its body, for branches the first one.
    pub id: CompId,
    /// Role of the computation.
    pub role: CalleeRole,
    /// Whether [`CalleeRole::Async`] already has its only caller.
    pub(super) is_taken: Rc<Cell<bool>>,
}

impl Callee {
    pub(super) fn new(id: CompId, role: CalleeRole) -> Callee {
        Callee { id, role, is_taken: Rc::default() }
    }
}

/// Role of a computation.
#[derive(Clone, Debug)]
pub enum CalleeRole {
    /// Combines two elements to one.
    Combiner { op: BinaryOp, ty: ElementType },
    /// Returns its second parameter.
    Replace { ty: ElementType },
    /// Returns the greater of two elements with their indices; of equal ones the first.
    Best { ty: ElementType, index: ElementType },
    /// Returns whether the first of two elements is at least the second.
    Select { ty: ElementType },
    /// Returns whether one of two positions in arrays of these types precedes the other. The parameters are two
    /// elements of each array.
    Order { types: Vec<ElementType> },
    /// Maps scalars to a scalar.
    Scalar { parameters: Vec<ElementType> },
    /// Maps arrays to an array, or to a tuple of several.
    Function { parameters: Vec<Slot>, results: Vec<Numbers> },
    /// Maps arrays to arrays like [`CalleeRole::Function`], for a single caller that starts it asynchronously.
    Async { parameters: Vec<Slot>, results: Vec<Numbers> },
    /// Functions of tuples with results of equal types.
    Branches { branches: Vec<(CompId, Vec<Slot>)>, by_predicate: bool, packing: Packing, results: Vec<Numbers> },
    /// Idiom of machine learning: maps arrays of its shapes to an array, or to a tuple of several.
    Idiom(Rc<CalledIdiom>),
    /// Loop over a counter and some arrays.
    Loop { condition: CompId, counter: ElementType, start: i64, packing: Packing, state: Vec<Slot> },
}

/// Packing of several arrays as parameters or results of a computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// Each array separately.
    Separate,
    /// All arrays in a tuple.
    Tuple,
    /// The first array in a tuple with a tuple of the others.
    Nested,
}

impl Packing {
    /// Returns a random packing that uses tuples.
    pub(super) fn any(random: &mut Random) -> Packing {
        random.pick(&[Packing::Tuple, Packing::Tuple, Packing::Nested])
    }

    /// Returns the shape of a tuple of arrays.
    pub(super) fn shape(self, mut shapes: Vec<Shape>) -> Shape {
        if self == Packing::Nested && !shapes.is_empty() {
            let others = Shape::Tuple(shapes.split_off(1));
            shapes.push(others);
        }
        Shape::Tuple(shapes)
    }

    /// Builds a tuple of arrays.
    pub(super) fn tuple(self, b: &mut ComputationBuilder<'_>, mut ids: Vec<InstrId>) -> Result<InstrId> {
        if self == Packing::Nested && !ids.is_empty() {
            let others = b.tuple(ids.split_off(1))?;
            ids.push(others);
        }
        b.tuple(ids)
    }
}
