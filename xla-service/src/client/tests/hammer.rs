//! Stress tests for races: many threads launch, donate, delete, hold and copy the same buffers.

use std::sync::atomic::AtomicBool;

use xla_hlo::ops::CustomCallContext;

use super::*;

/// Returns a pseudo-random number that depends only on the seed.
fn next(seed: &mut u64) -> usize {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) as usize
}

/// Checks that a read returns the written value, or that the buffer is gone.
fn check(buffer: &Buffer, value: f32) {
    match buffer.to_literal() {
        Ok(found) => assert_eq!(found, f32s(&[value; 3])),
        Err(Error::FailedPrecondition(_)) => assert!(buffer.is_deleted()),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn buffers_are_used_and_given_up_by_many_threads_at_once() {
    let client = client();
    let program = sum_program(&client);
    let one = client.buffer(&f32s(&[1.0; 3])).unwrap();
    for round in 0..if cfg!(miri) { 1 } else { 60 } {
        let shared: Vec<Buffer> = (0..4).map(|i| client.buffer(&f32s(&[i as f32; 3])).unwrap()).collect();
        std::thread::scope(|scope| {
            for thread in 0..4u64 {
                let (program, one, shared) = (&program, &one, &shared);
                scope.spawn(move || {
                    let mut seed = thread + 97 * round + 1;
                    for _ in 0..20 {
                        let i = next(&mut seed) % shared.len();
                        let (buffer, value) = (&shared[i], i as f32);
                        let dispatch = [Dispatch::Inline, Dispatch::Queued, Dispatch::Auto][next(&mut seed) % 3];
                        let donate = if next(&mut seed).is_multiple_of(8) { vec![0].into() } else { Donate::default() };
                        let options = ExecuteOptions { donate, dispatch, ..ExecuteOptions::default() };
                        match next(&mut seed) % 6 {
                            0 => check(buffer, value),
                            1 => drop(buffer.hold().map(|hold| {
                                assert_eq!(hold.host_bytes().unwrap(), [value; 3].map(f32::to_le_bytes).concat());
                            })),
                            2 if next(&mut seed).is_multiple_of(8) => buffer.delete(),
                            2 => drop(buffer.view(buffer.shape()).map(|view| check(&view, value))),
                            _ => match program.launch(&[[buffer, one]], &options) {
                                Ok(results) => check(&results[0].buffers[0], value + 1.0),
                                Err(Error::FailedPrecondition(_)) => {}
                                Err(error) => panic!("{error}"),
                            },
                        }
                    }
                });
            }
        });
    }
    drop(one);
}

#[test]
fn completions_are_set_waited_for_and_listened_to_at_once() {
    for round in 0..if cfg!(miri) { 20 } else { 500 } {
        let (completion, completer) = Completion::pending();
        let heard = Arc::new(AtomicUsize::new(0));
        let early = Arc::new(AtomicBool::new(false));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let (heard, inner) = (heard.clone(), completion.clone());
                    let early = early.clone();
                    completion.on_ready(move |outcome| {
                        early.fetch_or(!inner.is_ready() || outcome.is_err(), Ordering::SeqCst);
                        heard.fetch_add(1, Ordering::SeqCst);
                    });
                    completion.wait().unwrap();
                });
            }
            scope.spawn(|| {
                if round % 2 == 0 {
                    std::thread::yield_now();
                }
                completer.set(Ok(()));
            });
        });
        assert_eq!((heard.load(Ordering::SeqCst), early.load(Ordering::SeqCst)), (3, false));
    }
}

#[test]
fn the_end_of_several_is_that_of_the_last_with_the_first_error() {
    let parts: Vec<_> = (0..3).map(|_| Completion::pending()).collect();
    let whole = Completion::all(parts.iter().map(|(part, _)| part.clone()));
    let errors = [None, Some("second"), Some("third")];
    let mut completers: Vec<_> = parts.into_iter().map(|(_, completer)| completer).zip(errors).collect();
    completers.reverse();
    for (completer, error) in completers {
        assert!(!whole.is_ready());
        completer.set(error.map_or(Ok(()), |error| Err(Error::not_found(error))));
    }
    assert_eq!(message(whole.wait()), "second");
    assert!(Completion::all([]).is_done());
    let (lost, completer) = Completion::pending();
    drop(completer);
    assert!(matches!(lost.wait(), Err(Error::Cancelled(_))));
}

/// A callback that panics must not unwind into the thread that ends the work, and later callbacks still run.
#[test]
fn a_callback_may_panic() {
    let (completion, completer) = Completion::pending();
    let (heard, count) = (Arc::new(AtomicUsize::new(0)), AtomicUsize::new(0));
    completion.on_ready(|_| panic!("a callback's own fault"));
    let other = heard.clone();
    completion.on_ready(move |_| {
        other.fetch_add(1 + count.into_inner(), Ordering::SeqCst);
    });
    completer.set(Ok(()));
    assert_eq!(heard.load(Ordering::SeqCst), 1);
}

/// A program uses the handlers it was loaded with or the current ones, while other threads replace them.
#[test]
fn handlers_are_registered_while_programs_that_call_them_are_loaded_and_run() {
    let client = client();
    let text = "HloModule calls\nENTRY main {\n x = f32[3] parameter(0)\n \
                ROOT y = f32[3] custom-call(x), custom_call_target=\"same\"\n}";
    let module = VerifiedModule::new(xla_hlo::text::parse_module(text).unwrap()).unwrap();
    let same = || Arc::new(|_: &CustomCallContext<'_>, mut operands: Vec<Literal>| Ok(operands.swap_remove(0)));
    client.custom_calls().register("same", same());
    let (rounds, x) = (if cfg!(miri) { 2 } else { 100 }, f32s(&[1.0, 2.0, 3.0]));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| (0..rounds).for_each(|_| drop(client.custom_calls().register("same", same()))));
            scope.spawn(|| {
                for _ in 0..rounds {
                    let program = client.compile(&module, &CompileOptions::default()).unwrap();
                    assert_eq!(program.run(vec![x.clone()]).unwrap(), x);
                }
            });
        }
    });
}
