//! Execution: arguments of all devices in, results of all devices out.

use std::sync::Arc;

use xla_ffi::UserData;
use xla_hlo::ops::RunContext;
use xla_service::{Buffer, Dispatch, Donate, ExecuteOptions as ServiceOptions};

use crate::abi::executable::{
    ExecuteContextCreateArgs, ExecuteContextDestroyArgs, ExecuteOptions, LoadedExecutableExecuteArgs,
};
use crate::abi::kinds;
use crate::border::{Handle, Kind, Many};
use crate::buffer::{BufferState, Place};
use crate::event::Event;
use crate::status::Status;

impl Kind for kinds::ExecuteContext {
    /// Data for the handlers of custom calls.
    type Value = UserData;
    const NAME: &'static str = "PJRT_ExecuteContext";
}

pub(crate) fn create_context(args: &ExecuteContextCreateArgs) -> Result<(), Status> {
    args.context.set(Handle::new(UserData::default()));
    Ok(())
}

pub(crate) fn destroy_context(args: &ExecuteContextDestroyArgs) -> Result<(), Status> {
    args.context.destroy()
}

/// Results are handed out when every device has been given its work; if one cannot be, none is.
pub(crate) fn execute(args: &LoadedExecutableExecuteArgs) -> Result<(), Status> {
    let loaded = args.executable.get()?;
    let asked = args.options.read()?;
    let except = non_donatable(asked.as_ref())?;
    let program = match args.execute_device {
        device if device.is_null() => loaded.program()?,
        device => loaded.program()?.on_devices(&[device.get()?.index])?,
    };
    let lists = args.argument_lists.slice(args.num_devices)?;
    let arguments = lists.iter().map(|list| arrays(list, args.num_args)).collect::<Result<Vec<_>, _>>()?;
    let outputs = args.output_lists.slice(args.num_devices)?;
    if loaded.executable.outputs.len() > 0 && outputs.iter().any(|list| list.is_null()) {
        return Err(Status::invalid_argument("a list for results must not be null"));
    }
    let options = ServiceOptions {
        donate: Donate::Declared { except },
        dispatch: Dispatch::Auto,
        cancel: None,
        context: asked.as_ref().map(run_context).transpose()?.map(Arc::new),
    };
    let results = program.launch(&arguments, &options)?;
    if !args.device_complete_events.is_null() {
        args.device_complete_events.fill(results.iter().map(|results| Event::of(results.completion()).handle()))?;
    }
    for ((device, results), list) in program.devices().zip(results).zip(outputs) {
        let place = Place { client: loaded.client.clone(), device: device.index(), memory: 0 };
        list.fill(results.buffers.into_iter().map(|array| BufferState::handle(place.clone(), array)))?;
    }
    Ok(())
}

/// The number of the run, and what the caller hands to handlers.
fn run_context(options: &ExecuteOptions) -> Result<RunContext, Status> {
    let context = RunContext::new(options.launch_id.into());
    Ok(match options.context {
        none if none.is_null() => context,
        given => context.with(given.get()?.clone()),
    })
}

/// The arrays of a list of arguments.
fn arrays(list: &Many<Handle<kinds::Buffer>>, count: usize) -> Result<Vec<&Buffer>, Status> {
    list.slice(count)?.iter().map(|buffer| buffer.get()?.live()).collect()
}

/// Numbers of the arguments that the caller keeps.
fn non_donatable(options: Option<&ExecuteOptions>) -> Result<Vec<usize>, Status> {
    let Some(options) = options else { return Ok(Vec::new()) };
    if options.num_send_ops + options.num_recv_ops + options.num_hlo_output_callbacks > 0 {
        return Err(Status::unimplemented("send and recv callbacks of an execution"));
    }
    let indices = options.non_donatable_input_indices.get()?;
    // What is no argument needs no keeping.
    Ok(indices.iter().filter_map(|&index| usize::try_from(index).ok()).collect())
}
