//! Clients that act as the processes of a job: topology, programs over several processes, failures.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use super::*;
use crate::collective::Timeouts;
use crate::collective::processes::{InMemory, Tcp, Transport};
use crate::topology::InMemoryStore;

/// Network in memory whose endpoints are taken by the processes.
#[derive(Debug)]
struct Network(Mutex<Vec<Option<InMemory>>>);

impl Connector for Network {
    fn connect(&self, _: &str, options: &ProcessOptions) -> Result<Arc<dyn Transport>> {
        let endpoint = self.0.lock().unwrap()[options.process].take();
        Ok(Arc::new(endpoint.ok_or_else(|| Error::internal("an endpoint is used twice"))?))
    }
}

fn network(processes: usize) -> Arc<Network> {
    Arc::new(Network(Mutex::new(InMemory::network(processes).into_iter().map(Some).collect())))
}

fn create(process: usize, devices: usize, processes: &ProcessOptions) -> Result<Client> {
    let mut registry = PlatformRegistry::new();
    registry.register(interpreter::platform());
    let processes = Some(ProcessOptions { process, ..processes.clone() });
    let options = ClientOptions { devices: Some(devices), processes, ..ClientOptions::default() };
    Client::with_options(&registry, "interpreter", options)
}

fn options(processes: usize, connector: Arc<dyn Connector>) -> ProcessOptions {
    let store = Arc::new(InMemoryStore::default());
    let collective_timeouts = Timeouts::default();
    ProcessOptions { process: 0, processes, store, connector, timeout: Duration::from_secs(60), collective_timeouts }
}

/// Runs `work` as each process of a job with these numbers of devices.
fn job<T: Send>(counts: &[usize], options: &ProcessOptions, work: impl Fn(usize, Client) -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let start = |(process, &devices): (usize, &usize)| {
            let work = &work;
            scope.spawn(move || work(process, create(process, devices, options).unwrap()))
        };
        let threads: Vec<_> = counts.iter().enumerate().map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn sum_over(replicas: usize) -> VerifiedModule {
    let text = format!(
        "HloModule sum, replica_count={replicas}\n\
         add {{ x = f32[] parameter(0) y = f32[] parameter(1) ROOT s = f32[] add(x, y) }}\n\
         ENTRY main {{ p = f32[2] parameter(0) ROOT r = f32[2] all-reduce(p), replica_groups={{}}, to_apply=add }}"
    );
    VerifiedModule::new(xla_hlo::text::parse_module(&text).unwrap()).unwrap()
}

/// Runs the sum over these devices, launched by each of the processes that have some, and returns the local results.
fn sum(client: &Client, ids: &[usize]) -> Vec<Literal> {
    let program = client.compile(&sum_over(ids.len()), &CompileOptions::default()).unwrap();
    let program = program.on_devices(ids).unwrap();
    let arguments: Vec<Buffer> = program
        .devices()
        .map(|device| device.buffer_of_shape(&f32s(&[device.id() as f32, 1.0]), &ArrayShape::new(F32, [2])).unwrap())
        .collect();
    let lists: Vec<_> = arguments.iter().map(|argument| [argument]).collect();
    let results = program.launch(&lists, &ExecuteOptions::default()).unwrap();
    results.iter().map(|result| result.buffers[0].to_literal().unwrap()).collect()
}

#[test]
fn programs_run_on_devices_of_several_processes() {
    let connectors: [(usize, Arc<dyn Connector>); 2] = [(3, network(3)), (3, Arc::new(SharedTcp))];
    for (processes, connector) in connectors {
        let results = job(&[2, 1, 2], &options(processes, connector), |process, client| {
            let topology = client.topology();
            assert_eq!((topology.process(), topology.processes(), topology.devices().len()), (process, 3, 5));
            let ids: Vec<_> = client.devices().map(|device| (device.id(), device.index())).collect();
            let expected = [vec![(0, 0), (1, 1)], vec![(2, 0)], vec![(3, 0), (4, 1)]];
            assert_eq!(ids, expected[process]);
            let all = sum(&client, &[4, 2, 0, 1, 3]);
            // Two launches of one program over different devices, and one over local devices only.
            let some = if process == 1 { vec![] } else { sum(&client, &[3, 0]) };
            let local = if process == 0 { sum(&client, &[1, 0]) } else { vec![] };
            (all, some, local)
        });
        let all = f32s(&[10.0, 5.0]);
        let (two, one) = (f32s(&[3.0, 2.0]), f32s(&[1.0, 2.0]));
        assert_eq!(results[0], (vec![all.clone(); 2], vec![two.clone()], vec![one; 2]));
        assert_eq!(results[1], (vec![all.clone()], vec![], vec![]));
        assert_eq!(results[2], (vec![all; 2], vec![two], vec![]));
    }
}

/// TCP connector of a job whose processes are threads: each has its own count of jobs.
#[derive(Debug)]
struct SharedTcp;

impl Connector for SharedTcp {
    fn connect(&self, platform: &str, options: &ProcessOptions) -> Result<Arc<dyn Transport>> {
        Tcp::default().connect(platform, options)
    }
}

#[test]
fn devices_of_other_processes_cannot_be_used_directly() {
    let messages = job(&[1, 1], &options(2, network(2)), |process, client| {
        let other = 1 - process;
        let program = client.compile(&sum_module("sum"), &CompileOptions::default()).unwrap();
        assert_eq!(program.devices().map(|device| device.id()).collect::<Vec<_>>(), [process]);
        let joined = client.compile(&random_numbers(), &CompileOptions::default());
        [message(client.device(other)), message(program.on_devices(&[2])), message(joined)]
    });
    let [device, missing, joined] = &messages[1];
    assert_eq!(device, "device 0 belongs to process 0, whose arrays process 1 cannot access");
    assert_eq!(missing, "the 2 processes have 2 devices, but no device 2");
    let expected = "random must run on devices of one process, because one device does the work of all, but device 0 \
                    belongs to process 0 (";
    assert!(joined.starts_with(expected), "{joined}");
}

fn f32s_of(values: &[f32], dims: &[usize]) -> Literal {
    Literal::from_fn(&ArrayShape::new(F32, dims.to_vec()), |i| Scalar::Float(values[i].into())).unwrap()
}

fn parsed(text: &str) -> VerifiedModule {
    VerifiedModule::new(xla_hlo::text::parse_module(text).unwrap()).unwrap()
}

/// Program whose devices would need the random numbers of one device.
fn random_numbers() -> VerifiedModule {
    parsed(
        "HloModule random, num_partitions=2\n\
         ENTRY main { p = f32[4] parameter(0), sharding={devices=[2]<=[2]} a = f32[] parameter(1) b = f32[] parameter(2)\n\
         n = f32[4] rng(a, b), distribution=rng_uniform ROOT r = f32[4] add(p, n) }",
    )
}

#[test]
fn devices_of_several_processes_gather_values_of_programs_without_a_partitioner() {
    let reverse = parsed(
        "HloModule reverse, num_partitions=4\n\
         ENTRY main { p = f32[4,2] parameter(0), sharding={devices=[2,2]<=[4]}\n\
         ROOT r = f32[4,2] reverse(p), dimensions={0,1}, sharding={devices=[4,1]<=[4]} }",
    );
    let results = job(&[1, 2, 1], &options(3, network(3)), |_, client| {
        let program = client.compile(&reverse, &CompileOptions::default()).unwrap();
        assert!(program.join_reason().is_none());
        let argument = |device: Device| {
            // The elements of the whole array are their numbers.
            let first = [0.0, 1.0, 4.0, 5.0][device.id()];
            let part = f32s_of(&[first, first + 2.0], &[2, 1]);
            device.buffer_of_shape(&part, &ArrayShape::new(F32, [2, 1])).unwrap()
        };
        let arguments: Vec<Buffer> = program.devices().map(argument).collect();
        let lists: Vec<_> = arguments.iter().map(|argument| [argument]).collect();
        let results = program.launch(&lists, &ExecuteOptions::default()).unwrap();
        results.iter().map(|result| result.buffers[0].to_literal().unwrap()).collect::<Vec<_>>()
    });
    let rows = [[7.0, 6.0], [5.0, 4.0], [3.0, 2.0], [1.0, 0.0]];
    assert_eq!(results.concat(), rows.map(|row| f32s_of(&row, &[1, 2])));
}

#[test]
fn devices_of_one_process_gather_nothing() {
    let reverse = parsed(
        "HloModule reverse, num_partitions=2\n\
         ENTRY main { p = f32[4] parameter(0), sharding={devices=[2]<=[2]}\n\
         ROOT r = f32[4] reverse(p), dimensions={0}, sharding={devices=[2]<=[2]} }",
    );
    job(&[2, 2], &options(2, network(2)), |process, client| {
        let is_joined = |devices: [usize; 2]| {
            let program = client.compile_on(&reverse, &devices, &CompileOptions::default()).unwrap();
            assert_eq!(program.device_ids(), devices);
            program.join_reason().is_some()
        };
        assert!(is_joined([2 * process + 1, 2 * process]));
        assert!(!is_joined([1, 2]));
    });
}

#[test]
fn a_launch_that_one_process_rejects_fails_in_all_and_later_launches_agree() {
    let results = job(&[1, 1], &options(2, network(2)), |process, client| {
        let program = client.compile(&sum_over(2), &CompileOptions::default()).unwrap();
        let launch = || {
            let argument = f32s(&[1.0, process as f32]);
            let argument = client.first_device().buffer_of_shape(&argument, &ArrayShape::new(F32, [2])).unwrap();
            program.launch(&[[&argument]], &ExecuteOptions::default()).unwrap()[0].buffers[0].to_literal()
        };
        let error = match process {
            0 => {
                program.reject(&Error::failed_precondition("argument 0 was deleted"));
                String::new()
            }
            _ => message(launch()),
        };
        let later: Vec<Literal> = (0..3).map(|_| launch().unwrap()).collect();
        (error, later)
    });
    assert!(results[1].0.contains("argument 0 was deleted"), "{}", results[1].0);
    for (_, later) in results {
        assert_eq!(later, vec![f32s(&[2.0, 1.0]); 3]);
    }
}

#[test]
fn missing_and_changed_processes_are_named() {
    let short = ProcessOptions { timeout: Duration::from_millis(50), ..options(3, network(3)) };
    let starts = |process, devices, expected: &str| {
        let message = message(create(process, devices, &short));
        assert!(message.starts_with(expected), "{message}");
    };
    let missing = "of 3 processes, these have not published their devices of platform interpreter within 0.05 s: ";
    starts(1, 1, &format!("{missing}0, 2; "));
    starts(0, 1, &format!("{missing}2; "));
    starts(1, 2, "the key-value store has another value for xlars/interpreter/devices/1: ");
    starts(3, 1, "process 3 is not one of 3 processes");
}
