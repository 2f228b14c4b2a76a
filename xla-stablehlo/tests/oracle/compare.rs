//! Graph comparison of two HLO modules, independent of names and of the order of the text.
//!
//! Instructions are divided into classes. Two are in one class if their text without names is equal, and their
//! operands, called computations and control predecessors are of equal classes. The class of a computation is that of
//! its root with the multiset of all its instructions. Both modules share the classes, so equal numbers mean equal
//! graphs.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use xla_hlo::ops::Op;
use xla_hlo::text::{PrintOptions, print_instruction};
use xla_hlo::{CompId, Computation, InstrId, Instruction, Metadata, Module, ProgramShape, StackTables};

/// Kinds of difference between two modules; all empty for equal ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// Lines of the header that only one module has, with `-` for the first and `+` for the second module.
    pub header: Vec<String>,
    /// Instructions without metadata that only one module has, with their number.
    pub instructions: Vec<String>,
    /// Instructions that differ only in their metadata, with it.
    pub metadata: Vec<String>,
    /// Whether equal instructions with equal metadata are connected differently.
    pub is_other_graph: bool,
}

impl Difference {
    /// Returns the names of the kinds that are set.
    pub fn kinds(&self) -> Vec<&'static str> {
        let kinds = [
            (!self.header.is_empty(), "header"),
            (!self.instructions.is_empty(), "instructions"),
            (!self.metadata.is_empty(), "metadata"),
            (self.is_other_graph, "graph"),
        ];
        kinds.into_iter().filter(|(is_set, _)| *is_set).map(|(_, name)| name).collect()
    }
}

/// Compares two modules.
pub fn compare(first: &Module, second: &Module) -> Difference {
    let devices = |module: &Module| [module.attributes().replica_count, module.attributes().num_partitions];
    let mut headers = [header(first), header(second)];
    // XLA's client sets them when it compiles.
    if devices(second) != [0, 0] {
        for (header, module) in headers.iter_mut().zip([first, second]) {
            header.insert(format!("replicas and partitions {:?}", devices(module).map(|count| count.max(1))), 1);
        }
    }
    let mut difference = Difference { header: differing(&headers[0], &headers[1]), ..Difference::default() };
    let mut classes = Classes::default();
    let bare = [first, second].map(|module| classes.of_module(module, false));
    difference.instructions = differing(&bare[0].instructions, &bare[1].instructions);
    if difference.instructions.is_empty() {
        let full = [first, second].map(|module| classes.of_module(module, true));
        difference.metadata = differing(&full[0].instructions, &full[1].instructions);
        let [a, b] = if difference.metadata.is_empty() { full } else { bare };
        difference.is_other_graph = a.entry != b.entry;
    }
    difference
}

type Multiset = BTreeMap<String, usize>;

/// Returns the lines that are more frequent in the first, with `-`, and in the second, with `+`.
fn differing(first: &Multiset, second: &Multiset) -> Vec<String> {
    let mut lines = Vec::new();
    let mut add = |sign: char, of: &Multiset, other: &Multiset| {
        for (text, &count) in of {
            let more = count.saturating_sub(other.get(text).copied().unwrap_or(0));
            if more > 0 {
                lines.push(format!("{sign}{more} {text}"));
            }
        }
    };
    add('-', first, second);
    add('+', second, first);
    lines
}

/// Returns everything before the computations except for the stack tables, to which metadata refers.
fn header(module: &Module) -> Multiset {
    let attributes = module.attributes();
    let ProgramShape { parameters, result } = module.entry_layout();
    let mut lines = Multiset::new();
    let mut line = |text: String| *lines.entry(text).or_default() += 1;
    line(format!("module {}", module.name()));
    for (i, parameter) in parameters.iter().enumerate() {
        line(format!("parameter {i}: {parameter}"));
    }
    // XLA's client makes it row-major when it compiles.
    line(format!("result: {}", result.without_layout()));
    attributes.input_output_alias.iter().for_each(|alias| line(format!("{alias:?}")));
    attributes.buffer_donors.iter().for_each(|donor| line(format!("donor {donor:?}")));
    line(format!("propagation to parameters {:?}", attributes.allow_spmd_sharding_propagation_to_parameters));
    line(format!("propagation to outputs {:?}", attributes.allow_spmd_sharding_propagation_to_output));
    for (name, value) in &attributes.frontend_attributes {
        line(format!("frontend attribute {name}={value}"));
    }
    lines
}

struct Summary {
    /// Class of the entry.
    entry: usize,
    /// Texts of all instructions that the entry reaches.
    instructions: Multiset,
}

/// Numbers of texts with parts, which are equal for equal text and parts.
#[derive(Default)]
struct Classes(HashMap<(String, Vec<usize>), usize>);

impl Classes {
    fn number(&mut self, text: String, parts: Vec<usize>) -> usize {
        let next = self.0.len();
        *self.0.entry((text, parts)).or_insert(next)
    }

    fn of_module(&mut self, module: &Module, with_metadata: bool) -> Summary {
        let mut instructions = Multiset::new();
        let mut computations: HashMap<CompId, usize> = HashMap::new();
        for id in reached(module) {
            let class = self.of_computation(module, id, with_metadata, &computations, &mut instructions);
            computations.insert(id, class);
        }
        Summary { entry: computations[&module.entry_id()], instructions }
    }

    fn of_computation(
        &mut self,
        module: &Module,
        id: CompId,
        with_metadata: bool,
        computations: &HashMap<CompId, usize>,
        texts: &mut Multiset,
    ) -> usize {
        let computation = &module[id];
        let mut known: HashMap<InstrId, usize> = HashMap::new();
        for id in computation.post_order() {
            let instruction = &computation[id];
            // MLIR merges constants; which of them keep their metadata depends on their position in the program.
            let text = text(module, instruction, with_metadata && !is_constant(computation, instruction));
            *texts.entry(text.clone()).or_default() += 1;
            let callees = instruction.op().called_computations().into_iter().map(|callee| computations[&callee]);
            let around = instruction.operands().iter().chain(instruction.control_predecessors());
            let parts = around.map(|id| known[id]).chain(callees).collect();
            known.insert(id, self.number(text, parts));
        }
        let root = known[&computation.root()];
        let mut parts: Vec<usize> = known.into_values().collect();
        parts.sort_unstable();
        parts.push(root);
        self.number(format!("computation on {}", computation.execution_thread()), parts)
    }
}

/// Returns the computations that the entry reaches, callees first.
fn reached(module: &Module) -> Vec<CompId> {
    let mut wanted = vec![module.entry_id()];
    let mut next = 0;
    while let Some(&id) = wanted.get(next) {
        let callees: Vec<CompId> = module.callees(id).into_iter().filter(|id| !wanted.contains(id)).collect();
        wanted.extend(callees);
        next += 1;
    }
    module.post_order().into_iter().filter(|id| wanted.contains(id)).collect()
}

/// Whether an instruction is a constant, or a broadcast of one.
fn is_constant(computation: &Computation, instruction: &Instruction) -> bool {
    let of = match (instruction.op(), instruction.operands()) {
        (Op::Broadcast(_), &[operand]) => computation[operand].op(),
        (op, _) => op,
    };
    matches!(of, Op::Constant(_))
}

/// Returns an instruction as text without names; stack frames are expanded.
fn text(module: &Module, instruction: &Instruction, with_metadata: bool) -> String {
    let mut scratch = Module::new("");
    let callee = scratch.add(Computation::new("f"));
    let mut computation = Computation::new("c");
    let mut annotations = instruction.annotations().cloned().unwrap_or_default();
    let frame = std::mem::take(&mut annotations.metadata.stack_frame_id);
    annotations.metadata.payload.push_str(&frames(&module.attributes().stack, frame));
    if !with_metadata {
        annotations.metadata = Metadata::default();
    }
    let nameless = Instruction::new(instruction.op().clone(), instruction.shape().clone(), []);
    let id = computation.add(nameless.with_name("x").with_annotations(Some(Box::new(annotations))));
    computation.map_called_computations(&mut |_| callee);
    let computation = scratch.add(computation);
    print_instruction(&scratch, computation, id, &PrintOptions::default()).split_off("%x = ".len())
}

/// Returns a stack frame and its callers, `function file:line:column` each. Locations with a common start have the end
/// of the first of them.
fn frames(stack: &StackTables, mut frame: i64) -> String {
    let mut text = String::new();
    let at = |id: i64| usize::try_from(id).ok()?.checked_sub(1);
    let name = |names: &[String], id| at(id).and_then(|i| names.get(i).cloned()).unwrap_or_default();
    // A chain is at most as long as the table.
    for _ in 0..=stack.stack_frames.len() {
        let Some(found) = at(frame).and_then(|i| stack.stack_frames.get(i)) else { break };
        if let Some(place) = at(found.file_location_id).and_then(|i| stack.file_locations.get(i)) {
            let function = name(&stack.function_names, place.function_name_id);
            let file = name(&stack.file_names, place.file_name_id);
            // Writing to a `String` cannot fail.
            let _ = write!(text, "{function} {file}:{}:{}; ", place.line, place.column);
        }
        frame = found.parent_frame_id;
    }
    text
}
