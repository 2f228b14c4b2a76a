//! Writer of random programs for several devices as HLO text: computations, loops and branches.

use std::collections::BTreeSet;

use xla_hlo::eval::grid::Grid;
use xla_hlo::{ArrayShape, ElementType, Literal, Scalar};

use super::values::{self, Kinds, TYPES, Value};
use crate::generate::Random;

/// Maximum depth of loops and branches.
const DEPTH: usize = 2;

/// Program under construction.
pub struct Writer<'r> {
    pub random: &'r mut Random,
    pub grid: Grid,
    pub kinds: Kinds,
    /// Computations that are complete.
    computations: String,
    /// Names of the combiners among them.
    combiners: BTreeSet<String>,
    names: usize,
    pub channels: usize,
    /// Shapes of the parameters, and the arguments of each device.
    parameters: Vec<(String, String)>,
    arguments: Vec<Vec<Literal>>,
}

/// Computation under construction.
pub struct Body {
    pub text: String,
    pub values: Vec<Value>,
    /// Predicate that is equal on all devices.
    flag: String,
    /// Number of iterations that is equal on all devices.
    count: String,
    /// Operations that were started: the text of their ends, and the arrays that they return.
    pub pending: Vec<(String, Vec<Value>)>,
    pub depth: usize,
    /// Whether all devices execute the computation equally often, so that it may have collectives.
    pub is_uniform: bool,
}

impl<'r> Writer<'r> {
    pub fn new(random: &'r mut Random, grid: Grid, kinds: Kinds) -> Writer<'r> {
        let arguments = vec![Vec::new(); grid.device_count()];
        Writer {
            random,
            grid,
            kinds,
            computations: String::new(),
            combiners: BTreeSet::new(),
            names: 0,
            channels: 0,
            parameters: Vec::new(),
            arguments,
        }
    }

    /// Returns the text of a whole program, and the arguments of each device.
    pub fn program(mut self, name: &str) -> (String, Vec<Vec<Literal>>) {
        let (flag, count) = (self.random.percent(50), self.random.between(0, 3));
        let flag = Literal::scalar(ElementType::Pred, Scalar::Pred(flag));
        let count = Literal::scalar(ElementType::S32, Scalar::Signed(count as i64));
        let flag = self.parameter(|_| flag.clone()).name;
        let count = self.parameter(|_| count.clone()).name;
        let mut body = Body {
            text: String::new(),
            values: Vec::new(),
            flag,
            count,
            pending: Vec::new(),
            depth: 0,
            is_uniform: true,
        };
        for _ in 0..self.random.between(2, 4) {
            let value = self.array();
            body.values.push(value);
        }
        let wanted = self.random.between(3, 10);
        self.steps(&mut body, wanted);
        let mut results: Vec<Value> = body.values.iter().rev().take(4).cloned().collect();
        results.extend(body.values.iter().filter(|_| self.random.percent(15)).cloned());
        let root = self.tuple(&results);
        let Grid { replicas, partitions } = self.grid;
        let parameters: String = self
            .parameters
            .iter()
            .enumerate()
            .map(|(i, (name, shape))| format!("  {name} = {shape} parameter({i})\n"))
            .collect();
        let text = format!(
            "HloModule {name}, replica_count={replicas}, num_partitions={partitions}\n\n{}ENTRY main {{\n{parameters}\
             {}  ROOT {root}\n}}\n",
            self.computations, body.text
        );
        (text, self.arguments)
    }

    /// Returns a new name.
    pub fn name(&mut self) -> String {
        self.names += 1;
        format!("v{}", self.names)
    }

    /// Adds a parameter of the entry with a value for each device.
    pub fn parameter(&mut self, mut value: impl FnMut(usize) -> Literal) -> Value {
        let name = self.name();
        let literals: Vec<Literal> = (0..self.grid.device_count()).map(&mut value).collect();
        let shape: ArrayShape = literals[0].array_shape().clone();
        self.parameters.push((name.clone(), shape.to_string()));
        self.arguments.iter_mut().zip(literals).for_each(|(list, literal)| list.push(literal));
        Value { name, ty: shape.element_type(), dims: shape.dims().to_vec() }
    }

    /// Adds a parameter of random values, which differ between devices.
    fn array(&mut self) -> Value {
        let (ty, dims) = (self.random.pick(TYPES), values::dims(self.random));
        let literals: Vec<Literal> =
            (0..self.grid.device_count()).map(|_| values::literal(self.random, self.kinds, ty, &dims)).collect();
        self.parameter(|device| literals[device].clone())
    }

    /// Adds an instruction with one array as its result.
    pub fn put(&mut self, body: &mut Body, ty: ElementType, dims: &[usize], operation: &str) -> Value {
        let value = Value { name: self.name(), ty, dims: dims.to_vec() };
        body.text += &format!("  {} = {} {operation}\n", value.name, value.shape());
        body.values.push(value.clone());
        value
    }

    /// Returns the text of a tuple, without adding it, as `name = shape tuple(...)`.
    fn tuple(&mut self, values: &[Value]) -> String {
        format!("{} = {} tuple({})", self.name(), shapes(values), names(values))
    }

    /// Adds the elements of a tuple to the values.
    pub fn elements(&mut self, body: &mut Body, tuple: &str, values: &[Value]) {
        for (i, value) in values.iter().enumerate() {
            self.put(body, value.ty, &value.dims, &format!("get-tuple-element({tuple}), index={i}"));
        }
    }

    /// Returns the name of a computation that combines two scalars.
    pub fn combiner(&mut self, ty: ElementType, op: &str) -> String {
        let name = format!("{op}_{}", ty.name());
        if self.combiners.insert(name.clone()) {
            let shape = values::shape(ty, &[]);
            let last = match op {
                // An operation that is neither associative nor commutative.
                "mixed" => format!("d = {shape} add(a, a)\n  ROOT c = {shape} subtract(d, b)"),
                op => format!("ROOT c = {shape} {op}(a, b)"),
            };
            self.computations +=
                &format!("{name} {{\n  a = {shape} parameter(0)\n  b = {shape} parameter(1)\n  {last}\n}}\n\n");
        }
        name
    }

    /// Adds some steps; ends all operations that were started.
    fn steps(&mut self, body: &mut Body, wanted: usize) {
        let mut done = 0;
        for _ in 0..10 * wanted {
            done += usize::from(self.step(body).is_some());
            if !body.pending.is_empty() && self.random.percent(50) {
                self.end(body);
            }
            if done >= wanted {
                break;
            }
        }
        while !body.pending.is_empty() {
            self.end(body);
        }
    }

    fn step(&mut self, body: &mut Body) -> Option<()> {
        match self.random.below(20) {
            0 | 1 if body.depth < DEPTH => self.repeated(body),
            2 if body.depth < DEPTH => self.branch(body),
            3 if body.depth < DEPTH => self.own_branch(body),
            4..=8 => self.local(body),
            _ if body.is_uniform => self.collective(body),
            _ => self.local(body),
        }
    }

    /// Ends the oldest operation that was started.
    fn end(&mut self, body: &mut Body) {
        let (text, results) = body.pending.remove(0);
        self.put_all(body, &results, &text);
    }

    /// Adds an operation that returns one array, or a tuple of several.
    pub fn put_all(&mut self, body: &mut Body, results: &[Value], text: &str) {
        if let [one] = results {
            self.put(body, one.ty, &one.dims, text);
            return;
        }
        let name = self.name();
        body.text += &format!("  {name} = {} {text}\n", shapes(results));
        self.elements(body, &name, results);
    }

    /// Returns a random array.
    pub fn any(&mut self, body: &Body, accept: impl Fn(&Value) -> bool) -> Option<Value> {
        let fit: Vec<&Value> = body.values.iter().filter(|value| accept(value)).collect();
        (!fit.is_empty()).then(|| self.random.pick(&fit).clone())
    }

    /// Writes a computation of a tuple: flag, count, counter of a loop, and state. Returns its name. The result has the
    /// same shape.
    fn computation(&mut self, around: &Body, state: &[Value], is_uniform: bool, is_loop: bool) -> String {
        let (name, parameter) = (format!("f{}", self.name()), self.name());
        let head = head(is_loop);
        let tuple = format!("({}{}{})", head.join(", "), if state.is_empty() { "" } else { ", " }, plain(state));
        let names: Vec<String> = head.iter().map(|_| self.name()).collect();
        let mut text = format!("{name} {{\n  {parameter} = {tuple} parameter(0)\n");
        for (i, (name, shape)) in names.iter().zip(head).enumerate() {
            text += &format!("  {name} = {shape} get-tuple-element({parameter}), index={i}\n");
        }
        let mut body = Body {
            text,
            values: Vec::new(),
            flag: names[0].clone(),
            count: names[1].clone(),
            pending: Vec::new(),
            depth: around.depth + 1,
            is_uniform,
        };
        for (i, value) in state.iter().enumerate() {
            let operation = format!("get-tuple-element({parameter}), index={}", i + head.len());
            self.put(&mut body, value.ty, &value.dims, &operation);
        }
        let wanted = self.random.between(1, 4);
        self.steps(&mut body, wanted);
        let results: Vec<String> = state
            .iter()
            .map(|slot| {
                let last = body.values.iter().rev().find(|value| value.is_like(slot));
                last.map_or_else(String::new, |value| value.name.clone())
            })
            .collect();
        let mut first = names.clone();
        if is_loop {
            let (one, next) = (self.name(), self.name());
            body.text += &format!("  {one} = s32[] constant(1)\n  {next} = s32[] add({}, {one})\n", names[2]);
            first[2] = next;
        }
        first.extend(results);
        let root = self.name();
        self.computations += &format!("{}  ROOT {root} = {tuple} tuple({})\n}}\n\n", body.text, first.join(", "));
        name
    }

    /// Returns some arrays that a loop or branch takes.
    fn state(&mut self, body: &Body) -> Option<Vec<Value>> {
        let count = self.random.between(1, 3);
        (0..count).map(|_| self.any(body, |_| true)).collect()
    }

    /// Packs flag, count and state for a computation. Returns the tuple's name and shape.
    fn packed(&mut self, body: &mut Body, state: &[Value], is_loop: bool) -> (String, String) {
        let mut operands = vec![body.flag.clone(), body.count.clone()];
        if is_loop {
            let zero = self.name();
            body.text += &format!("  {zero} = s32[] constant(0)\n");
            operands.push(zero);
        }
        operands.extend(state.iter().map(|value| value.name.clone()));
        let (name, shape) = (self.name(), format!("({}, {})", head(is_loop).join(", "), plain(state)));
        body.text += &format!("  {name} = {shape} tuple({})\n", operands.join(", "));
        (name, shape)
    }

    /// Adds the arrays of the result of a loop or branch.
    fn unpacked(&mut self, body: &mut Body, tuple: &str, state: &[Value], is_loop: bool) {
        for (i, value) in state.iter().enumerate() {
            let index = i + head(is_loop).len();
            self.put(body, value.ty, &value.dims, &format!("get-tuple-element({tuple}), index={index}"));
        }
    }

    /// Adds a loop of 0 to 3 iterations, the number of which is a constant or known at run time.
    fn repeated(&mut self, body: &mut Body) -> Option<()> {
        let state = self.state(body)?;
        let step = self.computation(body, &state, body.is_uniform, true);
        let (argument, shape) = self.packed(body, &state, true);
        let (test, is_constant) = (format!("f{}", self.name()), self.random.percent(50));
        let limit = match is_constant {
            true => format!("constant({})", self.random.between(1, 3)),
            false => "get-tuple-element(p), index=1".to_string(),
        };
        self.computations += &format!(
            "{test} {{\n  p = {shape} parameter(0)\n  i = s32[] get-tuple-element(p), index=2\n  n = s32[] {limit}\n  \
             ROOT t = pred[] compare(i, n), direction=LT\n}}\n\n"
        );
        let name = self.name();
        body.text += &format!("  {name} = {shape} while({argument}), condition={test}, body={step}\n");
        self.unpacked(body, &name, &state, true);
        Some(())
    }

    /// Adds a branch that all devices take equally.
    fn branch(&mut self, body: &mut Body) -> Option<()> {
        let flag = body.flag.clone();
        self.conditional(body, &flag, body.is_uniform)
    }

    /// Adds a branch that depends on the device and has no collectives.
    fn own_branch(&mut self, body: &mut Body) -> Option<()> {
        let (id, limit, name) = (self.name(), self.name(), self.name());
        let which = self.random.pick(&["replica-id", "partition-id"]);
        let bound = self.random.between(1, self.grid.device_count());
        body.text += &format!(
            "  {id} = u32[] {which}()\n  {limit} = u32[] constant({bound})\n  {name} = pred[] compare({id}, {limit}), \
             direction=LT\n"
        );
        self.conditional(body, &name, false)
    }

    fn conditional(&mut self, body: &mut Body, predicate: &str, is_uniform: bool) -> Option<()> {
        let state = self.state(body)?;
        let [yes, no] = [(); 2].map(|()| self.computation(body, &state, is_uniform, false));
        let (argument, shape) = self.packed(body, &state, false);
        let name = self.name();
        body.text += &format!(
            "  {name} = {shape} conditional({predicate}, {argument}, {argument}), true_computation={yes}, \
             false_computation={no}\n"
        );
        self.unpacked(body, &name, &state, false);
        Some(())
    }
}

/// Returns the shapes in front of the state: flag, count, and the counter of a loop.
fn head(is_loop: bool) -> &'static [&'static str] {
    if is_loop { &["pred[]", "s32[]", "s32[]"] } else { &["pred[]", "s32[]"] }
}

/// Returns the shapes of arrays, separated by commas.
fn plain(values: &[Value]) -> String {
    values.iter().map(Value::shape).collect::<Vec<_>>().join(", ")
}

/// Returns the shape of a tuple of arrays.
pub fn shapes(values: &[Value]) -> String {
    format!("({})", plain(values))
}

/// Returns the names of arrays, separated by commas.
pub fn names(values: &[Value]) -> String {
    values.iter().map(|value| value.name.clone()).collect::<Vec<_>>().join(", ")
}
