//! Call graph: computations, their callers, and their execution contexts.

use std::fmt;

use serde::{Serialize, Serializer};
use xla_hlo::entity::SecondaryMap;
use xla_hlo::ops::CallContext;
use xla_hlo::{CompId, InstrId, Module};

/// Execution context of a computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RunAs {
    /// Program: the computation is the entry.
    Entry,
    /// Control flow: a loop's body, a branch or a called computation.
    Control,
    /// Embedded function that an operation applies to elements: a combiner or a comparator.
    Embedded,
    /// Fusion body, compiled as one kernel.
    Fusion,
    /// Several of these contexts.
    Several,
    /// Dead: no instruction that runs calls the computation.
    Never,
}

fn context_name<S: Serializer>(context: &CallContext, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(context.name())
}

/// Call site: an instruction that calls computations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CallSite {
    /// The instruction.
    #[serde(skip)]
    pub id: InstrId,
    /// Name of the instruction.
    pub instruction: String,
    /// Opcode of the instruction.
    pub opcode: &'static str,
    /// Execution context of the callees.
    #[serde(serialize_with = "context_name")]
    pub context: CallContext,
    /// Called computations in the order of the attributes. A computation that is named twice occurs twice.
    #[serde(skip)]
    pub callees: Vec<CompId>,
    /// Names of the called computations.
    #[serde(rename = "callees")]
    pub callee_names: Vec<String>,
}

/// A computation and its position in the call graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CallGraphNode {
    /// The computation.
    #[serde(skip)]
    pub id: CompId,
    /// Name of the computation.
    pub name: String,
    /// Number of instructions.
    pub instructions: usize,
    /// Execution context of the computation.
    pub runs_as: RunAs,
    /// Length of the longest call chain from the entry; `None` for computations that never run.
    pub depth: Option<usize>,
    /// Number of calls by instructions that run.
    pub call_count: usize,
    /// Callers without duplicates.
    #[serde(skip)]
    pub callers: Vec<CompId>,
    /// Names of the callers.
    #[serde(rename = "callers")]
    pub caller_names: Vec<String>,
    /// Calls in the order of the instructions.
    pub calls: Vec<CallSite>,
}

/// The call graph of a module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CallGraph {
    /// Name of the module.
    pub module: String,
    /// Whether each computation that runs as a program or a kernel has one call site. Buffer assignment requires this.
    pub is_flat: bool,
    /// All computations, callees before callers.
    pub computations: Vec<CallGraphNode>,
    #[serde(skip)]
    places: Places,
}

/// Position of each computation in the list.
#[derive(Clone, Debug, Default)]
struct Places(SecondaryMap<CompId, Option<usize>>);

impl PartialEq for Places {
    /// Returns true, since the positions follow from the list of computations.
    fn eq(&self, _: &Places) -> bool {
        true
    }
}

impl Eq for Places {}

impl CallGraph {
    /// Returns the node of a computation; `None` if it belongs to another module.
    pub fn node(&self, id: CompId) -> Option<&CallGraphNode> {
        self.places.0[id].map(|place| &self.computations[place])
    }
}

/// Computes the call graph of a module in linear time.
pub fn analyze(module: &Module) -> CallGraph {
    let order = module.post_order();
    let mut places = SecondaryMap::default();
    order.iter().enumerate().for_each(|(place, &id)| places[id] = Some(place));
    let mut computations: Vec<CallGraphNode> = order.iter().map(|&id| node(module, id)).collect();
    if let Some(entry) = module.entry_if_set().and_then(|entry| places[entry]) {
        computations[entry].runs_as = RunAs::Entry;
        computations[entry].depth = Some(0);
    }
    // Callers are visited before callees.
    for caller in (0..computations.len()).rev() {
        let Some(depth) = computations[caller].depth else { continue };
        let (id, name) = (computations[caller].id, computations[caller].name.clone());
        let calls = std::mem::take(&mut computations[caller].calls);
        for (site, callee) in calls.iter().flat_map(|site| site.callees.iter().map(move |&callee| (site, callee))) {
            let Some(place) = places[callee] else { continue };
            let node = &mut computations[place];
            node.runs_as = node.runs_as.and(site.context);
            node.depth = node.depth.max(Some(depth + 1));
            node.call_count += 1;
            if node.callers.last() != Some(&id) {
                node.callers.push(id);
                node.caller_names.push(name.clone());
            }
        }
        computations[caller].calls = calls;
    }
    let is_alone = |node: &CallGraphNode| match node.runs_as {
        RunAs::Entry => node.call_count == 0,
        RunAs::Control | RunAs::Fusion => node.call_count == 1,
        RunAs::Embedded | RunAs::Never => true,
        RunAs::Several => false,
    };
    let is_flat = computations.iter().all(is_alone);
    CallGraph { module: module.name().to_string(), is_flat, computations, places: Places(places) }
}

impl RunAs {
    /// Combines the context with a further one.
    fn and(self, context: CallContext) -> RunAs {
        let other = match context {
            CallContext::None => return self,
            CallContext::Control => RunAs::Control,
            CallContext::Embedded => RunAs::Embedded,
            CallContext::Fusion => RunAs::Fusion,
        };
        if self == RunAs::Never || self == other { other } else { RunAs::Several }
    }
}

/// Returns the node of a computation without its callers.
fn node(module: &Module, id: CompId) -> CallGraphNode {
    let computation = &module[id];
    let mut calls = Vec::new();
    for instruction in computation.sequence() {
        let op = computation[instruction].op();
        let callees = op.called_computations();
        if !callees.is_empty() {
            calls.push(CallSite {
                id: instruction,
                instruction: computation[instruction].name().to_string(),
                opcode: op.opcode().name(),
                context: op.call_context(),
                callee_names: callees.iter().map(|&callee| module[callee].name().to_string()).collect(),
                callees,
            });
        }
    }
    CallGraphNode {
        id,
        name: computation.name().to_string(),
        instructions: computation.len(),
        runs_as: RunAs::Never,
        depth: None,
        call_count: 0,
        callers: Vec::new(),
        caller_names: Vec::new(),
        calls,
    }
}

/// Prints the computations, callers first, each with its calls.
impl fmt::Display for CallGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flat = if self.is_flat { "flat" } else { "not flat" };
        writeln!(f, "call graph of {}: {} computations, {flat}", self.module, self.computations.len())?;
        for node in self.computations.iter().rev() {
            let how = match node.runs_as {
                RunAs::Entry => "the entry".to_string(),
                RunAs::Control => format!("control, {}", times(node.call_count)),
                RunAs::Embedded => format!("embedded, {}", times(node.call_count)),
                RunAs::Fusion => format!("fusion, {}", times(node.call_count)),
                RunAs::Several => format!("run in several contexts, {}", times(node.call_count)),
                RunAs::Never => "never run".to_string(),
            };
            writeln!(f, "\n%{}, {} instructions: {how}", node.name, node.instructions)?;
            for site in &node.calls {
                let callees: Vec<String> = site.callee_names.iter().map(|name| format!("%{name}")).collect();
                writeln!(f, "  %{} {} calls {}", site.instruction, site.opcode, callees.join(", "))?;
            }
        }
        Ok(())
    }
}

fn times(count: usize) -> String {
    if count == 1 { "called once".to_string() } else { format!("called {count} times") }
}
