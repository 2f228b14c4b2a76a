//! Waits that fail: time-outs, aborts, cancellation, panics.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use xla_hlo::ops::BinaryOp;
use xla_hlo::{ElementType, Error, Result};
use xla_service::CancelToken;
use xla_service::collective::{
    CollectiveCall, CollectiveEngine, CollectiveRun, CollectiveSpec, Communicator, InProcess, MemberArguments,
    Operation, Part, Reducer, Reduction, RunKey, Timeouts,
};

use crate::support::{Member, PROMPT, Random, execute, execute_member, instruction, key, on_threads};

pub fn barrier(members: usize) -> Arc<CollectiveSpec> {
    Arc::new(CollectiveSpec::new(Operation::Barrier, vec![], members).unwrap())
}

pub fn all_reduce(reduction: Reduction, count: usize, members: usize) -> Arc<CollectiveSpec> {
    let arrays = vec![Part::whole(ElementType::S32, count)];
    Arc::new(CollectiveSpec::new(Operation::AllReduce(reduction), arrays, members).unwrap())
}

pub fn sum() -> Reduction {
    Reduction::simple(BinaryOp::Add, ElementType::S32)
}

pub fn wait(communicator: &dyn Communicator, rank: usize, cancel: &CancelToken) -> Result<()> {
    let spec = &barrier(communicator.key().members());
    let (operands, results, arguments) = (vec![], vec![], MemberArguments::None);
    communicator.run(rank, CollectiveCall { spec, operands, results, arguments, cancel })
}

#[test]
fn a_missing_device_ends_the_others_with_its_name() {
    let timeouts = Timeouts { warn: Duration::from_millis(50), end: Duration::from_millis(150) };
    let engine = InProcess::new(timeouts);
    let clique = &*engine.clique(&key(RunKey::next(), &[4, 1, 6, 3])).unwrap();
    let start = Instant::now();
    let errors: Vec<Error> = thread::scope(|scope| {
        let waits = [0, 3].map(|rank| scope.spawn(move || wait(clique, rank, &CancelToken::never()).unwrap_err()));
        waits.map(|wait| wait.join().unwrap()).into()
    });
    assert!(start.elapsed() >= timeouts.end && start.elapsed() < timeouts.end + PROMPT);
    for error in errors {
        assert!(matches!(error, Error::FailedPrecondition(_)), "{error:?}");
        let text = error.to_string();
        let (text, time) =
            (text.replace(char::is_numeric, "N"), text.split(' ').nth(3).unwrap_or_default().to_string());
        assert!(time.ends_with("ms"), "{time}");
        let expected = "%collective.N has waited N.Nms for devices N (rank N), N (rank N); devices N (rank N), \
                        N (rank N) have arrived\n\
                        a device is stuck or slow, or the devices of a group execute different collectives";
        assert_eq!(shortened(&text), expected);
        assert!(error.to_string().contains("for devices 1 (rank 1), 6 (rank 2); devices 4 (rank 0), 3 (rank 3) have"));
    }
    // A member that arrives too late receives the error, too.
    let late = wait(clique, 1, &CancelToken::never()).unwrap_err();
    assert!(late.to_string().contains("1 (rank 1), 6 (rank 2)"), "{late}");
}

/// Replaces each sequence of digits, written as `N`, by one `N`.
fn shortened(text: &str) -> String {
    let mut text = text.to_string();
    while text.contains("NN") {
        text = text.replace("NN", "N");
    }
    text
}

#[test]
fn the_failure_of_a_device_ends_all_cliques_of_its_run() {
    for panics in [false, true] {
        let engine: Arc<dyn CollectiveEngine> = Arc::new(InProcess::default());
        let run = &CollectiveRun::new(engine.clone(), RunKey::next());
        let other = CollectiveRun::new(engine, RunKey::next());
        let start = Instant::now();
        let errors: Vec<Error> = thread::scope(|scope| {
            let waits = [[0, 1], [2, 3]].map(|devices| {
                scope.spawn(move || {
                    let program = || wait(&*run.clique(&instruction(), &devices.into())?, 0, &CancelToken::never());
                    run.device(devices[0], program).unwrap_err()
                })
            });
            thread::sleep(Duration::from_millis(20));
            let failing = scope.spawn(move || {
                run.device(3, || match panics {
                    true => panic!("a bug"),
                    false => Err::<(), _>(Error::resource_exhausted("no memory")),
                })
            });
            assert_eq!(failing.join().is_err(), panics);
            waits.map(|wait| wait.join().unwrap()).into()
        });
        assert!(start.elapsed() < PROMPT);
        let expected = match panics {
            true => "internal error: the program of device 3 panicked",
            false => "device 3: no memory",
        };
        assert!(errors.iter().all(|error| error.to_string() == expected), "{errors:?}");
        assert_eq!(run.failure().unwrap().to_string(), expected);
        assert_eq!(run.clique(&instruction(), &[0, 3].into()).unwrap_err().to_string(), expected);
        // Other runs continue.
        let alone = other.clique(&instruction(), &[3].into()).unwrap();
        wait(&*alone, 0, &CancelToken::never()).unwrap();
    }
}

#[test]
fn cancellation_ends_the_wait_of_all_members() {
    let engine = InProcess::default();
    let clique = &*engine.clique(&key(RunKey::next(), &[0, 1, 2])).unwrap();
    let (token, never) = (CancelToken::new(), CancelToken::never());
    let start = Instant::now();
    thread::scope(|scope| {
        let waits = [(0, &token), (1, &never)].map(|(rank, token)| scope.spawn(move || wait(clique, rank, token)));
        thread::sleep(Duration::from_millis(20));
        token.cancel();
        for wait in waits {
            let error = wait.join().unwrap().unwrap_err();
            assert!(matches!(error, Error::Cancelled(_)), "{error:?}");
            assert_eq!(error.to_string(), "%collective.1: the run was cancelled");
        }
    });
    assert!(start.elapsed() < PROMPT);
}

/// Reducer that fails or panics at its fourth call, and is slow before.
#[derive(Debug, Default)]
struct Faulty {
    panics: bool,
    calls: AtomicUsize,
}

impl Reducer for Faulty {
    fn reduce(&self, _: ElementType, _: &[&[u8]], _: &mut [u8]) -> Result<()> {
        match self.calls.fetch_add(1, Ordering::Relaxed) {
            // Without the panic hook, whose backtrace takes longer than all other blocks.
            3 if self.panics => resume_unwind(Box::new("a bug of the reducer")),
            3 => return Err(Error::invalid_argument("the reducer failed")),
            _ => thread::sleep(Duration::from_millis(5)),
        }
        Ok(())
    }
}

#[test]
fn failures_of_reducers_are_errors_of_all_members() {
    for (panics, message) in
        [(false, "the reducer failed"), (true, "a task of the collective panicked: a bug of the reducer")]
    {
        let reducer = Arc::new(Faulty { panics, calls: AtomicUsize::new(0) });
        let reduction = Reduction { operation: None, accumulator: ElementType::S32, reducer: reducer.clone() };
        // Two hundred blocks in several tasks of eleven blocks or less, of which threads only complete the current.
        let blocks = 200;
        let spec = all_reduce(reduction, blocks * 4096, 3);
        let engine = InProcess::default();
        let (key, start) = (&key(RunKey::next(), &[0, 1, 2]), Instant::now());
        let errors = on_threads(3, |rank| {
            let member = Member::new(vec![vec![0; 4 * blocks * 4096]]);
            execute_member(&engine, key, rank, &spec, &member).unwrap_err().to_string()
        });
        for error in errors {
            assert_eq!(error.trim_start_matches("internal error: "), format!("%collective.1: {message}"));
        }
        assert!(start.elapsed() < PROMPT);
        assert!(reducer.calls.load(Ordering::Relaxed) < blocks);
    }
}

#[test]
fn members_of_different_collectives_are_errors() {
    let engine = InProcess::default();
    let key = &key(RunKey::next(), &[7, 9]);
    let specs = [barrier(2), all_reduce(sum(), 1, 2)];
    let operands = [vec![], vec![vec![0; 4]]];
    let errors = on_threads(2, |rank| {
        let member = Member::new(operands[rank].clone());
        execute_member(&engine, key, rank, &specs[rank], &member).unwrap_err().to_string()
    });
    let expected = "%collective.1: device 9 executes another collective than device 7";
    assert_eq!(errors, [expected; 2]);
}

#[test]
fn members_with_separate_reducers_are_errors() {
    let reduction =
        || Reduction { operation: None, accumulator: ElementType::S32, reducer: Arc::new(Faulty::default()) };
    let (engine, key) = (InProcess::default(), &key(RunKey::next(), &[7, 9]));
    let errors = on_threads(2, |rank| {
        let (spec, member) = (all_reduce(reduction(), 1, 2), Member::new(vec![vec![0; 4]]));
        execute_member(&engine, key, rank, &spec, &member).unwrap_err().to_string()
    });
    assert_eq!(errors, ["%collective.1: devices 7 and 9 have separate reducers: a group must share one"; 2]);
}

#[test]
fn members_that_select_different_roots_are_errors() {
    let sum = Reduction::simple(BinaryOp::Add, ElementType::S32);
    for operation in [Operation::Broadcast, Operation::AllReduce(sum)] {
        let arrays = vec![Part::whole(ElementType::S32, 1)];
        let spec = Arc::new(CollectiveSpec::new(operation, arrays, 2).unwrap());
        let member = |root| Member { operands: vec![vec![0; 4]], arguments: MemberArguments::Root(root) };
        let error = |roots: [usize; 2]| execute(&spec, &roots.map(member), &mut Random(4)).unwrap_err().to_string();
        assert_eq!(error([0, 1]), "%collective.1: the members of a group select different roots: [0, 1]");
        assert_eq!(error([2, 2]), "%collective.1: the root 2 is not in its group of 2 devices");
    }
}
