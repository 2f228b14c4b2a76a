//! Register allocation: linear scan over the lives of values.

use std::collections::HashMap;

use xla_hlo::ElementType;

use crate::device::{Instruction, Program, Register};

/// Renumbers a program's registers, which are one for each value, so that values which are not needed at the same time
/// share.
///
/// The result may still have more registers than the core; loading it says so.
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

/// The first and the last instruction that mentions a value, in the order of the text.
#[derive(Clone, Copy)]
struct Life {
    first: usize,
    last: usize,
}

#[derive(Default)]
struct Lives {
    of: HashMap<Register, Life>,
    now: usize,
}

impl Lives {
    fn visit(&mut self, body: &mut [Instruction]) {
        for instruction in body {
            self.now += 1;
            let now = self.now;
            if let Instruction::Loop { body, .. } = instruction {
                self.visit(body);
                self.now += 1;
                // Registers defined before the loop and used in it live through every iteration.
                let lives = self.of.values_mut().filter(|life| life.first < now && life.last > now);
                lives.for_each(|life| life.last = self.now);
            }
            instruction.for_each_register_mut(&mut |register| {
                self.of.entry(*register).or_insert(Life { first: now, last: now }).last = now;
            });
        }
    }
}

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
