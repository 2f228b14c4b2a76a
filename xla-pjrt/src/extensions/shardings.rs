//! Shardings of parameters and results: encoded `OpSharding`s, of which an empty one means replicated.

use crate::abi::extensions::{ExecutableOutputShardingsArgs, ExecutableParameterShardingsArgs};
use crate::border::Many;
use crate::status::Status;

pub(super) fn of_parameters(args: &ExecutableParameterShardingsArgs) -> Result<(), Status> {
    let parameters = &args.executable.get()?.parameters;
    args.num_parameters.set(parameters.len());
    args.shardings.set(Many::of(&parameters.shardings));
    args.sharding_sizes.set(Many::of(&parameters.sharding_sizes));
    Ok(())
}

pub(super) fn of_outputs(args: &ExecutableOutputShardingsArgs) -> Result<(), Status> {
    let outputs = &args.executable.get()?.outputs;
    args.num_outputs.set(outputs.shardings.len());
    args.shardings.set(Many::of(&outputs.shardings));
    args.sharding_sizes.set(Many::of(&outputs.sharding_sizes));
    Ok(())
}
