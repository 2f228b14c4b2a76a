//! Tests of multi-device programs.

use super::*;

/// Program on halves of an array on two devices: returns its double, sharded, which may alias the argument, and the sum
/// of all elements, replicated.
const HALVES: &str = include_str!("programs/halves.hlo");

fn halves(client: &Client) -> LoadedExecutable {
    let module = VerifiedModule::new(xla_hlo::text::parse_module(HALVES).unwrap()).unwrap();
    client.compile(&module, &CompileOptions::default()).unwrap()
}

fn on(client: &Client, device: usize, values: &[f32]) -> Buffer {
    let shape = ArrayShape::new(F32, [values.len()]);
    client.device(device).unwrap().buffer_of_shape(&f32s(values), &shape).unwrap()
}

#[test]
fn devices_have_parts_of_arguments_and_results() {
    let client = client_of(3);
    let program = halves(&client).on_devices(&[2, 0]).unwrap();
    assert_eq!(program.signature().arguments()[0].shape.dims(), [2]);
    assert_eq!(program.program_shape().parameters[0].as_array().unwrap().dims(), [2]);
    assert_eq!(program.result_shardings().unwrap().len(), 2);
    assert!(program.source().is_some_and(|source| source.name() == "halves"));
    for dispatch in [Dispatch::Inline, Dispatch::Queued, Dispatch::Auto] {
        let parts = [on(&client, 2, &[1.0, 2.0]), on(&client, 0, &[10.0, 20.0])];
        let lists: Vec<[&Buffer; 1]> = parts.iter().map(|part| [part]).collect();
        let donate = Donate::Declared { except: Vec::new() };
        let options = ExecuteOptions { dispatch, donate, ..ExecuteOptions::default() };
        let results = program.launch(&lists, &options).unwrap();
        for (result, (device, own)) in results.iter().zip([(2, [2.0, 4.0]), (0, [20.0, 40.0])]) {
            result.completion().wait().unwrap();
            assert_eq!(result.buffers[0].device().index(), device);
            assert_eq!(result.buffers[0].to_literal().unwrap(), f32s(&own));
            assert_eq!(result.buffers[1].to_literal().unwrap().get(0), Scalar::Float(33.0));
        }
        assert!(parts.iter().all(Buffer::is_donated), "every device's part is gone");
    }
}

#[test]
fn calls_that_do_not_fit_are_refused() {
    let client = client_of(3);
    let program = halves(&client);
    assert_eq!(program.devices().map(|device| device.index()).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(message(program.on_devices(&[1])), "halves is a program for 2 devices, but 1 were given");
    let parts = [on(&client, 0, &[1.0, 2.0]), on(&client, 0, &[1.0, 2.0])];
    let options = ExecuteOptions::default();
    assert!(message(program.launch(&[[&parts[0]]], &options)).contains("takes 2 lists of arguments"));
    let error = message(program.launch(&[[&parts[0]], [&parts[1]]], &options));
    assert!(error.contains("must be on device 1, it is on 0"), "{error}");
    assert!(!parts[0].is_deleted());
    assert!(program.serialize().is_err());
    let error = message(client_of(1).compile(program.source().unwrap(), &CompileOptions::default()));
    assert_eq!(error, "halves is a program for 2 devices, but the client has 1");
}

#[test]
fn errors_reach_every_device() {
    let client = client_of(2);
    let program = halves(&client);
    let shape = ArrayShape::new(F32, [2]);
    let broken = client.device(1).unwrap().errored_buffer(&shape, Error::internal("lost")).unwrap();
    let whole = on(&client, 0, &[1.0, 2.0]);
    for dispatch in [Dispatch::Inline, Dispatch::Queued] {
        let options = ExecuteOptions { dispatch, ..ExecuteOptions::default() };
        let results = program.launch(&[[&whole], [&broken]], &options).unwrap();
        for result in &results {
            assert!(message(result.completion().wait()).contains("lost"));
            assert!(result.buffers.iter().all(|buffer| message(buffer.to_literal()).contains("lost")));
        }
    }
}

#[test]
fn a_sharding_that_cannot_be_read_is_an_error_only_where_it_is_needed() {
    let compile = |text: &str| {
        let client = client_of(2);
        let module = VerifiedModule::new(xla_hlo::text::parse_module(text).unwrap()).unwrap();
        client.compile(&module, &CompileOptions::default()).map(|_| client.joined_programs())
    };
    let bad = "frontend_attributes={xla.sdy.sharding=\"#sdy.sharding<@mesh\"}";
    let inner = format!(
        "HloModule m, num_partitions=2\nstep {{\n a = f32[4] parameter(0)\n ROOT b = f32[4] tanh(a)\n}}\n\
         test {{\n a = f32[4] parameter(0)\n ROOT p = pred[] constant(false), {bad}\n}}\n\
         ENTRY main {{\n x = f32[4] parameter(0)\n ROOT y = f32[4] while(x), condition=test, body=step\n}}"
    );
    assert_eq!(compile(&inner).unwrap(), 0);
    let entry = format!("HloModule m, num_partitions=2\nENTRY main {{\n ROOT x = f32[4] parameter(0), {bad}\n}}");
    assert_eq!(message(compile(&entry)), "%x: expected `,` at byte 19 of a sharding, found \"\"");
}
