//! Dataflow: the value in each leaf of each instruction's result, as buffer assignment models it.
//!
//! Tuples, their elements, barriers and bitcasts forward the values of their operands; only instructions that compute
//! something define a value. A *join* is a value of its own into which other values flow where control flow meets. A
//! loop's state that every iteration passes on unchanged is no join but an alias of its initial value.

use std::collections::HashMap;
use std::fmt;

use serde::Serialize;
use xla_hlo::entity::SecondaryMap;
use xla_hlo::{CompId, Error, InstrId, Module, Op, Result};

use crate::analysis::alias::ValueRef;
use crate::analysis::alias::flow::{Flow, ValueId, ValueKind};

/// Kind of definition of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Maker {
    /// A leaf of a parameter of the program.
    Parameter,
    /// A leaf of a constant.
    Constant,
    /// Written by an instruction.
    Computed,
    /// A loop's state or a conditional's result.
    Join,
}

/// A value of the module, as buffer assignment models it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FlowValue {
    /// Text `%name{path} of %computation` of the definition; for a join, of the while or conditional.
    pub value: String,
    /// Definition as a reference into the module.
    #[serde(skip)]
    pub origin: ValueRef,
    /// Kind of instruction that defines the value.
    pub made_by: Maker,
    /// Size in bytes; 0 for tokens and opaque values, which have no memory.
    pub bytes: usize,
    /// Indices of the values that flow into a join.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<usize>,
}

/// Values in the leaves of one instruction's result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InstructionFlow {
    /// The instruction.
    #[serde(skip)]
    pub id: InstrId,
    /// Name of the instruction.
    pub name: String,
    /// Index of the value in each leaf, depth first.
    pub leaves: Vec<usize>,
}

/// Values of the instructions of a computation that runs as a program: the entry, a loop's body or a branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ComputationFlow {
    /// The computation.
    #[serde(skip)]
    pub id: CompId,
    /// Name of the computation.
    pub name: String,
    /// Instructions in order.
    pub instructions: Vec<InstructionFlow>,
}

/// Dataflow of a module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Dataflow {
    /// Name of the module.
    pub module: String,
    /// Values; other fields refer to them by index into this list.
    pub values: Vec<FlowValue>,
    /// Computations that run as programs, callees before callers.
    pub computations: Vec<ComputationFlow>,
}

/// Computes the dataflow of a module, in time linear in the leaves of its instructions.
///
/// Errors: [`Error::FailedPrecondition`] if a computation has several callers (see
/// [`FlattenCallGraph`](crate::FlattenCallGraph)) or the module has no entry, [`Error::Unimplemented`] for control flow
/// that is nested too deeply.
pub fn analyze(module: &Module) -> Result<Dataflow> {
    if module.entry_if_set().is_none() {
        return Err(Error::failed_precondition("the module has no entry computation"));
    }
    let flow = Flow::new(module)?;
    let mut numbers = Numbers { flow: &flow, module, of: HashMap::new(), values: Vec::new() };
    let mut computations = Vec::with_capacity(flow.executed().len());
    for &id in flow.executed() {
        let computation = &module[id];
        let instructions = computation.sequence().into_iter().map(|instruction| InstructionFlow {
            id: instruction,
            name: computation[instruction].name().to_string(),
            leaves: flow.leaves(id, instruction).iter().map(|&leaf| numbers.of(leaf)).collect(),
        });
        let instructions = instructions.collect();
        computations.push(ComputationFlow { id, name: computation.name().to_string(), instructions });
    }
    numbers.sources()?;
    Ok(Dataflow { module: module.name().to_string(), values: numbers.values, computations })
}

impl Dataflow {
    /// Returns the values of each instruction's leaves as a map, for callers that look up many instructions.
    /// Instructions that do not run have no entry.
    pub fn by_instruction(&self) -> SecondaryMap<CompId, HashMap<InstrId, &[usize]>> {
        let mut map: SecondaryMap<CompId, HashMap<InstrId, &[usize]>> = SecondaryMap::default();
        for computation in &self.computations {
            map[computation.id] = computation.instructions.iter().map(|i| (i.id, &i.leaves[..])).collect();
        }
        map
    }
}

/// Assigns indices to the values that leaves hold, except values that simplification replaced.
struct Numbers<'m> {
    flow: &'m Flow,
    module: &'m Module,
    of: HashMap<ValueId, usize>,
    values: Vec<FlowValue>,
}

impl Numbers<'_> {
    fn of(&mut self, id: ValueId) -> usize {
        let next = self.values.len();
        let number = *self.of.entry(id).or_insert(next);
        if number == next {
            let value = self.flow.value(id);
            let made_by = match value.kind {
                ValueKind::Parameter(_) => Maker::Parameter,
                ValueKind::Constant => Maker::Constant,
                ValueKind::Computed => Maker::Computed,
                ValueKind::Join => Maker::Join,
            };
            self.values.push(FlowValue {
                value: named(self.module, &value.origin),
                origin: value.origin.clone(),
                made_by,
                bytes: value.bytes,
                sources: Vec::new(),
            });
        }
        number
    }

    /// Fills in the sources of all joins.
    fn sources(&mut self) -> Result<()> {
        for &id in self.flow.executed() {
            for (instruction, i) in self.module[id].iter() {
                if !matches!(i.op(), Op::While(_) | Op::Conditional(_)) {
                    continue;
                }
                let joins = self.flow.joins(id, instruction)?;
                for (leaf, &result) in joins.results.iter().enumerate() {
                    let number = self.of(result);
                    let origin = &self.values[number].origin;
                    if (origin.computation, origin.instruction) != (id, instruction) {
                        continue;
                    }
                    let from: Vec<ValueId> = joins.sources.iter().filter_map(|s| s.get(leaf).copied()).collect();
                    let mut from: Vec<usize> = from.into_iter().map(|source| self.of(source)).collect();
                    from.dedup();
                    self.values[number].sources = from;
                }
            }
        }
        Ok(())
    }
}

/// Formats a value as `%name{path} of %computation`.
fn named(module: &Module, value: &ValueRef) -> String {
    let computation = &module[value.computation];
    let path: Vec<String> = value.path.iter().map(usize::to_string).collect();
    let path = if path.is_empty() { String::new() } else { format!("{{{}}}", path.join(",")) };
    format!("%{}{path} of %{}", computation[value.instruction].name(), computation.name())
}

/// Prints the values, then each computation with the values of its instructions, the entry first.
impl fmt::Display for Dataflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |numbers: &[usize]| numbers.iter().map(|n| format!("#{n}")).collect::<Vec<_>>().join(", ");
        writeln!(f, "dataflow of {}", self.module)?;
        for (number, FlowValue { value, made_by, bytes, sources, .. }) in self.values.iter().enumerate() {
            let how = match made_by {
                Maker::Parameter => "parameter".to_string(),
                Maker::Constant => "constant".to_string(),
                Maker::Computed => "computed".to_string(),
                Maker::Join => format!("joins {}", list(sources)),
            };
            writeln!(f, "{:>6} {bytes:>12} bytes  {value}, {how}", format!("#{number}"))?;
        }
        for computation in self.computations.iter().rev() {
            writeln!(f, "\n%{}", computation.name)?;
            for instruction in &computation.instructions {
                writeln!(f, "  %{} holds {}", instruction.name, list(&instruction.leaves))?;
            }
        }
        Ok(())
    }
}
