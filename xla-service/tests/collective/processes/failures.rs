//! Failures over several processes: stuck and lost processes, other collectives, cancellation, reducers.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use xla_hlo::{ElementType, Error, Result};
use xla_service::CancelToken;
use xla_service::collective::processes::{InMemory, Processes};
use xla_service::collective::{
    CollectiveEngine, CollectiveRun, CollectiveSpec, Operation, Part, Reducer, Reduction, RunKey, Timeouts,
};

use super::cluster::Cluster;
use crate::failures::{all_reduce, barrier, sum, wait};
use crate::support::{Member, PROMPT, Random, execute_member, instruction, key, on_threads};

const SHORT: Timeouts = Timeouts { warn: Duration::from_millis(100), end: Duration::from_millis(400) };

fn cluster(placement: &[usize], timeouts: Timeouts) -> Cluster {
    Cluster::new(placement.to_vec(), timeouts, &mut Random(41))
}

/// Executes a barrier on some devices of a group of all.
fn results(cluster: &Cluster, devices: &[usize]) -> Vec<Result<()>> {
    let all: Vec<usize> = (0..cluster.placement.len()).collect();
    let (key, start) = (&key(RunKey::next(), &all), Instant::now());
    let results = on_threads(devices.len(), |i| {
        let clique = cluster.engine(devices[i]).clique(key)?;
        wait(&*clique, devices[i], &CancelToken::never())
    });
    assert!(start.elapsed() < SHORT.end + PROMPT);
    results
}

/// Whether a transport has recorded that a wait for a process has timed out.
fn has_timed_out(cluster: &Cluster) -> bool {
    cluster.endpoints.iter().any(|endpoint| endpoint.has_timed_out.load(Ordering::Relaxed))
}

fn errors(cluster: &Cluster, devices: &[usize]) -> Vec<Error> {
    results(cluster, devices).into_iter().map(Result::unwrap_err).collect()
}

#[test]
fn a_missing_device_ends_all_processes_with_its_name() {
    // Device 2 is alone in its process, device 3 has a neighbour that arrives.
    for (missing, processes) in [(2, [1, 1]), (3, [2, 2])] {
        let cluster = cluster(&[0, 0, 1, 2, 2], SHORT);
        let present: Vec<usize> = (0..5).filter(|&device| device != missing).collect();
        for error in errors(&cluster, &present) {
            let text = error.to_string();
            assert!(matches!(error, Error::FailedPrecondition(_)), "{error:?}");
            let place = format!("process {}, pid {} on host-{}", processes[0], 4000 + processes[1], processes[1]);
            assert!(text.starts_with("%collective.1") && text.contains(&place), "{text}");
            assert!(text.contains(&format!("{missing} (rank {missing}")), "{text}");
            assert!(text.contains("a device is stuck or slow"), "{text}");
        }
    }
}

#[test]
fn a_process_that_is_stuck_ends_the_others() {
    // Process 1 sends its header to process 0, or to none, and then nothing, not even its own failure.
    for (sent, waiting) in [(0, &[1, 2][..]), (1, &[2])] {
        let cluster = cluster(&[1, 0, 2], SHORT);
        cluster.endpoints[1].alive_for.store(sent, Ordering::Relaxed);
        let results = results(&cluster, &[0, 1, 2]);
        assert!(has_timed_out(&cluster));
        for &device in waiting {
            let text = results[device].as_ref().unwrap_err().to_string();
            assert!(
                text.contains("have passed without a message of devices 0 (rank 0) of process 1, pid 4001"),
                "{text}"
            );
        }
    }
}

#[test]
fn a_lost_process_ends_the_others_at_once() {
    let cluster = &cluster(&[0, 1, 2], Timeouts::default());
    let lose = || {
        thread::sleep(Duration::from_millis(20));
        for endpoint in [&cluster.endpoints[0], &cluster.endpoints[1]] {
            endpoint.inbox().lost(2, Error::failed_precondition("the connection is closed"));
        }
    };
    let start = Instant::now();
    let errors = thread::scope(|scope| {
        scope.spawn(lose);
        errors(cluster, &[0, 1])
    });
    assert!(start.elapsed() < PROMPT);
    for error in errors {
        assert_eq!(
            error.to_string(),
            "%collective.1: devices 2 (rank 2) of process 2, pid 4002 on host-2, are lost: the connection is closed"
        );
    }
}

#[test]
fn processes_with_different_collectives_are_errors_that_name_both() {
    let cluster = cluster(&[0, 1, 0], Timeouts::default());
    let (key, specs) = (key(RunKey::next(), &[0, 1, 2]), [barrier(3), all_reduce(sum(), 5, 3), barrier(3)]);
    let errors = on_threads(3, |rank| {
        let member = Member::new(specs[rank].operand_bytes().map(|bytes| vec![0; bytes]).collect());
        execute_member(cluster.engine(rank), &key, rank, &specs[rank], &member).unwrap_err().to_string()
    });
    let first = "0 (rank 0), 2 (rank 2) of process 0, pid 4000 on host-0, execute barrier";
    let second = "1 (rank 1) of process 1, pid 4001 on host-1, execute all-reduce (Add of s32) of s32[5]";
    for error in &errors {
        assert!(error.contains(first) && error.contains(second), "{error}");
        assert_eq!(error, &errors[0]);
    }
    // All processes are alive, so the transports need not expect that one is stuck.
    assert!(!has_timed_out(&cluster));
}

#[test]
fn different_roots_of_processes_are_errors() {
    let cluster = cluster(&[0, 1], Timeouts::default());
    let part = vec![Part::whole(ElementType::S32, 1)];
    let spec = Arc::new(CollectiveSpec::new(Operation::Broadcast, part, 2).unwrap());
    let key = key(RunKey::next(), &[0, 1]);
    let errors = on_threads(2, |rank| {
        let arguments = xla_service::collective::MemberArguments::Root(rank);
        let member = Member { operands: vec![vec![0; 4]], arguments };
        execute_member(cluster.engine(rank), &key, rank, &spec, &member).unwrap_err().to_string()
    });
    assert_eq!(errors, ["%collective.1: the members of a group select different roots: [0, 1]"; 2]);
}

#[test]
fn cancellation_in_one_process_ends_the_others() {
    let cluster = &cluster(&[0, 1, 2, 2], Timeouts::default());
    let key = &key(RunKey::next(), &[0, 1, 2, 3]);
    let (token, never, start) = (&CancelToken::new(), &CancelToken::never(), Instant::now());
    thread::scope(|scope| {
        let waits = [(0, token), (1, never), (2, never)].map(|(rank, token)| {
            scope.spawn(move || wait(&*cluster.engine(rank).clique(key).unwrap(), rank, token).unwrap_err())
        });
        thread::sleep(Duration::from_millis(20));
        token.cancel();
        for wait in waits {
            let error = wait.join().unwrap();
            assert!(matches!(error, Error::Cancelled(_)), "{error:?}");
            assert_eq!(error.to_string(), "%collective.1: the run was cancelled");
        }
    });
    assert!(start.elapsed() < PROMPT);
    // A member that arrives later receives the error, too, until the run ends. A later run does not.
    assert!(cluster.engine(3).clique(key).is_err());
    cluster.engines.iter().for_each(|engine| engine.finish(key.run()));
}

/// Reducer that fails or panics.
#[derive(Debug)]
struct Faulty(bool);

impl Reducer for Faulty {
    fn reduce(&self, _: ElementType, _: &[&[u8]], _: &mut [u8]) -> Result<()> {
        match self.0 {
            // Without the panic hook.
            true => std::panic::resume_unwind(Box::new("a bug of the reducer")),
            false => Err(Error::invalid_argument("the reducer failed")),
        }
    }
}

#[test]
fn failures_of_reducers_are_errors_of_all_processes() {
    for count in [1, 50_000] {
        for (panics, message) in
            [(false, "the reducer failed"), (true, "a task of the collective panicked: a bug of the reducer")]
        {
            let reduction =
                Reduction { operation: None, accumulator: ElementType::S32, reducer: Arc::new(Faulty(panics)) };
            let (cluster, spec) = (cluster(&[0, 1, 1], Timeouts::default()), all_reduce(reduction, count, 3));
            let key = key(RunKey::next(), &[0, 1, 2]);
            for error in on_threads(3, |rank| {
                let member = Member::new(vec![vec![0; 4 * count]]);
                execute_member(cluster.engine(rank), &key, rank, &spec, &member).unwrap_err().to_string()
            }) {
                assert_eq!(error.trim_start_matches("internal error: "), format!("%collective.1: {message}"));
            }
        }
    }
}

#[test]
fn unknown_devices_and_processes_are_errors() {
    let cluster = cluster(&[0, 1], Timeouts::default());
    let error = |engine: usize, devices: &[usize]| {
        cluster.engines[engine].clique(&key(RunKey::next(), devices)).unwrap_err().to_string()
    };
    assert_eq!(error(0, &[0, 7]), "%collective.1 names device 7, which no process has");
    let foreign = "internal error: no device of %collective.1 is in process 1, pid 4001 on host-1";
    assert_eq!(error(1, &[0]), foreign);
    let transport = || Arc::new(InMemory::network(1).remove(0));
    let error = Processes::new(transport(), [(3, 1)].into(), Timeouts::default()).unwrap_err();
    assert_eq!(error.to_string(), "device 3 is in process 1, but there are 1 processes");
    let shared = transport();
    Processes::new(shared.clone(), [(0, 0)].into(), Timeouts::default()).unwrap();
    let second = Processes::new(shared, [(0, 0)].into(), Timeouts::default()).unwrap_err();
    assert_eq!(second.to_string(), "a transport has two engines");
}

#[test]
fn runs_name_devices_by_global_id() {
    let cluster = &cluster(&[0, 1, 1, 0], Timeouts::default());
    // Logical device 0 is device 2 of process 1, logical device 1 is device 3 of process 0.
    let (key, engines) = (RunKey::next(), cluster.engines.clone());
    let run = |engine: usize| {
        let engine: Arc<dyn CollectiveEngine> = engines[engine].clone();
        CollectiveRun::new(engine, key).on_devices([2, 3].into())
    };
    let runs = [run(1), run(0)];
    on_threads(2, |logical| {
        let clique = runs[logical].clique(&instruction(), &[0, 1].into()).unwrap();
        assert_eq!(clique.key().devices(), [2, 3]);
        wait(&*clique, logical, &CancelToken::never()).unwrap();
    });
    let error = runs[0].clique(&instruction(), &[0, 2].into()).unwrap_err();
    assert_eq!(error.to_string(), "internal error: %collective.1 names device 2 of a run over 2 devices");
}
