//! Callees: computations that steps call, by purpose, with their parameters.

use std::cell::Cell;
use std::rc::Rc;

use xla_hlo::builder::ComputationBuilder;
use xla_hlo::ops::BinaryOp;
use xla_hlo::{ArrayShape, CompId, ElementType, InstrId, Result, Shape};

use super::idioms::CalledIdiom;
use super::numbers::Numbers;
use super::random::Random;

/// An operand or result of a computation, and the bounds of its values.
#[derive(Clone, Debug)]
pub struct Slot {
    pub shape: ArrayShape,
    pub numbers: Numbers,
}

impl Slot {
    /// Whether an argument is within the bounds that the computation was made for.
    pub(super) fn accepts(&self, argument: &Numbers) -> bool {
        argument.is_settled() && argument.bound <= self.numbers.bound && argument.grid >= self.numbers.grid
    }
}

/// A computation that is there to be called.
#[derive(Clone, Debug)]
pub struct Callee {
    /// The computation; of a loop the body, of branches the first.
    pub id: CompId,
    /// Its purpose.
    pub role: CalleeRole,
    /// Whether [`CalleeRole::Async`] has its only caller.
    pub(super) is_taken: Rc<Cell<bool>>,
}

impl Callee {
    pub(super) fn new(id: CompId, role: CalleeRole) -> Callee {
        Callee { id, role, is_taken: Rc::default() }
    }
}

/// Purpose of a computation.
#[derive(Clone, Debug)]
pub enum CalleeRole {
    /// Reduces two elements into one.
    Combiner { op: BinaryOp, ty: ElementType },
    /// Gives its second parameter.
    Replace { ty: ElementType },
    /// Of two elements with their places, the greater one, the first of equals.
    Best { ty: ElementType, index: ElementType },
    /// Whether the first of two elements is at least the second.
    Select { ty: ElementType },
    /// Whether one of two places in arrays of these types comes before the other: two elements of each.
    Order { types: Vec<ElementType> },
    /// Scalars to a scalar.
    Scalar { parameters: Vec<ElementType> },
    /// Arrays to arrays: one, or a tuple of several.
    Function { parameters: Vec<Slot>, results: Vec<Numbers> },
    /// Arrays to arrays as [`CalleeRole::Function`], for one caller, which starts it asynchronously.
    Async { parameters: Vec<Slot>, results: Vec<Numbers> },
    /// Functions of tuples with the same results.
    Branches { branches: Vec<(CompId, Vec<Slot>)>, by_predicate: bool, packing: Packing, results: Vec<Numbers> },
    /// An idiom of machine learning: arrays of its shapes to one, or to a tuple of several.
    Idiom(Rc<CalledIdiom>),
    /// A loop over a counter and some arrays.
    Loop { condition: CompId, counter: ElementType, start: i64, packing: Packing, state: Vec<Slot> },
}

/// Packing of several arrays into a computation's parameters or results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// Each by itself.
    Separate,
    /// In a tuple.
    Tuple,
    /// The first in a tuple with a tuple of the others.
    Nested,
}

impl Packing {
    /// One that makes tuples.
    pub(super) fn any(random: &mut Random) -> Packing {
        random.pick(&[Packing::Tuple, Packing::Tuple, Packing::Nested])
    }

    /// The shape of a tuple of those.
    pub(super) fn shape(self, mut shapes: Vec<Shape>) -> Shape {
        if self == Packing::Nested && !shapes.is_empty() {
            let others = Shape::Tuple(shapes.split_off(1));
            shapes.push(others);
        }
        Shape::Tuple(shapes)
    }

    /// A tuple of those.
    pub(super) fn tuple(self, b: &mut ComputationBuilder<'_>, mut ids: Vec<InstrId>) -> Result<InstrId> {
        if self == Packing::Nested && !ids.is_empty() {
            let others = b.tuple(ids.split_off(1))?;
            ids.push(others);
        }
        b.tuple(ids)
    }
}
