//! Tests of clients, devices, memories and topologies.

use std::fmt::Write as _;

use crate::client::{client, create, handles, of, topology};
use crate::table::{Args, Failure, read};

fn text(function: &str, object: usize) -> String {
    of(function, object).expect("a text").get_text(24)
}

#[test]
fn a_client_describes_itself() {
    let client = client(2);
    let mut shown = format!(
        "{}, process {}\n",
        text("Client_PlatformName", client),
        of("Client_ProcessIndex", client).expect("fine").get_i32(24)
    );
    for device in handles("Client_Devices", client) {
        let description = of("Device_GetDescription", device).expect("fine").get(24);
        let id = of("DeviceDescription_Id", description).expect("fine").get_i32(24);
        let [debug, long] =
            ["DeviceDescription_DebugString", "DeviceDescription_ToString"].map(|f| text(f, description));
        writeln!(shown, "{id}: {debug}, {long}").expect("text");
        let default = of("Device_DefaultMemory", device).expect("fine").get(24);
        for memory in handles("Device_AddressableMemories", device) {
            let [kind, debug, long] = ["Memory_Kind", "Memory_DebugString", "Memory_ToString"].map(|f| text(f, memory));
            let [id, kind_id] = ["Memory_Id", "Memory_Kind_Id"].map(|f| of(f, memory).expect("fine").get_i32(24));
            assert_eq!(handles("Memory_AddressableByDevices", memory), [device]);
            let default = if memory == default { ", default" } else { "" };
            writeln!(shown, "    {id}: {kind} ({kind_id}), {debug}, {long}{default}").expect("text");
        }
    }
    insta::assert_snapshot!(shown);
    of("Client_Destroy", client).expect("fine");
}

#[test]
fn devices_are_found_by_id() {
    let client = client(3);
    let devices = handles("Client_AddressableDevices", client);
    let lookup = |id| Args::of("Client_LookupDevice").put(16, client).put_i32(24, id).call("Client_LookupDevice");
    assert_eq!(lookup(2).expect("a device").get(32), devices[2]);
    let message = lookup(3).err().expect("an error").message;
    assert_eq!(message, "No matching device found for device_id 3");
    assert!(lookup(-1).is_err());
    of("Client_Destroy", client).expect("fine");
}

#[test]
fn unknown_create_options_are_named() {
    let message = create(&[("colour", 3)]).expect_err("an error").message;
    assert_eq!(
        message,
        "create option \"colour\" is unknown; the options are platform, platform_name, device_count, asynchronous, \
         node_id, num_nodes, collectives"
    );
    assert!(create(&[("device_count", 0)]).is_err());
    assert!(create(&[("device_count", 1 << 40)]).is_err());
    assert!(create(&[("node_id", 0), ("num_nodes", 1)]).is_ok());
    let message = create(&[("node_id", 2), ("num_nodes", 2)]).expect_err("an error").message;
    assert_eq!(message, "create option node_id is 2, but it must be less than num_nodes, 2");
    let message = create(&[("collectives", 3)]).expect_err("an error").message;
    assert_eq!(message, "create option collectives must be tcp or mpi, not Integer(3)");
    let message = create(&[("node_id", 0), ("num_nodes", 2)]).expect_err("an error").message;
    assert!(message.starts_with("a client of several processes needs a key-value store: "), "{message}");
}

#[test]
fn memories_keep_what_callers_attach() {
    let client = client(1);
    let memory = handles("Client_AddressableMemories", client)[0];
    let table: usize = read(memory);
    assert_eq!(read::<usize>(table), 40);
    assert_ne!(read::<usize>(table + 24), 0, "a function that finds the data of a key");
    of("Client_Destroy", client).expect("fine");
}

#[test]
fn a_topology_is_written_down_and_read_again() {
    let client = client(2);
    let topology = of("Client_TopologyDescription", client).expect("fine").get(24);
    let kept = of("TopologyDescription_Serialize", topology).expect("bytes");
    let bytes = kept.get_bytes(24, 32);
    let again =
        Args::of("TopologyDescription_Deserialize").put_bytes(16, &bytes).call("TopologyDescription_Deserialize");
    let again = again.expect("a topology").get(32);
    assert_eq!(handles("TopologyDescription_GetDeviceDescriptions", again).len(), 2);
    let fingerprint = |topology| of("TopologyDescription_Fingerprint", topology).expect("a number").get(24);
    assert_eq!(fingerprint(topology), fingerprint(again));
    of("TopologyDescription_Destroy", again).expect("fine");
    let garbled =
        Args::of("TopologyDescription_Deserialize").put_bytes(16, b"nonsense").call("TopologyDescription_Deserialize");
    assert_eq!(garbled.err().expect("an error").code, 3);
    of("Client_Destroy", client).expect("fine");
}

/// Returns the process of each device of a topology.
fn processes(topology: usize) -> Vec<i32> {
    let devices = handles("TopologyDescription_GetDeviceDescriptions", topology);
    let process = |device| of("DeviceDescription_ProcessIndex", device).expect("fine").get_i32(24);
    devices.into_iter().map(process).collect()
}

#[test]
fn topologies_of_several_processes_keep_the_processes_when_they_are_read_again() {
    let created = topology(&[("device_count", 2), ("node_id", 1), ("num_nodes", 3)]).expect("a topology");
    assert_eq!(processes(created), [0, 0, 1, 1, 2, 2]);
    let bytes = of("TopologyDescription_Serialize", created).expect("bytes").get_bytes(24, 32);
    let read = |bytes: &[u8]| {
        Args::of("TopologyDescription_Deserialize").put_bytes(16, bytes).call("TopologyDescription_Deserialize")
    };
    let again = read(&bytes).expect("a topology").get(32);
    assert_eq!(processes(again), [0, 0, 1, 1, 2, 2]);
    let fingerprint = |topology| of("TopologyDescription_Fingerprint", topology).expect("a number").get(24);
    assert_eq!(fingerprint(created), fingerprint(again));
    let other = topology(&[("device_count", 3), ("node_id", 1), ("num_nodes", 2)]).expect("a topology");
    assert_eq!(processes(other), [0, 0, 0, 1, 1, 1]);
    assert_ne!(fingerprint(other), fingerprint(created));
    // Process 1 has no device.
    let text = String::from_utf8(bytes).expect("text").replace("\n1 ", "\n2 ");
    assert_eq!(read(text.as_bytes()).err().expect("an error").code, 3);
    assert_eq!(topology(&[("device_count", 1024), ("num_nodes", 65_536)]).expect_err("an error").code, 3);
    for topology in [created, again, other] {
        of("TopologyDescription_Destroy", topology).expect("fine");
    }
}

/// Reads a serialized topology of the interpreter.
fn read_topology(name: &str, process: usize, processes: usize, devices: &str) -> Result<usize, Failure> {
    let text = format!("xlars topology 2\ninterpreter\n{name}\n{process}\n{processes}\n{devices}");
    let function = "TopologyDescription_Deserialize";
    Ok(Args::of(function).put_bytes(16, text.as_bytes()).call(function)?.get(32))
}

#[test]
fn serialized_topologies_have_limits() {
    let devices = |count: usize| "0 0 model\n".to_string() + &"1 0 model\n".repeat(count - 1);
    let largest = read_topology("cpu", 0, 2, &devices(65_536)).expect("a topology");
    assert_eq!(handles("TopologyDescription_GetDeviceDescriptions", largest).len(), 65_536);
    of("TopologyDescription_Destroy", largest).expect("fine");
    let error = read_topology("cpu", 0, 2, &devices(70_000)).expect_err("too many");
    assert_eq!(error.code, 3);
    assert_eq!(error.message, "a topology has at most 65536 devices, but 70000 were requested");
    let error = read_topology("a\rb", 0, 2, &devices(2)).expect_err("refused");
    assert_eq!((error.code, error.message.contains("control characters")), (3, true), "{}", error.message);
}

#[test]
fn processes_with_different_numbers_of_devices_have_one_fingerprint() {
    let fingerprint = |process| {
        let topology = read_topology("cpu", process, 2, "0 0 model\n1 0 model\n1 1 model\n").expect("a topology");
        let fingerprint = of("TopologyDescription_Fingerprint", topology).expect("a number").get(24);
        of("TopologyDescription_Destroy", topology).expect("fine");
        fingerprint
    };
    assert_eq!(fingerprint(0), fingerprint(1));
}

#[test]
fn buffers_outlive_their_client() {
    let client = client(1);
    let device = handles("Client_Devices", client)[0];
    let buffer = crate::client::buffer(client, device, &[2], &[1.0, 2.0]);
    of("Client_Destroy", client).expect("fine");
    assert_eq!(crate::client::fetch_f32(buffer).expect("values"), [1.0, 2.0]);
    assert_eq!(of("Buffer_Device", buffer).expect("a device").get(24), device);
    of("Buffer_Destroy", buffer).expect("fine");
}
