//! Printer of modules, in the format of XLA's default printer but with all constants in full.

mod annotations;
mod header;
mod literal;

use std::collections::{HashMap, HashSet};
use std::fmt;

use super::attributes::{AttributeWriter, sigil};
use crate::ops::{Async, Op, async_};
use crate::{CompId, Computation, InstrId, MAIN_THREAD, Metadata, Module, Shape};

/// Options of the printer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrintOptions {
    /// Whether to print `%` in front of names.
    pub percent: bool,
    /// Whether to print the layouts of shapes.
    pub layouts: bool,
    /// Whether to print shapes in front of operands.
    pub operand_shapes: bool,
    /// Whether to print `/*index=5*/` in front of every fifth operand.
    pub operand_indices: bool,
    /// Whether to print parameters and result in front of a computation's body.
    pub signatures: bool,
    /// Whether to print constants of more than ten elements. Otherwise they become `{...}`, and their values are lost.
    pub large_constants: bool,
    /// Whether to print `metadata=`, and the tables of stack frames that it refers to.
    pub metadata: bool,
    /// Whether to print `backend_config=`.
    pub backend_config: bool,
    /// Whether to print `control-predecessors=`.
    pub control_dependencies: bool,
}

impl Default for PrintOptions {
    /// Returns XLA's default form, from which the module can be parsed without loss.
    fn default() -> PrintOptions {
        PrintOptions {
            percent: true,
            layouts: true,
            operand_shapes: false,
            operand_indices: true,
            signatures: true,
            large_constants: true,
            metadata: true,
            backend_config: true,
            control_dependencies: true,
        }
    }
}

impl PrintOptions {
    /// Returns XLA's `ShortParsable`: only the parts that define the computation.
    pub fn short_parsable() -> PrintOptions {
        PrintOptions {
            percent: false,
            operand_indices: false,
            signatures: false,
            metadata: false,
            control_dependencies: false,
            ..PrintOptions::default()
        }
    }
}

/// Prints a module: header, stack tables, and computations with callees before callers and the entry last.
pub fn print_module(module: &Module, options: &PrintOptions) -> String {
    let mut printer = Printer::new(module, options);
    printer.header();
    let hidden = printer.short_forms.insert(short_forms(module)).clone();
    for id in module.post_order().into_iter().filter(|id| !hidden.contains(id)) {
        printer.out.push('\n');
        printer.computation(id);
    }
    printer.out
}

/// Prints a computation, preceded by `ENTRY` if it is the entry.
pub fn print_computation(module: &Module, id: CompId, options: &PrintOptions) -> String {
    let mut printer = Printer::new(module, options);
    printer.computation(id);
    printer.out
}

/// Prints an instruction in one line, preceded by `ROOT` if it is the root.
pub fn print_instruction(module: &Module, computation: CompId, id: InstrId, options: &PrintOptions) -> String {
    let mut printer = Printer::new(module, options);
    printer.instruction(&module[computation], id);
    printer.out
}

/// Prints metadata in braces.
pub(crate) fn print_metadata(metadata: &Metadata) -> String {
    let (module, options) = (Module::new(""), PrintOptions::default());
    let mut printer = Printer::new(&module, &options);
    printer.metadata(metadata);
    printer.out
}

/// Prints with [`PrintOptions::default`]: the text parses as the same module.
impl fmt::Display for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&print_module(self, &PrintOptions::default()))
    }
}

/// Returns the computations that are not printed, because the short form of their start replaces them and they have no
/// other caller.
fn short_forms(module: &Module) -> HashSet<CompId> {
    let mut hidden = HashSet::new();
    let mut calls: HashMap<CompId, usize> = HashMap::new();
    for (_, computation) in module.iter() {
        let callees = computation.iter().flat_map(|(_, instruction)| instruction.op().called_computations());
        callees.for_each(|callee| *calls.entry(callee).or_default() += 1);
        let is_start = |op: &Op| matches!(op, Op::Async(Async::Start(_)));
        let starts = computation.iter().filter(|(_, i)| is_start(i.op()));
        hidden.extend(starts.filter_map(|(id, _)| Some(async_::short_form(module, computation, id)?.0)));
    }
    hidden.retain(|callee| calls.get(callee) == Some(&1));
    hidden
}

/// Returns the suffix that a short form appends to the name of the operation.
fn short_suffix(step: &Async) -> &'static str {
    match step {
        Async::Start(_) => "-start",
        Async::Update => "-update",
        Async::Done => "-done",
        // Asynchronous copies have opcodes of their own.
        Async::CopyStart { .. } | Async::CopyDone => "",
    }
}

struct Printer<'m> {
    module: &'m Module,
    /// Computations that short forms replace; `None` unless a whole module is printed.
    short_forms: Option<HashSet<CompId>>,
    options: &'m PrintOptions,
    out: String,
}

impl<'m> Printer<'m> {
    fn new(module: &'m Module, options: &'m PrintOptions) -> Printer<'m> {
        Printer { module, short_forms: None, options, out: String::new() }
    }

    fn push(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn display(&mut self, value: impl fmt::Display) {
        use fmt::Write as _;
        // Writing to a `String` cannot fail.
        let _ = write!(self.out, "{value}");
    }

    /// Prints items, separated by `separator`.
    fn join<T>(&mut self, items: impl IntoIterator<Item = T>, separator: &str, mut item: impl FnMut(&mut Self, T)) {
        for (i, value) in items.into_iter().enumerate() {
            if i > 0 {
                self.push(separator);
            }
            item(self, value);
        }
    }

    /// Prints `/*index=5*/` in front of every fifth item but the first.
    fn index_comment(&mut self, index: usize) {
        if index > 0 && index.is_multiple_of(5) {
            self.display(format_args!("/*index={index}*/"));
        }
    }

    fn name(&mut self, name: &str) {
        self.push(sigil(self.options.percent, name));
        self.push(name);
    }

    fn shape(&mut self, shape: &Shape) {
        if self.options.layouts { self.display(shape) } else { self.display(shape.without_layout()) }
    }

    fn computation(&mut self, id: CompId) {
        let module = self.module;
        let computation = &module[id];
        if module.entry_if_set() == Some(id) {
            self.push("ENTRY ");
        }
        self.name(computation.name());
        if self.options.signatures && computation.root_if_set().is_some() {
            self.signature(computation);
        }
        self.push(" {\n");
        for instruction in computation.sequence() {
            self.push("  ");
            self.instruction(computation, instruction);
            self.push("\n");
        }
        self.push("}");
        if computation.execution_thread() != MAIN_THREAD {
            self.push(", execution_thread=");
            super::strings::push_quoted(&mut self.out, computation.execution_thread());
        }
        self.push("\n");
    }

    /// Prints ` (a: f32[2]) -> f32[2]`, without layouts.
    fn signature(&mut self, computation: &Computation) {
        self.push(" (");
        self.join(computation.parameters(), ", ", |p, &id| {
            p.push(computation[id].name());
            p.push(": ");
            p.display(computation[id].shape().without_layout());
        });
        self.push(") -> ");
        self.display(computation.result_shape().without_layout());
    }

    fn instruction(&mut self, computation: &Computation, id: InstrId) {
        let instruction = &computation[id];
        if computation.root_if_set() == Some(id) {
            self.push("ROOT ");
        }
        self.name(instruction.name());
        self.push(" = ");
        self.shape(instruction.shape());
        self.push(" ");
        let short = self.short_form(computation, id);
        match (short, instruction.op()) {
            (Some(wrapped), Op::Async(step)) => {
                self.push(wrapped.opcode().name());
                self.push(short_suffix(step));
            }
            _ => self.push(instruction.opcode().name()),
        }
        self.push("(");
        match instruction.op() {
            Op::Parameter(parameter) => self.display(parameter.number),
            Op::Constant(constant) => self.constant(&constant.literal),
            _ => self.operands(computation, instruction.operands()),
        }
        self.push(")");
        let percent = self.options.percent;
        let mut writer = AttributeWriter { out: &mut self.out, module: self.module, percent };
        match (short, instruction.op()) {
            (Some(wrapped), Op::Async(Async::Start(start))) => {
                async_::attributes::write_thread(start.computation, &mut writer);
                wrapped.rules().write_attributes(&mut writer);
            }
            _ => instruction.op().rules().write_attributes(&mut writer),
        }
        self.annotations(computation, instruction);
    }

    /// Returns the operation that an asynchronous one wraps, if the short form expresses it completely.
    fn short_form(&self, computation: &Computation, id: InstrId) -> Option<&'m Op> {
        let (callee, root) = async_::short_form(self.module, computation, id)?;
        if self.short_forms.as_ref().is_some_and(|known| !known.contains(&callee)) {
            return None;
        }
        Some(self.module[callee][root].op())
    }

    fn operands(&mut self, computation: &Computation, operands: &[InstrId]) {
        for (i, &id) in operands.iter().enumerate() {
            if i > 0 {
                self.push(", ");
            }
            if self.options.operand_indices {
                self.index_comment(i);
            }
            if self.options.operand_shapes {
                self.shape(computation[id].shape());
                self.push(" ");
            }
            self.name(computation[id].name());
        }
    }
}
