//! Level 5: idioms of machine learning over shapes at the edges of vectors, from `tests/conformance/idioms`.

use std::path::Path;

use xla::compare::Tolerance;
use xla::{Literal, VerifiedModule};
use xla_hlo::eval::evaluate;
use xla_hlo::text::parse_module;
use xla_hlo::{ElementType, InputOutputAlias, Module, ParameterLeaf, Scalar, Shape};

use super::Sizes;
use super::generated::agree;
use crate::conformance::case::{Case, Level, ensure};
use crate::data;
use crate::differential::Modes;
use crate::generate::{Random, Temper, epsilon, literal};
use crate::program::{Known, Program};

/// Numbers of rows: one, a few.
const ROWS: [usize; 3] = [1, 2, 3];

/// Lengths of rows: one less than vectors of each width have, as many, and one more; primes; numbers of classes.
const COLS: [usize; 24] =
    [1, 2, 3, 7, 8, 9, 10, 15, 16, 17, 31, 32, 33, 63, 64, 65, 97, 100, 127, 128, 129, 255, 1000, 1001];

/// Step from case to case of a quick run. It is prime to the number of shapes, so that lengths and types alternate from
/// idiom to idiom.
const QUICK: usize = 37;

/// A template with values for its sizes and its element type.
struct Instance {
    template: String,
    rows: usize,
    cols: usize,
    ty: ElementType,
}

pub fn cases(sizes: &Sizes) -> Vec<Case> {
    let mut cases = vec![Case::new(Level::Generated, "idioms".to_string(), |_| {
        ensure!(!templates().is_empty(), "there are no files in tests/conformance/idioms");
        Ok(())
    })];
    let mut number = 0;
    for (name, template) in templates() {
        // Templates for narrow types sum in f32.
        let (idiom, types) = match name.strip_suffix(".narrow") {
            Some(idiom) => (idiom, [ElementType::BF16, ElementType::F16]),
            None => (&name[..], [ElementType::F32, ElementType::F64]),
        };
        for (rows, cols, ty) in shapes(types) {
            number += 1;
            if sizes.quick && !usize::is_multiple_of(number, QUICK) {
                continue;
            }
            let instance = Instance { template: template.clone(), rows, cols, ty };
            let id = format!("idioms/{idiom}/{}/{rows}x{cols}", ty.name());
            let seed = number as u64;
            cases.push(Case::new(Level::Generated, id, move |subject| {
                agree(subject, &instance.program(seed)?, Modes::of_seed(seed))
            }));
        }
    }
    cases
}

fn shapes(types: [ElementType; 2]) -> impl Iterator<Item = (usize, usize, ElementType)> {
    let of_rows = move |rows| COLS.into_iter().map(move |cols| (rows, cols));
    ROWS.into_iter().flat_map(of_rows).flat_map(move |(rows, cols)| types.map(|ty| (rows, cols, ty)))
}

/// Names and texts of the templates, sorted by name.
fn templates() -> Vec<(String, String)> {
    let entries = std::fs::read_dir(data::folder().join("conformance/idioms")).into_iter().flatten();
    let template = |path: &Path| {
        let name = path.file_name()?.to_str()?.strip_suffix(".hlo")?.to_string();
        Some((name, std::fs::read_to_string(path).ok()?))
    };
    let mut found: Vec<_> = entries.filter_map(|entry| template(&entry.ok()?.path())).collect();
    found.sort();
    found
}

impl Instance {
    /// The program, with generated arguments; results may take the memory of arguments of their shape.
    fn program(&self, seed: u64) -> xla::Result<Program> {
        let mut text = self.template.replace("@last", &(self.cols - 1).to_string());
        for (token, value) in [("@rows", self.rows), ("@cols", self.cols)] {
            text = text.replace(token, &value.to_string());
        }
        let mut module = parse_module(&text.replace("@type", self.ty.name()))?;
        tie(&mut module);
        let entry = module.entry();
        let outputs = match entry[entry.root()].shape() {
            Shape::Tuple(_) => entry[entry.root()].operands().to_vec(),
            _ => vec![entry.root()],
        };
        let mut random = Random::new(seed);
        let parameters = entry.parameters().iter().map(|&id| entry[id].shape().expect_array());
        let arguments: Vec<Literal> = parameters
            .map(|shape| Ok(literal(&mut random, &shape?.clone().with_layout(None), Temper::Smooth).0))
            .collect::<xla::Result<_>>()?;
        let verified = VerifiedModule::new(module.clone())?;
        let expected = evaluate(&verified, arguments.clone())?;
        let leaves = expected.leaves();
        let tolerances = outputs.iter().zip(&leaves).map(|(&id, leaf)| (id, Known::Tolerance(self.tolerance(leaf))));
        let known = tolerances.collect();
        Ok(Program { module, arguments, outputs, known })
    }

    /// Tolerance of a result: roundings of its type for a few dozen operations, and of sums for each of their elements,
    /// relative to its greatest element, since sums may cancel.
    fn tolerance(&self, expected: &Literal) -> Tolerance {
        let ty = expected.array_shape().element_type();
        if !ty.is_float() {
            return Tolerance { rtol: 0.0, atol: 0.0, signed_zero: true };
        }
        let sums = if self.ty == ElementType::F64 { ElementType::F64 } else { ElementType::F32 };
        let (elements, own) = ((self.rows * self.cols) as f64, epsilon(self.ty).max(epsilon(ty)));
        let rtol = 64.0 * own + 2.0 * elements * epsilon(sums);
        let size = |i| match expected.get(i) {
            Scalar::Float(value) if value.is_finite() => value.abs(),
            _ => 0.0,
        };
        let greatest = (0..expected.array_shape().element_count()).map(size).fold(0.0, f64::max);
        Tolerance { rtol, atol: rtol * greatest + 16.0 * own, signed_zero: false }
    }
}

/// Lets each result live in the buffer of the first free parameter of its shape.
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
