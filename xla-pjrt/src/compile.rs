//! Compilation: for a client's devices, for a topology without a client, and loading of serialized programs.

use std::sync::Arc;

use prost::Message;
use xla_hlo::{VerifiedModule, proto};
use xla_service::LoadedExecutable;

use crate::abi::client::{ClientCompileArgs, ClientLoadArgs, CompileArgs};
use crate::abi::executable::ExecutableDeserializeAndLoadArgs;
use crate::abi::kinds;
use crate::client::{ClientState, TopologyState};
use crate::executable::{Compiled, ExecutableState, LoadedState};
use crate::ffi::Handle;
use crate::options::{ExecutableAndOptionsProto, Options};
use crate::program;
use crate::status::Status;

pub(crate) fn compile(args: &ClientCompileArgs) -> Result<(), Status> {
    let client = args.client.get()?;
    let options = Options::read(args.compile_options.get()?)?;
    let module = program::read(&args.program.expect()?, &options)?;
    args.executable.set(compiled(client, &module, options)?);
    Ok(())
}

/// Compiles a program for all devices of its assignment.
fn compiled(
    client: &Arc<ClientState>,
    module: &VerifiedModule,
    options: Options,
) -> Result<Handle<kinds::LoadedExecutable>, Status> {
    let devices = options.devices(client.service.topology())?;
    let program = client.service.compile_on(module, &devices, &options.service)?;
    loaded(client, program, options, devices)
}

fn loaded(
    client: &Arc<ClientState>,
    program: LoadedExecutable,
    options: Options,
    devices: Vec<usize>,
) -> Result<Handle<kinds::LoadedExecutable>, Status> {
    let platform = client.topology.spec.platform.name();
    let executable = ExecutableState::new(Compiled::Loaded(program.clone()), options, devices, platform)?;
    Ok(Handle::new(LoadedState::new(client.clone(), executable, program)))
}

/// `PJRT_Compile`: compiles for a topology, without devices.
pub(crate) fn compile_for_topology(args: &CompileArgs) -> Result<(), Status> {
    let topology: &TopologyState = args.topology.get()?;
    let options = Options::read(args.compile_options.get()?)?;
    let module = program::read(&args.program.expect()?, &options)?;
    let devices = options.devices(&topology.devices)?;
    let compiler = topology.spec.platform.compiler();
    let optimized = compiler.run_hlo_passes(module, &options.service)?;
    let compiled = compiler.run_backend(optimized, &options.service)?;
    let platform = topology.spec.platform.name();
    let executable = ExecutableState::new(Compiled::Alone(compiled), options, devices, platform)?;
    args.executable.set(Handle::new(Arc::new(executable)));
    Ok(())
}

/// `PJRT_Client_Load`: loads a program that was compiled without this client.
pub(crate) fn load(args: &ClientLoadArgs) -> Result<(), Status> {
    let kept = args.executable.get()?.serialize()?;
    args.loaded_executable.set(load_kept(args.client.get()?, &kept, args.compile_options.get()?)?);
    Ok(())
}

/// `PJRT_Executable_DeserializeAndLoad`: loads a serialized program. It trusts the machine code within; the application
/// is responsible for its origin.
pub(crate) fn deserialize_and_load(args: &ExecutableDeserializeAndLoadArgs) -> Result<(), Status> {
    let kept = args.serialized_executable.get()?;
    let overridden = args.overridden_serialized_compile_options.get()?;
    args.loaded_executable.set(load_kept(args.client.get()?, kept, overridden)?);
    Ok(())
}

/// Loads bytes that [`ExecutableState::serialize`] returned. Non-empty `other_options` replace the stored options.
fn load_kept(
    client: &Arc<ClientState>,
    kept: &[u8],
    other_options: &[u8],
) -> Result<Handle<kinds::LoadedExecutable>, Status> {
    let kept = ExecutableAndOptionsProto::decode(kept)
        .map_err(|error| Status::invalid_argument(format!("these bytes are not a serialized executable: {error}")))?;
    let own = client.topology.spec.platform.name();
    if kept.pjrt_client_name != own {
        return Err(Status::invalid_argument(format!(
            "the executable was compiled for platform {:?}, but this client is of {own}",
            kept.pjrt_client_name
        )));
    }
    let options = Options::read(if other_options.is_empty() { &kept.compile_options } else { other_options })?;
    let bytes = &kept.serialized_executable;
    if xla_service::serialized::platform_of(bytes).is_err() {
        // The platform cannot serialize programs, so the bytes are a module without replica and partition counts.
        let mut module = proto::parse_module(bytes)?;
        options.apply(&mut module)?;
        return compiled(client, &VerifiedModule::new(module)?, options);
    }
    let devices = options.devices(client.service.topology())?;
    let program = client.service.load(bytes, &options.service)?.on_devices(&devices)?;
    loaded(client, program, options, devices)
}
