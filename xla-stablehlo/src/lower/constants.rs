//! Constants of a computation: each literal is added once, and a splat is a broadcast of a scalar.

use std::collections::HashMap;

use xla_hlo::{InstrId, Literal};

use crate::ir::ValueId;

/// Constants of a computation: instructions, and values that have no instruction yet.
#[derive(Default)]
pub(super) struct Constants {
    ids: HashMap<Literal, InstrId>,
    literals: HashMap<InstrId, Literal>,
    /// Constant values of this region and the enclosing ones. Each becomes an instruction when it is first used.
    values: HashMap<ValueId, Literal>,
}

impl Constants {
    /// Returns the instruction for a literal.
    pub fn id(&self, literal: &Literal) -> Option<InstrId> {
        self.ids.get(literal).copied()
    }

    /// Returns the literal of a constant instruction.
    pub fn literal(&self, id: InstrId) -> Option<&Literal> {
        self.literals.get(&id)
    }

    pub fn insert(&mut self, literal: Literal, id: InstrId) {
        self.literals.insert(id, literal.clone());
        self.ids.insert(literal, id);
    }

    /// Returns the literal of a constant value of the program.
    pub fn of_value(&self, value: ValueId) -> Option<&Literal> {
        self.values.get(&value)
    }

    pub fn insert_value(&mut self, value: ValueId, literal: Literal) {
        self.values.insert(value, literal);
    }
}

/// Returns the repeated element of a splat literal as a scalar.
pub(super) fn scalar_of_splat(literal: &Literal) -> Option<Literal> {
    let array = literal.array_shape();
    let is_plain = array.rank() > 0 && array.is_static() && array.element_count() > 1;
    is_plain.then(|| literal.uniform()).flatten().map(|value| Literal::scalar(array.element_type(), value))
}
