//! Custom call handlers of callers, types of their data, and user data for executions.

use crate::abi::extensions::{FfiRegisterHandlerArgs, FfiTypeRegisterArgs, FfiUserDataAddArgs};
use crate::status::Status;

pub(super) fn register_type(args: &FfiTypeRegisterArgs) -> Result<(), Status> {
    // The first function of a type is its deleter.
    let deleter = args.type_info.first_word();
    args.type_id.set(xla_ffi::register_type(args.type_name.as_str()?, args.type_id.get(), deleter)?);
    Ok(())
}

pub(super) fn add_user_data(args: &FfiUserDataAddArgs) -> Result<(), Status> {
    Ok(args.context.get()?.add(args.type_id, args.data.number())?)
}

pub(super) fn register_handler(args: &FfiRegisterHandlerArgs) -> Result<(), Status> {
    let handler = args.handler.handler()?;
    xla_ffi::add(args.target_name.as_str()?, args.platform_name.as_str()?, handler);
    Ok(())
}
