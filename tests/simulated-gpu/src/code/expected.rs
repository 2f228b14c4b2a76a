//! Reads whose value an atomic exchange checks again.
//!
//! `atom.cas` stores only where memory still holds what was expected, and what is expected begins with a plain read:
//! LLVM makes such reads for updates of single bytes. Whatever such a read sees, the exchange sees better, so it need
//! not be ordered with other exchanges.

use std::collections::HashSet;

use super::{Kernel, Op, Slot};

/// Marks the loads of a kernel that a compare-and-swap uses only as its expected value.
pub(super) fn mark(kernel: &mut Kernel, exchanges: &[usize]) {
    let mut compared: HashSet<Slot> = exchanges
        .iter()
        .filter_map(|&at| match kernel.code[at].op {
            Op::Atomic { ab, .. } => Some(ab[0]),
            _ => None,
        })
        .collect();
    // Operands of a compared slot are compared as well.
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
