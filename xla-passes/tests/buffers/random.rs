//! Random programs with loops, branches and calls over a few small shapes.

use xla_hlo::builder::{ComputationBuilder, ModuleBuilder};
use xla_hlo::ops::{BinaryOp, CompareDirection, DotDims, OptBarrier, UnaryOp};
use xla_hlo::{
    ArrayShape, CompId, ElementType, InputOutputAlias, InstrId, Literal, Module, ParameterLeaf, Result, Scalar, Shape,
    ops,
};

/// Generator of pseudorandom numbers; a seed determines a program.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns a number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// Number of shapes of values; their sizes are 16, 16, 16, 4 and 0 bytes.
const KINDS: usize = 5;

fn shape(kind: usize) -> Shape {
    let array = match kind {
        0 => ArrayShape::new(ElementType::S32, [4]),
        1 => ArrayShape::new(ElementType::S32, [2, 2]),
        2 => ArrayShape::new(ElementType::F32, [2, 2]),
        3 => ArrayShape::scalar(ElementType::S32),
        _ => ArrayShape::new(ElementType::S32, [0]),
    };
    Shape::Array(array.with_row_major_layout())
}

fn tuple(kinds: &[usize]) -> Shape {
    Shape::Tuple(kinds.iter().map(|&k| shape(k)).collect())
}

/// Computation that a program under construction may call.
enum Callee {
    Loop { condition: CompId, body: CompId, state: Vec<usize> },
    Choice { branches: Vec<CompId>, operands: Vec<Vec<usize>>, result: Vec<usize>, by_predicate: bool },
    Call { computation: CompId, operands: Vec<usize>, result: Vec<usize> },
}

/// Returns a random module and arguments for it.
pub fn program(seed: u64) -> Result<(Module, Vec<Literal>)> {
    let mut random = Random::new(seed);
    let mut module = ModuleBuilder::new("random");
    let combiner = combiner(&mut module)?;
    let parameters: Vec<usize> = (0..1 + random.below(4)).map(|_| random.below(KINDS)).collect();
    let result: Vec<usize> = (0..1 + random.below(5)).map(|_| random.below(KINDS)).collect();
    let as_tuple = random.one_in(3);
    let main = function(&mut random, &mut module, combiner, 0, &parameters, as_tuple, &result)?;
    let mut module = module.finish(main)?.into_inner();
    donate(&mut random, &mut module, &parameters, as_tuple, &result);
    let arguments: Vec<Literal> = parameters.iter().map(|&k| argument(&mut random, k)).collect::<Result<_>>()?;
    let arguments = if as_tuple { vec![Literal::tuple(arguments)] } else { arguments };
    Ok((module, arguments))
}

/// Donates some parameters, to outputs of their shape or without an output.
fn donate(random: &mut Random, module: &mut Module, parameters: &[usize], as_tuple: bool, result: &[usize]) {
    let mut outputs: Vec<usize> = (0..result.len()).collect();
    for (i, &kind) in parameters.iter().enumerate() {
        let leaf = if as_tuple { (0, vec![i]) } else { (i, Vec::new()) };
        let leaf = ParameterLeaf { parameter: leaf.0, path: leaf.1 };
        match random.below(4) {
            0 => {
                if let Some(at) = outputs.iter().position(|&o| result[o] == kind) {
                    let output = vec![outputs.remove(at)];
                    let alias = InputOutputAlias { output, parameter: leaf, must_alias: random.one_in(2) };
                    module.attributes_mut().input_output_alias.push(alias);
                }
            }
            1 => module.attributes_mut().buffer_donors.push(leaf),
            _ => {}
        }
    }
}

fn argument(random: &mut Random, kind: usize) -> Result<Literal> {
    let shape = shape(kind);
    let array = shape.expect_array()?;
    Literal::from_fn(array, |_| match array.element_type() {
        ElementType::F32 => Scalar::Float(random.below(7) as f64 - 3.0),
        _ => Scalar::Signed(random.below(9) as i64 - 4),
    })
}

fn combiner(module: &mut ModuleBuilder) -> Result<CompId> {
    let mut b = module.computation("sum");
    let x = b.parameter(Shape::scalar(ElementType::S32))?;
    let y = b.parameter(Shape::scalar(ElementType::S32))?;
    let sum = b.add(x, y)?;
    Ok(b.finish(sum))
}

/// Generates a computation of parameters (separate, or all in one tuple) that returns a tuple of `result`.
fn function(
    random: &mut Random,
    module: &mut ModuleBuilder,
    combiner: CompId,
    depth: usize,
    parameters: &[usize],
    as_tuple: bool,
    result: &[usize],
) -> Result<CompId> {
    let wanted = if depth < 3 { random.below(4 - depth) } else { 0 };
    let mut callees = Vec::new();
    for _ in 0..wanted {
        callees.push(callee(random, module, combiner, depth + 1)?);
    }
    let mut b = module.computation(format!("f{depth}"));
    let mut pool: Vec<(InstrId, usize)> = Vec::new();
    if as_tuple {
        let state = b.parameter(tuple(parameters))?;
        for (i, &kind) in parameters.iter().enumerate() {
            pool.push((element(&mut b, state, i)?, kind));
        }
    } else {
        for &kind in parameters {
            pool.push((b.parameter(shape(kind))?, kind));
        }
    }
    for _ in 0..2 + random.below(8) {
        let next = operation(random, &mut b, combiner, &mut pool)?;
        pool.push(next);
        if random.one_in(3)
            && let Some(callee) = callees.pop()
        {
            invoke(random, &mut b, &mut pool, callee)?;
        }
    }
    for callee in callees {
        invoke(random, &mut b, &mut pool, callee)?;
    }
    let root = pack(random, &mut b, &mut pool, result)?;
    Ok(b.finish(root))
}

fn callee(random: &mut Random, module: &mut ModuleBuilder, combiner: CompId, depth: usize) -> Result<Callee> {
    let kinds = |random: &mut Random| -> Vec<usize> { (0..1 + random.below(4)).map(|_| random.below(KINDS)).collect() };
    match random.below(5) {
        0 => {
            let by_predicate = random.one_in(2);
            let result = kinds(random);
            let count = if by_predicate { 2 } else { 1 + random.below(3) };
            let operands: Vec<Vec<usize>> = (0..count).map(|_| kinds(random)).collect();
            let mut branches = Vec::new();
            for operands in &operands {
                branches.push(function(random, module, combiner, depth, operands, true, &result)?);
            }
            Ok(Callee::Choice { branches, operands, result, by_predicate })
        }
        1 => {
            let (operands, result) = (kinds(random), kinds(random));
            let computation = function(random, module, combiner, depth, &operands, false, &result)?;
            Ok(Callee::Call { computation, operands, result })
        }
        _ => {
            let mut state = vec![3];
            state.extend(kinds(random));
            let body = body(random, module, combiner, depth, &state)?;
            let mut b = module.computation(format!("while{depth}"));
            let parameter = b.parameter(tuple(&state))?;
            let counter = element(&mut b, parameter, 0)?;
            let end = number(&mut b, random.below(4) as i64)?;
            let root = b.instruction(ops::Compare::new(CompareDirection::Lt), None, [counter, end])?;
            Ok(Callee::Loop { condition: b.finish(root), body, state })
        }
    }
}

/// Generates a loop body: increments leaf 0, and changes the others arbitrarily, often not at all or by a permutation.
fn body(
    random: &mut Random,
    module: &mut ModuleBuilder,
    combiner: CompId,
    depth: usize,
    state: &[usize],
) -> Result<CompId> {
    let inner = if depth < 3 && random.one_in(2) { Some(callee(random, module, combiner, depth + 1)?) } else { None };
    let mut b = module.computation(format!("body{depth}"));
    let parameter = b.parameter(tuple(state))?;
    let mut pool = Vec::new();
    for (i, &kind) in state.iter().enumerate() {
        pool.push((element(&mut b, parameter, i)?, kind));
    }
    let one = number(&mut b, 1)?;
    let counter = b.add(pool[0].0, one)?;
    for _ in 0..random.below(6) {
        let next = operation(random, &mut b, combiner, &mut pool)?;
        pool.push(next);
    }
    if let Some(inner) = inner {
        invoke(random, &mut b, &mut pool, inner)?;
    }
    let mut elements = vec![counter];
    for (i, &kind) in state.iter().enumerate().skip(1) {
        let same: Vec<InstrId> = pool[1..state.len()].iter().filter(|p| p.1 == kind).map(|p| p.0).collect();
        elements.push(match random.below(4) {
            0 => pool[i].0,
            1 => same[random.below(same.len())],
            _ => value(random, &mut b, &mut pool, kind)?,
        });
    }
    let root = b.instruction(ops::Tuple, None, elements)?;
    Ok(b.finish(root))
}

fn element(b: &mut ComputationBuilder<'_>, tuple: InstrId, index: usize) -> Result<InstrId> {
    b.instruction(ops::GetTupleElement { index }, None, [tuple])
}

fn number(b: &mut ComputationBuilder<'_>, n: i64) -> Result<InstrId> {
    b.constant(Literal::scalar(ElementType::S32, Scalar::Signed(n)))
}

/// Returns a value of a kind: a recent one from the pool, or a new one.
fn value(
    random: &mut Random,
    b: &mut ComputationBuilder<'_>,
    pool: &mut Vec<(InstrId, usize)>,
    kind: usize,
) -> Result<InstrId> {
    let known: Vec<InstrId> = pool.iter().filter(|p| p.1 == kind).map(|p| p.0).collect();
    if !known.is_empty() && !random.one_in(12) {
        let back = random.below(known.len()).min(random.below(known.len()));
        return Ok(known[known.len() - 1 - back]);
    }
    let new = match (kind, random.below(2)) {
        (3, _) => number(b, random.below(3) as i64)?,
        (_, 0) => b.constant(argument(random, kind)?)?,
        _ => b.iota(shape(kind).expect_array()?.clone(), 0)?,
    };
    pool.push((new, kind));
    Ok(new)
}

fn pack(
    random: &mut Random,
    b: &mut ComputationBuilder<'_>,
    pool: &mut Vec<(InstrId, usize)>,
    kinds: &[usize],
) -> Result<InstrId> {
    let elements = kinds.iter().map(|&k| value(random, b, pool, k)).collect::<Result<Vec<_>>>()?;
    b.instruction(ops::Tuple, None, elements)
}

fn operation(
    random: &mut Random,
    b: &mut ComputationBuilder<'_>,
    combiner: CompId,
    pool: &mut Vec<(InstrId, usize)>,
) -> Result<(InstrId, usize)> {
    let kind = random.below(KINDS);
    let x = value(random, b, pool, kind)?;
    let y = value(random, b, pool, kind)?;
    let id = match (random.below(9), kind) {
        (0, _) => b.instruction(ops::Unary::from(UnaryOp::Negate), None, [x])?,
        (1, 2) => {
            let dims = DotDims { lhs_contracting: vec![1], rhs_contracting: vec![0], ..DotDims::default() };
            b.dot(x, y, dims, None)?
        }
        (1 | 2, 0) => {
            let (update, start) = (value(random, b, pool, 3)?, value(random, b, pool, 3)?);
            let update = b.reshape(update, [1])?;
            b.dynamic_update_slice(x, update, [start])?
        }
        (2, 1) => b.transpose(x, [1, 0])?,
        (3, 0) => return Ok((b.reshape(x, [2, 2])?, 1)),
        (3, 1) => return Ok((b.reshape(x, [4])?, 0)),
        (4, 0) => b.reverse(x, [0])?,
        (4, 1) => return Ok((b.convert(x, ElementType::F32)?, 2)),
        (5, 0) => {
            let init = value(random, b, pool, 3)?;
            return Ok((b.reduce([x], [init], [0], combiner)?, 3));
        }
        (6, _) => b.instruction(OptBarrier, None, [x])?,
        (7, _) => b.copy(x)?,
        _ => b.instruction(ops::Binary { op: BinaryOp::Add }, None, [x, y])?,
    };
    Ok((id, kind))
}

/// Returns the start of a loop's counter: a constant or any small number.
fn start(random: &mut Random, b: &mut ComputationBuilder<'_>, pool: &mut Vec<(InstrId, usize)>) -> Result<InstrId> {
    let limit = number(b, 4)?;
    if random.one_in(4) {
        return number(b, 0);
    }
    let any = value(random, b, pool, 3)?;
    b.instruction(ops::Binary { op: BinaryOp::Remainder }, None, [any, limit])
}

fn invoke(
    random: &mut Random,
    b: &mut ComputationBuilder<'_>,
    pool: &mut Vec<(InstrId, usize)>,
    callee: Callee,
) -> Result<()> {
    let (result, kinds) = match callee {
        Callee::Loop { condition, body, state } => {
            let mut elements = vec![start(random, b, pool)?];
            for &kind in &state[1..] {
                elements.push(value(random, b, pool, kind)?);
            }
            let init = b.instruction(ops::Tuple, None, elements)?;
            (b.while_loop(condition, body, init)?, state)
        }
        Callee::Choice { branches, operands, result, by_predicate } => {
            let selector = value(random, b, pool, 3)?;
            let mut all = Vec::new();
            for (branch, kinds) in branches.into_iter().zip(&operands) {
                all.push((branch, pack(random, b, pool, kinds)?));
            }
            let id = match (&all[..], by_predicate) {
                (&[on_true, on_false], true) => {
                    let zero = number(b, 0)?;
                    let selector = b.instruction(ops::Compare::new(CompareDirection::Gt), None, [selector, zero])?;
                    b.conditional(selector, on_true, on_false)?
                }
                _ => b.switch(selector, &all)?,
            };
            (id, result)
        }
        Callee::Call { computation, operands, result } => {
            let operands = operands.iter().map(|&k| value(random, b, pool, k)).collect::<Result<Vec<_>>>()?;
            (b.call(computation, operands)?, result)
        }
    };
    for (i, &kind) in kinds.iter().enumerate() {
        pool.push((element(b, result, i)?, kind));
    }
    Ok(())
}
