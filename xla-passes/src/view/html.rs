//! HTML view of a module: an interactive graph in one file that needs no network access.
//!
//! Each computation is laid out here once, with its callees collapsed. `page.js` nests these drawings when the reader
//! expands loops, branches and fusions, and draws the visible part as inline SVG.

use std::collections::HashMap;

use serde::Serialize;
use xla_hlo::text::{PrintOptions, print_instruction};
use xla_hlo::{CompId, Computation, InstrId, Module};

use super::label::{Label, color, is_inlined, label};
use super::layout::{LayeredGraph, layout};
use crate::analysis::cost::{Cost, analyze};

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Width of a character in a node's text, and padding around the text.
const CHARACTER: f64 = 6.65;
const MARGIN: f64 = 18.0;

/// Maximum number of instructions of a module whose fusions are expanded initially.
const SMALL: usize = 80;

/// Data of the page.
#[derive(Serialize)]
struct Data<'m> {
    name: &'m str,
    /// Whether fusions are expanded initially.
    open: bool,
    /// Computations, the entry first.
    computations: Vec<Drawn<'m>>,
}

/// A computation.
#[derive(Serialize)]
struct Drawn<'m> {
    name: &'m str,
    width: f64,
    nodes: Vec<HtmlNode>,
    /// Source, target, and the position in each layer in between.
    lines: Vec<(usize, usize, Vec<f64>)>,
}

/// An instruction with its position.
#[derive(Serialize)]
struct HtmlNode {
    /// First of the two lines of its label.
    name: String,
    what: String,
    /// Full text of the instruction.
    text: String,
    color: &'static str,
    /// Arithmetic and bytes, if the instruction runs on its own and costs something.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<Cost>,
    x: f64,
    width: f64,
    layer: usize,
    /// Indices of the operand nodes that are drawn.
    operands: Vec<usize>,
    /// Indices of the called computations.
    calls: Vec<usize>,
    root: bool,
}

/// Returns the page. A click expands fusions, loops and branches. A side panel has the search, and the operands and
/// users of the selected instruction.
pub fn html(module: &Module) -> String {
    let order = reachable(module);
    let index: HashMap<CompId, usize> = order.iter().enumerate().map(|(i, &id)| (id, i)).collect();
    let costs = costs(module);
    let computations = order.iter().map(|&id| drawn(module, id, &index, &costs)).collect();
    let data = Data { name: module.name(), open: module.instruction_count() <= SMALL, computations };
    // Serialization of numbers and strings cannot fail. In JSON, `<` only occurs inside strings, where this escape is
    // valid.
    let json = serde_json::to_string(&data).unwrap_or_default().replace('<', "\\u003c");
    let title = module.name().replace('&', "&amp;").replace('<', "&lt;");
    let mut page = String::with_capacity(json.len() + PAGE.len() + STYLE.len() + SCRIPT.len());
    let parts = [("TITLE", title.as_str()), ("STYLE", STYLE), ("DATA", &json), ("SCRIPT", SCRIPT)];
    let mut rest = PAGE;
    for (name, text) in parts {
        let (before, after) = rest.split_once(&format!("<!--{name}-->")).unwrap_or((rest, ""));
        page.push_str(before);
        page.push_str(text);
        rest = after;
    }
    page + rest
}

/// Returns the computations that the entry reaches, the entry first.
fn reachable(module: &Module) -> Vec<CompId> {
    let mut order: Vec<CompId> = module.entry_if_set().into_iter().collect();
    let mut seen: std::collections::HashSet<CompId> = order.iter().copied().collect();
    let mut next = 0;
    while let Some(&id) = order.get(next) {
        next += 1;
        order.extend(module.callees(id).into_iter().filter(|&callee| seen.insert(callee)));
    }
    order
}

/// Costs by the names of computation and instruction.
type Costs = HashMap<(String, String), Cost>;

fn costs(module: &Module) -> Costs {
    let computations = analyze(module).computations.into_iter();
    let instructions = computations.flat_map(|c| c.instructions.into_iter().map(move |i| (c.name.clone(), i)));
    instructions.map(|(computation, i)| ((computation, i.name), i.cost)).collect()
}

fn drawn<'m>(module: &'m Module, id: CompId, index: &HashMap<CompId, usize>, costs: &Costs) -> Drawn<'m> {
    let computation = &module[id];
    let cost = |i: InstrId| costs.get(&(computation.name().to_string(), computation[i].name().to_string())).copied();
    let shown: Vec<InstrId> = computation.sequence().into_iter().filter(|&i| !is_inlined(computation, i)).collect();
    let place: HashMap<InstrId, usize> = shown.iter().enumerate().map(|(n, &i)| (i, n)).collect();
    let labels: Vec<Label> = shown.iter().map(|&i| label(computation, i)).collect();
    let width = |label: &Label| {
        // A sign follows the name if the node can be expanded.
        let longest = (label.name.chars().count() + 2).max(label.what.chars().count());
        (longest as f64 * CHARACTER + MARGIN).ceil()
    };
    let graph = LayeredGraph {
        widths: labels.iter().map(width).collect(),
        operands: shown.iter().map(|&i| operands(computation, i, &place)).collect(),
    };
    let layout = layout(&graph);
    let options = PrintOptions { large_constants: false, ..PrintOptions::default() };
    let nodes = shown.iter().zip(labels).zip(graph.operands).enumerate();
    let nodes = nodes.map(|(n, ((&i, label), operands))| HtmlNode {
        name: label.name,
        what: label.what,
        text: print_instruction(module, id, i, &options),
        color: color(computation[i].opcode().family()),
        cost: cost(i),
        x: rounded(layout.x[n]),
        width: graph.widths[n],
        layer: layout.layers[n],
        operands,
        calls: computation[i].op().called_computations().iter().map(|callee| index[callee]).collect(),
        root: computation.root() == i,
    });
    let nodes = nodes.collect();
    let lines = layout.lines.into_iter();
    let lines = lines.map(|line| (line.from, line.to, line.bends.into_iter().map(rounded).collect())).collect();
    Drawn { name: computation.name(), width: rounded(layout.width), nodes, lines }
}

/// Returns the operands and control predecessors of an instruction without duplicates.
fn operands(computation: &Computation, id: InstrId, place: &HashMap<InstrId, usize>) -> Vec<usize> {
    let instruction = &computation[id];
    let all = instruction.operands().iter().chain(instruction.control_predecessors());
    let mut operands: Vec<usize> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    operands.extend(all.filter_map(|o| place.get(o).copied()).filter(|&o| seen.insert(o)));
    operands
}

/// Rounds to tenths of a pixel.
fn rounded(x: f64) -> f64 {
    (x * 10.0).round() / 10.0
}
