//! Tests of buffers whose values become available later, and of transfers in pieces.

use crate::client::{F32, buffer, client, fetch_f32, finish, handles, of};
use crate::table::{Args, Failure, bytes, call_at};

struct Setting {
    client: usize,
    device: usize,
    memory: usize,
}

fn setting() -> Setting {
    let client = client(1);
    let device = handles("Client_Devices", client)[0];
    Setting { client, device, memory: handles("Client_AddressableMemories", client)[0] }
}

fn alias(setting: &Setting) -> (usize, usize) {
    let args = Args::of("Client_CreateAliasBuffer").put(16, setting.client).put(24, setting.memory);
    let args = args.put_words(32, &[2]).put_i32(48, F32).call("Client_CreateAliasBuffer").expect("an alias");
    (args.get(64), args.get(72))
}

#[test]
fn an_alias_gets_its_value_later() {
    let setting = setting();
    let (buffer_later, promise) = alias(&setting);
    let event = of("Buffer_ReadyEvent", buffer_later).expect("fine").get(24);
    assert!(!of("Event_IsReady", event).expect("fine").get_flag(24));
    let source = buffer(setting.client, setting.device, &[2], &[7.0, 8.0]);
    let fulfil = |promise| {
        let args = Args::of("Client_FulfillAliasBuffer").put(16, setting.client).put(24, source);
        args.put(56, promise).call("Client_FulfillAliasBuffer")
    };
    fulfil(promise).expect("fine");
    finish(event).expect("fine");
    assert_eq!(fetch_f32(buffer_later).expect("values"), [7.0, 8.0]);
}

#[test]
fn an_alias_may_become_an_error() {
    let setting = setting();
    let (buffer, promise) = alias(&setting);
    let args = Args::of("Client_FulfillAliasBuffer").put(16, setting.client).put_i32(32, 8);
    args.put_bytes(40, b"too little").put(56, promise).call("Client_FulfillAliasBuffer").expect("fine");
    let error = fetch_f32(buffer).expect_err("the error");
    assert_eq!((error.code, error.message.as_str()), (8, "too little"));
}

#[test]
fn an_error_buffer_is_an_error() {
    let setting = setting();
    let args = Args::of("Client_CreateErrorBuffer").put(16, setting.client).put_i32(24, 5).put_bytes(32, b"lost");
    let args = args.put_words(48, &[4]).put_i32(64, F32).put(80, setting.memory);
    let buffer = args.call("Client_CreateErrorBuffer").expect("a buffer").get(88);
    let event = of("Buffer_ReadyEvent", buffer).expect("fine").get(24);
    assert_eq!(finish(event).expect_err("the error"), Failure { code: 5, message: "lost".to_string() });
}

#[test]
fn a_raw_copy_waits_for_its_target() {
    let setting = setting();
    let source = buffer(setting.client, setting.device, &[2], &[1.5, 2.5]);
    let args = Args::of("Buffer_CopyRawToHostFuture").put(16, source).put(24, 4).put(32, 4);
    let args = args.call("Buffer_CopyRawToHostFuture").expect("fine");
    let (event, data, function) = (args.get(40), args.get(48), [args.get(56)]);
    assert!(!of("Event_IsReady", event).expect("fine").get_flag(24));
    // The copy shares the value, so the source can be destroyed.
    of("Buffer_Destroy", source).expect("fine");
    let mut target = [0_u8; 4];
    let place = target.as_mut_ptr().expose_provenance();
    let mut call = Args::new(48).put(8, data).put(40, place);
    call_at(function.as_ptr().expose_provenance(), call.address());
    finish(event).expect("fine");
    assert_eq!(bytes(place, 4), 2.5_f32.to_ne_bytes());
}

#[test]
fn a_donated_buffer_waits_for_its_dependency() {
    let setting = setting();
    let source = buffer(setting.client, setting.device, &[2], &[1.0, 2.0]);
    let args = Args::of("Buffer_DonateWithControlDependency").put(16, source);
    let args = args.call("Buffer_DonateWithControlDependency").expect("fine");
    let (data, function, later) = (args.get(24), [args.get(32)], args.get(40));
    assert!(of("Buffer_IsDeleted", source).expect("fine").get_flag(24));
    let event = of("Buffer_ReadyEvent", later).expect("fine").get(24);
    assert!(!of("Event_IsReady", event).expect("fine").get_flag(24));
    let mut call = Args::new(40).put(8, data);
    call_at(function.as_ptr().expose_provenance(), call.address());
    finish(event).expect("fine");
    assert_eq!(fetch_f32(later).expect("values"), [1.0, 2.0]);
}

/// Returns a transfer manager of one `f32[4]`, and one `f32[2,2]` that is column-major on the device.
fn manager(setting: &Setting) -> usize {
    let dims = [[4_i64, 0], [2, 2]];
    let ranks = [1_usize, 2];
    let mut specs = Vec::new();
    for (dims, rank) in dims.iter().zip(ranks) {
        let mut spec = [0_u8; 40];
        spec[0] = 36;
        spec[16..24].copy_from_slice(&dims.as_ptr().expose_provenance().to_ne_bytes());
        spec[24..32].copy_from_slice(&rank.to_ne_bytes());
        spec[32] = F32 as u8;
        specs.extend(spec);
    }
    let order = [0_i64, 1];
    let mut layout = Args::new(76).put(32, order.as_ptr().expose_provenance()).put(40, 2);
    let layouts = [0, layout.address()];
    let name = "Client_CreateBuffersForAsyncHostToDevice";
    let args = Args::of(name).put(16, setting.client).put_bytes(16 + 8, &specs).put(32, 2).put(56, setting.memory);
    let args = args.put(40, layouts.as_ptr().expose_provenance()).put(48, 2);
    args.call(name).expect("a manager").get(64)
}

fn manager_call(function: &str, args: impl FnOnce(Args) -> Args) -> Result<Args, Failure> {
    let name = format!("AsyncHostToDeviceTransferManager_{function}");
    args(Args::of(&name)).call(&name)
}

#[test]
fn transfers_fill_buffers_piece_by_piece() {
    let setting = setting();
    let manager = manager(&setting);
    let count = manager_call("BufferCount", |args| args.put(16, manager)).expect("fine").get(24);
    assert_eq!(count, 2);
    let size = manager_call("BufferSize", |args| args.put(16, manager).put_i32(24, 1)).expect("fine").get(32);
    assert_eq!(size, 16);
    let retrieve = |index| manager_call("RetrieveBuffer", |args| args.put(16, manager).put_i32(24, index));
    let buffers = [0, 1].map(|index| retrieve(index).expect("a buffer").get(32));
    assert!(retrieve(0).is_err(), "once");
    let values: Vec<u8> = [1.0_f32, 2.0, 3.0, 4.0].iter().flat_map(|value| value.to_ne_bytes()).collect();
    let send = |from: usize, to: usize, last: usize| {
        let data = values[from..to].as_ptr().expose_provenance();
        let args = |args: Args| args.put(16, manager).put(32, data).put(40, from).put(48, to - from).put(56, last);
        manager_call("TransferData", args).map(|args| finish(args.get(64)))
    };
    send(8, 16, 0).expect("fine").expect("fine");
    let event = of("Buffer_ReadyEvent", buffers[0]).expect("fine").get(24);
    assert!(!of("Event_IsReady", event).expect("fine").get_flag(24));
    assert!(send(0, 8, 1).expect("fine").is_ok());
    finish(event).expect("fine");
    assert_eq!(fetch_f32(buffers[0]).expect("values"), [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(send(0, 4, 0).expect_err("full").code, 9);
    let literal = |args: Args| {
        let args = args.put(16, manager).put_i32(24, 1).put(32, values.as_ptr().expose_provenance());
        args.put_words(40, &[2, 2]).put_i32(56, F32)
    };
    finish(manager_call("TransferLiteral", literal).expect("fine").get(72)).expect("fine");
    assert_eq!(fetch_f32(buffers[1]).expect("values"), [1.0, 2.0, 3.0, 4.0]);
    manager_call("Destroy", |args| args.put(16, manager)).expect("fine");
}

#[test]
fn a_buffer_that_is_never_filled_is_an_error() {
    let setting = setting();
    let manager = manager(&setting);
    let retrieve = |index| manager_call("RetrieveBuffer", |args| args.put(16, manager).put_i32(24, index));
    let buffers = [0, 1].map(|index| retrieve(index).expect("a buffer").get(32));
    let error = |args: Args| args.put(16, manager).put_i32(24, 1).put_i32(28, 8).put_bytes(32, b"no room");
    manager_call("SetBufferError", error).expect("fine");
    manager_call("Destroy", |args| args.put(16, manager)).expect("fine");
    assert_eq!(fetch_f32(buffers[1]).expect_err("the error").message, "no room");
    assert_eq!(fetch_f32(buffers[0]).expect_err("given up").code, 1);
}
