//! Generator of callees: combiners, scalar functions, branches, loop bodies.

use std::collections::BTreeMap;
use std::rc::Rc;

use xla_hlo::builder::{ComputationBuilder, ModuleBuilder};
use xla_hlo::ops::{BinaryOp, Compare, CompareDirection, CompareType};
use xla_hlo::{ArrayShape, CompId, ElementKind, ElementType, InstrId, Literal, Scalar, Shape};

use super::callee::{Callee, CalleeRole, Packing, Slot};
use super::family::Family;
use super::graph::{Graph, SizeClass, Value};
use super::idioms;
use super::numbers::Numbers;
use super::random::Random;
use super::steps::STEPS;
use super::values::{self, Temper};

/// Generates the computations that programs of a family call.
pub fn make(module: &mut ModuleBuilder, random: &mut Random, family: Family, types: &[ElementType]) -> Vec<Callee> {
    let mut callees = Vec::new();
    for _ in 0..random.between(2, 4) {
        let ty = random.pick(types);
        let op = combining(random, ty);
        let id = combiner(module, op, ty);
        callees.push(Callee::new(id, CalleeRole::Combiner { op, ty }));
    }
    for ty in [random.pick(types), random.pick(types)] {
        if ty.is_complex() || ty == ElementType::Pred {
            continue;
        }
        let (id, role) = match random.below(3) {
            0 => (replace(module, ty), CalleeRole::Replace { ty }),
            1 => {
                let index = random.pick(&[ElementType::S32, ElementType::S64]);
                (best(module, ty, index), CalleeRole::Best { ty, index })
            }
            _ => {
                let id = combiner(module, BinaryOp::Add, ty);
                callees.push(Callee::new(id, CalleeRole::Combiner { op: BinaryOp::Add, ty }));
                (select(module, ty), CalleeRole::Select { ty })
            }
        };
        callees.push(Callee::new(id, role));
    }
    let mut sorted: Vec<ElementType> = (0..random.between(1, 3)).map(|_| random.pick(types)).collect();
    sorted.extend(random.percent(30).then_some(ElementType::S32));
    callees.push(Callee::new(order(module, random, &sorted), CalleeRole::Order { types: sorted }));
    if matches!(family, Family::Control | Family::Mixed | Family::Rare) {
        for _ in 0..random.between(2, 4) {
            let mut maker = Maker { module, random, callees: &callees, types };
            let callee = match maker.random.below(7) {
                0 => maker.scalar(),
                1 => maker.function(),
                2 => maker.branches(),
                3 => maker.async_function(),
                _ => maker.looping(),
            };
            callees.push(callee);
        }
    }
    if family == Family::Idioms {
        for _ in 0..random.between(1, 3) {
            let called = idioms::make(module, random);
            callees.extend(called.map(|(id, idiom)| Callee::new(id, CalleeRole::Idiom(Rc::new(idiom)))));
        }
    }
    callees
}

/// Returns an operation that is associative and commutative up to rounding.
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

/// Generates a strict weak order of positions by one or two of the arrays: in the form that frontends write, or one
/// that must be evaluated to be understood.
fn order(module: &mut ModuleBuilder, random: &mut Random, types: &[ElementType]) -> CompId {
    let mut b = module.computation("before");
    let pairs: Vec<(InstrId, InstrId, ElementType)> = types
        .iter()
        .map(|&ty| {
            let [x, y] = [(); 2].map(|()| b.parameter(Shape::scalar(ty)).expect(NAME));
            (x, y, ty)
        })
        .collect();
    let one_zero = random.percent(40);
    let (first, second) = (random.pick(&pairs), random.pick(&pairs));
    let direction = random.pick(&[CompareDirection::Lt, CompareDirection::Gt]);
    let both = random.percent(40);
    let mut build = || {
        let before = ordered(&mut b, direction, first, one_zero)?;
        if !both {
            return Ok(before);
        }
        let equal = ordered(&mut b, CompareDirection::Eq, first, one_zero)?;
        let then = ordered(&mut b, CompareDirection::Lt, second, false)?;
        let then = b.and(equal, then)?;
        b.or(before, then)
    };
    let root: xla_hlo::Result<InstrId> = build();
    b.finish(root.expect(NAME))
}

/// Generates a total-order comparison, for floats optionally with equal zeros and equal NaNs; complex numbers are
/// compared by their real parts.
fn ordered(
    b: &mut ComputationBuilder<'_>,
    direction: CompareDirection,
    (x, y, ty): (InstrId, InstrId, ElementType),
    one_zero: bool,
) -> xla_hlo::Result<InstrId> {
    use ElementType::{BF16, F16, F32, F64};
    let mut key = |x| {
        if ty.is_complex() {
            return b.real(x);
        }
        if !one_zero || ![BF16, F16, F32, F64].contains(&ty) {
            return Ok(x);
        }
        let zero = b.constant(Literal::scalar(ty, Scalar::Float(0.0)))?;
        let nan = b.constant(Literal::scalar(ty, Scalar::Float(f64::NAN)))?;
        let is_zero = b.compare(CompareDirection::Eq, x, zero)?;
        let is_nan = b.compare(CompareDirection::Ne, x, x)?;
        let plain = b.select(is_zero, zero, x)?;
        b.select(is_nan, nan, plain)
    };
    let (x, y) = (key(x)?, key(y)?);
    let is_float = ty.is_float() || ty.is_complex();
    let order = is_float.then_some(CompareType::TotalOrder);
    b.instruction(Compare { direction, order }, None, [x, y])
}

/// Generator of computations with random bodies.
struct Maker<'a> {
    module: &'a mut ModuleBuilder,
    random: &'a mut Random,
    callees: &'a [Callee],
    types: &'a [ElementType],
}

/// Generated body: its computation, and its results.
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
            tolerances: BTreeMap::new(),
            parameters: Vec::new(),
            sizes: SizeClass::Callee,
            types: self.types.to_vec(),
        }
    }

    /// Returns a few parameters. Floats are a few small numbers whose sums are exact, or arbitrary.
    fn slots(&mut self) -> Vec<Slot> {
        let count = self.random.between(1, 3);
        let mut graph = self.graph("shapes");
        let mut slot = || {
            let dims = graph.dims();
            let shape = ArrayShape::new(graph.ty(), dims);
            let is_tame = shape.element_type().is_float() && graph.random.percent(60);
            let numbers = if is_tame { tame(shape.element_type()) } else { Numbers::EXACT };
            Slot { shape, numbers }
        };
        (0..count).map(|_| slot()).collect()
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
        let root = graph.any(|v| v.numbers.is_settled()).expect("parameters are exact").id;
        Callee::new(graph.b.finish(root), CalleeRole::Scalar { parameters })
    }

    fn function(&mut self) -> Callee {
        let parameters = self.slots();
        let body = self.body("function", &parameters, Packing::Separate, None, Root::ArrayOrTuple);
        let results = body.results.iter().map(|v| v.numbers).collect();
        Callee::new(body.id, CalleeRole::Function { parameters, results })
    }

    fn async_function(&mut self) -> Callee {
        let function = self.function();
        let role = match function.role {
            CalleeRole::Function { parameters, results } => CalleeRole::Async { parameters, results },
            other => other,
        };
        Callee::new(function.id, role)
    }

    fn branches(&mut self) -> Callee {
        let by_predicate = self.random.percent(50);
        let packing = Packing::any(self.random);
        let count = if by_predicate { 2 } else { self.random.between(1, 4) };
        let parameters = self.slots();
        let first = self.body("branch", &parameters, packing, None, Root::Tuple);
        let results: Vec<Slot> =
            first.results.iter().map(|v| Slot { shape: v.shape.clone(), numbers: v.numbers }).collect();
        let mut branches = vec![(first.id, parameters)];
        let mut numbers: Vec<Numbers> = results.iter().map(|slot| slot.numbers).collect();
        for _ in 1..count {
            let parameters = self.slots();
            let body = self.body("branch", &parameters, packing, Some(&results), Root::Tuple);
            for (known, result) in numbers.iter_mut().zip(&body.results) {
                *known = Numbers::either(result.ty(), known, &result.numbers).unwrap_or(Numbers::EXACT);
            }
            branches.push((body.id, parameters));
        }
        Callee::new(first.id, CalleeRole::Branches { branches, by_predicate, packing, results: numbers })
    }

    fn looping(&mut self) -> Callee {
        use ElementType::*;
        let counter = self.random.pick(&[S32, S32, S32, U32, S64, U8]);
        let packing = Packing::any(self.random);
        let (start, step, trips) =
            (self.random.below(3) as i64, self.random.between(1, 2) as i64, self.random.below(6) as i64);
        let counting = Slot { shape: ArrayShape::scalar(counter), numbers: Numbers::EXACT };
        let state: Vec<Slot> = std::iter::once(counting).chain(self.slots()).collect();
        let body = self.body("body", &state, packing, Some(&state), Root::State { step });
        let mut b = self.module.computation("condition");
        let shapes: Vec<Shape> = state.iter().map(|slot| Shape::Array(slot.shape.clone())).collect();
        let build = || {
            let state = b.parameter(packing.shape(shapes).with_default_layouts())?;
            let i = b.get_tuple_element(state, 0)?;
            let limit = Literal::scalar(counter, Scalar::from_i64(counter, start + step * trips));
            let limit = b.constant(limit)?;
            b.compare(CompareDirection::Lt, i, limit)
        };
        let root = build().expect("a condition can always be made");
        let condition = b.finish(root);
        Callee::new(body.id, CalleeRole::Loop { condition, counter, start, packing, state })
    }

    /// Generates a computation of arrays (as several parameters, or as one tuple) that returns arrays: those of
    /// `wanted`, or arbitrary ones.
    fn body(&mut self, name: &str, parameters: &[Slot], packing: Packing, wanted: Option<&[Slot]>, root: Root) -> Body {
        let mut graph = self.graph(name);
        graph.take_parameters(parameters, packing);
        let counter = graph.values.first().cloned();
        for _ in 0..graph.random.between(1, 8) {
            graph.step(Family::Mixed);
        }
        let mut results: Vec<Value> = match wanted {
            Some(slots) => slots.iter().map(|slot| graph.wanted(slot)).collect(),
            None => (0..graph.random.between(1, 3)).filter_map(|_| graph.any(|v| v.numbers.is_settled())).collect(),
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
        let root = if single { Ok(ids[0]) } else { packing.tuple(&mut graph.b, ids) };
        let root = root.expect("a tuple can always be made");
        Body { id: graph.b.finish(root), results }
    }
}

/// Returns the properties of numbers that [`Temper::Grid`] generates.
fn tame(ty: ElementType) -> Numbers {
    let (bound, grid) = values::extent(ty, Temper::Grid);
    Numbers { grid, patterns: false, ..Numbers::within(bound) }
}

impl Graph<'_> {
    /// Returns a required result of a computation: an existing value, limited in range if necessary, or a new one.
    fn wanted(&mut self, slot: &Slot) -> Value {
        let (ty, dims) = (slot.shape.element_type(), slot.shape.dims());
        if slot.numbers.grid > 0.0 && self.random.percent(80) {
            let fits = |v: &Value| v.ty() == ty && v.dims() == dims && v.numbers.is_settled() && v.numbers.bound < 1e4;
            if let Some(value) = self.any(fits).and_then(|x| self.tamed(&x)) {
                return value;
            }
        }
        self.like(ty, dims, |n| slot.accepts(n))
    }

    /// Rounds a value to whole numbers and clamps it.
    fn tamed(&mut self, x: &Value) -> Option<Value> {
        if x.ty() == ElementType::F8E8M0FNU {
            return None;
        }
        let (low, high) = (self.scalar(x.ty(), -4), self.scalar(x.ty(), 4));
        let numbers = Numbers { zeros: x.numbers.zeros, ..tame(x.ty()) };
        self.put(Some(numbers), |b| {
            let rounded = b.round_nearest_even(x.id)?;
            // The bounds are not zero, so that zeros keep their signs.
            b.clamp(low, rounded, high)
        })
    }
}

/// Root of a body.
enum Root {
    /// Tuple.
    Tuple,
    /// Array if there is one result, otherwise a tuple.
    ArrayOrTuple,
    /// Tuple of the loop's state with the counter advanced.
    State { step: i64 },
}
