//! Layouts of arrays, serialized as text such as `{1,0}`.

use xla_hlo::ArrayShape;

use crate::abi::extensions::{
    BufferMemoryLayoutArgs, ClientGetDefaultLayoutArgs, ExecutableGetOutputLayoutsArgs,
    ExecutableGetParameterLayoutsArgs, MemoryLayoutDestroyArgs, MemoryLayoutSerializeArgs,
    TopologyGetDefaultLayoutArgs,
};
use crate::abi::kinds;
use crate::client::TopologyState;
use crate::element_type::element_type;
use crate::ffi::{Counted, Deleter, Handle, List};
use crate::layout::{self, dims};
use crate::serialized::hand_out;
use crate::status::Status;

pub(super) fn destroy(args: &MemoryLayoutDestroyArgs) -> Result<(), Status> {
    args.layout.destroy()
}

pub(super) fn serialize(args: &MemoryLayoutSerializeArgs) -> Result<(), Status> {
    let (bytes, object) = hand_out(args.layout.get()?.to_string().into_bytes());
    args.serialized_bytes.set(bytes);
    args.serialized_layout.set(object);
    args.serialized_layout_deleter.set(Deleter::of::<kinds::Serialized>());
    Ok(())
}

pub(super) fn of_client(args: &ClientGetDefaultLayoutArgs) -> Result<(), Status> {
    args.layout.set(default(&args.client.get()?.topology, args.element_type, &args.dims)?);
    Ok(())
}

pub(super) fn of_topology(args: &TopologyGetDefaultLayoutArgs) -> Result<(), Status> {
    args.layout.set(default(args.topology.get()?, args.element_type, &args.dims)?);
    Ok(())
}

/// Returns the platform's default layout of an array.
fn default(
    topology: &TopologyState,
    number: i32,
    dimensions: &List<i64>,
) -> Result<Handle<kinds::MemoryLayout>, Status> {
    let shape = ArrayShape::new(element_type(number)?, dims(dimensions)?);
    let shape = topology.spec.platform.transfer_manager().device_shape(&shape)?;
    Ok(Handle::new(layout::of(&shape)))
}

pub(super) fn of_buffer(args: &BufferMemoryLayoutArgs) -> Result<(), Status> {
    args.layout.set(Handle::new(layout::of(args.buffer.get()?.array.shape())));
    Ok(())
}

pub(super) fn of_outputs(args: &ExecutableGetOutputLayoutsArgs) -> Result<(), Status> {
    args.layouts.set(Counted::of(args.executable.get()?.outputs.layout_handles()));
    Ok(())
}

pub(super) fn of_parameters(args: &ExecutableGetParameterLayoutsArgs) -> Result<(), Status> {
    args.layouts.set(Counted::of(args.executable.get()?.parameters.layout_handles()));
    Ok(())
}
