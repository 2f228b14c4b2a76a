//! Constants of a computation: each literal once, equal elements as a broadcast of one.

use std::collections::HashMap;

use xla_hlo::{InstrId, Literal};

use crate::ir::ValueId;

/// Instructions and values that are constants.
#[derive(Default)]
pub(super) struct Constants {
    ids: HashMap<Literal, InstrId>,
    literals: HashMap<InstrId, Literal>,
    /// Constants of the program, of this region and of those around it: instructions as soon as they are used.
    values: HashMap<ValueId, Literal>,
}

impl Constants {
    /// The instruction for a literal.
    pub fn id(&self, literal: &Literal) -> Option<InstrId> {
        self.ids.get(literal).copied()
    }

    /// The literal that an instruction is.
    pub fn literal(&self, id: InstrId) -> Option<&Literal> {
        self.literals.get(&id)
    }

    pub fn insert(&mut self, literal: Literal, id: InstrId) {
        self.literals.insert(id, literal.clone());
        self.ids.insert(literal, id);
    }

    /// The constant that a value of the program is.
    pub fn of_value(&self, value: ValueId) -> Option<&Literal> {
        self.values.get(&value)
    }

    pub fn insert_value(&mut self, value: ValueId, literal: Literal) {
        self.values.insert(value, literal);
    }
}

/// The only element of a literal of several equal ones, as a scalar.
pub(super) fn scalar_of_splat(literal: &Literal) -> Option<Literal> {
    let array = literal.array_shape();
    let is_plain = array.rank() > 0 && array.is_static() && array.element_count() > 1;
    is_plain.then(|| literal.uniform()).flatten().map(|value| Literal::scalar(array.element_type(), value))
}
