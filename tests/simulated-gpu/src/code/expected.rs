//! Plain loads of the expected value of a compare-and-swap.
//!
//! `atom.cas` stores only if memory still holds the expected value. A loop of `atom.cas` starts with a plain load of
//! that value; LLVM emits such loops to update single bytes. The exchange checks the loaded value again, so the load
//! need not be ordered with other exchanges and is not a race.

use std::collections::HashSet;

use super::{Kernel, Op, Slot};

/// Marks the loads whose result a compare-and-swap uses only as its expected value.
pub(super) fn mark(kernel: &mut Kernel, exchanges: &[usize]) {
    let mut compared: HashSet<Slot> = exchanges
        .iter()
        .filter_map(|&at| match kernel.code[at].op {
            Op::Atomic { ab, .. } => Some(ab[0]),
            _ => None,
        })
        .collect();
    // Operands that a compared slot is computed from are compared as well.
    loop {
        let before = compared.len();
        for instruction in &kernel.code {
            match instruction.op {
                Op::Alu { d, abc, .. } | Op::Packed { d, abc, .. } | Op::Lop3 { d, abc, .. }
                    if compared.contains(&d) =>
                {
                    compared.extend(abc);
                }
                Op::Move { d, from } if compared.contains(&d) => {
                    compared.insert(from);
                }
                Op::Join { into, from, .. } if compared.contains(&into) => {
                    compared.extend(&kernel.lists[from.start as usize..][..from.count as usize]);
                }
                _ => {}
            }
        }
        if compared.len() == before {
            break;
        }
    }
    let Kernel { code, lists, .. } = kernel;
    for instruction in code {
        if let Op::Load { place, into } = &mut instruction.op {
            let slots = &lists[into.start as usize..][..into.count as usize];
            place.is_strong |= slots.iter().all(|slot| compared.contains(slot));
        }
    }
}
