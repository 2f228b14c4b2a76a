//! Cancelled runs: before they start, while they run, and with other runs queued after them.

use std::time::{Duration, Instant};

use xla::{Dispatch, Error, ExecuteOptions, Literal, LoadedExecutable, Scalar, VerifiedModule};
use xla_hlo::text::parse_module;
use xla_hlo::{ArrayShape, ElementType};
use xla_service::CancelToken;

use crate::conformance::case::{Case, Check, Level, Subject, ensure};
use crate::conformance::launch;
use crate::conformance::levels::support::{resting, settles};

/// Program that counts to its argument, so slowly that it never reaches a large one.
const LOOP: &str = include_str!("programs/loop.hlo");

/// Time limit for a cancelled run to stop.
const PATIENCE: Duration = Duration::from_secs(20);

pub fn cases() -> Vec<Case> {
    let case =
        |name: &str, work: fn(&Subject) -> Check| Case::new(Level::Resilience, format!("cancel/{name}"), work).alone();
    vec![
        case("before-start", before_start),
        case("long-loop", long_loop),
        case("queued", queued),
        case("after-the-end", after_the_end),
    ]
}

fn counting(subject: &Subject) -> xla::Result<LoadedExecutable> {
    launch::compile(&subject.client()?, &VerifiedModule::new(parse_module(LOOP)?)?)
}

fn arguments(count: i64) -> xla::Result<[Literal; 2]> {
    let ones = Literal::splat(&ArrayShape::new(ElementType::F32, [64]), Scalar::Float(1.0))?;
    Ok([Literal::scalar(ElementType::S32, Scalar::Signed(count)), ones])
}

/// Checks that the program counts to three after a cancellation.
fn still_works(compiled: &LoadedExecutable) -> Check {
    let value = launch::run(compiled, &arguments(3)?, &ExecuteOptions::default())?;
    let counted = value.elements()[0].get(0);
    ensure!(counted == Scalar::Signed(3), "the next execution counted to {counted:?} instead of 3");
    Ok(())
}

fn cancelled<T>(outcome: xla::Result<T>, what: &str) -> Check {
    match outcome {
        Err(Error::Cancelled(_)) => Ok(()),
        Err(error) => {
            ensure!(false, "{what} must be Cancelled: {error:?}");
            Ok(())
        }
        Ok(_) => {
            ensure!(false, "{what} gave values");
            Ok(())
        }
    }
}

/// Returns options of a run with a cancel token, and the token.
fn cancellable(dispatch: Dispatch) -> (ExecuteOptions, CancelToken) {
    let token = CancelToken::new();
    (ExecuteOptions { dispatch, cancel: Some(token.clone()), ..ExecuteOptions::default() }, token)
}

fn before_start(subject: &Subject) -> Check {
    let executor = subject.executor()?;
    let compiled = counting(subject)?;
    still_works(&compiled)?;
    let before = resting(&*executor);
    for dispatch in [Dispatch::Inline, Dispatch::Queued] {
        let (options, token) = cancellable(dispatch);
        token.cancel();
        cancelled(launch::run(&compiled, &arguments(3)?, &options), "a run that was cancelled before it began")?;
        settles(&*executor, before)?;
    }
    still_works(&compiled)
}

/// Cancels a run after a while from another thread, and checks that it stops in time.
fn stopped(compiled: &LoadedExecutable, dispatch: Dispatch) -> Check {
    let ((options, token), asked) = (cancellable(dispatch), Duration::from_millis(60));
    let started = Instant::now();
    let outcome = std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(asked);
            token.cancel();
        });
        launch::run(compiled, &arguments(i64::from(i32::MAX))?, &options)
    });
    cancelled(outcome, "a cancelled loop")?;
    ensure!(started.elapsed() < asked + PATIENCE, "it took {:?} to stop", started.elapsed().saturating_sub(asked));
    Ok(())
}

fn long_loop(subject: &Subject) -> Check {
    let executor = subject.executor()?;
    let compiled = counting(subject)?;
    still_works(&compiled)?;
    let before = resting(&*executor);
    for _ in 0..3 {
        stopped(&compiled, Dispatch::Inline)?;
        settles(&*executor, before)?;
        still_works(&compiled)?;
    }
    Ok(())
}

/// Checks that cancelling a run does not affect later ones.
fn queued(subject: &Subject) -> Check {
    let executor = subject.executor()?;
    let compiled = counting(subject)?;
    still_works(&compiled)?;
    let before = resting(&*executor);
    stopped(&compiled, Dispatch::Queued)?;
    let (endless, token) = cancellable(Dispatch::Queued);
    let (short, _) = cancellable(Dispatch::Queued);
    let start = |count: i64, options: &ExecuteOptions| {
        launch::launch(&compiled, &launch::buffers(&compiled, &arguments(count)?)?, options)
    };
    let (first, second) = (start(i64::from(i32::MAX), &endless)?, start(3, &short)?);
    token.cancel();
    cancelled(launch::read(&first), "the first of two queued runs")?;
    let counted = launch::read(&second)?.elements()[0].get(0);
    ensure!(counted == Scalar::Signed(3), "the run behind a cancelled one counted to {counted:?} instead of 3");
    drop((first, second));
    settles(&*executor, before)
}

fn after_the_end(subject: &Subject) -> Check {
    let compiled = counting(subject)?;
    let (options, token) = cancellable(Dispatch::Inline);
    let results = launch::launch(&compiled, &launch::buffers(&compiled, &arguments(3)?)?, &options)?;
    let value = launch::read(&results)?;
    token.cancel();
    ensure!(launch::read(&results)? == value, "a run that had ended was cancelled");
    still_works(&compiled)
}
