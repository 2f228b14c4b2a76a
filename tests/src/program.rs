//! Program with its arguments as one file of HLO text, in which a failing program can be kept.
//!
//! In addition to the executed computations, the file may have two that are never called: `inputs` returns the
//! arguments; without it, [`input`] makes them. `tolerances` returns `f64[n,3]`: for each of the `n` results a
//! relative tolerance, an absolute tolerance, and 1 if the sign of a zero is compared. (With `f64[n,2]` it is compared
//! if both tolerances are 0.) Without it, results may differ by 1e-5, and the signs of zeros are compared.

use std::collections::{BTreeMap, HashMap, HashSet};

use xla::compare::Tolerance;
use xla::{Error, Result};
use xla_hlo::eval::Evaluator;
use xla_hlo::ops::{Constant, Op, Parameter, Tuple};
use xla_hlo::text::parse_module;
use xla_hlo::{
    ArrayShape, CompId, Computation, ElementType, InputOutputAlias, InstrId, Instruction, Literal, Module,
    ParameterLeaf, Scalar, Shape,
};

use crate::arguments::{TOLERANCE, input};
use crate::generate::Numbers;
use crate::rounding::measure;

/// Program with arguments, and the ranges of its values.
#[derive(Clone, Debug)]
pub struct Program {
    /// Module; its entry takes and returns arrays, the results possibly as a tuple.
    pub module: Module,
    /// Argument for each parameter of the entry.
    pub arguments: Vec<Literal>,
    /// Instructions of the entry that are its results, in order.
    pub outputs: Vec<InstrId>,
    /// Properties of the entry's arrays, or their tolerances.
    pub known: BTreeMap<InstrId, Known>,
}

/// Property of an array.
#[derive(Clone, Copy, Debug)]
pub enum Known {
    /// Range of the array's values.
    Numbers(Numbers),
    /// Tolerance by which implementations may differ.
    Tolerance(Tolerance),
}

/// Replacement of an instruction.
#[derive(Clone, Debug)]
pub enum Replacement {
    /// Parameter with this argument.
    Parameter(Literal),
    /// Another instruction of the entry with the same shape.
    Other(InstrId),
}

impl Program {
    /// Returns the tolerance of an instruction's results.
    pub fn tolerance(&self, id: InstrId) -> Tolerance {
        let ty = self.module.entry()[id].shape().element_type().unwrap_or(ElementType::Pred);
        match self.known.get(&id) {
            Some(Known::Numbers(numbers)) => numbers.tolerance(ty),
            Some(Known::Tolerance(tolerance)) => *tolerance,
            None => Tolerance { rtol: 0.0, atol: 0.0, signed_zero: true },
        }
    }

    /// Widens tolerances for rounding with new arguments, since they were measured for the old ones. Exact results stay
    /// exact.
    pub(crate) fn widen_tolerances(&mut self) {
        let Ok(results) = measure(&self.module, &self.arguments) else { return };
        for (&id, result) in self.outputs.iter().zip(results) {
            let old = self.tolerance(id);
            if old.rtol > 0.0 || old.atol > 0.0 {
                let (rtol, atol) = (old.rtol.max(result.tolerance.rtol), old.atol.max(result.tolerance.atol));
                self.known.insert(id, Known::Tolerance(Tolerance { rtol, atol, ..old }));
            }
        }
    }

    /// Returns the program as text.
    pub fn to_text(&self) -> String {
        let mut module = self.module.clone();
        let tolerances: Vec<Tolerance> = self.outputs.iter().map(|&id| self.tolerance(id)).collect();
        let shape = ArrayShape::new(ElementType::F64, [tolerances.len(), 3]);
        let tolerances = Literal::from_fn(&shape, |i| {
            let Tolerance { rtol, atol, signed_zero } = tolerances[i / 3];
            Scalar::Float([rtol, atol, f64::from(u8::from(signed_zero))][i % 3])
        });
        module.add(constants("inputs", &self.arguments));
        module.add(constants("tolerances", &tolerances.into_iter().collect::<Vec<_>>()));
        module.to_string()
    }

    /// Parses the text of [`Program::to_text`].
    pub fn from_text(text: &str) -> Result<Program> {
        let mut module = parse_module(text)?;
        let (inputs, tolerances) = (take(&mut module, "inputs")?, take(&mut module, "tolerances")?);
        let entry = module.entry();
        let root = entry.root();
        let outputs = match entry[root].op() {
            Op::Tuple(_) => entry[root].operands().to_vec(),
            _ => vec![root],
        };
        let arguments = match inputs {
            Some(arguments) => arguments,
            None => entry.parameters().iter().enumerate().map(|(i, &id)| input(entry[id].shape(), i)).collect(),
        };
        let Some(tolerances) = tolerances else {
            let known = Known::Tolerance(Tolerance { rtol: TOLERANCE, atol: TOLERANCE, signed_zero: true });
            let known = outputs.iter().map(|&id| (id, known)).collect();
            return Ok(Program { module, arguments, outputs, known });
        };
        let [tolerances] = &tolerances[..] else {
            return Err(Error::invalid_argument("the computation tolerances must give one array"));
        };
        let columns = match *tolerances.array_shape().dims() {
            [results, columns @ 2..=3] if results == outputs.len() => columns,
            _ => {
                return Err(Error::invalid_argument(
                    "the computation tolerances must give three numbers for each result",
                ));
            }
        };
        let number = |i| match tolerances.get(i) {
            Scalar::Float(value) => value,
            _ => 0.0,
        };
        let pairs = outputs.iter().enumerate().map(|(i, &id)| {
            let (rtol, atol) = (number(columns * i), number(columns * i + 1));
            let signed_zero = if columns == 3 { number(3 * i + 2) != 0.0 } else { rtol == 0.0 && atol == 0.0 };
            (id, Known::Tolerance(Tolerance { rtol, atol, signed_zero }))
        });
        let known = pairs.collect();
        Ok(Program { module, arguments, outputs, known })
    }

    /// Rebuilds the program from the instructions that the outputs need, some of them replaced. `None` if a replacement
    /// is cyclic.
    pub fn rebuilt(&self, outputs: &[InstrId], replaced: &HashMap<InstrId, Replacement>) -> Option<Program> {
        let mut rebuild = Rebuild {
            old: self,
            replaced,
            // The name must differ from the old entry's, which is still in the module.
            new: Computation::new(if self.module.entry().name() == "main" { "entry" } else { "main" }),
            ids: HashMap::new(),
            arguments: Vec::new(),
        };
        let new_outputs = outputs.iter().map(|&id| rebuild.id(id)).collect::<Option<Vec<_>>>()?;
        let Rebuild { mut new, ids, arguments, .. } = rebuild;
        let as_tuple = matches!(self.module.entry()[self.module.entry().root()].op(), Op::Tuple(_));
        set_outputs(&mut new, &new_outputs, as_tuple || new_outputs.len() > 1);
        let known = ids.iter().filter_map(|(old, new)| Some((*new, *self.known.get(old)?))).collect();
        let mut module = self.module.clone();
        let old_entry = module.entry_id();
        let entry = module.add(new);
        module.set_entry(entry);
        module.attributes_mut().input_output_alias = self.aliases(&ids, &new_outputs, &module);
        module.remove(old_entry).ok()?;
        remove_uncalled(&mut module);
        Some(Program { module, arguments, outputs: new_outputs, known })
    }
}

impl Program {
    /// Returns the aliases whose parameter and output still exist.
    fn aliases(&self, ids: &HashMap<InstrId, InstrId>, outputs: &[InstrId], new: &Module) -> Vec<InputOutputAlias> {
        let (old, new) = (self.module.entry(), new.entry());
        let kept = |alias: &InputOutputAlias| {
            let output = ids.get(self.outputs.get(alias.output.first().copied().unwrap_or(0))?)?;
            let parameter = ids.get(old.parameters().get(alias.parameter.parameter)?)?;
            let place = outputs.iter().position(|o| o == output)?;
            let output = if alias.output.is_empty() && outputs.len() == 1 { vec![] } else { vec![place] };
            let number = new.parameters().iter().position(|p| p == parameter)?;
            let parameter = ParameterLeaf { parameter: number, path: Vec::new() };
            Some(InputOutputAlias { output, parameter, must_alias: alias.must_alias })
        };
        self.module.attributes().input_output_alias.iter().filter_map(kept).collect()
    }
}

/// Makes arrays the result of a computation: as a tuple, or a single one directly.
pub(crate) fn set_outputs(computation: &mut Computation, outputs: &[InstrId], as_tuple: bool) {
    if let ([one], false) = (outputs, as_tuple) {
        computation.set_root(*one);
        return;
    }
    let shape = Shape::Tuple(outputs.iter().map(|&id| computation[id].shape().clone()).collect());
    let root = computation.add(Instruction::new(Tuple.into(), shape, outputs));
    computation.set_root(root);
}

/// Builder of an entry from parts of another one.
struct Rebuild<'a> {
    old: &'a Program,
    replaced: &'a HashMap<InstrId, Replacement>,
    new: Computation,
    ids: HashMap<InstrId, InstrId>,
    arguments: Vec<Literal>,
}

impl Rebuild<'_> {
    /// Returns the new id of an old instruction, which is added together with its operands.
    fn id(&mut self, id: InstrId) -> Option<InstrId> {
        // Entries are short, so recursion is not deep.
        if let Some(&new) = self.ids.get(&id) {
            return Some(new);
        }
        let old = self.old.module.entry();
        let new = match (self.replaced.get(&id), old[id].op()) {
            (Some(Replacement::Other(other)), _) if *other != id => self.id(*other)?,
            (Some(Replacement::Other(_)), _) => return None,
            (Some(Replacement::Parameter(literal)), _) => self.parameter(literal.clone(), &old[id]),
            (None, Op::Parameter(p)) => self.parameter(self.old.arguments[p.number].clone(), &old[id]),
            (None, op) => {
                let operands = old[id].operands().iter().map(|&o| self.id(o)).collect::<Option<Vec<_>>>()?;
                let instruction = Instruction::new(op.clone(), old[id].shape().clone(), operands);
                // Annotations hold the text that custom calls pass to their handlers.
                let annotations = old[id].annotations().cloned().map(Box::new);
                self.new.add(instruction.with_name(old[id].name()).with_annotations(annotations))
            }
        };
        self.ids.insert(id, new);
        Some(new)
    }

    fn parameter(&mut self, literal: Literal, old: &Instruction) -> InstrId {
        let number = self.arguments.len();
        self.arguments.push(literal);
        self.new.add(Instruction::new(Parameter { number }.into(), old.shape().clone(), []).with_name(old.name()))
    }
}

/// Removes computations that the entry does not reach.
fn remove_uncalled(module: &mut Module) {
    let mut reached = HashSet::from([module.entry_id()]);
    let mut open = vec![module.entry_id()];
    while let Some(id) = open.pop() {
        open.extend(module.callees(id).into_iter().filter(|&callee| reached.insert(callee)));
    }
    let unreached: Vec<CompId> = module.ids().filter(|id| !reached.contains(id)).collect();
    for id in unreached {
        module.remove(id).expect("it is not the entry");
    }
}

/// Returns a computation without parameters that returns a tuple of constants.
fn constants(name: &str, literals: &[Literal]) -> Computation {
    let mut computation = Computation::new(name);
    let shapes = literals.iter().map(|l| l.shape().with_default_layouts()).collect();
    let ids: Vec<InstrId> = literals
        .iter()
        .map(|literal| {
            let shape = literal.shape().with_default_layouts();
            computation.add(Instruction::new(Constant { literal: literal.clone() }.into(), shape, []))
        })
        .collect();
    let root = computation.add(Instruction::new(Tuple.into(), Shape::Tuple(shapes), ids));
    computation.set_root(root);
    computation
}

/// Removes a computation by name and returns its results; `None` if there is none.
fn take(module: &mut Module, name: &str) -> Result<Option<Vec<Literal>>> {
    let Some(id) = module.find(name) else { return Ok(None) };
    let values = Evaluator::new(module).call(id, Vec::new())?.into_elements();
    module.remove(id)?;
    Ok(Some(values))
}
