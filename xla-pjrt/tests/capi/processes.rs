//! Tests of clients that act as the processes of a job, connected by TCP.

use std::thread;

use xla_service::topology::InMemoryStore;

use crate::client::{buffer, call_with, compile, execute, execute_on, fetch_f32, handles, of};
use crate::store::put_store;

/// Sum over two replicas.
const SUM: &str = r#"module @sum attributes {mhlo.num_replicas = 2 : i32} {
  func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    %y = "stablehlo.all_reduce"(%x) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<2xf32>) -> tensor<2xf32>
    return %y : tensor<2xf32>
  }
}"#;

/// `CompileOptionsProto` with two replicas of one partition.
const TWO_REPLICAS: &[u8] = &[0x1a, 4, 0x20, 2, 0x28, 1];

/// Runs `work` with the client of each of two processes, which have one device each.
fn job<T: Send>(work: impl Fn(usize, usize) -> T + Sync) -> Vec<T> {
    let store: &'static InMemoryStore = Box::leak(Box::default());
    thread::scope(|scope| {
        let start = |process: usize| {
            let work = &work;
            scope.spawn(move || {
                let options = [("node_id", process as i64), ("num_nodes", 2), ("device_count", 1)];
                let args = call_with("Client_Create", (16, 24), &options, |args| put_store(args, store));
                let client = args.expect("a client").get(64);
                let result = work(process, client);
                of("Client_Destroy", client).expect("fine");
                result
            })
        };
        let threads: Vec<_> = (0..2).map(start).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

#[test]
fn an_execution_with_a_deleted_buffer_fails_in_all_processes_and_later_ones_agree() {
    let errors = job(|process, client| {
        let device = handles("Client_AddressableDevices", client)[0];
        let program = compile(client, "mlir", SUM.as_bytes(), TWO_REPLICAS).expect("a program");
        let argument = || buffer(client, device, &[2], &[1.0, process as f32]);
        let deleted = argument();
        if process == 0 {
            of("Buffer_Delete", deleted).expect("fine");
        }
        let error = execute(program, &[deleted], 1).and_then(|results| fetch_f32(results[0])).expect_err("an error");
        sums_agree(program, &argument);
        of("LoadedExecutable_Destroy", program).expect("fine");
        error.message
    });
    assert!(errors.iter().all(|error| error.contains("deleted")), "{errors:?}");
}

#[test]
fn an_execution_of_a_deleted_program_fails_in_all_processes_and_later_ones_agree() {
    let errors = job(|process, client| {
        let device = handles("Client_AddressableDevices", client)[0];
        let compile = || compile(client, "mlir", SUM.as_bytes(), TWO_REPLICAS).expect("a program");
        let argument = || buffer(client, device, &[2], &[1.0, process as f32]);
        let programs = [compile(), compile()];
        if process == 0 {
            of("LoadedExecutable_Delete", programs[0]).expect("fine");
        }
        let results = execute(programs[0], &[argument()], 1);
        let error = results.and_then(|results| fetch_f32(results[0])).expect_err("an error");
        sums_agree(programs[1], &argument);
        programs.into_iter().for_each(|program| drop(of("LoadedExecutable_Destroy", program).expect("fine")));
        error.message
    });
    assert!(errors.iter().all(|error| error.contains("the executable was deleted")), "{errors:?}");
}

#[test]
fn an_execution_on_one_of_several_devices_fails_in_all_processes_and_later_ones_agree() {
    let errors = job(|process, client| {
        let device = handles("Client_AddressableDevices", client)[0];
        let program = compile(client, "mlir", SUM.as_bytes(), TWO_REPLICAS).expect("a program");
        let argument = || buffer(client, device, &[2], &[1.0, process as f32]);
        let results = match process {
            0 => execute_on(program, &[argument()], 1, device),
            _ => execute(program, &[argument()], 1),
        };
        let error = results.and_then(|results| fetch_f32(results[0])).expect_err("an error");
        sums_agree(program, &argument);
        of("LoadedExecutable_Destroy", program).expect("fine");
        error.message
    });
    assert!(errors.iter().all(|error| error.contains("is a program for 2 devices")), "{errors:?}");
}

/// Runs the program several times, as the other process does.
fn sums_agree(program: usize, argument: &dyn Fn() -> usize) {
    for _ in 0..3 {
        let results = execute(program, &[argument()], 1).expect("results");
        assert_eq!(fetch_f32(results[0]).expect("values"), [2.0, 1.0]);
    }
}
