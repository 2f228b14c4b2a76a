//! Registers of pending wgmma: reading one before `wgmma.wait_group` is an error.

use crate::code::{Kernel, Op, Slot};
use crate::finding::{Class, Problem};

/// wgmma group that writes each register of a thread (0 for none), and the latest completed group.
pub(super) struct Marks<'a> {
    pub groups: &'a mut [u32],
    pub done: u32,
}

impl Marks<'_> {
    /// Checks the registers that an instruction reads, and propagates marks through moves.
    pub fn pass(&mut self, kernel: &Kernel, op: &Op) -> Result<(), Problem> {
        match *op {
            Op::Move { d, from } => self.groups[d as usize] = self.groups[from as usize],
            Op::Split { from, into, .. } => {
                let mark = self.groups[from as usize];
                kernel.list(into).iter().for_each(|&part| self.groups[part as usize] = mark);
            }
            Op::Join { into, from, .. } => {
                let mark = kernel.list(from).iter().map(|&part| self.groups[part as usize]).max();
                self.groups[into as usize] = mark.unwrap_or(0);
            }
            _ => {
                let touched = kernel.touched(op);
                if touched.reads.iter().any(|&slot| self.is_pending(slot)) {
                    let message =
                        "the thread reads a register of a wgmma that no wgmma.wait_group has been executed for";
                    return Err(Problem::new(Class::Race, message));
                }
                touched.writes.iter().for_each(|&slot| self.groups[slot as usize] = 0);
            }
        }
        Ok(())
    }

    fn is_pending(&self, slot: Slot) -> bool {
        self.groups[slot as usize] > self.done
    }
}
