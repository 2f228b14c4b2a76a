//! Exported functions for graphs.
#![expect(unsafe_code, reason = "a C library is what this is for")]

use std::collections::HashMap;
use std::ffi::{c_int, c_uint, c_void};
use std::sync::{Mutex, PoisonError};

use super::launch::parameters;
use super::{call, handle, pointer, put};
use crate::driver::{BodyPlace, Driver, DriverResult, LaunchShape, Repeats, Status, StreamWork, address_of, misuse};

/// `CUDA_KERNEL_NODE_PARAMS`, version 2.
#[repr(C)]
struct KernelNode {
    function: *mut c_void,
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared: c_uint,
    pointers: *const *mut c_void,
    extra: *const *mut c_void,
    kernel: *mut c_void,
    context: *mut c_void,
}

/// Source or destination in `CUDA_MEMCPY3D`.
#[repr(C)]
struct CopySide {
    x: usize,
    y: usize,
    z: usize,
    level: usize,
    memory_type: c_int,
    host: *mut c_void,
    device: u64,
    array: *mut c_void,
    reserved: *mut c_void,
    pitch: usize,
    height: usize,
}

/// `CUDA_MEMCPY3D`.
#[repr(C)]
struct CopyNode {
    from: CopySide,
    to: CopySide,
    width: usize,
    height: usize,
    depth: usize,
}

/// `CUDA_MEMSET_NODE_PARAMS`.
#[repr(C)]
struct FillNode {
    to: u64,
    pitch: usize,
    value: c_uint,
    size: c_uint,
    width: usize,
    height: usize,
}

/// `CUgraphNodeParams` with `CUDA_CONDITIONAL_NODE_PARAMS` as its kind of parameters.
#[repr(C)]
struct ConditionalNode {
    node_type: c_int,
    reserved: [c_int; 3],
    condition: u64,
    kind: c_int,
    size: c_uint,
    bodies: *mut *mut c_void,
    context: *mut c_void,
}

/// `CU_MEMORYTYPE_DEVICE`, `CU_GRAPH_NODE_TYPE_CONDITIONAL`, `CU_GRAPH_COND_TYPE_IF`, `CU_GRAPH_COND_TYPE_WHILE`,
/// `CU_GRAPH_COND_ASSIGN_DEFAULT`.
const DEVICE_MEMORY: c_int = 2;
const CONDITIONAL: c_int = 13;
const IF: c_int = 0;
const WHILE: c_int = 1;
const ASSIGN_DEFAULT: c_uint = 1;

/// Handles of bodies by their conditional node. They are never freed, since programs hold their addresses.
static BODIES: Mutex<Option<HashMap<u64, BodyPlace>>> = Mutex::new(None);

/// # Safety
/// `nodes` points to `count` nodes; it may be null if `count` is 0.
unsafe fn nodes(nodes: *const *mut c_void, count: usize) -> Vec<u64> {
    // SAFETY: the caller guarantees it.
    (0..count).map(|number| handle(unsafe { nodes.add(number).read() })).collect()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphCreate(graph: *mut *mut c_void, _flags: c_uint) -> u32 {
    call(|driver| {
        let made = driver.create_graph();
        // SAFETY: the API's contract implies that of `put`.
        unsafe { put(graph, pointer(made)) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuGraphDestroy(graph: *mut c_void) -> u32 {
    call(|driver| driver.destroy_graph(handle(graph)))
}

/// # Safety
/// The parameters satisfy the contract of the driver API.
unsafe fn kernel_work(driver: &Driver, node: *const KernelNode) -> DriverResult<StreamWork> {
    // SAFETY: the caller guarantees it.
    let node = unsafe { &*node };
    if !node.extra.is_null() {
        return misuse("a kernel's node with its parameters in `extra`", Status::NOT_SUPPORTED);
    }
    // SAFETY: the caller guarantees it.
    let parameters = unsafe { parameters(driver, handle(node.function), node.pointers)? };
    let shape = LaunchShape { grid: node.grid, block: node.block, shared: node.shared as usize };
    driver.call(handle(node.function), shape, parameters).map(StreamWork::Kernel)
}

/// # Safety
/// The parameters satisfy the contract of the driver API.
unsafe fn copy_work(node: *const CopyNode) -> DriverResult<StreamWork> {
    // SAFETY: the caller guarantees it.
    let CopyNode { from, to, width, height, depth } = unsafe { &*node };
    let is_plain = |side: &CopySide| side.memory_type == DEVICE_MEMORY && [side.y, side.z, side.level] == [0; 3];
    if !is_plain(from) || !is_plain(to) || (*height, *depth) != (1, 1) {
        return misuse("a copy's node that is not one row of device memory", Status::NOT_SUPPORTED);
    }
    let [from, to] = [from, to].map(|side| side.device.wrapping_add(side.x as u64));
    Ok(StreamWork::Copy { from, to, bytes: *width })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphAddKernelNode_v2(
    node: *mut *mut c_void,
    graph: *mut c_void,
    before: *const *mut c_void,
    count: usize,
    parameters: *const KernelNode,
) -> u32 {
    call(|driver| {
        // SAFETY: the API's contract guarantees it.
        let work = unsafe { kernel_work(driver, parameters)? };
        // SAFETY: the API's contract guarantees it.
        unsafe { add(driver, node, graph, work, before, count) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphAddEmptyNode(
    node: *mut *mut c_void,
    graph: *mut c_void,
    before: *const *mut c_void,
    count: usize,
) -> u32 {
    // SAFETY: the API's contract guarantees it.
    call(|driver| unsafe { add(driver, node, graph, StreamWork::Nothing, before, count) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphAddMemcpyNode(
    node: *mut *mut c_void,
    graph: *mut c_void,
    before: *const *mut c_void,
    count: usize,
    parameters: *const CopyNode,
    _context: *mut c_void,
) -> u32 {
    call(|driver| {
        // SAFETY: the API's contract guarantees it.
        let work = unsafe { copy_work(parameters)? };
        // SAFETY: the API's contract guarantees it.
        unsafe { add(driver, node, graph, work, before, count) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphAddMemsetNode(
    node: *mut *mut c_void,
    graph: *mut c_void,
    before: *const *mut c_void,
    count: usize,
    parameters: *const FillNode,
    _context: *mut c_void,
) -> u32 {
    call(|driver| {
        // SAFETY: the API's contract guarantees it.
        let FillNode { to, value, size, width, height, .. } = unsafe { parameters.read() };
        if height != 1 || !matches!(size, 1 | 2 | 4) {
            return misuse("a fill's node that is not one row", Status::NOT_SUPPORTED);
        }
        let work = StreamWork::Fill { to, value, size: size as usize, count: width };
        // SAFETY: the API's contract guarantees it.
        unsafe { add(driver, node, graph, work, before, count) }
    })
}

/// # Safety
/// The arguments satisfy the contract of the driver API's functions that add nodes.
unsafe fn add(
    driver: &mut Driver,
    node: *mut *mut c_void,
    graph: *mut c_void,
    work: StreamWork,
    before: *const *mut c_void,
    count: usize,
) -> DriverResult {
    // SAFETY: the caller guarantees it.
    let before = unsafe { nodes(before, count) };
    let added = driver.add_work(handle(graph), work, &before)?;
    // SAFETY: the caller guarantees it.
    unsafe { put(node, pointer(added)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphAddChildGraphNode(
    node: *mut *mut c_void,
    graph: *mut c_void,
    before: *const *mut c_void,
    count: usize,
    child: *mut c_void,
) -> u32 {
    call(|driver| {
        // SAFETY: the API's contract guarantees it.
        let before = unsafe { nodes(before, count) };
        let added = driver.add_child(handle(graph), handle(child), &before)?;
        // SAFETY: the API's contract implies that of `put`.
        unsafe { put(node, pointer(added)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphConditionalHandleCreate(
    condition: *mut u64,
    graph: *mut c_void,
    _context: *mut c_void,
    value: c_uint,
    flags: c_uint,
) -> u32 {
    call(|driver| {
        let value = (flags & ASSIGN_DEFAULT != 0).then_some(value);
        let made = driver.create_condition(handle(graph), value)?;
        // SAFETY: the API's contract implies that of `put`.
        unsafe { put(condition, made) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphAddNode_v2(
    node: *mut *mut c_void,
    graph: *mut c_void,
    before: *const *mut c_void,
    edges: *const c_void,
    count: usize,
    parameters: *mut ConditionalNode,
) -> u32 {
    call(|driver| {
        // SAFETY: the API's contract guarantees it; every kind of parameters is longer than this struct.
        let parameters = unsafe { &mut *parameters };
        if parameters.node_type != CONDITIONAL || !edges.is_null() {
            return misuse(
                "cuGraphAddNode of another node than a conditional one, or with data of edges",
                Status::NOT_SUPPORTED,
            );
        }
        let repeats = match (parameters.kind, parameters.size) {
            (IF, 1) => Repeats::Once,
            (WHILE, 1) => Repeats::While,
            _ => return misuse("a conditional node of another kind than if and while", Status::NOT_SUPPORTED),
        };
        // SAFETY: the API's contract guarantees it.
        let before = unsafe { nodes(before, count) };
        let (added, body) = driver.add_conditional(handle(graph), repeats, parameters.condition, &before)?;
        parameters.bodies = address_of(&body).cast();
        let mut bodies = BODIES.lock().unwrap_or_else(PoisonError::into_inner);
        bodies.get_or_insert_default().insert(added, body);
        // SAFETY: the API's contract implies that of `put`.
        unsafe { put(node, pointer(added)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphInstantiateWithFlags(executable: *mut *mut c_void, graph: *mut c_void, _flags: u64) -> u32 {
    call(|driver| {
        let made = driver.instantiate(handle(graph))?;
        // SAFETY: the API's contract implies that of `put`.
        unsafe { put(executable, pointer(made)) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuGraphExecDestroy(executable: *mut c_void) -> u32 {
    call(|driver| driver.destroy_executable(handle(executable)))
}

#[unsafe(no_mangle)]
extern "C" fn cuGraphLaunch(executable: *mut c_void, stream: *mut c_void) -> u32 {
    call(|driver| driver.launch_graph(handle(executable), handle(stream)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphExecKernelNodeSetParams_v2(
    executable: *mut c_void,
    node: *mut c_void,
    parameters: *const KernelNode,
) -> u32 {
    call(|driver| {
        // SAFETY: the API's contract guarantees it.
        let work = unsafe { kernel_work(driver, parameters)? };
        driver.change_node(handle(executable), handle(node), work)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphExecMemcpyNodeSetParams(
    executable: *mut c_void,
    node: *mut c_void,
    parameters: *const CopyNode,
    _context: *mut c_void,
) -> u32 {
    call(|driver| {
        // SAFETY: the API's contract guarantees it.
        let work = unsafe { copy_work(parameters)? };
        driver.change_node(handle(executable), handle(node), work)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuGraphExecChildGraphNodeSetParams(
    executable: *mut c_void,
    node: *mut c_void,
    child: *mut c_void,
) -> u32 {
    call(|driver| driver.change_child(handle(executable), handle(node), handle(child)))
}
