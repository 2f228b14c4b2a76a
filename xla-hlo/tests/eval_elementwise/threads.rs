//! Tests of evaluation on several threads: limits and errors of all threads, and the work that stays on one thread.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock, mpsc};
use std::thread;
use std::time::Duration;

use rayon::ThreadPoolBuilder;
use xla_hlo::eval::Evaluator;
use xla_hlo::ops::{CustomCallContext, CustomCallRegistry};
use xla_hlo::text::parse_module;
use xla_hlo::{ArrayShape, ElementType, Error, Literal, Result, Scalar, VerifiedModule};

/// Smallest number of elements for which `map` with [`ARCTANGENT`] uses several threads: an element takes 40 ns by the
/// evaluator's estimate, and several threads share 200 us of work.
const MANY: usize = 5000;

const ARCTANGENT: &str = "f { a = f32[] parameter(0)\n ROOT r = f32[] atan2(a, a) }";

/// A function that only the evaluator can call.
const ECHO: &str = "f { a = f32[] parameter(0)\n ROOT r = f32[] custom-call(a), custom_call_target=\"echo\" }";

/// Parses a program that maps `count` elements by `function`, and then negates them.
fn map(count: usize, function: &str) -> VerifiedModule {
    let text = format!(
        "HloModule m\n\n{function}\n\nENTRY e {{\n x = f32[{count}] parameter(0)\n \
         m = f32[{count}] map(x), dimensions={{0}}, to_apply=f\n ROOT n = f32[{count}] negate(m)\n}}\n"
    );
    VerifiedModule::new(parse_module(&text).unwrap()).unwrap()
}

/// Returns the numbers from 0 on.
fn numbers(count: usize) -> Vec<Literal> {
    let shape = ArrayShape::new(ElementType::F32, [count]);
    vec![Literal::from_fn(&shape, |i| Scalar::Float(i as f64)).unwrap()]
}

#[test]
fn steps_of_all_threads_count_against_one_limit() {
    let module = map(MANY, ARCTANGENT);
    // One step for each instruction of the entry and for each element.
    let steps = 3 + MANY as u64;
    for threads in [1, 2, 64] {
        let run =
            |limit| Evaluator::new(&module).with_threads(threads).with_step_limit(limit).call_entry(numbers(MANY));
        assert!(run(steps).is_ok(), "{threads} threads");
        for fewer in [steps - 1, steps - 2, MANY as u64 / 2] {
            assert!(matches!(run(fewer), Err(Error::ResourceExhausted(_))), "{fewer} steps, {threads} threads");
        }
    }
}

#[test]
fn the_first_error_is_returned_whatever_the_threads() {
    let module = map(MANY, ECHO);
    let registry = CustomCallRegistry::new();
    let from_30 = |_: &CustomCallContext<'_>, operands: Vec<Literal>| match operands[0].get(0) {
        Scalar::Float(..30.0) => Ok(operands[0].clone()),
        element => Err(Error::internal(format!("element {element:?}"))),
    };
    registry.register("echo", Arc::new(from_30));
    for threads in [1, 2, 64] {
        let evaluator = Evaluator::new(&module).with_threads(threads);
        let error = evaluator.with_custom_calls(&registry).call_entry(numbers(MANY)).unwrap_err();
        assert!(error.message().contains("element Float(30.0)"), "{error}");
    }
}

/// The program is a loop without an end, in which nearly all time is spent on several threads.
#[test]
fn cancellation_stops_all_threads() {
    let text = "\
        f { a = f32[] parameter(0)\n ROOT r = f32[] atan2(a, a) }\n\
        always { x = f32[100000] parameter(0)\n ROOT t = pred[] constant(true) }\n\
        body { x = f32[100000] parameter(0)\n ROOT m = f32[100000] map(x), dimensions={0}, to_apply=f }\n\
        ENTRY e { x = f32[100000] parameter(0)\n ROOT w = f32[100000] while(x), condition=always, body=body }";
    let module = VerifiedModule::new(parse_module(text).unwrap()).unwrap();
    let cancelled = Arc::new(AtomicBool::new(false));
    let evaluator = Evaluator::new(&module).with_threads(2).with_cancellation(cancelled.clone());
    let result = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(50));
            cancelled.store(true, Ordering::Relaxed);
        });
        { evaluator }.call_entry(numbers(100_000))
    });
    assert!(matches!(result, Err(Error::Cancelled(_))));
}

/// Starts an evaluation for up to 8 threads and waits for its result for some time.
fn evaluate_within(limit: Duration, module: VerifiedModule, count: usize) -> Option<Result<Literal>> {
    let (sender, result) = mpsc::channel();
    thread::spawn(move || {
        let registry = CustomCallRegistry::new();
        let echo = |_: &CustomCallContext<'_>, operands: Vec<Literal>| Ok(operands[0].clone());
        registry.register("echo", Arc::new(echo));
        let evaluator = Evaluator::new(&module).with_threads(8);
        // The receiver may have stopped waiting.
        let _ = sender.send({ evaluator }.with_custom_calls(&registry).call_entry(numbers(count)));
    });
    result.recv_timeout(limit).ok()
}

/// While all threads of the pool are occupied, work for the calling thread completes, and other work does not.
#[test]
fn calls_of_the_evaluator_and_little_work_stay_on_this_thread() {
    let gate = Arc::new(RwLock::new(()));
    let closed = gate.write().unwrap();
    let (sender, started) = mpsc::channel();
    let opening = gate.clone();
    rayon::spawn_broadcast(move |_| {
        sender.send(()).unwrap();
        drop(opening.read());
    });
    (0..rayon::current_num_threads()).for_each(|_| started.recv().unwrap());
    let long = Duration::from_secs(60);
    for (count, function) in [(0, ARCTANGENT), (1, ARCTANGENT), (MANY - 1, ARCTANGENT), (MANY, ECHO)] {
        let result = evaluate_within(long, map(count, function), count);
        result.unwrap_or_else(|| panic!("{count} elements wait for the pool")).unwrap();
    }
    assert!(evaluate_within(Duration::from_millis(50), map(MANY, ARCTANGENT), MANY).is_none());
    drop(closed);
    evaluate_within(long, map(MANY, ARCTANGENT), MANY).expect("the pool is free").unwrap();
}

thread_local! {
    static EVALUATES: Cell<bool> = const { Cell::new(false) };
}

/// A thread of a pool that waits for other threads would start other work of the pool, on the same stack.
#[test]
fn an_evaluation_on_a_thread_of_a_pool_starts_no_other_work() {
    let pool = ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    let module = map(20 * MANY, ARCTANGENT);
    let (is_done, has_started) = (AtomicBool::new(false), Arc::new(AtomicBool::new(false)));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                let has_started = has_started.clone();
                pool.spawn(move || {
                    has_started.fetch_or(EVALUATES.get(), Ordering::Relaxed);
                    thread::sleep(Duration::from_micros(50));
                });
                thread::sleep(Duration::from_micros(50));
            }
        });
        pool.install(|| {
            EVALUATES.set(true);
            let result = Evaluator::new(&module).with_threads(2).call_entry(numbers(20 * MANY));
            EVALUATES.set(false);
            result.unwrap();
        });
        is_done.store(true, Ordering::Relaxed);
    });
    assert!(!has_started.load(Ordering::Relaxed));
}
