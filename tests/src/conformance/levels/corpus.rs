//! Level 4: programs of the corpus with their inputs and expected outputs.

use xla::compare::Tolerance;
use xla::npz::Archive;
use xla::{ElementType, Literal, LoadedExecutable, VerifiedModule};
use xla_hlo::Opcode;
use xla_hlo::text::parse_module;
use xla_service::thunks::{Thunk, ThunkKind};

use super::Sizes;
use crate::conformance::case::{Case, Check, Level, Notes, Stop, Subject, ensure};
use crate::conformance::{judge, launch};
use crate::corpus;

/// Suite whose programs need several devices.
const SEVERAL_DEVICES: &str = "multi_device";

pub fn cases(sizes: &Sizes) -> Vec<Case> {
    let all = || corpus::suites().unwrap_or_default().into_iter().filter(|suite| suite != SEVERAL_DEVICES).collect();
    let suites: Vec<String> = sizes.corpus.clone().unwrap_or_else(all);
    let mut cases = Vec::new();
    for suite in suites {
        match corpus::names(&suite) {
            Ok(names) => cases.extend(names.into_iter().map(|name| {
                let suite = suite.clone();
                let id = format!("{suite}/{name}");
                Case::noting(Level::Corpus, id, move |subject, notes| {
                    program(subject, notes, &corpus::case(&suite, &name)?)
                })
            })),
            Err(error) => {
                let message = format!("the suite cannot be read: {error}");
                cases.push(Case::new(Level::Corpus, suite, move |_| Err(Stop::Failed(message.clone()))));
            }
        }
    }
    if cases.is_empty() {
        let none = |_: &Subject| Err(Stop::Failed("there is no corpus in tests/corpus/suites".to_string()));
        cases.push(Case::new(Level::Corpus, "suites", none));
    }
    cases
}

/// Compiled program of the corpus, with its arguments and expected results.
pub struct Loaded {
    pub compiled: LoadedExecutable,
    pub arguments: Vec<Literal>,
    pub expected: Literal,
    /// Tolerance of each result.
    pub tolerances: Vec<Tolerance>,
}

impl Loaded {
    /// Compiles a case for a client.
    pub fn new(client: &xla::Client, case: &corpus::Case) -> xla::Result<Loaded> {
        let module = VerifiedModule::new(parse_module(&case.module)?)?;
        let compiled = launch::compile(client, &module)?;
        let leaves = compiled.signature().arguments();
        let mut arguments = Vec::with_capacity(leaves.len());
        if !leaves.is_empty() {
            let mut inputs = Archive::from_bytes("inputs.npz", case.inputs.clone())?;
            for (i, leaf) in leaves.iter().enumerate() {
                arguments.push(inputs.read(&format!("arg{i}"), &leaf.shape)?);
            }
        }
        let mut outputs = Archive::from_bytes("expected.npz", case.expected.clone())?;
        let tolerance = Tolerance { rtol: case.info.rtol, atol: case.info.atol, signed_zero: case.info.signed_zero };
        let results = compiled.signature().results().iter().enumerate();
        let expected =
            results.map(|(i, leaf)| corpus::stored(&mut outputs, &format!("out{i}"), &leaf.shape, tolerance));
        let (expected, tolerances) = expected.collect::<xla::Result<Vec<_>>>()?.into_iter().unzip();
        Ok(Loaded { compiled, arguments, expected: Literal::tuple(expected), tolerances })
    }

    /// Compares results with the expected ones.
    pub fn judge(&self, actual: &Literal) -> Check {
        let parameters = self.compiled.signature().group_arguments(self.arguments.clone())?;
        judge::same(&self.compiled, &parameters, &self.expected, actual, &|i| self.tolerances[i])
    }
}

fn program(subject: &Subject, notes: &mut Notes, case: &corpus::Case) -> Check {
    if let Some(opcode) = case.waits_for() {
        return Err(Stop::Failed(format!("the compiler does not have {opcode}")));
    }
    let loaded = Loaded::new(&subject.client()?, case)?;
    notes.fallbacks = fallbacks(&loaded.compiled);
    let actual = launch::run(&loaded.compiled, &loaded.arguments, &launch::keeping(&loaded.compiled))?;
    ensure!(actual.elements().len() == loaded.expected.elements().len(), "the corpus expects other results");
    loaded.judge(&actual)
}

/// Returns the instructions of a program that the host evaluates, each with its operations.
fn fallbacks(compiled: &LoadedExecutable) -> Vec<Vec<(Opcode, ElementType)>> {
    let Some(sequence) = compiled.thunks() else { return Vec::new() };
    let on_host = sequence.walk().filter(|thunk| thunk.kind == ThunkKind::HostFallback);
    on_host.map(|thunk| operations(compiled, thunk)).collect()
}

/// Returns the operations of an instruction; for a fusion, the fused ones.
fn operations(compiled: &LoadedExecutable, thunk: &Thunk) -> Vec<(Opcode, ElementType)> {
    let module = compiled.module();
    let one = |instruction: &xla_hlo::Instruction| (instruction.op().opcode(), launch::main_type(instruction.shape()));
    let outer = &module[thunk.computation][thunk.instruction];
    if outer.op().opcode() != Opcode::Fusion {
        return vec![one(outer)];
    }
    let trivial =
        |opcode| matches!(opcode, Opcode::Parameter | Opcode::Constant | Opcode::Tuple | Opcode::GetTupleElement);
    let called = outer.op().called_computations();
    let inner = called.iter().flat_map(|&computation| module[computation].iter());
    let mut operations: Vec<_> =
        inner.map(|(_, instruction)| one(instruction)).filter(|(op, _)| !trivial(*op)).collect();
    operations.dedup();
    operations
}
