//! Execution: passes arguments to all devices and returns the results of all devices.

use std::sync::Arc;

use smallvec::SmallVec;
use xla_ffi::UserData;
use xla_hlo::ops::RunContext;
use xla_service::{Buffer, DeviceResults, Dispatch, Donate, ExecuteOptions as ServiceOptions, LoadedExecutable};

use crate::abi::executable::{
    ExecuteContextCreateArgs, ExecuteContextDestroyArgs, ExecuteOptions, LoadedExecutableExecuteArgs,
};
use crate::abi::kinds;
use crate::buffer::{BufferState, Place};
use crate::effects;
use crate::event::Event;
use crate::executable::{LoadedState, Value, ValueList};
use crate::ffi::{Handle, Kind, Slots};
use crate::status::Status;

impl Kind for kinds::ExecuteContext {
    /// Data for custom call handlers.
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

/// `PJRT_LoadedExecutable_Execute`: launches the program on all devices. Results are returned only if every launch
/// succeeds.
pub(crate) fn execute(args: &LoadedExecutableExecuteArgs) -> Result<(), Status> {
    let loaded = args.executable.get()?;
    // The other processes of the program wait for this launch, also if it is rejected.
    let reject = |status: &Status| loaded.reject(status);
    let program = requested(args, loaded).inspect_err(reject)?;
    let Request { arguments, options, targets } = Request::read(args, loaded, &program).inspect_err(reject)?;
    let results = program.launch(&arguments, &options)?;
    if options.dispatch == Dispatch::WhenReady
        && let Some(error) = results.iter().find_map(DeviceResults::failure)
    {
        return Err(error.into());
    }
    let outputs = &loaded.executable.outputs;
    let mut tokens = tokens(&results, outputs)?.into_iter();
    if !args.device_complete_events.is_null() {
        let ends = program.devices().zip(&results).map(|(device, results)| end(loaded, device.id(), results));
        args.device_complete_events.fill(ends)?;
    }
    for ((device, results), list) in program.devices().zip(results).zip(targets) {
        let place = Place { client: loaded.client.clone(), device: device.id(), memory: 0 };
        list.fill(handles(results.buffers, tokens.next().as_ref(), &place, outputs))?;
    }
    Ok(())
}

/// Returns the program on the devices of an execution.
fn requested(args: &LoadedExecutableExecuteArgs, loaded: &LoadedState) -> Result<LoadedExecutable, Status> {
    let program = loaded.program()?;
    match args.execute_device {
        device if device.is_null() => Ok(program),
        device => Ok(program.on_devices(&[device.get()?.id])?),
    }
}

/// Checked arguments of an execution.
struct Request<'a> {
    /// Arrays, by device.
    arguments: SmallVec<[SmallVec<[&'a Buffer; 8]>; 1]>,
    options: ServiceOptions,
    /// Lists for the results, by device.
    targets: &'a [Slots<Handle<kinds::Buffer>>],
}

impl<'a> Request<'a> {
    fn read(
        args: &'a LoadedExecutableExecuteArgs,
        loaded: &LoadedState,
        program: &LoadedExecutable,
    ) -> Result<Request<'a>, Status> {
        let asked = args.options.read()?;
        let parameters = &loaded.executable.parameters;
        let except = non_donatable(asked.as_ref(), parameters)?;
        let lists = args.argument_lists.slice(args.num_devices)?;
        let (mut arguments, mut after) = (SmallVec::with_capacity(lists.len()), Vec::new());
        for list in lists {
            arguments.push(arrays(list.slice(args.num_args)?, parameters, &mut after)?);
        }
        let targets = args.output_lists.slice(args.num_devices)?;
        if loaded.executable.outputs.len() > 0 && targets.iter().any(|list| list.is_null()) {
            return Err(Status::invalid_argument("a list for results must not be null"));
        }
        let options = ServiceOptions {
            donate: Donate::Declared { except },
            dispatch: dispatch(loaded),
            cancel: None,
            after,
            context: context(asked.as_ref(), program)?,
        };
        Ok(Request { arguments, options, targets })
    }
}

/// Returns the dispatch mode of an execution.
///
/// As in XLA:CPU, a program with host callbacks has made its calls when the caller gets its results, and an error of a
/// callback is an error of the execution. The same applies to all programs of a client without asynchronous dispatch.
fn dispatch(loaded: &LoadedState) -> Dispatch {
    let client = &loaded.client;
    let calls_back = loaded.executable.calls_back && client.is_on_host;
    if calls_back || !client.topology.spec.asynchronous { Dispatch::WhenReady } else { Dispatch::Auto }
}

/// Returns the completion of an execution. Callers wait only for the last execution on a device, and assume that the
/// effects of earlier ones are complete.
fn end(loaded: &LoadedState, device: usize, results: &DeviceResults) -> Handle<kinds::Event> {
    let own = results.completion();
    let end = if loaded.executable.has_effects { effects::in_order(&loaded.client, device, own) } else { own };
    Event::of(end).handle()
}

/// Returns, for each device, an array that represents the tokens among its results; empty if there are none.
fn tokens(results: &[DeviceResults], outputs: &ValueList) -> Result<Vec<Buffer>, Status> {
    if !outputs.has_tokens() {
        return Ok(Vec::new());
    }
    Ok(results.iter().map(DeviceResults::token).collect::<xla_hlo::Result<_>>()?)
}

/// Creates handles for the results of a device.
fn handles(
    arrays: Vec<Buffer>,
    token: Option<&Buffer>,
    place: &Place,
    outputs: &ValueList,
) -> impl Iterator<Item = Handle<kinds::Buffer>> {
    let mut arrays = arrays.into_iter();
    let handle = move |value: &Value| match value {
        Value::Array { memory } => {
            arrays.next().map(|array| BufferState::handle(Place { memory: *memory, ..place.clone() }, array))
        }
        Value::Token => token.map(|token| BufferState::token(place.clone(), token.clone())),
    };
    outputs.values.iter().filter_map(handle)
}

/// Returns the launch id and the caller's user data, for programs with custom calls.
fn context(options: Option<&ExecuteOptions>, program: &LoadedExecutable) -> Result<Option<Arc<RunContext>>, Status> {
    let Some(options) = options else { return Ok(None) };
    let given = if options.context.is_null() { None } else { Some(options.context.get()?) };
    if !program.has_custom_calls() {
        return Ok(None);
    }
    let context = RunContext::new(options.launch_id.into());
    Ok(Some(Arc::new(match given {
        None => context,
        Some(given) => context.with(given.clone()),
    })))
}

/// Returns the arrays of an argument list. Buffers that represent tokens are added to `after`, the dependencies of the
/// execution.
fn arrays<'a>(
    list: &'a [Handle<kinds::Buffer>],
    parameters: &ValueList,
    after: &mut Vec<Buffer>,
) -> Result<SmallVec<[&'a Buffer; 8]>, Status> {
    let mut arrays = SmallVec::with_capacity(list.len());
    for (i, buffer) in list.iter().enumerate() {
        let array = buffer.get()?.live()?;
        match parameters.values.get(i) {
            Some(Value::Token) => after.push(array.clone()),
            Some(Value::Array { .. }) | None => arrays.push(array),
        }
    }
    Ok(arrays)
}

/// Returns the numbers of the array arguments that must not be donated.
fn non_donatable(options: Option<&ExecuteOptions>, parameters: &ValueList) -> Result<Vec<usize>, Status> {
    let Some(options) = options else { return Ok(Vec::new()) };
    if options.num_send_ops + options.num_recv_ops + options.num_hlo_output_callbacks > 0 {
        return Err(Status::unimplemented("send and recv callbacks of an execution are not supported"));
    }
    let kept = options.non_donatable_input_indices.get()?;
    if kept.is_empty() {
        return Ok(Vec::new());
    }
    let arrays = parameters.values.iter().enumerate().filter(|(_, value)| **value != Value::Token);
    // Indices that are not arguments are ignored.
    let is_kept = |argument: usize| i64::try_from(argument).is_ok_and(|argument| kept.contains(&argument));
    Ok(arrays.enumerate().filter(|(_, (argument, _))| is_kept(*argument)).map(|(array, _)| array).collect())
}
