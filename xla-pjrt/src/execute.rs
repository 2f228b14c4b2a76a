//! Execution: arguments of all devices in, results of all devices out.

use std::sync::Arc;

use xla_ffi::UserData;
use xla_hlo::ops::RunContext;
use xla_service::{Buffer, DeviceResults, Dispatch, Donate, ExecuteOptions as ServiceOptions};

use crate::abi::executable::{
    ExecuteContextCreateArgs, ExecuteContextDestroyArgs, ExecuteOptions, LoadedExecutableExecuteArgs,
};
use crate::abi::kinds;
use crate::border::{Handle, Kind};
use crate::buffer::{BufferState, Place};
use crate::effects;
use crate::event::Event;
use crate::executable::{LoadedState, Value, ValueList};
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
    let parameters = &loaded.executable.parameters;
    let except = non_donatable(asked.as_ref(), parameters)?;
    let program = match args.execute_device {
        device if device.is_null() => loaded.program()?,
        device => loaded.program()?.on_devices(&[device.get()?.index])?,
    };
    let lists = args.argument_lists.slice(args.num_devices)?;
    let (mut arguments, mut after) = (Vec::with_capacity(lists.len()), Vec::new());
    for list in lists {
        arguments.push(arrays(list.slice(args.num_args)?, parameters, &mut after)?);
    }
    let outputs = args.output_lists.slice(args.num_devices)?;
    if loaded.executable.outputs.len() > 0 && outputs.iter().any(|list| list.is_null()) {
        return Err(Status::invalid_argument("a list for results must not be null"));
    }
    let options = ServiceOptions {
        donate: Donate::Declared { except },
        dispatch: Dispatch::Auto,
        cancel: None,
        after,
        context: asked.as_ref().map(run_context).transpose()?.map(Arc::new),
    };
    let results = program.launch(&arguments, &options)?;
    let tokens = tokens(&results, &loaded.executable.outputs)?;
    if !args.device_complete_events.is_null() {
        let ends = program.devices().zip(&results).map(|(device, results)| end(loaded, device.index(), results));
        args.device_complete_events.fill(ends)?;
    }
    for (((device, results), token), list) in program.devices().zip(results).zip(tokens).zip(outputs) {
        let place = Place { client: loaded.client.clone(), device: device.index(), memory: 0 };
        let handles = handles(results.buffers, token.as_ref(), &place, &loaded.executable.outputs);
        list.fill(handles.into_iter())?;
    }
    Ok(())
}

/// The end of a run, for the caller. It waits for the last run on a device alone to know that all had their effects.
fn end(loaded: &LoadedState, device: usize, results: &DeviceResults) -> Handle<kinds::Event> {
    let own = results.completion();
    let end = if loaded.executable.has_effects { effects::in_order(&loaded.client, device, own) } else { own };
    Event::of(end).handle()
}

/// For each device an array that stands for the tokens among its results; `None` where there are none.
fn tokens(results: &[DeviceResults], outputs: &ValueList) -> Result<Vec<Option<Buffer>>, Status> {
    let token = |results: &DeviceResults| outputs.has_tokens().then(|| results.token()).transpose();
    Ok(results.iter().map(token).collect::<xla_hlo::Result<_>>()?)
}

/// Handles to the results of a device.
fn handles(
    arrays: Vec<Buffer>,
    token: Option<&Buffer>,
    place: &Place,
    outputs: &ValueList,
) -> Vec<Handle<kinds::Buffer>> {
    let mut arrays = arrays.into_iter();
    let handle = |value: &Value| match value {
        Value::Array { memory } => {
            arrays.next().map(|array| BufferState::handle(Place { memory: *memory, ..place.clone() }, array))
        }
        Value::Token => token.map(|token| BufferState::token(place.clone(), token.clone())),
    };
    outputs.values.iter().filter_map(handle).collect()
}

/// The number of the run, and what the caller hands to handlers.
fn run_context(options: &ExecuteOptions) -> Result<RunContext, Status> {
    let context = RunContext::new(options.launch_id.into());
    Ok(match options.context {
        none if none.is_null() => context,
        given => context.with(given.get()?.clone()),
    })
}

/// The arrays of a list of arguments. What is given for tokens is added to what comes before the run.
fn arrays<'a>(
    list: &'a [Handle<kinds::Buffer>],
    parameters: &ValueList,
    after: &mut Vec<Buffer>,
) -> Result<Vec<&'a Buffer>, Status> {
    let mut arrays = Vec::with_capacity(list.len());
    for (i, buffer) in list.iter().enumerate() {
        let array = buffer.get()?.live()?;
        match parameters.values.get(i) {
            Some(Value::Token) => after.push(array.clone()),
            Some(Value::Array { .. }) | None => arrays.push(array),
        }
    }
    Ok(arrays)
}

/// Numbers of the arrays among the arguments that the caller keeps.
fn non_donatable(options: Option<&ExecuteOptions>, parameters: &ValueList) -> Result<Vec<usize>, Status> {
    let Some(options) = options else { return Ok(Vec::new()) };
    if options.num_send_ops + options.num_recv_ops + options.num_hlo_output_callbacks > 0 {
        return Err(Status::unimplemented("send and recv callbacks of an execution"));
    }
    let kept = options.non_donatable_input_indices.get()?;
    if kept.is_empty() {
        return Ok(Vec::new());
    }
    let arrays = parameters.values.iter().enumerate().filter(|(_, value)| **value != Value::Token);
    // What is no argument needs no keeping.
    let is_kept = |argument: usize| i64::try_from(argument).is_ok_and(|argument| kept.contains(&argument));
    Ok(arrays.enumerate().filter(|(_, (argument, _))| is_kept(*argument)).map(|(array, _)| array).collect())
}
