//! Cost analysis: arithmetic and memory traffic of each instruction, each computation and the module.
//!
//! Flops count operations on elements of any type: an addition is 1 flop and a multiply-add is 2. An exponential is one
//! transcendental. Bytes are the memory traffic of an instruction if no data stays in a cache. Inside a fusion they are
//! zero, a slice counts only the elements that it selects, and an in-place update counts only the update. A loop's cost
//! is multiplied by its trip count if that is known; a conditional costs as much as its most expensive branch. The
//! arithmetic of library calls (custom calls) is unknown. Random bits count as one operation per value.

use std::fmt;

use serde::Serialize;
use xla_hlo::entity::SecondaryMap;
use xla_hlo::ops::CallContext;
use xla_hlo::{CompId, Computation, InstrId, Module, Op, Shape};

use super::op_cost::{Arithmetic, arithmetic};
use crate::analysis::alias::role::{Role, role};
use crate::analysis::trip_count::trip_count;

/// Cost in operations and bytes of memory traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cost {
    /// Operations on single elements, excluding transcendental ones.
    pub flops: u64,
    /// Exponentials, roots, trigonometric functions and powers of single elements.
    pub transcendentals: u64,
    /// Bytes read from memory.
    pub bytes_read: u64,
    /// Bytes written to memory.
    pub bytes_written: u64,
}

/// Cost of one instruction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InstructionCost {
    /// Name of the instruction.
    pub name: String,
    /// Opcode of the instruction.
    pub opcode: &'static str,
    /// Number of iterations of a loop; `None` for other instructions and if it is unknown, which counts as 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trip_count: Option<u64>,
    /// Cost of one execution, including called computations.
    #[serde(flatten)]
    pub cost: Cost,
}

/// Cost of a computation that runs as a program: the entry, a loop's body or a branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ComputationCost {
    /// Name of the computation.
    pub name: String,
    /// Number of executions per run of the program. Each branch counts as taken, and a loop of unknown trip count
    /// counts once.
    pub runs: u64,
    /// Cost of one execution.
    pub total: Cost,
    /// Instructions with a nonzero cost, in order.
    pub instructions: Vec<InstructionCost>,
}

/// Costs of a module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CostAnalysis {
    /// Name of the module.
    pub module: String,
    /// Cost of one run of the program.
    pub total: Cost,
    /// Computations that run as programs, the entry last.
    pub computations: Vec<ComputationCost>,
    /// Loops of unknown trip count, counted as one iteration.
    pub unknown_loops: Vec<String>,
}

impl Cost {
    /// Returns the sum of bytes read and written.
    pub fn bytes(&self) -> u64 {
        self.bytes_read.saturating_add(self.bytes_written)
    }

    /// Returns the arithmetic in flops; a transcendental function counts as 8.
    pub fn operations(&self) -> u64 {
        self.arithmetic().operations()
    }

    fn of(arithmetic: Arithmetic) -> Cost {
        Cost { flops: arithmetic.flops, transcendentals: arithmetic.transcendentals, ..Cost::default() }
    }

    fn arithmetic(self) -> Arithmetic {
        Arithmetic { flops: self.flops, transcendentals: self.transcendentals }
    }

    fn zip(self, other: Cost, f: impl Fn(u64, u64) -> u64) -> Cost {
        Cost {
            flops: f(self.flops, other.flops),
            transcendentals: f(self.transcendentals, other.transcendentals),
            bytes_read: f(self.bytes_read, other.bytes_read),
            bytes_written: f(self.bytes_written, other.bytes_written),
        }
    }

    fn plus(self, other: Cost) -> Cost {
        self.zip(other, u64::saturating_add)
    }

    fn times(self, n: u64) -> Cost {
        self.zip(self, |a, _| a.saturating_mul(n))
    }
}

/// Computes the costs of a module in linear time.
pub fn analyze(module: &Module) -> CostAnalysis {
    let mut analyzer = Analyzer { module, runs: SecondaryMap::default(), unknown_loops: Vec::new() };
    let mut computations = Vec::new();
    let times = times(module);
    for id in module.post_order() {
        let (total, instructions) = analyzer.computation(id);
        analyzer.runs[id] = total;
        if times[id] > 0 {
            let name = module[id].name().to_string();
            computations.push(ComputationCost { name, runs: times[id], total, instructions });
        }
    }
    let total = module.entry_if_set().map(|entry| analyzer.runs[entry]).unwrap_or_default();
    let unknown_loops = analyzer.unknown_loops;
    CostAnalysis { module: module.name().to_string(), total, computations, unknown_loops }
}

/// Cost queries for single instructions, called computations included.
pub struct Costs<'m>(Analyzer<'m>);

impl<'m> Costs<'m> {
    /// Analyzes all computations once, in linear time.
    pub fn new(module: &'m Module) -> Costs<'m> {
        let mut analyzer = Analyzer { module, runs: SecondaryMap::default(), unknown_loops: Vec::new() };
        for id in module.post_order() {
            analyzer.runs[id] = analyzer.computation(id).0;
        }
        Costs(analyzer)
    }

    /// Returns the cost of one execution of an instruction.
    pub fn of(&mut self, computation: CompId, id: InstrId) -> Cost {
        self.0.instruction(computation, id).0
    }
}

/// Returns the number of executions of each computation per run of the program; 0 for computations that never run as
/// one.
pub(crate) fn times(module: &Module) -> SecondaryMap<CompId, u64> {
    let mut times = SecondaryMap::new(0u64);
    if let Some(entry) = module.entry_if_set() {
        times[entry] = 1;
    }
    // Callers are visited before callees.
    for id in module.post_order().into_iter().rev() {
        for (instruction, i) in module[id].iter().filter(|(_, i)| i.op().call_context() == CallContext::Control) {
            let iterations = trip_count(module, id, instruction).unwrap_or(1);
            for callee in i.op().called_computations() {
                times[callee] = times[callee].saturating_add(times[id].saturating_mul(iterations));
            }
        }
    }
    times
}

struct Analyzer<'m> {
    module: &'m Module,
    /// Cost of one execution of each analyzed computation; callees come first.
    runs: SecondaryMap<CompId, Cost>,
    unknown_loops: Vec<String>,
}

impl Analyzer<'_> {
    fn computation(&mut self, id: CompId) -> (Cost, Vec<InstructionCost>) {
        let computation = &self.module[id];
        let mut total = Cost::default();
        let mut instructions = Vec::new();
        for instruction in computation.sequence() {
            let (cost, trip_count) = self.instruction(id, instruction);
            total = total.plus(cost);
            if cost != Cost::default() {
                let (name, opcode) = (computation[instruction].name(), computation[instruction].opcode().name());
                instructions.push(InstructionCost { name: name.to_string(), opcode, trip_count, cost });
            }
        }
        (total, instructions)
    }

    fn instruction(&mut self, id: CompId, instruction: InstrId) -> (Cost, Option<u64>) {
        let computation = &self.module[id];
        let op = computation[instruction].op();
        let callees = op.called_computations();
        let runs = callees.iter().map(|&c| self.runs[c]);
        match (op.call_context(), op) {
            (CallContext::Control, Op::While(_)) => {
                let trips = trip_count(self.module, id, instruction);
                if trips.is_none() {
                    self.unknown_loops.push(computation[instruction].name().to_string());
                }
                (runs.fold(Cost::default(), Cost::plus).times(trips.unwrap_or(1)), trips)
            }
            (CallContext::Control, Op::Conditional(_)) => (runs.fold(Cost::default(), |a, b| a.zip(b, u64::max)), None),
            (CallContext::Control, _) => (runs.fold(Cost::default(), Cost::plus), None),
            (CallContext::Fusion, _) => {
                let body = runs.fold(Cost::default(), Cost::plus).arithmetic();
                let (bytes_read, bytes_written) = self.fusion_bytes(computation, instruction);
                (Cost { bytes_read, bytes_written, ..Cost::of(body) }, None)
            }
            (CallContext::Embedded | CallContext::None, _) => {
                let embedded = runs.fold(Arithmetic::default(), |sum, run| sum.plus(run.arithmetic()));
                let (bytes_read, bytes_written) = bytes(computation, instruction);
                (Cost { bytes_read, bytes_written, ..Cost::of(arithmetic(computation, instruction, embedded)) }, None)
            }
        }
    }

    /// Returns the bytes that a fusion reads from its operands and the bytes that it writes.
    fn fusion_bytes(&self, computation: &Computation, fusion: InstrId) -> (u64, u64) {
        let Op::Fusion(op) = computation[fusion].op() else { return (0, 0) };
        let body = &self.module[op.computation];
        let read = body.parameters().iter().map(|&parameter| {
            let whole = byte_size(body[parameter].shape());
            let part = |&user: &InstrId| part_read(body, user, parameter).unwrap_or(whole);
            body[parameter].users().iter().map(part).fold(0, u64::saturating_add).min(whole)
        });
        let root = &body[body.root()];
        let results = if matches!(root.op(), Op::Tuple(_)) { root.operands().to_vec() } else { vec![body.root()] };
        let written = results.into_iter().map(|result| match body[result].op() {
            Op::DynamicUpdateSlice(_) => byte_size(body[body[result].operand(1)].shape()),
            _ => byte_size(body[result].shape()),
        });
        (read.fold(0, u64::saturating_add), written.fold(0, u64::saturating_add))
    }
}

fn byte_size(shape: &Shape) -> u64 {
    shape.leaves().iter().map(|(_, leaf)| leaf.byte_size() as u64).fold(0, u64::saturating_add)
}

/// Returns the bytes that an operation reads from an operand if it reads only a part of it.
fn part_read(computation: &Computation, user: InstrId, operand: InstrId) -> Option<u64> {
    let instruction = &computation[user];
    let first_alone = instruction.operand(0) == operand && instruction.operands()[1..].iter().all(|&o| o != operand);
    match instruction.op() {
        Op::Slice(_) | Op::DynamicSlice(_) | Op::Gather(_) if first_alone => Some(byte_size(instruction.shape())),
        // Elements outside of the update are not moved.
        Op::DynamicUpdateSlice(_) if first_alone => Some(0),
        _ => None,
    }
}

/// Returns the bytes that an operation outside of fusions reads and writes.
fn bytes(computation: &Computation, id: InstrId) -> (u64, u64) {
    let instruction = &computation[id];
    let size = |id: InstrId| byte_size(computation[id].shape());
    let operands = instruction.operands();
    let all = || operands.iter().map(|&o| part_read(computation, id, o).unwrap_or_else(|| size(o)));
    let read = || all().fold(0, u64::saturating_add);
    let written = byte_size(instruction.shape());
    match (role(computation, id), instruction.op()) {
        (Role::Compute, Op::DynamicUpdateSlice(_)) => (read(), size(operands[1])),
        // Each updated element is read and written.
        (Role::Compute, Op::Scatter(_)) => {
            let arrays = operands.len() / 2;
            let updates = operands[arrays + 1..].iter().map(|&o| size(o)).fold(0, u64::saturating_add);
            (updates.saturating_mul(2).saturating_add(size(operands[arrays])), updates)
        }
        (Role::Compute, _) => (read(), written),
        // These only rename existing bytes; called computations count their own bytes.
        (Role::Parameter(_) | Role::Constant | Role::Forward | Role::First | Role::Element(_), _)
        | (Role::While { .. } | Role::Conditional(_) | Role::Call(_), _) => (0, 0),
    }
}

/// Prints a table: the total, then each computation with its most expensive instructions by bytes and arithmetic.
impl fmt::Display for CostAnalysis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |f: &mut fmt::Formatter<'_>, cost: &Cost, what: &str| {
            let Cost { flops, transcendentals, bytes_read, bytes_written } = cost;
            writeln!(f, "{flops:>16} {transcendentals:>16} {bytes_read:>14} {bytes_written:>14}  {what}")
        };
        writeln!(f, "cost of {}", self.module)?;
        writeln!(f, "{:>16} {:>16} {:>14} {:>14}", "flops", "transcendentals", "bytes read", "bytes written")?;
        line(f, &self.total, "one run")?;
        for name in &self.unknown_loops {
            writeln!(f, "the trip count of %{name} is unknown; it counts as one")?;
        }
        for computation in self.computations.iter().rev() {
            let times = if computation.runs == 1 { "once".to_string() } else { format!("{} times", computation.runs) };
            writeln!(f, "\n%{}, run {times}", computation.name)?;
            let mut most_expensive: Vec<&InstructionCost> = computation.instructions.iter().collect();
            most_expensive.sort_by_key(|i| std::cmp::Reverse(i.cost.bytes().saturating_add(i.cost.flops)));
            for InstructionCost { name, opcode, trip_count, cost } in most_expensive {
                let times = trip_count.map_or(String::new(), |n| format!(", {n} iterations"));
                line(f, cost, &format!("%{name} {opcode}{times}"))?;
            }
            line(f, &computation.total, "in all")?;
        }
        Ok(())
    }
}
