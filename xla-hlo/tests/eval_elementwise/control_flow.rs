//! Tests of loops, branches, calls and maps, and of the driver's limits, errors and in-place updates.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use xla_hlo::builder::ModuleBuilder;
use xla_hlo::eval::{Evaluator, MAX_CALL_DEPTH, ScalarFunction, evaluate};
use xla_hlo::ops::{Binary, BinaryOp, Call, Compare, CompareDirection, Conditional, Fusion, FusionKind, Map, While};
use xla_hlo::text::parse_module;
use xla_hlo::{ArrayShape, CompId, Computation, ElementType, Error, Instruction, Literal, Module, Scalar, Shape};

use crate::support::{f64s, integers, reals, wholes};

fn s32() -> Shape {
    Shape::scalar(ElementType::S32)
}

fn whole(v: i64) -> Literal {
    Literal::scalar(ElementType::S32, Scalar::Signed(v))
}

/// Returns a loop that maps `(i, sum)` to `(i + 1, sum + i)` while i < limit.
fn counting_loop(limit: i64) -> Module {
    let mut module = ModuleBuilder::new("count");
    let state = Shape::Tuple(vec![s32(), s32()]);
    let mut b = module.computation("condition");
    let p = b.parameter(state.clone()).unwrap();
    let i = b.get_tuple_element(p, 0).unwrap();
    let limit = b.constant(whole(limit)).unwrap();
    let less = b.compare(CompareDirection::Lt, i, limit).unwrap();
    let condition = b.finish(less);
    let mut b = module.computation("body");
    let p = b.parameter(state.clone()).unwrap();
    let i = b.get_tuple_element(p, 0).unwrap();
    let sum = b.get_tuple_element(p, 1).unwrap();
    let one = b.constant(whole(1)).unwrap();
    let next = b.add(i, one).unwrap();
    let sum = b.add(sum, i).unwrap();
    let both = b.tuple([next, sum]).unwrap();
    let body = b.finish(both);
    let mut b = module.computation("main");
    let init = b.parameter(state).unwrap();
    let result = b.while_loop(condition, body, init).unwrap();
    let main = b.finish(result);
    module.finish(main).unwrap().into_inner()
}

fn pair(a: i64, b: i64) -> Literal {
    Literal::tuple(vec![whole(a), whole(b)])
}

#[test]
fn loops_run_while_the_condition_holds() {
    let module = counting_loop(10);
    assert_eq!(evaluate(&module, vec![pair(0, 0)]).unwrap(), pair(10, 45));
    assert_eq!(evaluate(&module, vec![pair(20, 7)]).unwrap(), pair(20, 7), "the body must not run");
}

#[test]
fn step_limits_and_cancellation_stop_loops() {
    let module = counting_loop(i64::from(i32::MAX));
    let error = Evaluator::new(&module).with_step_limit(1000).call(module.entry_id(), vec![pair(0, 0)]).unwrap_err();
    assert!(matches!(error, Error::ResourceExhausted(_)), "{error}");
    let flag = Arc::new(AtomicBool::new(true));
    let error = Evaluator::new(&module).with_cancellation(flag).call(module.entry_id(), vec![pair(0, 0)]).unwrap_err();
    assert!(matches!(error, Error::Cancelled(_)), "{error}");
    let mut enough = Evaluator::new(&module).with_step_limit(1000);
    let end = i64::from(i32::MAX);
    assert_eq!(enough.call(module.entry_id(), vec![pair(end, 1)]).unwrap(), pair(end, 1));
}

/// Returns a conditional with three branches that add different numbers.
fn switch(by_predicate: bool) -> Module {
    let mut module = ModuleBuilder::new("switch");
    let branches: Vec<CompId> = [10, 20, 30][..if by_predicate { 2 } else { 3 }]
        .iter()
        .map(|&n| {
            let mut b = module.computation("branch");
            let x = b.parameter(s32()).unwrap();
            let n = b.constant(whole(n)).unwrap();
            let sum = b.add(x, n).unwrap();
            b.finish(sum)
        })
        .collect();
    let mut b = module.computation("main");
    let selector = b.parameter(if by_predicate { Shape::scalar(ElementType::Pred) } else { s32() }).unwrap();
    let mut operands = vec![selector];
    for i in 0..branches.len() {
        operands.push(b.constant(whole(i as i64)).unwrap());
    }
    let result = b.instruction(Conditional { branches, by_predicate }, None, operands).unwrap();
    let main = b.finish(result);
    module.finish(main).unwrap().into_inner()
}

#[test]
fn an_index_out_of_range_takes_the_last_branch() {
    let module = switch(false);
    let branch = |i| wholes(&evaluate(&module, vec![whole(i)]).unwrap())[0];
    assert_eq!([branch(0), branch(1), branch(2)], [10, 21, 32]);
    assert_eq!([branch(-1), branch(3), branch(i64::from(i32::MIN))], [32, 32, 32]);
}

#[test]
fn true_takes_the_first_branch() {
    let module = switch(true);
    let branch = |p| wholes(&evaluate(&module, vec![Literal::scalar(ElementType::Pred, Scalar::Pred(p))]).unwrap())[0];
    assert_eq!([branch(true), branch(false)], [10, 21]);
}

fn square_plus(module: &mut ModuleBuilder, ty: ElementType) -> CompId {
    let mut b = module.computation("square_plus");
    let x = b.parameter(Shape::scalar(ty)).unwrap();
    let y = b.parameter(Shape::scalar(ty)).unwrap();
    let square = b.multiply(x, x).unwrap();
    let sum = b.add(square, y).unwrap();
    b.finish(sum)
}

#[test]
fn map_applies_a_computation_to_every_element() {
    let mut module = ModuleBuilder::new("map");
    let computation = square_plus(&mut module, ElementType::F64);
    let mut b = module.computation("main");
    let x = b.parameter(Shape::array(ElementType::F64, [3])).unwrap();
    let y = b.parameter(Shape::array(ElementType::F64, [3])).unwrap();
    let result = b.instruction(Map { dimensions: vec![0], computation }, None, [x, y]).unwrap();
    let main = b.finish(result);
    let module = module.finish(main).unwrap();
    let result = evaluate(&module, vec![f64s(&[1.0, 2.0, 3.0]), f64s(&[0.5, 0.25, -9.0])]).unwrap();
    assert_eq!(reals(&result), [1.5, 4.25, 0.0]);
}

#[test]
fn calls_and_fusions_run_their_computation() {
    let mut module = ModuleBuilder::new("calls");
    let callee = square_plus(&mut module, ElementType::S32);
    let fused = square_plus(&mut module, ElementType::S32);
    let mut b = module.computation("main");
    let x = b.parameter(s32()).unwrap();
    let called = b.instruction(Call { computation: callee, is_composite: false }, None, [x, x]).unwrap();
    let fusion = Fusion { kind: FusionKind::Loop, computation: fused, aliases: vec![] };
    let result = b.instruction(fusion, None, [called, x]).unwrap();
    let main = b.finish(result);
    let module = module.finish(main).unwrap();
    assert_eq!(wholes(&evaluate(&module, vec![whole(3)]).unwrap()), [147]);
}

/// A computation compiled to registers agrees with the evaluator, which runs it within a loop that the compiler does
/// not support.
#[test]
fn scalar_functions_give_what_the_evaluator_gives() {
    let mut module = ModuleBuilder::new("scalar_functions");
    let helper = square_plus(&mut module, ElementType::S32);
    let mut conditions = Vec::new();
    for _ in 0..2 {
        let mut b = module.computation("identity");
        let x = b.parameter(s32()).unwrap();
        conditions.push(b.finish(x));
    }
    let mut functions = Vec::new();
    for with_branch in [false, true] {
        let mut b = module.computation("function");
        let x = b.parameter(s32()).unwrap();
        let y = b.parameter(s32()).unwrap();
        let called = b.call(helper, [x, y]).unwrap();
        let pair = b.tuple([called, y]).unwrap();
        let called = b.get_tuple_element(pair, 0).unwrap();
        let less = b.compare(CompareDirection::Lt, called, y).unwrap();
        let mut chosen = b.select(less, called, y).unwrap();
        if with_branch {
            chosen = b.conditional(less, (conditions[0], chosen), (conditions[1], chosen)).unwrap();
        }
        let results = b.tuple([chosen, called]).unwrap();
        functions.push(b.finish(results));
    }
    let mut b = module.computation("main");
    let x = b.parameter(s32()).unwrap();
    let main = b.finish(x);
    let module = module.finish(main).unwrap();
    let mut evaluator = Evaluator::new(&module);
    let [mut compiled, mut interpreted] = [0, 1].map(|i| ScalarFunction::new(&module, functions[i]).unwrap());
    for (x, y) in [(2, 3), (0, 5), (i64::from(i32::MAX), -7), (-3, 100)] {
        let arguments = [Scalar::Signed(x), Scalar::Signed(y)];
        let called = Scalar::Signed(x * x + y).rounded(ElementType::S32);
        let Scalar::Signed(sum) = called else { panic!("signed") };
        let expected = [Scalar::Signed(sum.min(y)), called];
        assert_eq!(compiled.call(&mut evaluator, &arguments).unwrap(), expected);
        assert_eq!(interpreted.call(&mut evaluator, &arguments).unwrap(), expected);
    }
    assert_eq!(compiled.parameter_types(), [ElementType::S32; 2]);
    assert_eq!(compiled.result_types(), [ElementType::S32; 2]);
    assert!(compiled.call(&mut evaluator, &[]).is_err());
}

#[test]
fn arguments_are_checked_by_count_and_shape() {
    let module = counting_loop(1);
    let error = evaluate(&module, vec![]).unwrap_err().to_string();
    assert_eq!(error, "module count takes 1 arguments, 0 were given");
    let error = evaluate(&module, vec![f64s(&[1.0])]).unwrap_err().to_string();
    assert_eq!(error, "argument 0 (parameter) of module count must be (s32[], s32[]), it is f64[1]");
}

#[test]
fn errors_name_the_innermost_instruction() {
    // The module is not verified: the body is called with arguments of wrong shapes.
    let mut module = Module::new("broken");
    let mut inner = Computation::new("inner");
    let p = inner.add(Instruction::new(xla_hlo::ops::Parameter { number: 0 }.into(), s32(), []));
    inner.set_root(p);
    let inner = module.add(inner);
    let mut outer = Computation::new("outer");
    let call = Call { computation: inner, is_composite: false };
    let root = outer.add(Instruction::new(call.into(), s32(), []).with_name("the_call"));
    outer.set_root(root);
    let outer = module.add(outer);
    module.set_entry(outer);
    let error = evaluate(&module, vec![]).unwrap_err().to_string();
    assert_eq!(error, "evaluating parameter of computation inner: no argument was given for parameter 0");
}

#[test]
fn calls_nest_only_so_deep() {
    let chain = |depth: usize| {
        let mut module = ModuleBuilder::new("chain");
        let mut callee = None;
        for i in 0..depth {
            let mut b = module.computation(format!("level{i}"));
            let x = b.parameter(s32()).unwrap();
            let root = callee.map_or(x, |callee| b.call(callee, [x]).unwrap());
            callee = Some(b.finish(root));
        }
        module.finish(callee.unwrap()).unwrap()
    };
    assert_eq!(evaluate(&chain(MAX_CALL_DEPTH), vec![whole(5)]).unwrap(), whole(5));
    let error = evaluate(&chain(MAX_CALL_DEPTH + 1), vec![whole(5)]).unwrap_err();
    assert!(matches!(error, Error::ResourceExhausted(_)), "{error}");
    assert!(error.to_string().contains("calls nest deeper than"), "{error}");
}

/// Conditionals that nest deeper than a stack allows continue on further stacks, also from a small stack and on the
/// pool.
#[test]
fn conditionals_nested_deeply() {
    for depth in [300, 1000, 5000] {
        let mut text = "HloModule m\nc0 { x = s32[] parameter(0)  ROOT r = s32[] negate(x) }\n".to_string();
        text += "d { x = s32[] parameter(0)  ROOT r = s32[] add(x, x) }\n";
        for i in 1..=depth {
            text += &format!(
                "c{i} {{ x = s32[] parameter(0)  z = s32[] constant({})  p = pred[] compare(x, z), direction=GT\n \
                 ROOT r = s32[] conditional(p, x, x), true_computation=c{}, false_computation=d }}\n",
                i % 5,
                i - 1
            );
        }
        text += &format!("ENTRY e {{ x = s32[] parameter(0)  ROOT r = s32[] call(x), to_apply=c{depth} }}\n");
        let module = parse_module(&text).unwrap();
        let run = || {
            assert_eq!(evaluate(&module, vec![whole(7)]).unwrap(), whole(-7), "{depth}");
            assert_eq!(evaluate(&module, vec![whole(0)]).unwrap(), whole(0), "{depth}");
        };
        std::thread::scope(|scope| {
            let small = std::thread::Builder::new().stack_size(2 << 20);
            small.spawn_scoped(scope, run).unwrap().join().unwrap();
        });
        rayon::scope(|scope| (0..8).for_each(|_| scope.spawn(|_| run())));
    }
}

/// A value that several instructions and the root read is equal for all of them, whichever reads it last.
#[test]
fn values_are_shared_until_their_last_use() {
    let mut module = ModuleBuilder::new("sharing");
    let vector = Shape::array(ElementType::S32, [2]);
    let mut b = module.computation("main");
    let p = b.parameter(Shape::Tuple(vec![vector.clone(), vector])).unwrap();
    let x = b.get_tuple_element(p, 0).unwrap();
    let twice = b.add(x, x).unwrap();
    let again = b.get_tuple_element(p, 0).unwrap();
    let y = b.get_tuple_element(p, 1).unwrap();
    let sum = b.add(twice, again).unwrap();
    let all = b.tuple([sum, y, y, x, p]).unwrap();
    let main = b.finish(all);
    let module = module.finish(main).unwrap();
    let (x, y) = (integers(ElementType::S32, &[1, 2]), integers(ElementType::S32, &[5, 6]));
    let argument = Literal::tuple(vec![x.clone(), y.clone()]);
    let result = evaluate(&module, vec![argument.clone()]).unwrap();
    let expected = [integers(ElementType::S32, &[3, 6]), y.clone(), y, x, argument];
    assert_eq!(result.elements(), expected);
}

/// A loop that writes its index at its index copies nothing, although the state is a tuple and the condition reads it:
/// the result has the address of the argument.
#[test]
fn updates_in_a_loop_are_in_place() {
    const SIZE: i64 = 100;
    let vector = Shape::array(ElementType::S32, [SIZE as usize]);
    let state = Shape::Tuple(vec![vector.clone(), s32(), s32()]);
    let mut module = ModuleBuilder::new("in_place");
    let mut b = module.computation("condition");
    let p = b.parameter(state.clone()).unwrap();
    let i = b.get_tuple_element(p, 1).unwrap();
    let size = b.get_tuple_element(p, 2).unwrap();
    let less = b.compare(CompareDirection::Lt, i, size).unwrap();
    let condition = b.finish(less);
    let mut b = module.computation("body");
    let p = b.parameter(state.clone()).unwrap();
    let i = b.get_tuple_element(p, 1).unwrap();
    let row = b.reshape(i, [1]).unwrap();
    let array = b.get_tuple_element(p, 0).unwrap();
    let updated = b.dynamic_update_slice(array, row, [i]).unwrap();
    let one = b.constant(whole(1)).unwrap();
    let next = b.add(i, one).unwrap();
    // The tuple is read again after the update.
    let size = b.get_tuple_element(p, 2).unwrap();
    let all = b.tuple([updated, next, size]).unwrap();
    let body = b.finish(all);
    let mut b = module.computation("main");
    let init = b.parameter(state).unwrap();
    let result = b.while_loop(condition, body, init).unwrap();
    let main = b.finish(result);
    let module = module.finish(main).unwrap();
    let zeros = Literal::zeros(vector.as_array().unwrap()).unwrap();
    let address = zeros.bytes().as_ptr();
    let result = evaluate(&module, vec![Literal::tuple(vec![zeros, whole(0), whole(SIZE)])]).unwrap();
    assert_eq!(result.elements()[0].bytes().as_ptr(), address);
    assert_eq!(wholes(&result.elements()[0]), (0..i128::from(SIZE)).collect::<Vec<_>>());
}

#[test]
fn signatures_of_called_computations_are_checked() {
    let mut module = ModuleBuilder::new("signatures");
    let to_pred = {
        let mut b = module.computation("to_pred");
        let x = b.parameter(s32()).unwrap();
        let p = b.compare(CompareDirection::Eq, x, x).unwrap();
        b.finish(p)
    };
    let to_s32 = {
        let mut b = module.computation("to_s32");
        let x = b.parameter(s32()).unwrap();
        b.finish(x)
    };
    let mut b = module.computation("main");
    let x = b.parameter(s32()).unwrap();
    let v = b.parameter(Shape::array(ElementType::S32, [2])).unwrap();
    let p = b.parameter(Shape::scalar(ElementType::Pred)).unwrap();
    let message = |result: xla_hlo::Result<_>| Result::<xla_hlo::InstrId, _>::unwrap_err(result).to_string();
    let text = message(b.while_loop(to_s32, to_s32, x));
    assert!(text.contains("the condition of while (to_s32) must return pred[], it returns s32[]"), "{text}");
    let text = message(b.while_loop(to_pred, to_pred, x));
    assert!(text.contains("the body of while (to_pred) must return s32[], it returns pred[]"), "{text}");
    let text = message(b.while_loop(to_pred, to_s32, v));
    assert!(text.contains("computation to_pred takes (s32[]), but is called with (s32[2])"), "{text}");
    let text = message(b.conditional(p, (to_s32, x), (to_pred, x)));
    assert!(text.contains("branch 1 of conditional (to_pred) must return s32[], it returns pred[]"), "{text}");
    let text = message(b.conditional(x, (to_s32, x), (to_s32, x)));
    assert!(text.contains("must be pred[], it is s32[]"), "{text}");
    let text = message(b.instruction(Conditional { branches: vec![to_s32], by_predicate: false }, None, [x, x, x]));
    assert!(text.contains("one operand for each of its 1 branches, it has 3 operands"), "{text}");
    let text = message(b.instruction(Conditional { branches: vec![], by_predicate: false }, None, [x, x]));
    assert!(text.contains("at least one branch"), "{text}");
    let text = message(b.call(to_s32, [x, x]));
    assert!(text.contains("computation to_s32 takes (s32[]), but is called with (s32[], s32[])"), "{text}");
    let text = message(b.instruction(Map { dimensions: vec![1], computation: to_s32 }, None, [v]));
    assert!(text.contains("dimensions of map must be all 1 dimensions in order"), "{text}");
    let mapped = b.instruction(Map { dimensions: vec![], computation: to_pred }, None, [v]).unwrap();
    assert_eq!(b.shape(mapped).without_layout(), Shape::array(ElementType::Pred, [2]));
    let text = message(b.get_tuple_element(x, 0));
    assert!(text.contains("the operand of get-tuple-element must be a tuple, it is s32[]"), "{text}");
    let pair = b.tuple([x, v]).unwrap();
    let text = message(b.get_tuple_element(pair, 2));
    assert!(text.contains("the index of get-tuple-element must be below 2, the size of the tuple, it is 2"), "{text}");
    let text = message(b.instruction(While { condition: to_pred, body: to_s32 }, None, []));
    assert!(text.contains("operand 0 is missing"), "{text}");
    let huge = ArrayShape::new(ElementType::F64, [1 << 40, 1 << 40]);
    let text = message(b.parameter(huge.into()));
    assert!(text.contains("more elements than can be addressed"), "{text}");
    let binary = Binary { op: BinaryOp::Add };
    assert!(message(b.instruction(binary, None, [x])).contains("operand 1 is missing"));
    assert!(
        message(b.instruction(Compare::new(CompareDirection::Eq), None, [pair, pair])).contains("must be an array")
    );
}
