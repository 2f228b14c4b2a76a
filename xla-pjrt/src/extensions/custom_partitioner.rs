//! Custom call partitioners, which are registered but not used.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use crate::abi::extensions::{RegisterBatchPartitionableArgs, RegisterCustomPartitionerArgs};
use crate::ffi::Address;
use crate::status::Status;

/// Registered partitioners: target, and the address of the caller's functions. The address is null for targets that are
/// partitionable along batch dimensions.
static REGISTERED: Mutex<BTreeSet<(String, usize)>> = Mutex::new(BTreeSet::new());

pub(super) fn register(args: &RegisterCustomPartitionerArgs) -> Result<(), Status> {
    if args.callbacks.is_null() {
        return Err(Status::invalid_argument("the functions of a custom partitioner must not be null"));
    }
    keep(args.name.as_str()?, args.callbacks)
}

pub(super) fn register_batch_partitionable(args: &RegisterBatchPartitionableArgs) -> Result<(), Status> {
    keep(args.name.as_str()?, <Address as crate::ffi::Field>::NULL)
}

fn keep(name: &str, callbacks: Address) -> Result<(), Status> {
    let mut registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    registered.insert((name.to_string(), callbacks.number()));
    Ok(())
}
