//! Random programs: well-typed, of moderate size, and permanently determined by their seed.
//!
//! ```
//! use xla_tests::generate::{Family, program};
//!
//! let program = program(Family::Mixed, 7);
//! assert_eq!(program.module.entry().parameters().len(), program.arguments.len());
//! ```

mod bits;
mod callee;
mod callees;
mod calls;
mod control;
mod convolutions;
mod devices;
mod dynamic;
mod effects;
mod elementwise;
mod family;
mod graph;
mod idiom_calls;
mod idioms;
mod indexing;
mod linalg;
mod movement;
mod numbers;
mod numerics;
mod patterns;
mod random;
mod reductions;
mod sorting;
mod steps;
mod values;

use std::collections::BTreeMap;

use xla::compare::Tolerance;
use xla_hlo::builder::ModuleBuilder;
use xla_hlo::{ElementType, InputOutputAlias, InstrId, Module, ParameterLeaf, Shape};

use crate::program::{Known, Program, set_outputs};

pub use family::Family;
pub use graph::Value;
use graph::{Graph, SizeClass};
pub use idioms::{COLS, CalledIdiom, Idiom, ROWS, idioms};
pub use numbers::{Noise, Numbers, epsilon, least};
pub use random::Random;
pub use values::{Temper, literal};

/// Returns the element types of a program: mostly common ones, rarely any other.
fn types(random: &mut Random, family: Family) -> Vec<ElementType> {
    use ElementType::*;
    let common = [F32, F32, F32, S32, S32, BF16, F16, F64, Pred, S8, U8, U32, S64];
    let rare = if family == Family::Elementwise { 60 } else { 20 };
    (0..random.between(1, 4))
        .map(|_| if random.percent(rare) { random.pick(ElementType::ALL) } else { random.pick(&common) })
        .collect()
}

/// Generates the program of a family and a seed.
pub fn program(family: Family, seed: u64) -> Program {
    let mut random = Random::new(seed ^ (family as u64) << 56);
    let types = types(&mut random, family);
    let mut module = ModuleBuilder::new(format!("{}_{seed}", family.name()));
    let callees = callees::make(&mut module, &mut random, family, &types);
    let mut graph = Graph {
        b: module.computation("main"),
        random: &mut random,
        callees: &callees,
        values: Vec::new(),
        inputs: Some(Vec::new()),
        tolerances: BTreeMap::new(),
        parameters: Vec::new(),
        sizes: if family == Family::Large { SizeClass::Large } else { SizeClass::Small },
        types,
    };
    for _ in 0..graph.random.between(1, 2) {
        let (ty, dims) = (graph.ty(), graph.dims());
        let temper = Temper::any(graph.random);
        graph.leaf(ty, &dims, temper);
    }
    let wanted = if family == Family::Large { graph.random.between(1, 5) } else { graph.random.between(2, 14) };
    let mut done = 0;
    for _ in 0..10 * wanted {
        done += usize::from(graph.step(family).is_some());
        if done == wanted {
            break;
        }
    }
    let Graph { b, inputs, values, tolerances, .. } = graph;
    let last = values.last().expect("a program begins with a value").id;
    let main = b.finish(last);
    let module = module.finish(main).unwrap_or_else(|error| panic!("{} {seed}: {error}", family.name()));
    let mut module = module.into_inner();
    let outputs = choose_outputs(&mut module, &mut random, &values);
    if random.percent(25) {
        tie(&mut module, &mut random, &outputs);
    }
    Program {
        module,
        arguments: inputs.unwrap_or_default(),
        outputs,
        known: values.into_iter().map(|v| (v.id, known(&v, &tolerances))).collect(),
    }
}

fn known(value: &Value, tolerances: &BTreeMap<InstrId, Tolerance>) -> Known {
    tolerances.get(&value.id).map_or(Known::Numbers(value.numbers), |&tolerance| Known::Tolerance(tolerance))
}

/// Makes most of the unused values, and some others, results.
fn choose_outputs(module: &mut Module, random: &mut Random, values: &[Value]) -> Vec<InstrId> {
    let entry = module.entry_id();
    let main = module.computation_mut(entry);
    let mut outputs: Vec<InstrId> = Vec::new();
    for value in values {
        let chance = if main[value.id].users().is_empty() { 90 } else { 8 };
        if random.percent(chance) {
            outputs.push(value.id);
        }
    }
    if outputs.is_empty() {
        outputs.push(main.root());
    }
    set_outputs(main, &outputs, outputs.len() > 1 || random.percent(20));
    outputs
}

/// Aliases some outputs with parameters of equal shape.
fn tie(module: &mut Module, random: &mut Random, outputs: &[InstrId]) {
    let main = module.entry();
    let is_tuple = matches!(main.result_shape(), Shape::Tuple(_));
    let mut free: Vec<usize> = (0..main.parameters().len()).collect();
    let mut aliases = Vec::new();
    for (i, &output) in outputs.iter().enumerate() {
        let fits = |&number: &usize| main[main.parameters()[number]].shape() == main[output].shape();
        let Some(at) = free.iter().position(fits).filter(|_| random.percent(60)) else { continue };
        let parameter = ParameterLeaf { parameter: free.remove(at), path: Vec::new() };
        let output = if is_tuple { vec![i] } else { vec![] };
        aliases.push(InputOutputAlias { output, parameter, must_alias: random.percent(30) });
    }
    module.attributes_mut().input_output_alias = aliases;
}
