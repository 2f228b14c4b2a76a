//! Tests of programs for several cooperating devices.

use crate::client::{buffer, client, compile, executable_of, fetch_f32, finish, handles, of};
use crate::table::{Args, Failure, read};

/// Program in which each device has half of an array, and returns half of its double.
const DOUBLE: &str = r#"module @double attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
      -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
    %y = stablehlo.add %x, %x : tensor<4xf32>
    return %y : tensor<4xf32>
  }
}"#;

/// `CompileOptionsProto` with one replica of two partitions.
const TWO_DEVICES: &[u8] = &[0x1a, 4, 0x20, 1, 0x28, 2];

/// Runs a program of one argument and result on two devices.
fn execute(program: usize, arguments: [usize; 2]) -> Result<[usize; 2], Failure> {
    let mut options = Args::new(144);
    let (mut results, events) = ([0_usize; 2], [0_usize; 2]);
    let place = |value: &usize| std::ptr::from_ref(value).expose_provenance();
    let lists = arguments.each_ref().map(place);
    let result_lists = results.each_mut().map(|result| std::ptr::from_mut(result).expose_provenance());
    let args = Args::of("LoadedExecutable_Execute").put(16, program).put(24, options.address());
    let args = args.put(32, lists.as_ptr().expose_provenance()).put(40, 2).put(48, 1);
    let args = args.put(56, result_lists.as_ptr().expose_provenance()).put(64, events.as_ptr().expose_provenance());
    args.call("LoadedExecutable_Execute")?;
    events.each_ref().map(place).into_iter().try_for_each(|event| finish(read(event)))?;
    Ok(result_lists.map(read))
}

#[test]
fn devices_work_together_and_say_what_they_have() {
    const PARAMETER_SHARDINGS: usize = 24;
    let client = client(2);
    let devices = handles("Client_Devices", client);
    let program = compile(client, "mlir", DOUBLE.as_bytes(), TWO_DEVICES).expect("a program");
    let executable = executable_of(program);
    assert_eq!(of("Executable_NumPartitions", executable).expect("fine").get(24), 2);
    let arguments = [[1.0, 2.0], [10.0, 20.0]].map(|values| values.to_vec());
    let parts = [0, 1].map(|i| buffer(client, devices[i], &[2], &arguments[i]));
    let bytes = of("Executable_Serialize", executable).expect("bytes").get_bytes(24, 32);
    let name = "Executable_DeserializeAndLoad";
    let again = Args::new(48).put(16, client).put_bytes(24, &bytes).call(name).expect("a program").get(40);
    let shardings = crate::table::extension(19);
    for program in [program, again] {
        let executable = executable_of(program);
        for slot in [PARAMETER_SHARDINGS, PARAMETER_SHARDINGS + 8] {
            let mut args = Args::new(48).put(16, executable);
            assert_eq!(crate::table::call_at(shardings + slot, args.address()), 0);
            assert_eq!(args.get(24), 1);
            let bytes = crate::table::bytes(read(args.get(32)), read(args.get(40)));
            // `OpSharding` of kind OTHER, two tiles, devices 0 and 1 in order.
            assert_eq!(bytes[..2], [0x08, 3], "{bytes:?}");
        }
        of("Executable_Destroy", executable).expect("fine");
        let results = execute(program, parts).expect("results");
        assert_eq!(results.map(|result| fetch_f32(result).expect("values")), [[2.0, 4.0], [20.0, 40.0]]);
    }
    let error = execute(program, [parts[0], parts[0]]).expect_err("refused");
    assert!(error.message.contains("must be on device 1, it is on 0"), "{}", error.message);
    of("Executable_Destroy", executable).expect("fine");
    of("Client_Destroy", client).expect("fine");
}
