//! Shardings of parameters and results, as encoded `OpSharding`s. An empty one means replicated. Programs with a single
//! partition have none.

use crate::abi::extensions::{ExecutableOutputShardingsArgs, ExecutableParameterShardingsArgs};
use crate::executable::{ExecutableState, ValueList};
use crate::ffi::{Field, Many};
use crate::status::Status;

pub(super) fn of_parameters(args: &ExecutableParameterShardingsArgs) -> Result<(), Status> {
    let executable = args.executable.get()?;
    args.num_parameters.set(executable.parameters.len());
    let (shardings, sizes) = shardings(executable, &executable.parameters);
    args.shardings.set(shardings);
    args.sharding_sizes.set(sizes);
    Ok(())
}

pub(super) fn of_outputs(args: &ExecutableOutputShardingsArgs) -> Result<(), Status> {
    let executable = args.executable.get()?;
    args.num_outputs.set(executable.outputs.len());
    let (shardings, sizes) = shardings(executable, &executable.outputs);
    args.shardings.set(shardings);
    args.sharding_sizes.set(sizes);
    Ok(())
}

fn shardings(executable: &ExecutableState, values: &ValueList) -> (Many<Many<u8>>, Many<usize>) {
    if executable.options.partitions == 1 || values.len() == 0 {
        return (Many::NULL, Many::NULL);
    }
    (Many::of(&values.shardings), Many::of(&values.sharding_sizes))
}
