//! Register allocation: linear scan over the live ranges of values.

use std::collections::HashMap;

use xla_hlo::ElementType;

use crate::device::{Instruction, Program, Register};

/// Replaces the virtual registers of a program, one per value, by real registers. Values of the same type share a
/// register if their live ranges do not overlap.
///
/// The result may still need more registers than the core has; in that case
/// [`Kernel::load`](crate::device::Kernel::load) reports an error.
pub(super) fn assign(program: &mut Program) {
    let mut lives = Lives::default();
    lives.visit(&mut program.body);
    let mut order: Vec<(Register, Life)> = lives.of.into_iter().collect();
    order.sort_by_key(|(register, life)| (life.first, *register));

    let mut types: Vec<ElementType> = Vec::new();
    let mut busy: Vec<(usize, Register)> = Vec::new();
    let mut free: HashMap<ElementType, Vec<Register>> = HashMap::new();
    let mut places: HashMap<Register, Register> = HashMap::new();
    for (value, life) in order {
        busy.retain(|&(last, register)| {
            let is_needed = last >= life.first;
            if !is_needed {
                free.entry(types[register.0]).or_default().push(register);
            }
            is_needed
        });
        let ty = program.registers[value.0];
        let register = free.get_mut(&ty).and_then(Vec::pop).unwrap_or_else(|| {
            types.push(ty);
            Register(types.len() - 1)
        });
        busy.push((life.last, register));
        places.insert(value, register);
    }
    program.registers = types;
    rename(&mut program.body, &places);
}

/// Live range of a value: its first and its last mention, in program order.
#[derive(Clone, Copy)]
struct Life {
    first: usize,
    last: usize,
}

/// Live ranges of all values.
#[derive(Default)]
struct Lives {
    /// Live range of each value.
    of: HashMap<Register, Life>,
    /// Number of the current instruction.
    now: usize,
}

impl Lives {
    /// Records the live ranges of a body's registers, in program order.
    fn visit(&mut self, body: &mut [Instruction]) {
        for instruction in body {
            self.now += 1;
            let now = self.now;
            if let Instruction::Loop { body, .. } = instruction {
                self.visit(body);
                self.now += 1;
                // A register that is defined before the loop and used in it is live through all iterations.
                let lives = self.of.values_mut().filter(|life| life.first < now && life.last > now);
                lives.for_each(|life| life.last = self.now);
            }
            instruction.for_each_register_mut(&mut |register| {
                self.of.entry(*register).or_insert(Life { first: now, last: now }).last = now;
            });
        }
    }
}

/// Replaces each virtual register by the register assigned to it.
fn rename(body: &mut [Instruction], places: &HashMap<Register, Register>) {
    for instruction in body {
        instruction.for_each_register_mut(&mut |register| {
            if let Some(place) = places.get(register) {
                *register = *place;
            }
        });
        if let Instruction::Loop { body, .. } = instruction {
            rename(body, places);
        }
    }
}
