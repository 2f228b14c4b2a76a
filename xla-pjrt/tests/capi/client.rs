//! Client of the interpreter, and helpers for its buffers and programs.

use crate::table::{Args, Failure, read};

/// Compile options as JAX writes them for one device.
pub const ONE_DEVICE: &[u8] = include_bytes!("../data/one_device.compile_options.pb");
/// Number of `f32` in the C API.
pub const F32: i32 = 11;

/// Returns a named value that is an integer.
fn integer_option(name: &str, value: i64) -> (Vec<u8>, Vec<u8>) {
    let mut bytes = vec![0; 56];
    bytes[0] = 56;
    bytes[24..32].copy_from_slice(&(name.len()).to_ne_bytes());
    bytes[32] = 1;
    bytes[40..48].copy_from_slice(&value.to_ne_bytes());
    bytes[48] = 1;
    (bytes, name.as_bytes().to_vec())
}

/// Creates a client with a boolean option.
pub fn create_with_flag(name: &str, flag: bool) -> Result<usize, Failure> {
    let (mut option, name) = integer_option(name, flag.into());
    option[32] = 4;
    option[16..24].copy_from_slice(&name.as_ptr().expose_provenance().to_ne_bytes());
    let args = Args::of("Client_Create").put_bytes(16, &option).put(24, 1);
    Ok(args.call("Client_Create")?.get(64))
}

/// Creates a client with `devices` devices.
pub fn client(devices: i64) -> usize {
    create(&[("device_count", devices)]).expect("a client")
}

pub fn create(options: &[(&str, i64)]) -> Result<usize, Failure> {
    Ok(call_with("Client_Create", (16, 24), options, |args| args)?.get(64))
}

/// Creates a topology.
pub fn topology(options: &[(&str, i64)]) -> Result<usize, Failure> {
    Ok(call_with("TopologyDescription_Create", (32, 40), options, |args| args)?.get(48))
}

/// Calls a function with create options. The list and its length are at these offsets of its arguments; `add` adds
/// other arguments.
pub fn call_with(
    function: &str,
    (list, length): (usize, usize),
    options: &[(&str, i64)],
    add: impl FnOnce(Args) -> Args,
) -> Result<Args, Failure> {
    let mut named: Vec<_> = options.iter().map(|(name, value)| integer_option(name, *value)).collect();
    for (bytes, name) in &mut named {
        bytes[16..24].copy_from_slice(&name.as_ptr().expose_provenance().to_ne_bytes());
    }
    let all: Vec<u8> = named.iter().flat_map(|(bytes, _)| bytes.clone()).collect();
    add(Args::of(function).put_bytes(list, &all).put(length, named.len())).call(function)
}

/// Returns the pointers of a list that a function of one handle returns.
pub fn handles(function: &str, object: usize) -> Vec<usize> {
    let args = Args::of(function).put(16, object).call(function).expect("a list");
    args.get_words(24, 32).into_iter().map(|word| word as usize).collect()
}

/// Calls a function whose only argument is a handle.
pub fn of(function: &str, object: usize) -> Result<Args, Failure> {
    Args::of(function).put(16, object).call(function)
}

/// Creates a row-major array of `f32` on a device.
pub fn buffer(client: usize, device: usize, dims: &[i64], values: &[f32]) -> usize {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
    buffer_of(client, device, F32, dims, &bytes, &[], 0).expect("a buffer")
}

/// Creates a strided array on a device.
pub fn buffer_of(
    client: usize,
    device: usize,
    ty: i32,
    dims: &[i64],
    bytes: &[u8],
    strides: &[i64],
    offset: usize,
) -> Result<usize, Failure> {
    let args =
        Args::of("Client_BufferFromHostBuffer").put(16, client).put(24, bytes.as_ptr().expose_provenance() + offset);
    let args = args.put_i32(32, ty).put_words(40, dims).put_words(56, strides).put(80, device);
    let args = args.call("Client_BufferFromHostBuffer")?;
    of("Event_Destroy", args.get(104))?;
    Ok(args.get(112))
}

/// Returns the bytes of a buffer, row-major.
pub fn fetch(buffer: usize) -> Result<Vec<u8>, Failure> {
    // A layout that names no dimensions is row-major.
    let mut layout = Args::new(80);
    let args = |layout| Args::of("Buffer_ToHostBuffer").put(16, buffer).put(24, layout);
    let size = args(layout.address()).call("Buffer_ToHostBuffer")?.get(40);
    let mut bytes = vec![0_u8; size];
    let target = bytes.as_mut_ptr().expose_provenance();
    let args = args(layout.address()).put(32, target).put(40, size);
    finish(args.call("Buffer_ToHostBuffer")?.get(48))?;
    // The bytes were written through the C API, so they are read as C would.
    Ok((0..size).map(|i| read(target + i)).collect())
}

pub fn fetch_f32(buffer: usize) -> Result<Vec<f32>, Failure> {
    let bytes = fetch(buffer)?;
    Ok(bytes.chunks_exact(4).map(|chunk| f32::from_ne_bytes(chunk.try_into().expect("four"))).collect())
}

/// Waits for an event, and destroys it.
pub fn finish(event: usize) -> Result<(), Failure> {
    let outcome = of("Event_Await", event);
    of("Event_Destroy", event)?;
    outcome.map(drop)
}

/// Compiles a program for the client.
pub fn compile(client: usize, format: &str, code: &[u8], options: &[u8]) -> Result<usize, Failure> {
    let mut program = Args::new(48).put_bytes(16, code).put_bytes(32, format.as_bytes());
    let args = Args::of("Client_Compile").put(16, client).put(24, program.address()).put_bytes(32, options);
    Ok(args.call("Client_Compile")?.get(48))
}

/// Returns the executable of a program.
pub fn executable_of(program: usize) -> usize {
    of("LoadedExecutable_GetExecutable", program).expect("an executable").get(24)
}

/// Runs a program that has one device in this process.
pub fn execute(program: usize, arguments: &[usize], outputs: usize) -> Result<Vec<usize>, Failure> {
    execute_on(program, arguments, outputs, 0)
}

/// Runs a program on a device; a device of 0 selects the devices that the program was compiled for.
pub fn execute_on(program: usize, arguments: &[usize], outputs: usize, device: usize) -> Result<Vec<usize>, Failure> {
    let mut options = Args::new(144);
    let list = arguments.as_ptr().expose_provenance();
    let mut results = vec![0_usize; outputs];
    let result_list = results.as_mut_ptr().expose_provenance();
    let (lists, result_lists, event) = ([list], [result_list], [0_usize]);
    let args = Args::of("LoadedExecutable_Execute").put(16, program).put(24, options.address());
    let args = args.put(32, lists.as_ptr().expose_provenance()).put(40, 1).put(48, arguments.len());
    let args = args.put(56, result_lists.as_ptr().expose_provenance());
    let event_place = event.as_ptr().expose_provenance();
    args.put(64, event_place).put(72, device).call("LoadedExecutable_Execute")?;
    finish(read(event_place))?;
    Ok((0..outputs).map(|i| read(result_list + 8 * i)).collect())
}
