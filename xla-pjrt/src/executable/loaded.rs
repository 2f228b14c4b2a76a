//! Loaded executables: programs on the devices of a client.

use std::sync::{Arc, Mutex, PoisonError};

use prost::Message;
use xla_hlo::Error;
use xla_service::LoadedExecutable;

use super::state::{Compiled, ExecutableState};
use crate::abi::executable::{
    LoadedExecutableAddressableDeviceLogicalIdsArgs, LoadedExecutableAddressableDevicesArgs,
    LoadedExecutableDeleteArgs, LoadedExecutableDestroyArgs, LoadedExecutableFingerprintArgs,
    LoadedExecutableGetDeviceAssignmentArgs, LoadedExecutableGetExecutableArgs, LoadedExecutableIsDeletedArgs,
    LogicalDeviceIds,
};
use crate::abi::kinds;
use crate::client::ClientState;
use crate::ffi::{Deleter, Handle, Kind, List, Text};
use crate::serialized::hand_out;
use crate::status::Status;

impl Kind for kinds::LoadedExecutable {
    type Value = LoadedState;
    const NAME: &'static str = "PJRT_LoadedExecutable";
}

/// Program on the devices of a client.
pub(crate) struct LoadedState {
    pub executable: Arc<ExecutableState>,
    pub client: Arc<ClientState>,
    /// Program on all its devices; `None` once it was deleted.
    program: Mutex<Option<LoadedExecutable>>,
    device_handles: Vec<Handle<kinds::Device>>,
    logical_ids: Vec<LogicalDeviceIds>,
}

impl LoadedState {
    pub fn new(client: Arc<ClientState>, executable: ExecutableState, program: LoadedExecutable) -> LoadedState {
        let logical = |i: usize| LogicalDeviceIds {
            replica: (i / executable.options.partitions) as i32,
            partition: (i % executable.options.partitions) as i32,
        };
        // A portable program is not assigned to devices.
        let local: &[usize] = if executable.options.portable { &[] } else { program.logical_ids() };
        LoadedState {
            device_handles: local.iter().map(|&i| client.device_handles[executable.devices[i]]).collect(),
            logical_ids: local.iter().map(|&i| logical(i)).collect(),
            program: Mutex::new(Some(program)),
            executable: Arc::new(executable),
            client,
        }
    }

    /// Returns the program on all its devices; an error once it was deleted.
    pub fn program(&self) -> Result<LoadedExecutable, Status> {
        let program = self.program.lock().unwrap_or_else(PoisonError::into_inner);
        program.clone().ok_or_else(|| Status::failed_precondition("the executable was deleted"))
    }

    /// Rejects an execution, also of a deleted program: the executions of other processes fail with this error.
    pub fn reject(&self, status: &Status) {
        if let Compiled::Loaded(program) = &self.executable.compiled {
            program.reject(&Error::from(status));
        }
    }
}

pub(crate) fn destroy_loaded(args: &LoadedExecutableDestroyArgs) -> Result<(), Status> {
    args.executable.destroy()
}

pub(crate) fn loaded_executable(args: &LoadedExecutableGetExecutableArgs) -> Result<(), Status> {
    args.executable.set(Handle::new(args.loaded_executable.get()?.executable.clone()));
    Ok(())
}

pub(crate) fn addressable_devices(args: &LoadedExecutableAddressableDevicesArgs) -> Result<(), Status> {
    args.addressable_devices.set(List::of(&args.executable.get()?.device_handles));
    Ok(())
}

pub(crate) fn addressable_device_logical_ids(
    args: &LoadedExecutableAddressableDeviceLogicalIdsArgs,
) -> Result<(), Status> {
    args.addressable_device_logical_ids.set(List::of(&args.executable.get()?.logical_ids));
    Ok(())
}

/// `PJRT_LoadedExecutable_GetDeviceAssignment`: returns the encoded device assignment, which is empty for a portable
/// program.
pub(crate) fn device_assignment(args: &LoadedExecutableGetDeviceAssignmentArgs) -> Result<(), Status> {
    let executable = &args.executable.get()?.executable;
    let options = &executable.options;
    let bytes = if options.portable { Vec::new() } else { options.assignment(&executable.devices).encode_to_vec() };
    let (bytes, object) = hand_out(bytes);
    args.serialized_bytes.set(bytes);
    args.serialized_device_assignment.set(object);
    args.serialized_device_assignment_deleter.set(Deleter::of::<kinds::Serialized>());
    Ok(())
}

pub(crate) fn delete(args: &LoadedExecutableDeleteArgs) -> Result<(), Status> {
    let program = args.executable.get()?.program.lock().unwrap_or_else(PoisonError::into_inner).take();
    // Freed without the lock.
    drop(program);
    Ok(())
}

pub(crate) fn is_deleted(args: &LoadedExecutableIsDeletedArgs) -> Result<(), Status> {
    let program = args.executable.get()?.program.lock().unwrap_or_else(PoisonError::into_inner);
    args.is_deleted.set(program.is_none());
    Ok(())
}

pub(crate) fn loaded_fingerprint(args: &LoadedExecutableFingerprintArgs) -> Result<(), Status> {
    args.executable_fingerprint.set(Text::text(&args.executable.get()?.executable.fingerprint));
    Ok(())
}
