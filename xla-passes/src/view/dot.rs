//! Graphviz view of a module: computations and fusions as clusters.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt::Write as _;

use xla_hlo::entity::EntityId as _;
use xla_hlo::ops::CallContext;
use xla_hlo::{CompId, InstrId, Module, Op};

use super::label::{color, is_inlined, label};

/// Maximum depth of nested fusions that are drawn.
const DEPTH: usize = 64;

/// Returns the graph's text. Each computation is a cluster that is drawn once: the body of a fusion in place of the
/// fusion, other computations next to each other, with dashed lines from their callers.
pub fn dot(module: &Module) -> String {
    let mut writer = DotWriter { module, out: String::new(), bodies: HashMap::new(), beside: Vec::new() };
    writer.plan();
    writer.line(0, &format!("digraph {} {{", quoted(module.name())));
    writer.line(1, "graph [compound=true, fontname=\"Helvetica\", labeljust=l, ranksep=0.35, nodesep=0.2];");
    writer.line(
        1,
        "node [shape=box, style=\"rounded,filled\", fontname=\"Helvetica\", fontsize=10, margin=\"0.08,0.04\"];",
    );
    writer.line(1, "edge [arrowsize=0.6, color=\"#666666\"];");
    for id in writer.beside.clone() {
        let role = if module.entry_if_set() == Some(id) { "ENTRY " } else { "" };
        writer.cluster(1, id, &format!("{role}%{}", module[id].name()), "#f7f7f7");
    }
    writer.line(0, "}");
    writer.out
}

struct DotWriter<'m> {
    module: &'m Module,
    out: String,
    /// Bodies of fusions that are drawn in place of a fusion, with that fusion.
    bodies: HashMap<CompId, (CompId, InstrId)>,
    /// Computations that are drawn next to each other, the entry first.
    beside: Vec<CompId>,
}

impl DotWriter<'_> {
    /// Determines the position of each computation that the entry reaches.
    fn plan(&mut self) {
        let module = self.module;
        let mut queue: VecDeque<(CompId, usize)> = module.entry_if_set().into_iter().map(|id| (id, 0)).collect();
        let mut seen: HashSet<CompId> = queue.iter().map(|(id, _)| *id).collect();
        self.beside.extend(module.entry_if_set());
        while let Some((id, depth)) = queue.pop_front() {
            for (instruction, i) in module[id].iter().filter(|(_, i)| !is_plain_combiner(module, i.op())) {
                let in_place = matches!(i.op(), Op::Fusion(_)) && depth < DEPTH;
                for callee in i.op().called_computations() {
                    if !seen.insert(callee) {
                        continue;
                    }
                    queue.push_back((callee, if in_place { depth + 1 } else { 0 }));
                    match in_place {
                        true => _ = self.bodies.insert(callee, (id, instruction)),
                        false => self.beside.push(callee),
                    }
                }
            }
        }
    }

    fn line(&mut self, depth: usize, text: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.out, "{:width$}{text}", "", width = 2 * depth);
    }

    fn cluster(&mut self, depth: usize, id: CompId, title: &str, fill: &str) {
        self.line(depth, &format!("subgraph cluster_{} {{", id.index()));
        self.line(depth + 1, &format!("label={}; style=\"rounded,filled\"; fillcolor=\"{fill}\";", quoted(title)));
        let computation = &self.module[id];
        for instruction in computation.sequence().into_iter().filter(|&i| !is_inlined(computation, i)) {
            self.node(depth + 1, id, instruction);
        }
        self.line(depth, "}");
        for instruction in computation.sequence() {
            self.edges(depth, id, instruction);
        }
    }

    fn node(&mut self, depth: usize, computation: CompId, id: InstrId) {
        let instruction = &self.module[computation][id];
        if let Some(body) = self.inside(computation, id) {
            let title = format!("%{} {}", instruction.name(), instruction.opcode().name());
            return self.cluster(depth, body, &title, "#e3ecfa");
        }
        let label = label(&self.module[computation], id);
        let text = quoted(&format!("{}\n{}", label.name, label.what));
        let fill = color(instruction.opcode().family());
        self.line(depth, &format!("{} [label={text}, fillcolor=\"{fill}\"];", node_name(computation, id)));
    }

    fn edges(&mut self, depth: usize, computation: CompId, id: InstrId) {
        let module = self.module;
        let instruction = &module[computation][id];
        let operands = instruction.operands().iter().enumerate();
        for (number, &operand) in operands.filter(|(_, o)| !is_inlined(&module[computation], **o)) {
            let from = self.end(computation, operand);
            let to = match self.inside(computation, id) {
                Some(body) => node_name(body, module[body].parameters()[number]),
                None => node_name(computation, id),
            };
            self.line(depth, &format!("{from} -> {to};"));
        }
        for &before in instruction.control_predecessors() {
            let (from, to) = (self.end(computation, before), self.end(computation, id));
            self.line(depth, &format!("{from} -> {to} [style=dotted, constraint=false];"));
        }
        if self.inside(computation, id).is_some() {
            return;
        }
        if is_plain_combiner(module, instruction.op()) {
            return;
        }
        for callee in instruction.op().called_computations() {
            let root = self.end(callee, module[callee].root());
            let style = format!("style=dashed, dir=none, ltail=cluster_{}", callee.index());
            self.line(depth, &format!("{root} -> {} [{style}];", node_name(computation, id)));
        }
    }

    /// Returns the body of a fusion if it is drawn in place of the fusion.
    fn inside(&self, computation: CompId, id: InstrId) -> Option<CompId> {
        let Op::Fusion(fusion) = self.module[computation][id].op() else { return None };
        (self.bodies.get(&fusion.computation) == Some(&(computation, id))).then_some(fusion.computation)
    }

    /// Returns the node whose value an instruction returns: the root of the body if that is drawn.
    fn end(&self, mut computation: CompId, mut id: InstrId) -> String {
        while let Some(body) = self.inside(computation, id) {
            (computation, id) = (body, self.module[body].root());
        }
        node_name(computation, id)
    }
}

/// Whether an operation only calls a function of a single operation, whose name is part of the operation's text.
fn is_plain_combiner(module: &Module, op: &Op) -> bool {
    op.call_context() == CallContext::Embedded && op.called_computations().iter().all(|&c| module[c].len() <= 3)
}

fn node_name(computation: CompId, id: InstrId) -> String {
    format!("n{}_{}", computation.index(), id.index())
}

/// Quotes a string for Graphviz; line feeds separate centered lines.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}
