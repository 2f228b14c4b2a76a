//! Tests of programs that each device runs on its own values.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use xla_hlo::eval::grid::{self, Grid};
use xla_hlo::ops::CustomCallContext;
use xla_hlo::text::parse_module;

use super::launches::QUEUED;
use super::*;

#[path = "../../../../xla-hlo/tests/eval_grid/modules.rs"]
mod modules;

const DISPATCHES: [Dispatch; 4] = [Dispatch::Inline, Dispatch::Queued, Dispatch::Auto, Dispatch::WhenReady];

fn verified(text: &str) -> Result<VerifiedModule> {
    VerifiedModule::new(parse_module(text)?)
}

/// Compiles a program of `programs`.
fn compiled(client: &Client, text: &str) -> LoadedExecutable {
    let program = client.compile(&verified(text).unwrap(), &CompileOptions::default()).unwrap();
    assert_eq!(client.joined_programs(), 0);
    program
}

/// Copies one list of arguments to each device of a program.
fn arguments(program: &LoadedExecutable, values: &[Vec<Literal>]) -> Vec<Vec<Buffer>> {
    let lists = program.devices().zip(values).map(|(device, list)| {
        list.iter().map(|literal| device.buffer_of_shape(literal, literal.array_shape()).unwrap()).collect()
    });
    lists.collect()
}

/// Launches a program, and returns the results of each device or the first error.
fn launch(program: &LoadedExecutable, values: &[Vec<Literal>], options: &ExecuteOptions) -> Result<Vec<Literal>> {
    let buffers = arguments(program, values);
    let lists: Vec<Vec<&Buffer>> = buffers.iter().map(|list| list.iter().collect()).collect();
    let results = program.launch(&lists, options)?;
    let literals = results.iter().map(|result| {
        result.completion().wait()?;
        let literals = result.buffers.iter().map(Buffer::to_literal).collect::<Result<_>>()?;
        program.signature().group_results(literals)
    });
    literals.collect()
}

/// Returns argument `number` of a device: small numbers that differ between devices and elements.
fn argument(number: usize, device: usize, shape: &ArrayShape) -> Literal {
    let ty = shape.element_type();
    let scalar = |i: usize| Scalar::from_i64(ty, (100 * number + 10 * device + i) as i64).rounded(ty);
    Literal::from_fn(shape, scalar).unwrap()
}

/// Returns the text without the numbers of devices: all devices fail, and any of them may be the first.
fn without_devices(text: &str) -> String {
    let mut text = text.to_string();
    for what in ["device ", "replica ", "partition "] {
        for number in 0..8 {
            text = text.replace(&format!("{what}{number}"), &format!("{what}N"));
        }
    }
    text
}

/// All programs of the evaluator's tests: every collective, group mode and element type, control flow and errors.
#[test]
fn results_are_those_of_the_evaluator_over_the_grid() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../xla-hlo/tests/eval_grid/programs");
    let (client, mut count, mut report) = (client_of(8), 0, String::new());
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    for file in files {
        for text in modules::modules(&fs::read_to_string(file).unwrap()) {
            // Programs that the verifier refuses, and programs of one device.
            let Ok(module) = verified(&text) else { continue };
            if program_form(&module) != ProgramForm::PerDevice {
                continue;
            }
            let devices = Grid::of(&module).unwrap().device_count();
            let entry = module.entry();
            let list = |device| {
                let shapes = entry.parameters().iter().map(|&p| entry[p].shape().as_array().unwrap()).enumerate();
                shapes.map(|(number, shape)| argument(number, device, shape)).collect()
            };
            let values: Vec<Vec<Literal>> = (0..devices).map(list).collect();
            let expected = grid::evaluate(&module, values.clone());
            if matches!(&expected, Err(error) if error.message().starts_with("no device can advance")) {
                // The evaluator finds a missing member at once, an engine only after some time.
                continue;
            }
            let program = client.compile(&module, &CompileOptions::default());
            let found = program.and_then(|program| launch(&program, &values, &QUEUED));
            match expected {
                Ok(expected) => assert_eq!(found.unwrap(), expected, "{text}"),
                Err(_) => report += &format!("{}: {}\n", module.name(), without_devices(&message(found))),
            }
            count += 1;
        }
    }
    assert_eq!(client.joined_programs(), 0);
    assert!(count > 40, "{count} programs");
    insta::assert_snapshot!("errors_of_programs_on_several_devices", report);
}

#[test]
fn devices_are_numbered_by_their_order_in_the_program() {
    let client = client_of(5);
    let text = include_str!("programs/ids.hlo");
    let program = compiled(&client, text).on_devices(&[3, 0, 4, 1]).unwrap();
    assert_eq!(program.signature().arguments()[0].shape.dims(), [2]);
    assert!(program.source().is_some_and(|source| source.name() == "ids"));
    assert_eq!(program.result_shardings().unwrap().len(), 1);
    let values: Vec<Vec<Literal>> = (0..4).map(|_| vec![f32s(&[0.0, 0.5])]).collect();
    for dispatch in DISPATCHES {
        let results = launch(&program, &values, &ExecuteOptions { dispatch, ..ExecuteOptions::default() }).unwrap();
        let expected = [[0.0, 0.5], [1.0, 1.5], [10.0, 10.5], [11.0, 11.5]].map(|values| f32s(&values));
        assert_eq!(results, expected);
    }
    assert_eq!(message(program.on_devices(&[1])), "ids is a program for 4 devices, but 1 were given");
    assert_eq!(
        message(program.serialize()),
        "ids is executed by several devices together; only programs of one device and of independent replicas can be \
         serialised"
    );
    let error = message(client_of(3).compile(&verified(text).unwrap(), &CompileOptions::default()));
    assert_eq!(error, "ids is a program for 4 devices, but the client has 3");
}

#[test]
fn each_device_donates_its_argument_and_draws_its_numbers() {
    let client = client_of(2);
    let program = compiled(&client, include_str!("programs/draws.hlo"));
    let module = program.source().unwrap();
    let values = [vec![f32s(&[1.0; 4])], vec![f32s(&[2.0; 4])]];
    for dispatch in [Dispatch::Queued, Dispatch::Inline] {
        let buffers = arguments(&program, &values);
        let lists: Vec<Vec<&Buffer>> = buffers.iter().map(|list| list.iter().collect()).collect();
        let donate = Donate::Declared { except: Vec::new() };
        let results =
            program.launch(&lists, &ExecuteOptions { dispatch, donate, ..ExecuteOptions::default() }).unwrap();
        results.iter().for_each(|result| result.completion().wait().unwrap());
        assert!(buffers.iter().flatten().all(Buffer::is_donated));
        if dispatch == Dispatch::Queued {
            let first = results.iter().map(|result| result.buffers[0].to_literal().unwrap()).collect::<Vec<_>>();
            assert_eq!(first, grid::evaluate(module, values.to_vec()).unwrap());
        }
    }
}

/// Creates a client of 4 devices with handler `host`, which fails or waits for some values.
fn with_host(host: impl Fn(&CustomCallContext<'_>, Vec<Literal>) -> Result<Literal> + Send + Sync + 'static) -> Client {
    with_host_and(host, ClientOptions::default())
}

/// Creates a client of 4 devices with handler `host` and other options.
fn with_host_and(
    host: impl Fn(&CustomCallContext<'_>, Vec<Literal>) -> Result<Literal> + Send + Sync + 'static,
    options: ClientOptions,
) -> Client {
    let mut registry = PlatformRegistry::new();
    registry.register(interpreter::platform());
    registry.custom_calls().register("host", Arc::new(host));
    Client::with_options(&registry, "interpreter", ClientOptions { devices: Some(4), ..options }).unwrap()
}

/// Returns arguments of 4 devices: the given numbers.
fn each(numbers: [f32; 4]) -> Vec<Vec<Literal>> {
    numbers.iter().map(|&number| vec![f32s(&[number])]).collect()
}

#[test]
fn a_device_that_fails_ends_the_others_with_its_error() {
    let client = with_host(|_, operands| match operands[0].get(0) {
        Scalar::Float(13.0) => Err(Error::invalid_argument("thirteen")),
        _ => Ok(operands[0].clone()),
    });
    // The other devices wait for the one that fails, or compute for ever.
    for text in [include_str!("programs/host_then_sum.hlo"), include_str!("programs/host_then_loop.hlo")] {
        let program = compiled(&client, text);
        for round in 0..40 {
            let (bad, dispatch) = (round % 4, DISPATCHES[round / 4 % 4]);
            let mut numbers = [1.0; 4];
            numbers[bad] = 13.0;
            let options = ExecuteOptions { dispatch, ..ExecuteOptions::default() };
            let buffers = arguments(&program, &each(numbers));
            let lists: Vec<Vec<&Buffer>> = buffers.iter().map(|list| list.iter().collect()).collect();
            let begin = Instant::now();
            let results = program.launch(&lists, &options).unwrap();
            for result in &results {
                let error = message(result.completion().wait());
                let place = format!("platform interpreter, device {bad} (replica {bad}, partition 0): ");
                assert!(error.starts_with(&place) && error.contains("thirteen"), "{error}");
            }
            // A quarter of the default time-out of collectives.
            assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
        }
    }
    // The client is usable afterwards.
    let sum = compiled(&client, include_str!("programs/host_then_sum.hlo"));
    assert_eq!(launch(&sum, &each([1.0, 2.0, 3.0, 4.0]), &QUEUED).unwrap(), vec![f32s(&[10.0]); 4]);
}

#[test]
fn a_failed_argument_of_one_device_fails_all() {
    let client = client_of(4);
    let program = compiled(&client, include_str!("programs/sum.hlo"));
    let lists = arguments(&program, &each([1.0; 4]));
    let bad = client.device(1).unwrap().errored_buffer(&ArrayShape::new(F32, [1]), Error::internal("lost")).unwrap();
    let lists = [[&lists[0][0]], [&bad], [&lists[2][0]], [&lists[3][0]]];
    for result in program.launch(&lists, &QUEUED).unwrap() {
        let error = message(result.completion().wait());
        assert_eq!(error, "internal error: platform interpreter, device 1 (replica 1, partition 0): lost");
    }
}

#[test]
fn errors_name_the_device_of_the_client_and_its_replica_and_partition() {
    let client = with_host(|_, operands| match operands[0].get(0) {
        Scalar::Float(13.0) => Err(Error::invalid_argument("thirteen")),
        _ => Ok(operands[0].clone()),
    });
    let order = [3, 2, 0, 1];
    let program = compiled(&client, include_str!("programs/host_then_partition.hlo")).on_devices(&order).unwrap();
    for (bad, device) in order.into_iter().enumerate() {
        let mut numbers = [1.0; 4];
        numbers[bad] = 13.0;
        let error = message(launch(&program, &each(numbers), &QUEUED));
        let place = format!("platform interpreter, device {device} (replica {}, partition {}): ", bad / 2, bad % 2);
        assert!(error.starts_with(&place) && error.matches("platform").count() == 1, "{error}");
    }
}

#[test]
fn a_launch_when_ready_has_called_its_handlers_when_it_returns() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = calls.clone();
    let client = with_host(move |_, operands| {
        std::thread::sleep(Duration::from_millis(20));
        counter.fetch_add(1, Ordering::SeqCst);
        match operands[0].get(0) {
            Scalar::Float(13.0) => Err(Error::invalid_argument("thirteen")),
            _ => Ok(operands[0].clone()),
        }
    });
    let program = compiled(&client, include_str!("programs/host_then_sum.hlo"));
    let options = ExecuteOptions { dispatch: Dispatch::WhenReady, ..ExecuteOptions::default() };
    let buffers = arguments(&program, &each([1.0; 4]));
    let start = |third| program.launch(&[[&buffers[0][0]], [&buffers[1][0]], [third], [&buffers[3][0]]], &options);
    let results = start(&buffers[2][0]).unwrap();
    assert_eq!(calls.load(Ordering::SeqCst), 4);
    assert!(results.iter().all(|result| result.failure().is_none()));
    // An error of a handler is an error of the call.
    let bad = arguments(&program, &each([13.0; 4]));
    let results = start(&bad[2][0]).unwrap();
    assert!(results.iter().all(|result| result.failure().is_some_and(|error| error.message().contains("thirteen"))));
    // The call does not wait for an argument.
    let before = calls.load(Ordering::SeqCst);
    let (late, promise) = client.device(2).unwrap().alias_buffer(buffers[2][0].shape()).unwrap();
    let results = start(&late).unwrap();
    assert_eq!(calls.load(Ordering::SeqCst), before);
    promise.fulfil(Ok(&buffers[2][0])).unwrap();
    results.iter().for_each(|result| result.completion().wait().unwrap());
    assert_eq!(calls.load(Ordering::SeqCst), before + 4);
}

#[test]
fn a_client_has_its_own_time_limit_of_collectives() {
    let late = |_: &CustomCallContext<'_>, operands: Vec<Literal>| {
        if operands[0].get(0) == Scalar::Float(13.0) {
            std::thread::sleep(Duration::from_millis(400));
        }
        Ok(operands[0].clone())
    };
    let limits = Timeouts { warn: Duration::from_millis(20), end: Duration::from_millis(50) };
    let client = with_host_and(late, ClientOptions { collective_timeouts: limits, ..ClientOptions::default() });
    let program = compiled(&client, include_str!("programs/host_then_sum.hlo"));
    let error = message(launch(&program, &each([1.0, 1.0, 13.0, 1.0]), &QUEUED));
    assert!(error.contains("ms for devices 2 (rank 2);"), "{error}");
}

#[test]
fn cancellation_ends_all_devices() {
    let client = with_host(|_, operands| Ok(operands[0].clone()));
    let program = compiled(&client, include_str!("programs/host_then_loop.hlo"));
    let cancel = CancelToken::new();
    let buffers = arguments(&program, &each([1.0; 4]));
    let lists: Vec<Vec<&Buffer>> = buffers.iter().map(|list| list.iter().collect()).collect();
    let results = program.launch(&lists, &ExecuteOptions { cancel: Some(cancel.clone()), ..QUEUED }).unwrap();
    std::thread::sleep(Duration::from_millis(20));
    cancel.cancel();
    for result in &results {
        let outcome = result.completion().wait();
        assert!(matches!(outcome, Err(Error::Cancelled(_))), "{outcome:?}");
    }
}

#[test]
fn launches_over_overlapping_sets_of_devices_do_not_wait_in_a_cycle() {
    let client = client_of(4);
    let program = compiled(&client, include_str!("programs/loop.hlo"));
    let sets = [[0, 1], [1, 2], [2, 3], [3, 0], [2, 0], [1, 0], [3, 1], [0, 2]];
    std::thread::scope(|scope| {
        for (thread, set) in sets.iter().enumerate() {
            let program = program.on_devices(set).unwrap();
            scope.spawn(move || {
                for round in 0..if cfg!(miri) { 1 } else { 40 } {
                    let dispatch = DISPATCHES[(thread + round) % 4];
                    let values = [vec![f32s(&[1.0, thread as f32])], vec![f32s(&[round as f32, 2.0])]];
                    let options = ExecuteOptions { dispatch, ..ExecuteOptions::default() };
                    // Three iterations of the sum of both devices.
                    let sum = f32s(&[4.0 * (1.0 + round as f32), 4.0 * (2.0 + thread as f32)]);
                    assert_eq!(launch(&program, &values, &options).unwrap(), [sum.clone(), sum]);
                }
            });
        }
    });
}

#[test]
fn launches_start_independently_of_their_order() {
    let client = client_of(4);
    let program = compiled(&client, include_str!("programs/sum.hlo"));
    let buffers = arguments(&program, &each([1.0, 2.0, 3.0, 4.0]));
    let (late, promise) = client.device(2).unwrap().alias_buffer(buffers[2][0].shape()).unwrap();
    let with = |third| [[&buffers[0][0]], [&buffers[1][0]], [third], [&buffers[3][0]]];
    let first = program.launch(&with(&late), &QUEUED).unwrap();
    let second = program.launch(&with(&buffers[2][0]), &QUEUED).unwrap();
    assert_eq!(second[3].buffers[0].to_literal().unwrap(), f32s(&[10.0]));
    assert!(first.iter().all(|result| !result.buffers[0].is_ready().unwrap()));
    promise.fulfil(Ok(&buffers[2][0])).unwrap();
    assert_eq!(first[0].buffers[0].to_literal().unwrap(), f32s(&[10.0]));
}

#[test]
fn a_launch_inside_of_a_host_call_is_complete_when_it_returns() {
    let sum = Arc::new(std::sync::OnceLock::<LoadedExecutable>::new());
    let inner = sum.clone();
    let client = with_host(move |_, operands| {
        let program = inner.get().ok_or_else(|| Error::internal("the program is missing"))?;
        let results = launch(program, &each([1.0, 2.0, 3.0, 4.0]), &QUEUED)?;
        assert_eq!(results, vec![f32s(&[10.0]); 4]);
        Ok(operands[0].clone())
    });
    sum.set(compiled(&client, include_str!("programs/sum.hlo"))).unwrap();
    let outer = compiled(&client, include_str!("programs/host_then_sum.hlo"));
    for dispatch in DISPATCHES {
        let options = ExecuteOptions { dispatch, ..ExecuteOptions::default() };
        assert_eq!(launch(&outer, &each([2.0; 4]), &options).unwrap(), vec![f32s(&[8.0]); 4]);
    }
    // The handler owns the program, which owns the client.
    drop((outer, client));
}

#[test]
fn an_ordered_launch_inside_of_an_ordered_program_does_not_wait_for_it() {
    let draws = Arc::new(std::sync::OnceLock::<LoadedExecutable>::new());
    let inner = draws.clone();
    let client = with_host(move |_, operands| {
        let program = inner.get().ok_or_else(|| Error::internal("the program is missing"))?;
        launch(program, &[vec![f32s(&[1.0; 4])], vec![f32s(&[2.0; 4])]], &QUEUED)?;
        Ok(operands[0].clone())
    });
    draws.set(compiled(&client, include_str!("programs/draws.hlo"))).unwrap();
    let outer = compiled(&client, include_str!("programs/host_then_draw.hlo"));
    for dispatch in DISPATCHES {
        let options = ExecuteOptions { dispatch, ..ExecuteOptions::default() };
        let results = launch(&outer, &[vec![f32s(&[2.0])]], &options).unwrap();
        assert!(matches!(results[0].get(0), Scalar::Float(x) if (2.0..3.0).contains(&x)), "{results:?}");
    }
    // The handler owns the program, which owns the client.
    drop((outer, client));
}
