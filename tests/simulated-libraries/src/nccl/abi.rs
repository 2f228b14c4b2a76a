//! C interface of NCCL: the functions of `nccl.h` that this repository calls.
#![expect(unsafe_code, reason = "a C library is what this is for")]

use std::ffi::{c_char, c_int, c_void};
use std::sync::Once;

use super::cliques::{Call, Pending};
use super::element::{DataType, ReduceOp};
use super::exchange::{Collective, Kind};
use super::group::{self, add, call, state};
use super::options::{Failure, Options};
use super::{Nccl, Status};
use crate::arguments::put;
use crate::refusal::wrong;

/// Version 2.28.3.
const VERSION: c_int = 22_803;

// SAFETY: the C library declares it so, and any function that outlives the process may be registered.
unsafe extern "C" {
    /// Function of the C library: registers a function that is called when the process ends.
    safe fn atexit(function: extern "C" fn()) -> c_int;
}

/// First bytes of a unique id.
const MAGIC: [u8; 8] = *b"nccl-sim";

/// `ncclUniqueId`.
#[repr(C)]
struct UniqueId([u8; 128]);

impl UniqueId {
    fn new(number: u64) -> UniqueId {
        let mut bytes = [0; 128];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..16].copy_from_slice(&number.to_le_bytes());
        bytes[16..20].copy_from_slice(&std::process::id().to_le_bytes());
        UniqueId(bytes)
    }

    /// Returns the number of the id; 0 if it is not an id of this process.
    fn number(&self) -> u64 {
        let mut number = [0; 8];
        number.copy_from_slice(&self.0[8..16]);
        let number = u64::from_le_bytes(number);
        if self.0 == UniqueId::new(number).0 { number } else { 0 }
    }
}

/// Converts the error of an address to `ncclInvalidArgument`.
fn place(put: Result<(), String>) -> Nccl {
    put.or_else(|sentence| wrong(Status::INVALID_ARGUMENT, sentence))
}

fn address(pointer: *const c_void) -> u64 {
    pointer.addr() as u64
}

fn rank(number: c_int) -> Nccl<usize> {
    usize::try_from(number).or_else(|_| wrong(Status::INVALID_ARGUMENT, format!("there is no rank {number}")))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ncclGetVersion(version: *mut c_int) -> u32 {
    // SAFETY: the API's contract implies that of `put`.
    call("ncclGetVersion", |_| place(unsafe { put(version, Options::get().version.unwrap_or(VERSION)) }))
}

#[unsafe(no_mangle)]
extern "C" fn ncclGetErrorString(status: u32) -> *const c_char {
    Status(status).text().as_ptr()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ncclGetUniqueId(id: *mut UniqueId) -> u32 {
    call("ncclGetUniqueId", |_| {
        let issued = UniqueId::new(state().issue());
        // SAFETY: the API's contract implies that of `put`.
        place(unsafe { put(id, issued) })
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ncclCommInitRank(
    communicator: *mut *mut c_void,
    members: c_int,
    id: UniqueId,
    number: c_int,
) -> u32 {
    static REPORTED: Once = Once::new();
    REPORTED.call_once(|| _ = atexit(group::report_leaks));
    call("ncclCommInitRank", |_| {
        let made = group::join(id.number(), rank(members)?, rank(number)?)?;
        // SAFETY: the API's contract implies that of `put`.
        place(unsafe { put(communicator, std::ptr::without_provenance_mut(made as usize)) })
    })
}

#[unsafe(no_mangle)]
extern "C" fn ncclCommAbort(communicator: *mut c_void) -> u32 {
    call("ncclCommAbort", |_| {
        let place = state().describe(address(communicator))?;
        Options::get().record(&format!("ncclCommAbort {place}"));
        state().abort(address(communicator))
    })
}

#[unsafe(no_mangle)]
extern "C" fn ncclCommDestroy(communicator: *mut c_void) -> u32 {
    call("ncclCommDestroy", |_| state().destroy(address(communicator)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ncclCommGetAsyncError(communicator: *mut c_void, status: *mut u32) -> u32 {
    call("ncclCommGetAsyncError", |_| {
        let found = state().async_error(address(communicator))?;
        // SAFETY: the API's contract implies that of `put`.
        place(unsafe { put(status, found.0) })
    })
}

#[unsafe(no_mangle)]
extern "C" fn ncclGroupStart() -> u32 {
    call("ncclGroupStart", |_| group::start())
}

#[unsafe(no_mangle)]
extern "C" fn ncclGroupEnd() -> u32 {
    call("ncclGroupEnd", |_| group::end())
}

/// Arguments of a collective.
struct Arguments {
    send: *const c_void,
    receive: *mut c_void,
    count: usize,
    ty: u32,
    communicator: *mut c_void,
    stream: *mut c_void,
}

/// Makes a call that all members make.
fn collective(name: &'static str, arguments: &Arguments, kind: impl FnOnce(DataType) -> Nccl<Kind>) -> u32 {
    call(name, |failure| {
        let ty = DataType::of(arguments.ty)?;
        let (kind, count, communicator) = (kind(ty)?, arguments.count, address(arguments.communicator));
        let collective = Collective { kind, ty, count };
        let (rank, members) = state().rank_and_members(communicator)?;
        let Some([sent, received]) = collective.bytes(rank, members) else {
            return wrong(Status::INVALID_ARGUMENT, format!("a count of {count} is too large"));
        };
        let (send, receive) = ((address(arguments.send), sent), (address(arguments.receive), received));
        let call = Call::Collective(collective, send, receive);
        add(name, pending(communicator, arguments.stream, call, failure), &format!("{count} {ty:?} {kind:?}"))
    })
}

fn pending(communicator: u64, stream: *mut c_void, call: Call, failure: Option<Failure>) -> Pending {
    Pending { communicator, stream: address(stream), call, failure }
}

fn reduction(number: u32, ty: DataType) -> Nccl<ReduceOp> {
    let op = ReduceOp::of(number)?;
    op.check(ty)?;
    Ok(op)
}

#[unsafe(no_mangle)]
extern "C" fn ncclAllReduce(
    send: *const c_void,
    receive: *mut c_void,
    count: usize,
    ty: u32,
    op: u32,
    communicator: *mut c_void,
    stream: *mut c_void,
) -> u32 {
    let arguments = Arguments { send, receive, count, ty, communicator, stream };
    collective("ncclAllReduce", &arguments, |ty| Ok(Kind::AllReduce(reduction(op, ty)?)))
}

#[unsafe(no_mangle)]
extern "C" fn ncclReduceScatter(
    send: *const c_void,
    receive: *mut c_void,
    count: usize,
    ty: u32,
    op: u32,
    communicator: *mut c_void,
    stream: *mut c_void,
) -> u32 {
    let arguments = Arguments { send, receive, count, ty, communicator, stream };
    collective("ncclReduceScatter", &arguments, |ty| Ok(Kind::ReduceScatter(reduction(op, ty)?)))
}

#[unsafe(no_mangle)]
extern "C" fn ncclAllGather(
    send: *const c_void,
    receive: *mut c_void,
    count: usize,
    ty: u32,
    communicator: *mut c_void,
    stream: *mut c_void,
) -> u32 {
    let arguments = Arguments { send, receive, count, ty, communicator, stream };
    collective("ncclAllGather", &arguments, |_| Ok(Kind::AllGather))
}

#[unsafe(no_mangle)]
extern "C" fn ncclBroadcast(
    send: *const c_void,
    receive: *mut c_void,
    count: usize,
    ty: u32,
    root: c_int,
    communicator: *mut c_void,
    stream: *mut c_void,
) -> u32 {
    let arguments = Arguments { send, receive, count, ty, communicator, stream };
    collective("ncclBroadcast", &arguments, |_| Ok(Kind::Broadcast(rank(root)?)))
}

/// Makes a call between two members.
fn message(
    name: &'static str,
    (array, count, ty): (*const c_void, usize, u32),
    (peer, communicator, stream): (c_int, *mut c_void, *mut c_void),
    of: impl FnOnce(usize, (u64, usize)) -> Call,
) -> u32 {
    call(name, |failure| {
        let ty = DataType::of(ty)?;
        let Some(bytes) = count.checked_mul(ty.bytes()) else {
            return wrong(Status::INVALID_ARGUMENT, format!("a count of {count} is too large"));
        };
        let peer = rank(peer)?;
        let pending = pending(address(communicator), stream, of(peer, (address(array), bytes)), failure);
        add(name, pending, &format!("{count} {ty:?} peer {peer}"))
    })
}

#[unsafe(no_mangle)]
extern "C" fn ncclSend(
    array: *const c_void,
    count: usize,
    ty: u32,
    peer: c_int,
    communicator: *mut c_void,
    stream: *mut c_void,
) -> u32 {
    message("ncclSend", (array, count, ty), (peer, communicator, stream), |peer, from| Call::Send { peer, from })
}

#[unsafe(no_mangle)]
extern "C" fn ncclRecv(
    array: *mut c_void,
    count: usize,
    ty: u32,
    peer: c_int,
    communicator: *mut c_void,
    stream: *mut c_void,
) -> u32 {
    message("ncclRecv", (array, count, ty), (peer, communicator, stream), |peer, to| Call::Receive { peer, to })
}
