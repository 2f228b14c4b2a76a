//! Programs on several queues, whose threads synchronise only through events.

use std::sync::Arc;

use crate::support::{assert_close, clients, module, results};
use backend_template::{DeviceOptions, platform_with};
use xla_hlo::{ArrayShape, ElementType, Literal, Scalar};
use xla_service::{Client, CompileOptions, Fault, LoadedExecutable, Platform};

/// Program with four independent branches, among them a loop and a sort that the host evaluates. Two dots join the
/// branches in pairs.
const PROGRAM: &str = include_str!("programs/streams.hlo");

fn arguments() -> Vec<Literal> {
    let shape = ArrayShape::new(ElementType::F32, [32, 32]);
    let array = |step: usize| {
        Literal::from_fn(&shape, |i| Scalar::Float((i * step % 13) as f64 / 64.0 - 0.05)).expect("a small array")
    };
    vec![array(7), array(5)]
}

fn on_three_streams() -> (Arc<dyn Platform>, Client, LoadedExecutable, Vec<Literal>) {
    let platform = platform_with(DeviceOptions { streams: 3, ..DeviceOptions::default() });
    let (client, evaluator) = clients(platform.clone());
    let (module, options) = (module(PROGRAM), CompileOptions::default());
    let expected = results(&evaluator.compile(&module, &options).expect("it compiles"), &arguments());
    let program = client.compile(&module, &options).expect("it compiles");
    (platform, client, program, expected)
}

fn check(program: &LoadedExecutable, expected: &[Literal]) {
    for (found, expected) in results(program, &arguments()).iter().zip(expected) {
        assert_close(found, expected, "on three streams");
    }
}

#[test]
fn programs_are_right_on_several_queues_from_several_threads() {
    let (_, client, program, expected) = on_three_streams();
    let sequence = program.thunks().expect("it is made of thunks");
    let used = sequence.walk().map(|thunk| thunk.stream.0).max();
    assert_eq!(used, Some(2), "{sequence}");
    assert!(program.dumps().iter().any(|(name, _)| name == "timeline.svg"));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..10).for_each(|_| check(&program, &expected)));
        }
    });
    drop(program);
    client.cache().clear();
    assert_eq!(client.memory_stats().bytes_in_use, 0);
}

/// A fault at any point of any queue is reported by waiting for the results, and the next run succeeds.
#[test]
fn every_fault_is_told_and_is_over() {
    let (platform, client, program, expected) = on_three_streams();
    let executor = platform.executor(0).expect("a device");
    let faults = executor.fault_injection().expect("a simulated device");
    check(&program, &expected);
    let buffers: Vec<_> = arguments().iter().map(|argument| client.buffer(argument).expect("an upload")).collect();
    let before = client.memory_stats().bytes_in_use;
    for fault in Fault::ALL {
        let mut struck = 0;
        for skip in 0..40 {
            buffers.iter().for_each(|buffer| buffer.wait().expect("no fault yet"));
            faults.inject(fault, skip).expect("this kind of fault");
            let outcome = program.execute(&buffers.iter().collect::<Vec<_>>()).and_then(|results| {
                results.iter().try_for_each(|result| result.wait())?;
                Ok(results)
            });
            faults.clear();
            match outcome {
                Ok(results) => {
                    for (result, expected) in results.iter().zip(&expected) {
                        assert_close(&result.to_literal().expect("waited for"), expected, "no fault was told");
                    }
                }
                Err(error) => {
                    struck += 1;
                    let message = error.message();
                    let has_place = message.contains("platform template") && message.contains('%');
                    assert!(has_place, "{fault:?} {skip}: {message}");
                }
            }
            check(&program, &expected);
            assert_eq!(client.memory_stats().bytes_in_use, before, "{fault:?} {skip} leaked");
        }
        assert!(struck > 1, "{fault:?} struck {struck} times");
    }
}
