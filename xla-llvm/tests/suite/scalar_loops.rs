//! Tests of loops of scalar steps: the LLVM IR of each kind of loop, and loops that are refused.

use std::sync::Arc;

use inkwell::context::Context;
use xla_hlo::text::{parse_module, parse_shape};
use xla_hlo::{Module, Result};
use xla_llvm::emitter::{EmitOptions, Emitter};
use xla_llvm::fused::{KernelSource, ScalarLoop, ScalarPlace, ScalarRounds, ScalarStep, emit_kernel};
use xla_llvm::target::Target;

/// Computations of one element, and of others that no scalar step computes.
const STEPS: &str = "
less { i = s32[] parameter(0) n = s32[] parameter(1) ROOT p = pred[] compare(i, n), direction=LT }
next { i = s32[] parameter(0) c = s32[] constant(3) ROOT r = s32[] add(i, c) }
half { x = bf16[] parameter(0) c = bf16[] constant(0.5) ROOT r = bf16[] multiply(x, c) }
turned { x = c64[] parameter(0) c = c64[] constant((0, 1)) ROOT r = c64[] multiply(x, c) }
pair { x = f32[] parameter(0) y = f32[] parameter(1) s = f32[] add(x, y) d = f32[] subtract(x, y)
       ROOT t = (f32[], f32[]) tuple(s, d) }
element { a = f32[50] parameter(0) i = s32[] parameter(1) s = f32[1] dynamic-slice(a, i), dynamic_slice_sizes={1}
          ROOT r = f32[] reshape(s) }
update { a = f32[50] parameter(0) x = f32[] parameter(1) i = s32[] parameter(2) u = f32[1] reshape(x)
         ROOT r = f32[50] dynamic-update-slice(a, u, i) }
add { x = f32[] parameter(0) y = f32[] parameter(1) ROOT r = f32[] add(x, y) }
sum { a = f32[50] parameter(0) z = f32[] constant(0) ROOT r = f32[] reduce(a, z), dimensions={0}, to_apply=add }
row { a = f32[50] parameter(0) ROOT r = f32[50] negate(a) }
exact { x = f8e8m0fnu[] parameter(0) ROOT r = f32[] convert(x) }
ENTRY main { ROOT c = s32[] constant(0) }";

/// A step as text: `name(0 1) -> 2` computes place 2 from places 0 and 1, `0 -> 1` copies.
fn step<'m>(module: &'m Module, text: &str) -> ScalarStep<'m> {
    let (from, to) = text.split_once(" -> ").unwrap();
    let numbers = |text: &str| text.split_whitespace().map(|number| number.parse::<usize>().unwrap()).collect();
    let to: Vec<usize> = numbers(to);
    let Some((name, operands)) = from.strip_suffix(')').and_then(|from| from.split_once('(')) else {
        return ScalarStep::Copy { from: from.parse().unwrap(), to: to[0] };
    };
    let computation = module.find(name).unwrap();
    let mut source = KernelSource::of_computation(module, computation, |_| false).unwrap();
    source.in_place = name == "update";
    ScalarStep::Compute { source, places: [numbers(operands), to].concat() }
}

/// A loop: its condition and body, the rounds, and the places, each with the places that it overlaps.
struct Case {
    condition: &'static [&'static str],
    body: &'static [&'static str],
    rounds: ScalarRounds,
    places: &'static [(&'static str, &'static [usize])],
}

/// Places of a predicate, a counter and its bound: `less(1 2) -> 0`.
const COUNTER: [(&str, &[usize]); 3] = [("pred[]", &[]), ("s32[]", &[]), ("s32[]", &[])];

const TESTED: ScalarRounds = ScalarRounds::Tested { predicate: 0, at_most: 1000 };

fn scalar_loop<'m>(module: &'m Module, case: &Case) -> Option<ScalarLoop<'m>> {
    let steps = |texts: &[&str]| texts.iter().map(|text| step(module, text)).collect();
    let place = |(pointer, (shape, clashes)): (usize, &(&str, &[usize]))| ScalarPlace {
        pointer,
        shape: parse_shape(shape).unwrap().expect_array().unwrap().clone(),
        clashes: clashes.to_vec(),
    };
    let places = case.places.iter().enumerate().map(place).collect();
    ScalarLoop::new((steps(case.condition), steps(case.body)), case.rounds, places, case.places.len())
}

/// Returns the strategy, the treatment of subnormals and the LLVM IR of a loop.
fn code(case: &Case) -> Result<String> {
    let module = parse_module(STEPS).unwrap();
    let plan = scalar_loop(&module, case).expect("the loop is one kernel");
    let (context, target) = (Context::create(), Target::whole("x86-64-v3").unwrap());
    let emitter = Emitter::new(&context, "kernels", &target, EmitOptions::default());
    let root = module[module.entry_id()].root();
    let mut source = KernelSource::of_operation(&module, module.entry_id(), root);
    source.scalar_loop = Some(Arc::new(plan));
    let kernel = emit_kernel(&emitter, &source, "kernel")?;
    let ir = emitter.finish()?.print_to_string().to_string();
    Ok(format!("; {}, subnormals: {:?}\n{ir}", kernel.strategy, kernel.denormals))
}

#[test]
fn llvm_ir_of_loops() {
    let counted = Case {
        condition: &[],
        body: &["next(1) -> 1", "half(3) -> 3", "turned(4) -> 4"],
        rounds: ScalarRounds::Counted(7),
        places: &[COUNTER[0], COUNTER[1], COUNTER[2], ("bf16[]", &[]), ("c64[]", &[])],
    };
    insta::assert_snapshot!("scalar-loop-counted", code(&counted).unwrap());
    // Places 3 and 4 change places by way of 5, and 6 is memory of 5 that ends without a value.
    let tested = Case {
        condition: &["less(1 2) -> 0"],
        body: &["next(1) -> 1", "pair(3 4) -> 5 7", "5 -> 4", "7 -> 6", "6 -> 3"],
        rounds: TESTED,
        places: &[
            COUNTER[0],
            COUNTER[1],
            COUNTER[2],
            ("f32[]", &[]),
            ("f32[]", &[]),
            ("f32[]", &[6]),
            ("f32[]", &[5]),
            ("f32[]", &[]),
        ],
    };
    insta::assert_snapshot!("scalar-loop-tested", code(&tested).unwrap());
    let in_place = Case {
        condition: &["less(1 2) -> 0"],
        body: &["element(3 1) -> 4", "pair(4 4) -> 4 5", "update(3 4 1) -> 3", "next(1) -> 1"],
        rounds: TESTED,
        places: &[COUNTER[0], COUNTER[1], COUNTER[2], ("f32[50]", &[]), ("f32[]", &[]), ("f32[]", &[])],
    };
    insta::assert_snapshot!("scalar-loop-in-place", code(&in_place).unwrap());
}

#[test]
fn other_loops_are_refused() {
    const NUMBERS: &[(&str, &[usize])] =
        &[COUNTER[0], COUNTER[1], COUNTER[2], ("f32[50]", &[]), ("f32[]", &[5]), ("f32[]", &[4]), ("f8e8m0fnu[]", &[])];
    let case = |condition, body| Case { condition, body, rounds: TESTED, places: NUMBERS };
    let test: &[&str] = &["less(1 2) -> 0"];
    let module = parse_module(STEPS).unwrap();
    let is_taken = |case: &Case| scalar_loop(&module, case).is_some();
    assert!(is_taken(&case(test, &["next(1) -> 1", "element(3 1) -> 4"])));
    assert!(is_taken(&case(test, &["exact(6) -> 4"])));
    // Elements of several steps, in memory that is read after another place overwrote it.
    assert!(is_taken(&case(test, &["element(3 1) -> 4", "element(3 1) -> 5"])));
    assert!(!is_taken(&case(test, &["element(3 1) -> 4", "element(3 1) -> 5", "pair(4 5) -> 4 5"])));
    // The predicate is not computed.
    assert!(!is_taken(&case(&[], &["next(1) -> 1"])));
    // No straight-line code of one element.
    assert!(!is_taken(&case(test, &["sum(3) -> 4"])));
    assert!(!is_taken(&case(test, &["row(3) -> 3"])));
    // Copies of arrays, and between types.
    assert!(!is_taken(&case(test, &["3 -> 3"])));
    assert!(!is_taken(&case(test, &["1 -> 4"])));
    // Subnormals are kept in one step and flushed in another.
    assert!(!is_taken(&case(test, &["exact(6) -> 4", "element(3 1) -> 4"])));
}
