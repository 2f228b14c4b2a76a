//! `PJRT_Error_*`: message, code, payloads, destruction.

use crate::abi::errors::{ErrorDestroyArgs, ErrorForEachPayloadArgs, ErrorGetCodeArgs, ErrorMessageArgs};
use crate::ffi::{Text, code, visit};
use crate::status::Status;

pub(crate) fn destroy(args: &ErrorDestroyArgs) {
    // An invalid pointer cannot be reported.
    drop(args.error.destroy());
}

/// `PJRT_Error_Message`: returns the message, which lives as long as the error.
pub(crate) fn message(args: &ErrorMessageArgs) {
    args.message.set(Text::text(args.error.get().map_or("", |status| &status.message)));
}

pub(crate) fn get_code(args: &ErrorGetCodeArgs) -> Result<(), Status> {
    args.code.set(code(args.error) as i32);
    Ok(())
}

pub(crate) fn for_each_payload(args: &ErrorForEachPayloadArgs) -> Result<(), Status> {
    visit(args.error, args.visitor, args.user_arg);
    Ok(())
}
