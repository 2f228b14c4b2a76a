//! Tests of programs: compiled from every form, run, kept, described; and of their compile options.

use std::fs;
use std::path::Path;

use xla_hlo::{ArrayShape, Literal, Scalar, VerifiedModule};
use xla_service::{Client, CompileOptions, PlatformRegistry, interpreter};

use crate::client::{
    F32, ONE_DEVICE, buffer, buffer_of, client, compile, executable_of, execute, fetch, fetch_f32, finish, handles, of,
};
use crate::table::{Args, Failure};

const ADD: &str = "module @add {
func.func public @main(%arg0: tensor<3xf32>, %arg1: tensor<3xf32>) -> tensor<3xf32> {
  %0 = stablehlo.add %arg0, %arg1 : tensor<3xf32>
  return %0 : tensor<3xf32>
}
}";

/// Returns the programs of JAX for one device that `xla-stablehlo` keeps.
fn captured() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../xla-stablehlo/tests/data");
    let mut paths: Vec<_> =
        fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    let is_program = |path: &&std::path::PathBuf| path.extension().is_some_and(|extension| extension == "mlirbc");
    let name = |path: &Path| path.file_stem().expect("a name").to_string_lossy().into_owned();
    let programs = paths.iter().filter(is_program).map(|path| (name(path), fs::read(path).expect("a file")));
    programs.filter(|(name, _)| !name.contains("shard")).collect()
}

/// Returns values that differ from element to element.
fn values(shape: &ArrayShape) -> Literal {
    Literal::from_fn(shape, |i| match shape.element_type().is_float() {
        true => Scalar::Float(0.25 * (i % 7) as f64 - 0.5),
        false => Scalar::from_i64(shape.element_type(), (i % 3) as i64),
    })
    .expect("a literal")
}

fn number(ty: xla_hlo::ElementType) -> i32 {
    let names = ["pred", "s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64", "f16", "f32", "f64", "bf16"];
    1 + names.iter().position(|name| *name == ty.name()).expect("a type of the programs") as i32
}

#[test]
fn programs_of_jax_give_what_the_interpreter_gives() {
    let (c_client, programs) = (client(1), captured());
    assert!(programs.len() >= 10);
    let device = handles("Client_Devices", c_client)[0];
    let mut registry = PlatformRegistry::new();
    registry.register(interpreter::platform());
    let service = Client::new(&registry, "interpreter").expect("a client");
    for (name, bytes) in programs {
        let module = VerifiedModule::new(xla_stablehlo::parse_bytecode(&bytes).expect("a module")).expect("valid");
        let compiled = compile(c_client, "mlir", &bytes, ONE_DEVICE);
        let expected = match service.compile(&module, &CompileOptions::default()) {
            Ok(program) => program,
            Err(error) => {
                assert_eq!(compiled.expect_err("refused as well").message, error.message(), "{name}");
                continue;
            }
        };
        let program = compiled.expect("a program");
        let leaves = expected.signature().arguments();
        let inputs: Vec<Literal> = leaves.iter().map(|leaf| values(&leaf.shape)).collect();
        let to_buffer = |input: &Literal| {
            let shape = input.array_shape();
            let dims: Vec<i64> = shape.dims().iter().map(|&dim| dim as i64).collect();
            buffer_of(c_client, device, number(shape.element_type()), &dims, input.bytes(), &[], 0).expect("a buffer")
        };
        let arguments: Vec<usize> = inputs.iter().map(to_buffer).collect();
        let results = execute(program, &arguments, expected.signature().results().len()).expect("results");
        let wanted = xla_service::signature::ungroup(expected.run(inputs).expect("results"));
        for (result, wanted) in results.iter().zip(&wanted) {
            assert_eq!(fetch(*result).expect("bytes"), wanted.bytes(), "{name}");
            of("Buffer_Destroy", *result).expect("fine");
        }
        of("LoadedExecutable_Destroy", program).expect("fine");
    }
    of("Client_Destroy", c_client).expect("fine");
}

/// Form that TensorFlow writes for `tf.image.rot90`: the caller reads the sizes of its results.
#[test]
fn results_of_dynamic_size_have_bounds_and_sizes() {
    const CUT: &str = "module @cut {
func.func public @main(%x: tensor<2x3xf32>, %n: tensor<i32>) -> tensor<2x?xf32, #stablehlo.bounds<?, 3>> {
  %y = \"stablehlo.set_dimension_size\"(%x, %n) <{dimension = 1 : i64}> : (tensor<2x3xf32>, tensor<i32>) -> tensor<2x?xf32, #stablehlo.bounds<?, 3>>
  return %y : tensor<2x?xf32, #stablehlo.bounds<?, 3>>
}
}";
    const ADD: &str = "module @add {
func.func public @main(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %y = stablehlo.add %x, %x : tensor<2x2xf32>
  return %y : tensor<2x2xf32>
}
}";
    const S32: i32 = 4;
    let client = client(1);
    let device = handles("Client_Devices", client)[0];
    let program = compile(client, "mlir", CUT.as_bytes(), ONE_DEVICE).expect("a program");
    let x = buffer(client, device, &[2, 3], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    let n = buffer_of(client, device, S32, &[], &2_i32.to_le_bytes(), &[], 0).expect("a buffer");
    let result = execute(program, &[x, n], 1).expect("a result")[0];
    assert_eq!(of("Buffer_Dimensions", result).expect("fine").get_words(24, 32), [2, 3]);
    assert_eq!(of("Buffer_UnpaddedDimensions", result).expect("fine").get_words(24, 32), [2, 2]);
    assert_eq!(of("Buffer_DynamicDimensionIndices", result).expect("fine").get_words(24, 32), [1]);
    assert_eq!(of("Buffer_DynamicDimensionIndices", x).expect("fine").get(32), 0);
    assert_eq!(of("Buffer_UnpaddedDimensions", x).expect("fine").get_words(24, 32), [2, 3]);
    let copied = |bytes: usize| {
        let mut raw = [9.0_f32; 6];
        let target = raw.as_mut_ptr().expose_provenance();
        let args = Args::of("Buffer_ToHostBuffer").put(16, result).put(32, target).put(40, bytes);
        let done = finish(args.call("Buffer_ToHostBuffer").expect("an event").get(48));
        done.map(|_| raw)
    };
    assert_eq!(copied(24).expect("room for the bound"), [0.0, 1.0, 3.0, 4.0, 0.0, 0.0]);
    assert_eq!(copied(16).expect("room for the size"), [0.0, 1.0, 3.0, 4.0, 9.0, 9.0]);
    let error = copied(12).expect_err("no room").message;
    assert!(error.contains("16 bytes of f32[2,2]{1,0} do not fit into 12"), "{error}");
    let size = Args::of("Buffer_ToHostBuffer").put(16, result).call("Buffer_ToHostBuffer").expect("a size");
    assert_eq!(size.get(40), 24);
    // A program for that size accepts the result.
    let add = compile(client, "mlir", ADD.as_bytes(), ONE_DEVICE).expect("a program");
    let sum = execute(add, &[result], 1).expect("a result")[0];
    assert_eq!(fetch_f32(sum).expect("values"), [0.0, 2.0, 6.0, 8.0]);
    for buffer in [x, n, result, sum] {
        of("Buffer_Destroy", buffer).expect("fine");
    }
    for program in [program, add] {
        of("LoadedExecutable_Destroy", program).expect("fine");
    }
    of("Client_Destroy", client).expect("fine");
}

/// Form that PyTorch/XLA sends: the module's entry has layouts, the options state none.
#[test]
fn layouts_of_an_hlo_module_are_forgotten() {
    let client = client(1);
    let module = xla_hlo::text::parse_module(
        "HloModule transposed, entry_computation_layout={(f32[2,3]{0,1})->f32[3,2]{0,1}}
         ENTRY main { x = f32[2,3]{0,1} parameter(0) ROOT y = f32[3,2]{0,1} transpose(x), dimensions={1,0} }",
    )
    .expect("it parses");
    let bytes = xla_hlo::proto::serialize_module(&module).expect("a message");
    let program = compile(client, "hlo", &bytes, ONE_DEVICE).expect("a program");
    let x = buffer(client, handles("Client_Devices", client)[0], &[2, 3], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    let result = execute(program, &[x], 1).expect("a result")[0];
    let mut raw = [0.0_f32; 6];
    let target = raw.as_mut_ptr().expose_provenance();
    let args = Args::of("Buffer_ToHostBuffer").put(16, result).put(32, target).put(40, 24);
    finish(args.call("Buffer_ToHostBuffer").expect("an event").get(48)).expect("fine");
    assert_eq!(raw, [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    for buffer in [x, result] {
        of("Buffer_Destroy", buffer).expect("fine");
    }
    of("LoadedExecutable_Destroy", program).expect("fine");
    of("Client_Destroy", client).expect("fine");
}

#[test]
fn text_bytecode_and_hlo_are_programs() {
    let client = client(1);
    let device = handles("Client_Devices", client)[0];
    let [x, y] = [[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]].map(|values| buffer(client, device, &[3], &values));
    let program = compile(client, "mlir", ADD.as_bytes(), &[]).expect("a program");
    let executable = executable_of(program);
    assert_eq!(fetch_f32(execute(program, &[x, y], 1).expect("results")[0]).expect("values"), [11.0, 22.0, 33.0]);
    let optimized = optimized(executable);
    let again = compile(client, "hlo_with_config", &optimized, &[]).expect("a program");
    assert_eq!(fetch_f32(execute(again, &[y, y], 1).expect("results")[0]).expect("values"), [20.0, 40.0, 60.0]);
    let module = xla_hlo::proto::parse_module(&optimized).expect("a module");
    let bytes = xla_hlo::proto::serialize_module(&module).expect("bytes");
    compile(client, "hlo", &bytes, ONE_DEVICE).expect("a program");
    for (format, code, message) in [
        ("pb", &b""[..], "the program: format \"pb\" is unknown; the formats are mlir, hlo, hlo_with_config"),
        ("mlir", b"\xff\xfe", "the program: the bytes are neither MLIR bytecode nor text"),
    ] {
        assert_eq!(compile(client, format, code, &[]).expect_err("refused").message, message);
    }
    of("Executable_Destroy", executable).expect("fine");
    of("Client_Destroy", client).expect("fine");
}

/// Callers interpret a list of shardings as that of a tuple, and an empty list as that of an empty tuple.
#[test]
fn a_program_of_one_partition_states_no_shardings() {
    const OUTPUT_SHARDINGS: usize = 32;
    let client = client(1);
    let nothing = "module @nothing { func.func public @main(%x: tensor<3xf32>) { return } }";
    let shardings = crate::table::extension(19);
    for (text, outputs) in [(nothing, 0), (ADD, 1)] {
        let program = compile(client, "mlir", text.as_bytes(), &[]).expect("a program");
        let executable = executable_of(program);
        let mut args = Args::new(48).put(16, executable);
        assert_eq!(crate::table::call_at(shardings + OUTPUT_SHARDINGS, args.address()), 0);
        assert_eq!([args.get(24), args.get(32), args.get(40)], [outputs, 0, 0], "{text}");
        of("Executable_Destroy", executable).expect("fine");
        of("LoadedExecutable_Destroy", program).expect("fine");
    }
    of("Client_Destroy", client).expect("fine");
}

/// Returns the encoded program after passes.
fn optimized(executable: usize) -> Vec<u8> {
    let name = "Executable_OptimizedProgram";
    let mut program = Args::new(48);
    Args::of(name).put(16, executable).put(24, program.address()).call(name).expect("the size");
    let mut bytes = vec![0_u8; program.get(24)];
    let place = bytes.as_mut_ptr().expose_provenance();
    let mut program = Args::new(48).put(16, place).put(24, bytes.len());
    Args::of(name).put(16, executable).put(24, program.address()).call(name).expect("the program");
    assert_eq!(program.get_text(32), "hlo_with_config");
    crate::table::bytes(place, bytes.len())
}

#[test]
fn an_executable_describes_itself() {
    let client = client(1);
    let program = compile(client, "mlir", ADD.as_bytes(), ONE_DEVICE).expect("a program");
    let executable = executable_of(program);
    let size = |function: &str| of(function, executable).expect("a number").get(24);
    assert_eq!(["Executable_NumReplicas", "Executable_NumPartitions", "Executable_NumOutputs"].map(size), [1, 1, 1]);
    assert_eq!(of("Executable_Name", executable).expect("fine").get_text(24), "add");
    let dims = of("Executable_OutputDimensions", executable).expect("fine");
    assert_eq!((crate::table::read::<i64>(dims.get(32)), crate::table::read::<usize>(dims.get(40))), (3, 1));
    let types = of("Executable_OutputElementTypes", executable).expect("fine");
    assert_eq!((crate::table::read::<i32>(types.get(24)), types.get(32)), (F32, 1));
    let kinds = of("Executable_OutputMemoryKinds", executable).expect("fine");
    let kind: usize = crate::table::read(kinds.get(32));
    assert_eq!(crate::table::bytes(kind, crate::table::read(kinds.get(40))), b"device");
    let memory = of("Executable_GetCompiledMemoryStats", executable).expect("fine");
    assert_eq!([memory.get(32), memory.get(40)], [24, 12]);
    let costs = of("Executable_GetCostAnalysis", executable).expect("fine");
    assert_eq!(costs.get(24), 3);
    let options = of("Executable_GetCompileOptions", executable).expect("fine").get_bytes(24, 32);
    assert_eq!(options, ONE_DEVICE);
    let assignment = of("LoadedExecutable_GetDeviceAssignment", program).expect("fine").get_bytes(24, 32);
    assert_eq!(assignment, [0x08, 1, 0x10, 1, 0x1a, 3, 0x0a, 1, 0]);
    assert_eq!(handles("LoadedExecutable_AddressableDevices", program), handles("Client_Devices", client));
    of("LoadedExecutable_Delete", program).expect("fine");
    assert!(of("LoadedExecutable_IsDeleted", program).expect("fine").get_flag(24));
    assert_eq!(execute(program, &[], 1).expect_err("deleted").message, "the executable was deleted");
    assert_eq!(of("Executable_Name", executable).expect("still known").get_text(24), "add");
    of("Client_Destroy", client).expect("fine");
}

#[test]
fn a_donated_argument_is_deleted_unless_it_is_kept() {
    let client = client(1);
    let device = handles("Client_Devices", client)[0];
    let text = "module @negate {
func.func public @main(%arg0: tensor<2xf32> {tf.aliasing_output = 0 : i32}) -> tensor<2xf32> {
  %0 = stablehlo.negate %arg0 : tensor<2xf32>
  return %0 : tensor<2xf32>
}
}";
    let program = compile(client, "mlir", text.as_bytes(), ONE_DEVICE).expect("a program");
    let x = buffer(client, device, &[2], &[1.0, 2.0]);
    let kept = execute_keeping(program, x, &[0]).expect("results");
    assert!(!of("Buffer_IsDeleted", x).expect("fine").get_flag(24));
    assert_eq!(fetch_f32(kept).expect("values"), [-1.0, -2.0]);
    assert_eq!(fetch_f32(x).expect("values"), [1.0, 2.0]);
    execute_keeping(program, x, &[]).expect("results");
    assert!(of("Buffer_IsDeleted", x).expect("fine").get_flag(24));
    assert_eq!(execute_keeping(program, x, &[]).expect_err("donated").message, "Buffer has been deleted or donated.");
    of("Client_Destroy", client).expect("fine");
}

/// Runs a program of one argument and one result on one device; `kept` are indices of arguments that are not donated.
pub(crate) fn execute_keeping(program: usize, argument: usize, kept: &[i64]) -> Result<usize, Failure> {
    let mut options = Args::new(144).put_words(56, kept);
    let (arguments, mut result) = ([argument], 0_usize);
    let place = std::ptr::from_mut(&mut result).expose_provenance();
    let (lists, results) = ([arguments.as_ptr().expose_provenance()], [place]);
    let args = Args::of("LoadedExecutable_Execute").put(16, program).put(24, options.address()).put(40, 1).put(48, 1);
    let args = args.put(32, lists.as_ptr().expose_provenance()).put(56, results.as_ptr().expose_provenance());
    args.call("LoadedExecutable_Execute")?;
    Ok(crate::table::read(place))
}

#[test]
fn wrong_arguments_are_named() {
    let client = client(2);
    let devices = handles("Client_Devices", client);
    let program = compile(client, "mlir", ADD.as_bytes(), ONE_DEVICE).expect("a program");
    let [x, short] = [3, 2].map(|size| buffer(client, devices[0], &[size], &[1.0; 3][..size as usize]));
    let far = buffer(client, devices[1], &[3], &[1.0; 3]);
    let mut told = Vec::new();
    for arguments in [&[x][..], &[x, short], &[x, far], &[x, 0], &[x, client]] {
        told.push(execute(program, arguments, 1).expect_err("refused").message);
    }
    insta::assert_snapshot!(told.join("\n"));
    of("Client_Destroy", client).expect("fine");
}

#[test]
fn an_executable_is_kept_and_loaded_again() {
    let client = client(1);
    let device = handles("Client_Devices", client)[0];
    let program = compile(client, "mlir", ADD.as_bytes(), ONE_DEVICE).expect("a program");
    let executable = executable_of(program);
    let bytes = of("Executable_Serialize", executable).expect("bytes").get_bytes(24, 32);
    let name = "Executable_DeserializeAndLoad";
    let load = |bytes: &[u8]| Args::new(48).put(16, client).put_bytes(24, bytes).call(name);
    let again = load(&bytes).expect("a program").get(40);
    let x = buffer(client, device, &[3], &[1.0, 2.0, 3.0]);
    assert_eq!(fetch_f32(execute(again, &[x, x], 1).expect("results")[0]).expect("values"), [2.0, 4.0, 6.0]);
    for end in [0, 1, bytes.len() / 2, bytes.len() - 1] {
        assert_eq!(load(&bytes[..end]).err().expect("cut off").code, 3, "{end}");
    }
    of("Client_Destroy", client).expect("fine");
}

#[test]
fn a_program_is_compiled_without_a_client() {
    let client = client(1);
    let device = handles("Client_Devices", client)[0];
    let topology = of("Client_TopologyDescription", client).expect("fine").get(24);
    let mut program = Args::new(48).put_bytes(16, ADD.as_bytes()).put_bytes(32, b"mlir");
    let args = Args::of("Compile").put(16, topology).put(24, program.address()).put_bytes(32, ONE_DEVICE);
    let executable = args.call("Compile").expect("an executable").get(56);
    let loaded =
        Args::of("Client_Load").put(16, client).put(24, executable).call("Client_Load").expect("loaded").get(48);
    let x = buffer(client, device, &[3], &[1.0, 2.0, 3.0]);
    assert_eq!(fetch_f32(execute(loaded, &[x, x], 1).expect("results")[0]).expect("values"), [2.0, 4.0, 6.0]);
    of("Executable_Destroy", executable).expect("fine");
    of("Client_Destroy", client).expect("fine");
}

#[test]
fn programs_for_more_or_other_devices_than_a_topology_has_are_refused() {
    let client = client(2);
    let topology = of("Client_TopologyDescription", client).expect("fine").get(24);
    let compile = |build: &[u8]| {
        let options = [&[0x1a, build.len() as u8], build].concat();
        let mut program = Args::new(48).put_bytes(16, ADD.as_bytes()).put_bytes(32, b"mlir");
        let args = Args::of("Compile").put(16, topology).put(24, program.address()).put_bytes(32, &options);
        Ok::<usize, Failure>(args.call("Compile")?.get(56))
    };
    // One replica of one partition, and an assignment to this device.
    let assigned = |device: u8| [0x20, 1, 0x28, 1, 0x4a, 8, 0x08, 1, 0x10, 1, 0x1a, 2, 0x08, device];
    of("Executable_Destroy", compile(&assigned(1)).expect("a program")).expect("fine");
    let huge = [0x20, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20, 0x28, 1];
    for (build, text) in [
        (&[0x20, 3, 0x28, 1][..], "request 3 replicas of 1 partitions, but the topology has 2 devices"),
        (&[0x20, 1, 0x28, 3], "request 1 replicas of 3 partitions, but the topology has 2 devices"),
        (&huge, "request 1099511627776 replicas of 1 partitions, but the topology has 2 devices"),
        (&assigned(2), "assign device 2, but the topology has 2 devices"),
        // Device ordinal 2.
        (&[0x08, 2, 0x20, 1, 0x28, 1], "assign device 2, but the topology has 2 devices"),
    ] {
        let error = compile(build).expect_err("refused");
        assert_eq!((error.code, error.message.contains(text)), (3, true), "{}", error.message);
    }
    of("Client_Destroy", client).expect("fine");
}

/// Returns options with one override: name, and encoded value.
fn with_override(name: &str, value: &[u8]) -> Vec<u8> {
    let message = |tag: u8, bytes: &[u8]| [&[tag, bytes.len() as u8], bytes].concat();
    let entry = [message(0x0a, name.as_bytes()), message(0x12, value)].concat();
    [ONE_DEVICE, &message(0x3a, &entry)].concat()
}

#[test]
fn options_by_name_are_checked() {
    let client = client(1);
    let mut told = Vec::new();
    let text = |text: &str| [&[0x0a, text.len() as u8], text.as_bytes()].concat();
    for (name, value) in [
        ("invalid_key", text("x")),
        ("xla_embed_ir_in_executable", text("invalid_value")),
        ("xla_gpu_auto_spmd_partitioning_memory_budget_ratio", text("invalid_value")),
        ("xla_backend_optimization_level", text("two")),
        ("xla_backend_optimization_level", text("1")),
        ("xla_embed_ir_in_executable", vec![0x10, 1]),
        ("xla_gpu_auto_spmd_partitioning_memory_budget_ratio", [&[0x21][..], &0.5_f64.to_le_bytes()].concat()),
    ] {
        let compiled = compile(client, "mlir", ADD.as_bytes(), &with_override(name, &value));
        told.push(compiled.map_or_else(|failure| format!("{} {}", failure.code, failure.message), |_| "fine".into()));
    }
    insta::assert_snapshot!(told.join("\n"));
    let malformed = compile(client, "mlir", ADD.as_bytes(), &[0xff; 9]).expect_err("malformed");
    assert!(malformed.message.starts_with("the compile options are malformed: "), "{}", malformed.message);
    of("Client_Destroy", client).expect("fine");
}

/// The caller reads the environment variable `XLA_FLAGS`, and sends its flags with each compilation.
#[test]
fn dumps_that_flags_ask_for_are_not_ignored() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("text");
    let message = |tag: &[u8], bytes: &[u8]| [tag, &[bytes.len() as u8], bytes].concat();
    let with_flag = |value: &str| message(&[0x1a], &message(&[0x1a], &message(&[0xea, 0x06], value.as_bytes())));
    let client = client(1);
    compile(client, "mlir", ADD.as_bytes(), &with_flag(path)).expect("a program");
    assert!(folder.path().join("add.before-passes.hlo").exists());
    compile(client, "mlir", ADD.as_bytes(), &with_flag("")).expect("a program");
    let refused = compile(client, "mlir", ADD.as_bytes(), &with_flag("-")).expect_err("refused");
    assert_eq!((refused.code, refused.message.contains("name a directory")), (12, true), "{}", refused.message);
    of("Client_Destroy", client).expect("fine");
}
