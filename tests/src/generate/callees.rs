//! Computations that others call: combiners, scalar functions, branches, loop bodies.

use xla_hlo::builder::{ComputationBuilder, ModuleBuilder};
use xla_hlo::ops::{BinaryOp, CompareDirection};
use xla_hlo::{ArrayShape, CompId, ElementKind, ElementType, InstrId, Shape};

use super::graph::{Graph, Value};
use super::numbers::Numbers;
use super::random::Random;
use super::{Family, STEPS, values::Temper};

/// A computation that is there to be called.
#[derive(Clone, Debug)]
pub struct Callee {
    /// The computation; of a loop the body, of branches the first.
    pub id: CompId,
    /// What it is for.
    pub role: Role,
}

/// What a computation is for.
#[derive(Clone, Debug)]
pub enum Role {
    /// Folds two elements into one.
    Combiner { op: BinaryOp, ty: ElementType },
    /// Gives its second parameter.
    Replace { ty: ElementType },
    /// Of two elements with their places, the greater one, the first of equals.
    Best { ty: ElementType, index: ElementType },
    /// Whether the first of two elements is at least the second.
    Select { ty: ElementType },
    /// Scalars to a scalar.
    Scalar { parameters: Vec<ElementType> },
    /// Arrays to arrays: one, or a tuple of several.
    Function { parameters: Vec<ArrayShape>, results: Vec<Numbers> },
    /// Functions of tuples with the same results.
    Branches { branches: Vec<(CompId, Vec<ArrayShape>)>, by_predicate: bool, results: usize },
    /// A loop over a counter and some arrays.
    Loop { condition: CompId, counter: ElementType, start: i64, state: Vec<ArrayShape> },
}

/// Makes the computations that programs of a family call.
pub fn make(module: &mut ModuleBuilder, random: &mut Random, family: Family, types: &[ElementType]) -> Vec<Callee> {
    let mut callees = Vec::new();
    for _ in 0..random.between(2, 4) {
        let ty = random.pick(types);
        let op = combining(random, ty);
        let id = combiner(module, op, ty);
        callees.push(Callee { id, role: Role::Combiner { op, ty } });
    }
    for ty in [random.pick(types), random.pick(types)] {
        if ty.is_complex() || ty == ElementType::Pred {
            continue;
        }
        let (id, role) = match random.below(3) {
            0 => (replace(module, ty), Role::Replace { ty }),
            1 => {
                let index = random.pick(&[ElementType::S32, ElementType::S64]);
                (best(module, ty, index), Role::Best { ty, index })
            }
            _ => {
                let id = combiner(module, BinaryOp::Add, ty);
                callees.push(Callee { id, role: Role::Combiner { op: BinaryOp::Add, ty } });
                (select(module, ty), Role::Select { ty })
            }
        };
        callees.push(Callee { id, role });
    }
    if matches!(family, Family::Control | Family::Mixed) {
        for _ in 0..random.between(2, 4) {
            let mut maker = Maker { module, random, callees: &callees, types };
            let callee = match maker.random.below(6) {
                0 => maker.scalar(),
                1 => maker.function(),
                2 => maker.branches(),
                _ => maker.looping(),
            };
            callees.push(callee);
        }
    }
    callees
}

/// An operation whose order does not matter but to rounding.
fn combining(random: &mut Random, ty: ElementType) -> BinaryOp {
    use BinaryOp::*;
    match ty.kind() {
        ElementKind::Pred => random.pick(&[And, Or, Xor]),
        ElementKind::Signed | ElementKind::Unsigned => {
            random.pick(&[Add, Add, Multiply, Maximum, Minimum, And, Or, Xor])
        }
        ElementKind::Float => random.pick(&[Add, Add, Add, Maximum, Minimum, Multiply]),
        ElementKind::Complex => Add,
    }
}

const NAME: &str = "a computation of scalars can always be made";

fn combiner(module: &mut ModuleBuilder, op: BinaryOp, ty: ElementType) -> CompId {
    let mut b = module.computation(format!("{}_{ty}", op.opcode()));
    let [x, y] = [(); 2].map(|()| b.parameter(Shape::scalar(ty)).expect(NAME));
    let root = b.instruction(xla_hlo::ops::Binary { op }, None, [x, y]).expect(NAME);
    b.finish(root)
}

fn replace(module: &mut ModuleBuilder, ty: ElementType) -> CompId {
    let mut b = module.computation(format!("replace_{ty}"));
    let [_, y] = [(); 2].map(|()| b.parameter(Shape::scalar(ty)).expect(NAME));
    b.finish(y)
}

fn select(module: &mut ModuleBuilder, ty: ElementType) -> CompId {
    let mut b = module.computation(format!("select_{ty}"));
    let [x, y] = [(); 2].map(|()| b.parameter(Shape::scalar(ty)).expect(NAME));
    let root = b.compare(CompareDirection::Ge, x, y).expect(NAME);
    b.finish(root)
}

fn best(module: &mut ModuleBuilder, ty: ElementType, index: ElementType) -> CompId {
    let mut b = module.computation(format!("best_{ty}"));
    let [x, i, y, j] = [ty, index, ty, index].map(|ty| b.parameter(Shape::scalar(ty)).expect(NAME));
    let mut build = || {
        let greater = b.compare(CompareDirection::Gt, x, y)?;
        let equal = b.compare(CompareDirection::Eq, x, y)?;
        let first = b.compare(CompareDirection::Lt, i, j)?;
        let first = b.and(equal, first)?;
        let stays = b.or(greater, first)?;
        let value = b.select(stays, x, y)?;
        let place = b.select(stays, i, j)?;
        b.tuple([value, place])
    };
    let root = build().expect(NAME);
    b.finish(root)
}

/// Makes computations with bodies of their own.
struct Maker<'a> {
    module: &'a mut ModuleBuilder,
    random: &'a mut Random,
    callees: &'a [Callee],
    types: &'a [ElementType],
}

/// A body that was made: its computation, and what it gives.
struct Body {
    id: CompId,
    results: Vec<Value>,
}

impl Maker<'_> {
    fn graph(&mut self, name: &str) -> Graph<'_> {
        Graph {
            b: self.module.computation(name),
            random: self.random,
            callees: self.callees,
            values: Vec::new(),
            inputs: None,
            types: self.types.to_vec(),
        }
    }

    /// A few parameters.
    fn shapes(&mut self) -> Vec<ArrayShape> {
        let count = self.random.between(1, 3);
        let mut graph = self.graph("shapes");
        (0..count)
            .map(|_| {
                let dims = graph.dims();
                ArrayShape::new(graph.ty(), dims)
            })
            .collect()
    }

    fn scalar(&mut self) -> Callee {
        let parameters: Vec<ElementType> =
            (0..self.random.between(1, 3)).map(|_| self.random.pick(self.types)).collect();
        let mut graph = self.graph("scalar");
        for &ty in &parameters {
            let shape = Shape::scalar(ty);
            graph.put(Some(Numbers::EXACT), |b| b.parameter(shape));
        }
        for _ in 0..graph.random.between(1, 5) {
            let step = graph.random.pick(&STEPS[..6]);
            (step.apply)(&mut graph);
        }
        let root = graph.any(|v| v.numbers.is_exact()).expect("parameters are exact").id;
        Callee { id: graph.b.finish(root), role: Role::Scalar { parameters } }
    }

    fn function(&mut self) -> Callee {
        let parameters = self.shapes();
        let body = self.body("function", &parameters, false, None, Root::ArrayOrTuple);
        let results = body.results.iter().map(|v| v.numbers).collect();
        Callee { id: body.id, role: Role::Function { parameters, results } }
    }

    fn branches(&mut self) -> Callee {
        let by_predicate = self.random.percent(50);
        let count = if by_predicate { 2 } else { self.random.between(1, 4) };
        let parameters = self.shapes();
        let first = self.body("branch", &parameters, true, None, Root::Tuple);
        let results: Vec<ArrayShape> = first.results.iter().map(|v| v.shape.clone()).collect();
        let mut branches = vec![(first.id, parameters)];
        for _ in 1..count {
            let parameters = self.shapes();
            let body = self.body("branch", &parameters, true, Some(&results), Root::Tuple);
            branches.push((body.id, parameters));
        }
        Callee { id: first.id, role: Role::Branches { branches, by_predicate, results: results.len() } }
    }

    fn looping(&mut self) -> Callee {
        use ElementType::*;
        let counter = self.random.pick(&[S32, S32, S32, U32, S64, U8]);
        let (start, step, trips) =
            (self.random.below(3) as i64, self.random.between(1, 2) as i64, self.random.below(6) as i64);
        let arrays = self.shapes();
        let state: Vec<ArrayShape> = std::iter::once(ArrayShape::scalar(counter)).chain(arrays).collect();
        let body = self.body("body", &state, true, Some(&state), Root::State { step });
        let mut b = self.module.computation("condition");
        let shapes: Vec<Shape> = state.iter().cloned().map(Shape::Array).collect();
        let build = || {
            let state = b.parameter(Shape::Tuple(shapes).with_default_layouts())?;
            let i = b.get_tuple_element(state, 0)?;
            let limit = constant(&mut b, counter, start + step * trips)?;
            b.compare(CompareDirection::Lt, i, limit)
        };
        let root = build().expect("a condition can always be made");
        let condition = b.finish(root);
        Callee { id: body.id, role: Role::Loop { condition, counter, start, state } }
    }

    /// A computation of arrays (as several parameters, or as one tuple) that gives arrays, those of `wanted` or any.
    fn body(
        &mut self,
        name: &str,
        parameters: &[ArrayShape],
        as_tuple: bool,
        wanted: Option<&[ArrayShape]>,
        root: Root,
    ) -> Body {
        let mut graph = self.graph(name);
        graph.take_parameters(parameters, as_tuple);
        let counter = graph.values.first().cloned();
        for _ in 0..graph.random.between(1, 7) {
            graph.step(Family::Mixed);
        }
        let mut results = match wanted {
            Some(shapes) => shapes
                .iter()
                .map(|shape| graph.like(shape.element_type(), shape.dims(), Numbers::is_exact))
                .collect::<Vec<_>>(),
            None => (0..graph.random.between(1, 3)).filter_map(|_| graph.any(|v| v.numbers.is_exact())).collect(),
        };
        if let (Root::State { step }, Some(counter)) = (&root, counter) {
            let step = graph.scalar(counter.ty(), *step);
            let next = graph.put(Some(Numbers::EXACT), |b| b.add(counter.id, step));
            results[0] = next.expect("counters can be added to");
        }
        if results.is_empty() {
            results.push(graph.leaf(ElementType::S32, &[], Temper::Grid));
        }
        let ids: Vec<InstrId> = results.iter().map(|v| v.id).collect();
        let single = ids.len() == 1 && matches!(root, Root::ArrayOrTuple);
        let root = if single { ids[0] } else { graph.b.tuple(ids).expect("a tuple can always be made") };
        Body { id: graph.b.finish(root), results }
    }
}

/// What a body gives.
enum Root {
    /// A tuple.
    Tuple,
    /// An array if it is one, else a tuple.
    ArrayOrTuple,
    /// A tuple of the loop's state, its counter advanced.
    State { step: i64 },
}

fn constant(b: &mut ComputationBuilder<'_>, ty: ElementType, value: i64) -> xla_hlo::Result<InstrId> {
    b.constant(xla_hlo::Literal::scalar(ty, xla_hlo::Scalar::from_i64(ty, value)))
}
