//! Random programs: typed, of moderate size, the same for the same seed for ever.
//!
//! ```
//! use xla_tests::generate::{Family, program};
//!
//! let program = program(Family::Mixed, 7);
//! assert_eq!(program.module.entry().parameters().len(), program.arguments.len());
//! ```

mod bits;
mod callees;
mod calls;
mod control;
mod convolutions;
mod devices;
mod dynamic;
mod effects;
mod elementwise;
mod graph;
mod indexing;
mod linalg;
mod movement;
mod numbers;
mod numerics;
mod patterns;
mod random;
mod reductions;
mod sorting;
mod values;

use xla_hlo::builder::ModuleBuilder;
use xla_hlo::ops::Tuple;
use xla_hlo::{Computation, ElementType, InputOutputAlias, InstrId, Instruction, Module, ParameterLeaf, Shape};

use crate::program::{Known, Program};

pub use graph::Value;
use graph::{Graph, Sizes};
pub use numbers::{Noise, Numbers, epsilon, least};
pub use random::Random;
pub use values::{Temper, literal};

/// What programs are mostly made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Operations on one element at a time, of every element type.
    Elementwise,
    /// Operations that move elements.
    Movement,
    /// Reductions over dimensions.
    Reduction,
    /// Reductions over windows.
    Window,
    /// Sums of products.
    Dot,
    /// Gather and scatter.
    Indexing,
    /// Loops, branches, calls.
    Control,
    /// All of it.
    Mixed,
    /// Arrays so large that they are worth several threads.
    Large,
    /// What few programs have: sizes known when running, collectives, tokens, random bits, custom calls.
    Rare,
}

impl Family {
    /// All of them.
    pub const ALL: [Family; 10] = [
        Family::Elementwise,
        Family::Movement,
        Family::Reduction,
        Family::Window,
        Family::Dot,
        Family::Indexing,
        Family::Control,
        Family::Mixed,
        Family::Large,
        Family::Rare,
    ];

    /// The name in lower case.
    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// The family of that name.
    pub fn from_name(name: &str) -> Option<Family> {
        Family::ALL.into_iter().find(|family| family.name() == name)
    }
}

/// A way to add to a computation, and how often each family takes it.
#[derive(Clone, Copy)]
struct Step {
    apply: fn(&mut Graph<'_>) -> Option<Value>,
    weights: [usize; 10],
}

macro_rules! steps {
    ($($method:ident $weights:expr;)*) => {
        /// Families in the order of [`Family::ALL`]. The first six suit scalars.
        const STEPS: &[Step] = &[$(Step { apply: |graph| graph.$method(), weights: $weights },)*];
    };
}

steps! {
    unary [20, 3, 4, 2, 3, 3, 4, 6, 6, 6];
    binary [20, 4, 5, 3, 4, 4, 6, 8, 10, 6];
    compare [5, 1, 1, 1, 0, 1, 2, 2, 2, 2];
    select [4, 2, 1, 1, 0, 1, 2, 2, 2, 2];
    clamp [3, 0, 1, 0, 0, 0, 1, 1, 1, 1];
    convert [8, 1, 2, 1, 2, 2, 2, 3, 4, 4];
    reduce_precision [2, 0, 0, 0, 0, 0, 0, 1, 0, 3];
    bitcast_convert [3, 1, 0, 0, 0, 0, 0, 1, 1, 1];
    broadcast [1, 4, 3, 1, 2, 2, 2, 3, 4, 2];
    reshape [1, 4, 3, 1, 2, 2, 2, 3, 4, 2];
    transpose [1, 4, 3, 1, 2, 2, 2, 3, 6, 2];
    slice [0, 4, 2, 1, 1, 1, 1, 2, 3, 1];
    pad [0, 4, 1, 1, 1, 1, 1, 2, 3, 1];
    concatenate [0, 4, 1, 1, 1, 1, 2, 2, 3, 2];
    reverse [0, 3, 1, 1, 1, 1, 1, 1, 2, 0];
    dynamic_slice [0, 4, 1, 0, 1, 1, 4, 2, 2, 1];
    dynamic_update_slice [0, 4, 1, 0, 0, 1, 6, 2, 3, 1];
    regroup [1, 2, 1, 1, 1, 1, 2, 1, 1, 2];
    reduce [1, 1, 20, 2, 3, 2, 3, 4, 10, 3];
    reduce_window [0, 0, 1, 12, 0, 0, 0, 1, 0, 0];
    select_and_scatter [0, 0, 0, 8, 0, 0, 0, 1, 0, 0];
    dot [0, 0, 1, 0, 12, 1, 1, 2, 4, 1];
    ragged_dot [0, 0, 1, 0, 5, 1, 1, 2, 1, 3];
    scan [0, 0, 4, 0, 0, 0, 3, 2, 0, 4];
    batch_norm [0, 0, 3, 0, 0, 0, 0, 1, 1, 6];
    fft [0, 0, 1, 0, 3, 0, 0, 1, 1, 0];
    cholesky [0, 0, 0, 0, 2, 0, 0, 1, 1, 0];
    triangular_solve [0, 0, 0, 0, 2, 0, 0, 1, 1, 0];
    convolution [0, 0, 0, 2, 8, 0, 0, 2, 1, 0];
    gather [0, 0, 0, 0, 0, 10, 1, 2, 1, 1];
    scatter [0, 0, 0, 0, 0, 10, 1, 2, 1, 1];
    sort [0, 3, 1, 0, 0, 4, 1, 3, 2, 1];
    top_k [0, 2, 1, 0, 0, 3, 1, 2, 1, 3];
    call [0, 0, 0, 0, 0, 0, 20, 6, 0, 6];
    normalize [0, 0, 8, 0, 2, 0, 2, 3, 4, 0];
    rng_bit_generator [0, 0, 0, 0, 0, 0, 1, 1, 0, 5];
    rng [0, 0, 0, 0, 0, 0, 0, 0, 0, 2];
    stochastic_convert [1, 0, 0, 0, 0, 0, 0, 1, 0, 4];
    collective [0, 0, 0, 0, 0, 0, 2, 1, 1, 12];
    effect [0, 0, 0, 0, 0, 0, 4, 2, 1, 8];
    dynamic [0, 1, 2, 0, 1, 0, 2, 2, 0, 16];
    custom_call [0, 0, 0, 0, 1, 0, 0, 1, 0, 5];
}

impl Graph<'_> {
    /// One more operation, if the one that is tried finds what it takes.
    fn step(&mut self, family: Family) -> Option<Value> {
        let weight = |step: &Step| step.weights[family as usize];
        let mut at = self.random.below(STEPS.iter().map(weight).sum());
        for step in STEPS {
            match at.checked_sub(weight(step)) {
                Some(rest) => at = rest,
                None => return (step.apply)(self),
            }
        }
        None
    }
}

/// Element types of a program: mostly the common ones, each of them sometimes.
fn types(random: &mut Random, family: Family) -> Vec<ElementType> {
    use ElementType::*;
    let common = [F32, F32, F32, S32, S32, BF16, F16, F64, Pred, S8, U8, U32, S64];
    let rare = if family == Family::Elementwise { 60 } else { 20 };
    (0..random.between(1, 4))
        .map(|_| if random.percent(rare) { random.pick(ElementType::ALL) } else { random.pick(&common) })
        .collect()
}

/// The program of a family that belongs to a seed.
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
        sizes: if family == Family::Large { Sizes::Large } else { Sizes::Small },
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
    let Graph { b, inputs, values, .. } = graph;
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
        known: values.into_iter().map(|v| (v.id, Known::Numbers(v.numbers))).collect(),
    }
}

/// Makes most of the values that nobody uses, and some others, results.
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

/// Lets some outputs live in the buffers of parameters of their shape.
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

/// Makes arrays the result of a computation: as a tuple, or the only one by itself.
pub(crate) fn set_outputs(computation: &mut Computation, outputs: &[InstrId], as_tuple: bool) {
    if let ([one], false) = (outputs, as_tuple) {
        computation.set_root(*one);
        return;
    }
    let shape = Shape::Tuple(outputs.iter().map(|&id| computation[id].shape().clone()).collect());
    let root = computation.add(Instruction::new(Tuple.into(), shape, outputs));
    computation.set_root(root);
}
