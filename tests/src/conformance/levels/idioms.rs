//! Level 5: idioms of machine learning, with sizes around vector lengths, from `tests/conformance/idioms`.

use xla::Literal;
use xla_hlo::ops::Op;
use xla_hlo::{ElementType, InputOutputAlias, Module, ParameterLeaf, Shape};

use super::Sizes;
use super::generated::agree;
use crate::conformance::case::{Case, Level, Stop, ensure};
use crate::differential::Modes;
use crate::generate::{COLS, Idiom, ROWS, Random, Temper, idioms};
use crate::program::{Known, Program};
use crate::rounding::measure;

/// Distance of the cases of a quick run. It is coprime to the number of shapes, so that sizes and types vary from idiom
/// to idiom.
const QUICK: u64 = 37;

/// Idiom with a shape and an element type.
struct Instance {
    idiom: &'static Idiom,
    rows: usize,
    cols: usize,
    ty: ElementType,
    /// Index among all instances, counted from 1; the seed of its arguments.
    number: u64,
}

pub fn cases(sizes: &Sizes) -> Vec<Case> {
    let found = Case::new(Level::Generated, "idioms".to_string(), |_| {
        ensure!(!idioms().is_empty(), "there are no files in tests/conformance/idioms");
        Ok(())
    });
    let quick = sizes.quick;
    let cases = instances().filter(|instance| !quick || instance.number.is_multiple_of(QUICK)).map(|instance| {
        Case::new(Level::Generated, instance.name(), move |subject| {
            let program = instance.program()?;
            let program = program.map_err(|error| Stop::Skipped(error.to_string()))?;
            agree(subject, &program, Modes::of_seed(instance.number))
        })
    });
    std::iter::once(found).chain(cases).collect()
}

/// Returns every idiom with every shape and element type.
fn instances() -> impl Iterator<Item = Instance> {
    let shapes = || ROWS.into_iter().flat_map(|rows| COLS.into_iter().map(move |cols| (rows, cols)));
    let of_idiom = move |idiom: &'static Idiom| {
        shapes().flat_map(move |(rows, cols)| idiom.types.map(move |ty| (idiom, rows, cols, ty)))
    };
    let numbered = idioms().iter().flat_map(of_idiom).zip(1..);
    numbered.map(|((idiom, rows, cols, ty), number)| Instance { idiom, rows, cols, ty, number })
}

impl Instance {
    fn name(&self) -> String {
        format!("idioms/{}/{}/{}x{}", self.idiom.name, self.ty.name(), self.rows, self.cols)
    }

    /// Returns the program with generated arguments. Every second one has numbers with ties. In two of three programs
    /// results may alias arguments of equal shape. The inner error means that rounding decides the program's results.
    fn program(&self) -> xla::Result<xla::Result<Program>> {
        let mut module = self.idiom.module(self.rows, self.cols, self.ty)?.into_inner();
        if !self.number.is_multiple_of(3) {
            tie(&mut module);
        }
        let entry = module.entry();
        let outputs = match entry[entry.root()].op() {
            Op::Tuple(_) => entry[entry.root()].operands().to_vec(),
            _ => vec![entry.root()],
        };
        let mut random = Random::new(self.number);
        let temper = if self.number.is_multiple_of(2) { Temper::Grid } else { Temper::Smooth };
        let shapes = entry.parameters().iter().map(|&id| entry[id].shape().expect_array());
        let arguments: Vec<Literal> =
            shapes.map(|shape| Idiom::argument(&mut random, shape?, temper)).collect::<xla::Result<_>>()?;
        let measured = match measure(&module, &arguments) {
            Err(error @ xla::Error::InvalidArgument(_)) => return Ok(Err(error)),
            measured => measured?,
        };
        let tolerances = outputs.iter().zip(&measured).map(|(&id, result)| (id, Known::Tolerance(result.tolerance)));
        let known = tolerances.collect();
        Ok(Ok(Program { module, arguments, outputs, known }))
    }
}

/// Aliases each result with the first free parameter of its shape.
fn tie(module: &mut Module) {
    let entry = module.entry();
    let result = entry.result_shape();
    let is_tuple = matches!(result, Shape::Tuple(_));
    let mut free: Vec<usize> = (0..entry.parameters().len()).collect();
    let mut aliases = Vec::new();
    for (path, leaf) in result.leaves() {
        let fits =
            |&number: &usize| entry[entry.parameters()[number]].shape().without_layout() == leaf.without_layout();
        if let Some(at) = free.iter().position(fits) {
            let parameter = ParameterLeaf { parameter: free.remove(at), path: Vec::new() };
            let output = if is_tuple { path } else { Vec::new() };
            aliases.push(InputOutputAlias { output, parameter, must_alias: false });
        }
    }
    module.attributes_mut().input_output_alias = aliases;
}
