//! Tests of launches: several devices, failed arguments, order, programs launched inside host calls.

use std::thread;

use xla_hlo::ops::CustomCallContext;

use super::*;
use crate::RunContext;

pub(super) const QUEUED: ExecuteOptions = ExecuteOptions {
    donate: Donate::These(Vec::new()),
    dispatch: Dispatch::Queued,
    cancel: None,
    after: Vec::new(),
    context: None,
};

/// Creates a client with handler `host`, and the program `x -> (x + host(x), (host(x)))`.
fn with_handler(
    handler: impl Fn(&CustomCallContext<'_>, Vec<Literal>) -> Result<Literal> + Send + Sync + 'static,
) -> (Client, LoadedExecutable) {
    let mut registry = PlatformRegistry::new();
    registry.register(interpreter::platform());
    registry.custom_calls().register("host", Arc::new(handler));
    let client = Client::new(&registry, "interpreter").unwrap();
    let text = "HloModule calls\nENTRY main {\n x = f32[3] parameter(0)\n \
                h = f32[3] custom-call(x), custom_call_target=\"host\", custom_call_has_side_effect=true\n \
                ROOT y = f32[3] add(x, h)\n}";
    let module = VerifiedModule::new(xla_hlo::text::parse_module(text).unwrap()).unwrap();
    let program = client.compile(&module, &CompileOptions::default()).unwrap();
    (client, program)
}

#[test]
fn each_device_gets_its_arguments_and_gives_its_results() {
    let client = client_of(3);
    let program = sum_program(&client).on_devices(&[2, 0]).unwrap();
    let on = |device: usize, value: f32| {
        let device = client.device(device).unwrap();
        device.buffer_of_shape(&f32s(&[value; 3]), &ArrayShape::new(F32, [3])).unwrap()
    };
    let lists = [[on(2, 1.0), on(2, 2.0)], [on(0, 10.0), on(0, 20.0)]];
    let lists: Vec<Vec<&Buffer>> = lists.iter().map(|list| list.iter().collect()).collect();
    for dispatch in [Dispatch::Inline, Dispatch::Queued, Dispatch::Auto] {
        let results = program.launch(&lists, &ExecuteOptions { dispatch, ..ExecuteOptions::default() }).unwrap();
        for (result, (device, sum)) in results.iter().zip([(2, 3.0), (0, 30.0)]) {
            result.completion().wait().unwrap();
            assert_eq!(result.buffers[0].device().index(), device);
            assert_eq!(result.buffers[0].to_literal().unwrap(), f32s(&[sum; 3]));
        }
    }
    assert!(message(program.launch(&lists[..1], &QUEUED)).contains("takes 2 lists of arguments"));
    assert!(message(program.on_devices(&[1, 1])).contains("cannot run on device 1 twice"));
    assert!(program.on_devices(&[]).is_err() && program.on_devices(&[3]).is_err());
}

#[test]
fn errors_among_the_arguments_are_errors_of_the_results() {
    let client = client();
    let program = sum_program(&client);
    let shape = ArrayShape::new(F32, [3]);
    let x = client.buffer(&f32s(&[1.0; 3])).unwrap();
    let bad = client.first_device().errored_buffer(&shape, Error::not_found("lost")).unwrap();
    for dispatch in [Dispatch::Inline, Dispatch::Queued, Dispatch::Auto] {
        let options = ExecuteOptions { dispatch, donate: vec![0].into(), ..ExecuteOptions::default() };
        let x = x.view(&shape).unwrap();
        let results = program.launch(&[[&x, &bad]], &options).unwrap();
        assert_eq!(message(results[0].completion().wait()), "lost");
        assert_eq!(message(results[0].buffers[1].to_literal()), "lost");
        assert!(matches!(results[0].buffers[0].wait(), Err(Error::NotFound(_))));
        assert!(x.is_donated());
    }
    assert_eq!(message(program.execute(&[&x, &bad])), "lost");
}

#[test]
fn programs_run_in_the_order_of_their_data() {
    let client = client();
    let program = sum_program(&client);
    let x = client.buffer(&f32s(&[1.0; 3])).unwrap();
    let (late, promise) = client.first_device().alias_buffer(x.shape()).unwrap();
    let first = program.execute_with(&[&late, &x], &QUEUED).unwrap();
    let second = program.execute_with(&[&x, &x], &QUEUED).unwrap();
    let third = program.execute_with(&[&first[0], &second[0]], &QUEUED).unwrap();
    assert_eq!(second[0].to_literal().unwrap(), f32s(&[2.0; 3]));
    assert!(!first[0].is_ready().unwrap() && !third[0].is_ready().unwrap());
    // A value that a pending program waits for may be donated to another program: the first still reads the old value.
    let donate = ExecuteOptions { donate: vec![0].into(), ..QUEUED };
    let fourth = program.execute_with(&[&late, &x], &donate).unwrap();
    promise.fulfil(Ok(&x)).unwrap();
    for (results, sum) in [(first, 2.0), (third, 4.0), (fourth, 2.0)] {
        assert_eq!(results[0].to_literal().unwrap(), f32s(&[sum; 3]));
    }
}

#[test]
fn cheap_programs_run_on_the_caller_when_nothing_is_missing() {
    let client = client();
    let program = sum_program(&client);
    let auto = ExecuteOptions { dispatch: Dispatch::Auto, ..ExecuteOptions::default() };
    let x = client.buffer(&f32s(&[1.0; 3])).unwrap();
    for _ in 0..100 {
        assert!(program.execute_with(&[&x, &x], &auto).unwrap()[0].is_ready().unwrap());
    }
    let (late, promise) = client.first_device().alias_buffer(x.shape()).unwrap();
    let waiting = program.execute_with(&[&late, &x], &auto).unwrap();
    assert!(!waiting[0].is_ready().unwrap());
    promise.fulfil(Ok(&x)).unwrap();
    waiting[0].wait().unwrap();
    // A program that calls the host may take any time, so `Auto` does not run it on the caller.
    let caller = thread::current().id();
    let (client, program) = with_handler(move |_, mut operands| {
        assert_ne!(thread::current().id(), caller);
        Ok(operands.swap_remove(0))
    });
    let x = client.buffer(&f32s(&[1.0; 3])).unwrap();
    assert_eq!(program.execute_with(&[&x], &auto).unwrap()[0].to_literal().unwrap(), f32s(&[2.0; 3]));
}

/// Programs launched by a handler must not wait for the handler's thread, nor for a free thread.
#[test]
fn handlers_run_programs_on_their_own_device() {
    let inner: Arc<std::sync::OnceLock<(Client, LoadedExecutable)>> = Arc::default();
    let cell = inner.clone();
    let (client, program) = with_handler(move |_, operands| {
        let (client, sum) = cell.get().unwrap();
        let x = client.buffer(&operands[0])?;
        let own = thread::current().id();
        // All programs that the handler launches run on its own thread.
        let here = sum.execute_with(&[&x, &x], &QUEUED)?;
        assert!(here[0].is_ready()?);
        here[0].on_ready(move |_| assert_eq!(thread::current().id(), own));
        // Program launched by another thread, which the handler waits for.
        thread::scope(|scope| {
            scope.spawn(|| sum.execute_with(&[&here[0], &x], &QUEUED)?[0].to_literal()).join().unwrap()
        })
    });
    inner.set((client.clone(), sum_program(&client))).ok().unwrap();
    let x = client.buffer(&f32s(&[1.0; 3])).unwrap();
    let launches: Vec<_> = (0..64).map(|_| program.execute_with(&[&x], &QUEUED).unwrap()).collect();
    for results in launches {
        assert_eq!(results[0].to_literal().unwrap(), f32s(&[4.0; 3]));
    }
}

#[test]
fn random_numbers_keep_the_order_of_the_calls() {
    let text = "HloModule random\nENTRY main {\n x = f32[3] parameter(0)\n a = f32[] constant(0)\n \
                b = f32[] constant(1)\n r = f32[3] rng(a, b), distribution=rng_uniform\n \
                ROOT y = f32[3] add(x, r)\n}";
    let module = VerifiedModule::new(xla_hlo::text::parse_module(text).unwrap()).unwrap();
    let numbers = |dispatch: Dispatch| {
        let client = client();
        let program = client.compile(&module, &CompileOptions::default()).unwrap();
        let x = client.buffer(&f32s(&[0.0; 3])).unwrap();
        let (late, promise) = client.first_device().alias_buffer(x.shape()).unwrap();
        let options = ExecuteOptions { dispatch, ..ExecuteOptions::default() };
        if dispatch == Dispatch::Inline {
            promise.fulfil(Ok(&x)).unwrap();
            let buffers = [&late, &x, &x].map(|x| program.execute_with(&[x], &options).unwrap());
            return buffers.map(|results| results[0].to_literal().unwrap());
        }
        let buffers = [&late, &x, &x].map(|x| program.execute_with(&[x], &options).unwrap());
        promise.fulfil(Ok(&x)).unwrap();
        buffers.map(|results| results[0].to_literal().unwrap())
    };
    assert_eq!(numbers(Dispatch::Queued), numbers(Dispatch::Inline));
    assert_eq!(numbers(Dispatch::Auto), numbers(Dispatch::Inline));
}

#[test]
fn declared_donation_has_exceptions() {
    let client = client();
    let program = in_place(&client);
    let x = client.buffer(&f32s(&[1.0; 3])).unwrap();
    let y = client.buffer(&f32s(&[2.0; 3])).unwrap();
    let declared = |except: Vec<usize>| ExecuteOptions { donate: Donate::Declared { except }, ..QUEUED };
    program.execute_with(&[&x, &y], &declared(vec![1])).unwrap()[0].wait().unwrap();
    assert!(!x.is_deleted() && !y.is_deleted());
    program.execute_with(&[&x, &y], &declared(vec![])).unwrap()[0].wait().unwrap();
    assert!(!x.is_deleted() && y.is_donated());
    let error = message(program.execute_with(&[&x, &y], &declared(vec![])));
    assert!(error.starts_with("argument 1 (parameter 1 \"y\"): the buffer was donated"), "{error}");
}

#[test]
fn values_go_along_with_a_run() {
    let context = RunContext::new(3).with(String::from("kept"));
    assert_eq!((context.run_id(), context.get::<String>().map(String::as_str)), (3, Some("kept")));
    let again = context.clone().with(String::from("other"));
    assert_eq!(again.get::<String>().map(String::as_str), Some("other"));
    assert_eq!(context.get::<String>().map(String::as_str), Some("kept"));
    assert!(RunContext::nothing().get::<String>().is_none());
}

#[test]
fn a_run_comes_after_what_it_is_told_to_wait_for() {
    let client = client();
    let program = sum_program(&client);
    let x = client.buffer(&f32s(&[1.0; 3])).unwrap();
    let (late, promise) = client.first_device().alias_buffer(x.shape()).unwrap();
    let token = program.launch(&[[&late, &x]], &QUEUED).unwrap()[0].token().unwrap();
    let after = |token: &Buffer, dispatch| ExecuteOptions { dispatch, after: vec![token.clone()], ..QUEUED };
    let waiting = [Dispatch::Queued, Dispatch::Auto]
        .map(|dispatch| program.execute_with(&[&x, &x], &after(&token, dispatch)).unwrap());
    assert!(waiting.iter().all(|results| !results[0].is_ready().unwrap()));
    promise.fulfil(Ok(&x)).unwrap();
    for results in waiting {
        assert_eq!(results[0].to_literal().unwrap(), f32s(&[2.0; 3]));
    }
    let inline = program.execute_with(&[&x, &x], &after(&token, Dispatch::Inline)).unwrap();
    assert_eq!(inline[0].to_literal().unwrap(), f32s(&[2.0; 3]));
    let broken = client.first_device().errored_buffer(x.shape(), Error::internal("broken")).unwrap();
    let results = program.execute_with(&[&x, &x], &after(&broken, Dispatch::Queued)).unwrap();
    assert_eq!(results[0].to_literal().unwrap_err().message(), "broken");
    token.delete();
    assert!(program.execute_with(&[&x, &x], &after(&token, Dispatch::Queued)).is_err());
}

#[test]
fn an_end_is_not_before_another_one_whatever_that_is() {
    let ([first, second], ends): ([Completion; 2], Vec<Completer>) = {
        let [(a, end_a), (b, end_b)] = [Completion::pending(), Completion::pending()];
        ([a, b], vec![end_b, end_a])
    };
    let both = second.not_before(&first);
    for (end, message) in ends.into_iter().zip(["second", "first"]) {
        assert!(!both.is_ready());
        end.set(Err(Error::internal(message)));
    }
    assert_eq!(both.wait().unwrap_err().message(), "second");
    assert!(Completion::done().not_before(&first).is_done());
}

#[test]
fn runs_are_timed_and_nothing_is_donated() {
    let client = client();
    let program = in_place(&client);
    let lists =
        [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]].map(|values| [(); 2].map(|()| client.buffer(&f32s(&values)).unwrap()));
    let lists: Vec<Vec<&Buffer>> = lists.iter().map(|list| list.iter().collect()).collect();
    let times = program.device_time(&lists, 5).unwrap();
    assert_eq!((times.rounds.len(), times.recorded.is_err()), (5, true));
    assert_eq!(lists[0][1].to_literal().unwrap(), f32s(&[1.0, 2.0, 3.0]));
    let error = program.device_time(&[vec![lists[0][0]]], 5).unwrap_err();
    assert!(error.message().contains("takes 2 arguments, 1 were given"), "{error}");
    assert!(client.first_device().cache_bytes().unwrap() > 0);
}

/// With `WhenReady`, effects and errors of the program are visible when the call returns, unless an argument is pending
/// or has failed.
#[test]
fn a_ready_program_runs_on_its_caller_whatever_it_costs() {
    let caller = thread::current().id();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let told = seen.clone();
    let (client, program) = with_handler(move |_, mut operands| {
        told.lock().unwrap().push(thread::current().id() == caller);
        match operands[0].get(0) {
            Scalar::Float(x) if x < 0.0 => Err(Error::invalid_argument("negative")),
            _ => Ok(operands.swap_remove(0)),
        }
    });
    let ready = ExecuteOptions { dispatch: Dispatch::WhenReady, ..ExecuteOptions::default() };
    let [x, negative] = [1.0, -1.0].map(|value| client.buffer(&f32s(&[value; 3])).unwrap());
    let results = program.launch(&[[&x]], &ready).unwrap();
    assert_eq!(std::mem::take(&mut *seen.lock().unwrap()), [true]);
    assert!(results[0].failure().is_none());
    assert_eq!(results[0].buffers[0].to_literal().unwrap(), f32s(&[2.0; 3]));
    let failed = program.launch(&[[&negative]], &ready).unwrap();
    assert!(failed[0].failure().unwrap().message().contains("negative"));
    // A failed or pending argument is not an error of the call.
    let late = program.launch(&[[&failed[0].buffers[0]]], &ready).unwrap();
    assert!(late[0].failure().is_none());
    assert!(message(late[0].completion().wait()).contains("negative"));
    std::mem::take(&mut *seen.lock().unwrap());
    let (late, promise) = client.first_device().alias_buffer(x.shape()).unwrap();
    let waiting = program.launch(&[[&late]], &ready).unwrap();
    assert!(!waiting[0].buffers[0].is_ready().unwrap());
    promise.fulfil(Ok(&negative)).unwrap();
    assert!(message(waiting[0].completion().wait()).contains("negative"));
    assert!(waiting[0].failure().is_none());
    assert_eq!(std::mem::take(&mut *seen.lock().unwrap()), [false]);
}
