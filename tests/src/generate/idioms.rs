//! Idioms of machine learning: programs from the templates in `tests/conformance/idioms`.
//!
//! A template is HLO that JAX traced, with placeholders for sizes and the element type. `generate.py` in that folder
//! writes them.

use std::path::Path;
use std::sync::LazyLock;

use xla_hlo::builder::ModuleBuilder;
use xla_hlo::text::parse_module;
use xla_hlo::{ArrayShape, CompId, ElementType, InstrId, Literal, Module, Result, Scalar, VerifiedModule};

use super::random::Random;
use super::values::{Temper, literal};
use crate::data;

/// Numbers of rows.
pub const ROWS: [usize; 3] = [1, 2, 3];

/// Lengths of rows: vector lengths of each width and multiples of them, each also with one less and one more; primes;
/// numbers of classes.
pub const COLS: [usize; 30] = [
    1, 2, 3, 4, 5, 7, 8, 9, 10, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 97, 100, 127, 128, 129, 255, 257, 1000,
    1001,
];

/// Template with its element types.
#[derive(Debug)]
pub struct Idiom {
    /// Name of the idiom.
    pub name: String,
    /// Element types: wide floats, narrow floats with sums in `f32`, or integers.
    pub types: [ElementType; 2],
    text: String,
}

/// Returns the templates, sorted by the names of their files.
pub fn idioms() -> &'static [Idiom] {
    static IDIOMS: LazyLock<Vec<Idiom>> = LazyLock::new(|| {
        let entries = std::fs::read_dir(data::folder().join("conformance/idioms")).into_iter().flatten();
        let mut found: Vec<_> = entries.filter_map(|entry| template(&entry.ok()?.path())).collect();
        found.sort_by(|a, b| (&a.name, a.types[0].name()).cmp(&(&b.name, b.types[0].name())));
        found
    });
    &IDIOMS
}

fn template(path: &Path) -> Option<Idiom> {
    use ElementType::{BF16, F16, F32, F64, S16, S32};
    let stem = path.file_name()?.to_str()?.strip_suffix(".hlo")?;
    let (name, types) = match stem.split_once('.') {
        Some((name, "narrow")) => (name, [BF16, F16]),
        Some((name, "integer")) => (name, [S32, S16]),
        Some(_) => return None,
        None => (stem, [F32, F64]),
    };
    Some(Idiom { name: name.to_string(), types, text: std::fs::read_to_string(path).ok()? })
}

impl Idiom {
    /// Returns the program for arrays of `rows` x `cols`. Returns an error if the template has no such instance.
    pub fn module(&self, rows: usize, cols: usize, ty: ElementType) -> Result<VerifiedModule> {
        let sizes = [
            ("@rows", rows),
            ("@cols", cols),
            ("@last", cols - 1),
            ("@next", cols + 1),
            ("@after", cols + 2),
            ("@double", 2 * cols),
            ("@half", cols.div_ceil(2)),
        ];
        let text = self.text.replace("@type", ty.name());
        let text = sizes.iter().fold(text, |text, (token, size)| text.replace(token, &size.to_string()));
        VerifiedModule::new(parse_module(&text)?)
    }

    /// Returns an argument. Floats are at most 1, since exponentials of sums of greater products would be dominated by
    /// rounding.
    pub fn argument(random: &mut Random, shape: &ArrayShape, temper: Temper) -> Result<Literal> {
        let (shape, ty) = (shape.clone().with_layout(None), shape.element_type());
        let values = literal(random, &shape, temper).0;
        if !ty.is_float() {
            return Ok(values);
        }
        Literal::from_fn(&shape, |i| match values.get(i) {
            Scalar::Float(value) => Scalar::Float(value * 0.25).rounded(ty),
            value => value,
        })
    }
}

/// Idiom that a program calls.
#[derive(Debug)]
pub struct CalledIdiom {
    /// Program of the idiom.
    pub(super) module: VerifiedModule,
    /// Shapes of the parameters.
    pub(super) parameters: Vec<ArrayShape>,
}

/// Adds a random instance of a random idiom to a module, if there is one.
pub(super) fn make(module: &mut ModuleBuilder, random: &mut Random) -> Option<(CompId, CalledIdiom)> {
    let idiom = idioms().get(random.below(idioms().len().max(1)))?;
    let (rows, cols, ty) = (random.pick(&ROWS), random.pick(&COLS), random.pick(&idiom.types));
    let instance = idiom.module(rows, cols, ty).ok()?;
    let entry = instance.entry();
    let shapes = entry.parameters().iter().map(|&p| entry[p].shape().as_array().cloned());
    let parameters = shapes.collect::<Option<Vec<_>>>()?;
    let id = copied(module, &instance, &idiom.name)?;
    Some((id, CalledIdiom { module: instance, parameters }))
}

/// Copies the computations of a module to another one; returns the copy of the entry, which gets another name.
fn copied(module: &mut ModuleBuilder, from: &Module, name: &str) -> Option<CompId> {
    let mut ids: Vec<(CompId, CompId)> = Vec::new();
    for old in from.post_order() {
        let mut computation = from[old].clone();
        computation.map_called_computations(&mut |id| ids.iter().find(|pair| pair.0 == id).map_or(id, |pair| pair.1));
        let mut b = module.computation(if old == from.entry_id() { name } else { computation.name() });
        let mut new: Vec<(InstrId, InstrId)> = Vec::new();
        let place = |new: &[(InstrId, InstrId)], id| new.iter().find(|pair| pair.0 == id).map(|pair| pair.1);
        for id in computation.post_order() {
            let instruction = &computation[id];
            let operands = instruction.operands().iter().map(|&o| place(&new, o)).collect::<Option<Vec<_>>>()?;
            new.push((id, b.instruction(instruction.op().clone(), Some(instruction.shape().clone()), operands).ok()?));
        }
        let root = place(&new, computation.root())?;
        ids.push((old, b.finish(root)));
    }
    ids.last().map(|pair| pair.1)
}
