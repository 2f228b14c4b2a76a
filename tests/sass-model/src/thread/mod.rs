//! Follows one thread through machine code and counts how often it executes each instruction.
//!
//! Integers are computed where they depend on launch and constants alone; the trip counts of loops over arrays of fixed
//! size do. A jump that depends on data falls through, except around a call, which is a rare slow path. A loop whose
//! trip count depends on data runs once.

mod arithmetic;
mod operand;
mod state;

use std::collections::BTreeSet;

use operand::Operand;
pub use state::Launch;
use state::State;

use crate::loops::Loop;
use crate::sass::{Function, Instruction};

/// Maximum number of instructions to follow.
const MOST_STEPS: u64 = 20_000_000;

/// Execution counts of one thread.
#[derive(Debug)]
pub struct Trace {
    /// Count per instruction of the function.
    pub counts: Vec<u64>,
    /// Whether a trip count depends on data, so that counts are lower bounds.
    pub by_data: bool,
    /// Indices of other jumps that depend on data, without those around rare slow paths.
    pub guesses: BTreeSet<usize>,
}

pub fn follow(function: &Function, loops: &[Loop], launch: Launch) -> Trace {
    let mut walk = Walk {
        function,
        loops,
        operands: function.code.iter().map(operands).collect(),
        guards: function.code.iter().map(|i| i.guard.as_deref().map(Operand::parse)).collect(),
        state: State::new(launch),
        left: vec![false; function.code.len()],
        trace: Trace { counts: vec![0; function.code.len()], by_data: false, guesses: BTreeSet::new() },
    };
    walk.run();
    walk.trace
}

fn operands(instruction: &Instruction) -> Vec<Operand> {
    instruction.operands.iter().map(|text| Operand::parse(text)).collect()
}

struct Walk<'f> {
    function: &'f Function,
    loops: &'f [Loop],
    operands: Vec<Vec<Operand>>,
    guards: Vec<Option<Operand>>,
    state: State,
    /// For each loop exit that depends on data, whether the next visit leaves the loop.
    left: Vec<bool>,
    trace: Trace,
}

impl Walk<'_> {
    fn run(&mut self) {
        let code = &self.function.code;
        let mut place = 0;
        for _ in 0..MOST_STEPS {
            let Some(instruction) = code.get(place) else { return };
            self.trace.counts[place] += 1;
            let guard = match &self.guards[place] {
                Some(guard) => self.state.predicate(Some(guard)),
                None => Some(true),
            };
            place = match (instruction.base(), guard) {
                ("EXIT" | "RET", Some(true)) => return,
                ("BRX" | "JMX", _) => {
                    self.trace.by_data = true;
                    return;
                }
                ("BRA", guard) => match self.jumps(place, guard) {
                    true => instruction.target.unwrap_or(place + 1),
                    false => place + 1,
                },
                (_, Some(true)) => {
                    arithmetic::step(&mut self.state, instruction, &self.operands[place]);
                    place + 1
                }
                (_, None) => {
                    self.step_or_not(place);
                    place + 1
                }
                (_, Some(false)) => place + 1,
            };
        }
        self.trace.by_data = true;
    }

    /// Treats an instruction under an unknown guard: its results become unknown.
    fn step_or_not(&mut self, place: usize) {
        arithmetic::forget(&mut self.state, &self.function.code[place], &self.operands[place]);
    }

    fn jumps(&mut self, place: usize, guard: Option<bool>) -> bool {
        let instruction = &self.function.code[place];
        // Never, as the threads of a warp stay together, and the first one is the first that is done.
        if instruction.has("DIV") || instruction.has("ANY") {
            return false;
        }
        let condition = match self.operands[place].first() {
            Some(condition @ Operand::Predicate { .. }) => self.state.predicate(Some(condition)),
            _ => Some(true),
        };
        match (guard, condition, instruction.target) {
            (Some(false), ..) | (_, Some(false), _) | (.., None) => false,
            (Some(true), Some(true), _) => true,
            (_, _, Some(target)) => self.jumps_by_data(place, target),
        }
    }

    /// Whether a jump that depends on data is followed.
    fn jumps_by_data(&mut self, place: usize, target: usize) -> bool {
        if target <= place {
            self.trace.by_data = true;
            return false;
        }
        let leaves = self.loops.iter().any(|l| l.body.contains(&place) && !l.body.contains(&target));
        if leaves {
            self.trace.by_data = true;
            self.left[place] = !self.left[place];
            return !self.left[place];
        }
        let is_slow = self.function.code[place + 1..target].iter().any(|instruction| instruction.base() == "CALL");
        if !is_slow {
            self.trace.guesses.insert(place);
        }
        is_slow
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{loops::loops, sass};

    /// Counts of the instructions at some addresses, and whether data decides.
    fn counts(text: &str, addresses: &[u64]) -> (Vec<u64>, bool) {
        let function = sass::parse(text).unwrap().remove(0);
        let trace = follow(&function, &loops(&function), Launch { blocks: 512, threads: 128, thread: 0 });
        let at = |address: &u64| trace.counts[function.code.iter().position(|i| i.address == *address).unwrap()];
        (addresses.iter().map(at).collect(), trace.by_data)
    }

    #[test]
    fn loops_are_gone_through_as_often_as_their_counters_say() {
        assert_eq!(counts(include_str!("../samples/row.sass"), &[0x0, 0x70, 0x100]), (vec![1, 2, 1], false));
        assert_eq!(counts(include_str!("../samples/nested.sass"), &[0x20, 0x30]), (vec![3, 12], false));
    }

    #[test]
    fn barriers_in_shared_memory_do_not_end_loops() {
        // A bulk copy, a product of four warps, and the loop that waits.
        let boxes = counts(include_str!("../samples/boxes.sass"), &[0x230, 0x320, 0x3d0]);
        assert_eq!(boxes, (vec![32, 32, 0], false));
    }

    #[test]
    fn a_loop_that_data_ends_is_gone_through_once() {
        let text = "
            .section .text.k,\"ax\"
            .L_x_0:
            /*0000*/ LDG.E R0, desc[UR4][R2.64] ;
            /*0010*/ ISETP.NE.AND P0, PT, R0, 0x3, PT ;
            /*0020*/ @P0 BRA `(.L_x_0) ;
            /*0030*/ EXIT ;";
        assert_eq!(counts(text, &[0x0, 0x30]), (vec![1, 1], true));
    }

    #[test]
    fn slow_ways_are_jumped_over() {
        let text = "
            .section .text.k,\"ax\"
            /*0000*/ FCHK P0, R0, R1 ;
            /*0010*/ @!P0 BRA `(.L_x_0) ;
            /*0020*/ CALL.REL.NOINC `(slow) ;
            .L_x_0:
            /*0030*/ EXIT ;";
        assert_eq!(counts(text, &[0x20, 0x30]), (vec![0, 1], false));
    }
}
