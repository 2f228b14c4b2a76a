//! Tests on a GPU. Without one, they print a message and pass.

use std::io::Write;
use std::sync::Arc;

use xla_hlo::Error;
use xla_service::{DeviceMemory, Stream, StreamExecutor};

use super::module::CudaModule;
use super::stream::CudaStream;
use crate::executor::CudaExecutor;
use crate::program::image::{CodeObject, KernelFunction, ModuleImage};

/// Kernel that multiplies 128 floats by a factor, one float per thread.
pub(super) const PTX: &str = include_str!("../ptx/scale.ptx");
pub(super) const THREADS: usize = 128;

pub(super) fn executor() -> Option<CudaExecutor> {
    let executor = CudaExecutor::new("gpu", 0, None, None);
    executor.inspect_err(|error| writeln!(std::io::stderr(), "skipped: {error}").unwrap_or_default()).ok()
}

fn pattern(seed: usize, size: usize) -> Vec<u8> {
    (0..size).map(|i| (i.wrapping_mul(2_654_435_761).wrapping_add(seed * 97) >> 7) as u8).collect()
}

pub(super) fn filled(executor: &CudaExecutor, stream: &dyn Stream, bytes: &[u8]) -> DeviceMemory {
    let mut memory = executor.allocate(bytes.len()).unwrap();
    stream.copy_to_device(bytes, &mut memory, 0).unwrap();
    memory
}

pub(super) fn bytes(stream: &dyn Stream, memory: &DeviceMemory) -> Vec<u8> {
    let mut bytes = vec![0; memory.byte_size()];
    stream.copy_to_host(memory, 0, &mut bytes).unwrap();
    bytes
}

pub(super) fn image(ptx: &str, name: &str) -> ModuleImage {
    let function = KernelFunction {
        name: name.to_string(),
        object: 0,
        threads: THREADS as u32,
        shared_bytes: 0,
        together: false,
        parameters: 2,
        maps: Vec::new(),
    };
    ModuleImage { functions: vec![function], objects: vec![CodeObject::Ptx(ptx.to_string())] }
}

pub(super) fn floats(memory: &DeviceMemory, stream: &dyn Stream) -> Vec<f32> {
    bytes(stream, memory).chunks_exact(4).map(|b| f32::from_ne_bytes([b[0], b[1], b[2], b[3]])).collect()
}

pub(super) fn ones(executor: &CudaExecutor, stream: &dyn Stream) -> DeviceMemory {
    filled(executor, stream, &1f32.to_ne_bytes().repeat(THREADS))
}

/// Launches a function of a module on one block.
pub(super) fn launch(
    module: &CudaModule,
    number: usize,
    arguments: &[u64],
    stream: &CudaStream,
) -> xla_hlo::Result<()> {
    stream.launch(module.call(number, 1, arguments)?)
}

#[test]
fn a_gpu_tells_what_it_is() {
    let Some(executor) = executor() else { return };
    let description = executor.description();
    assert!(description.cores > 0 && description.memory_bytes > Some(1 << 20), "{description:?}");
    assert_eq!(description.attributes[0].0, "compute capability");
    assert!(CudaExecutor::new("gpu", 1000, None, None).is_err());
}

#[test]
fn bytes_go_there_and_back_in_all_sizes() {
    let Some(executor) = executor() else { return };
    let stream = executor.create_stream().unwrap();
    for size in [0, 1, 255, 65_536, 65_537, 4 << 20, (9 << 20) + 3] {
        let content = pattern(size, size);
        let memory = filled(&executor, &*stream, &content);
        assert!(bytes(&*stream, &memory) == content, "{size} bytes");
    }
    let mut memory = filled(&executor, &*stream, &pattern(1, 1000));
    stream.copy_to_device(&[1, 2, 3], &mut memory, 500).unwrap();
    let mut some = [0; 5];
    stream.copy_to_host(&memory, 499, &mut some).unwrap();
    assert_eq!(some[1..4], [1, 2, 3]);
    let outside = stream.copy_to_host(&memory, 998, &mut some).unwrap_err();
    assert!(matches!(outside, Error::Internal(_)), "{outside}");
}

#[test]
fn copies_on_the_device_may_overlap() {
    let Some(executor) = executor() else { return };
    let stream = executor.create_stream().unwrap();
    for (range, offset) in [(0..600, 100), (100..700, 0), (0..1000, 0), (5..5, 1000), (0..100, 900), (0..500, 500)] {
        let mut model = pattern(3, 1000);
        let mut memory = filled(&executor, &*stream, &model);
        stream.copy_within(&mut memory, range.clone(), offset).unwrap();
        model.copy_within(range.clone(), offset);
        assert!(bytes(&*stream, &memory) == model, "{range:?} to {offset}");
    }
}

#[test]
fn memory_that_was_dropped_is_used_again_in_order() {
    let Some(executor) = executor() else { return };
    let streams = [(); 3].map(|()| executor.create_stream().unwrap());
    let mut held: Vec<(usize, Vec<u8>, DeviceMemory)> = Vec::new();
    for round in 0..600usize {
        let stream = round * 7 % 3;
        let content = pattern(round, round * 613 % 70_000);
        let memory = filled(&executor, &*streams[stream], &content);
        let mut copy = executor.allocate(memory.byte_size()).unwrap();
        streams[stream].copy(&memory, 0..memory.byte_size(), &mut copy, 0).unwrap();
        drop(memory);
        held.push((stream, content, copy));
        if held.len() > 5 {
            let (stream, content, memory) = held.remove(round % 5);
            assert!(bytes(&*streams[stream], &memory) == content, "round {round}");
        }
    }
    drop(held);
    assert_eq!(executor.memory_stats().bytes_in_use, 0);
    executor.trim();
    assert_eq!(executor.memory_stats().bytes_pooled, 0);
}

#[test]
fn streams_wait_for_each_other() {
    let Some(executor) = executor() else { return };
    let [one, two] = [(); 2].map(|()| executor.create_stream().unwrap());
    for round in 0..50 {
        let content = pattern(round, 100_000);
        let memory = filled(&executor, &*one, &content);
        let event = one.record_event().unwrap();
        two.wait_for(&event).unwrap();
        assert!(bytes(&*two, &memory) == content);
        event.wait().unwrap();
        assert!(event.is_reached().unwrap());
    }
}

#[test]
fn kernels_are_launched() {
    let Some(executor) = executor() else { return };
    let stream = executor.create_stream().unwrap();
    let cuda: &CudaStream = stream.downcast().unwrap();
    let module = CudaModule::load(executor.context(), &image(PTX, "scale")).unwrap();
    let memory = ones(&executor, &*stream);
    let address = cuda.address_of(&memory, 0, memory.byte_size()).unwrap();
    for factor in [2, 3] {
        launch(&module, 0, &[address, factor], cuda).unwrap();
    }
    assert_eq!(floats(&memory, &*stream), [6.0; THREADS]);
    assert!(launch(&module, 0, &[address], cuda).unwrap_err().message().contains("of 2 parameters"));
    assert!(launch(&module, 1, &[address, 1], cuda).is_err());
    let error = CudaModule::load(executor.context(), &image(PTX, "missing")).unwrap_err();
    assert!(error.message().starts_with("kernel missing: "), "{error}");
    let error = CudaModule::load(executor.context(), &image(&PTX.replace("mul.f32", "mulx.f32"), "scale")).unwrap_err();
    assert!(error.message().starts_with("code object 0 of the program: "), "{error}");
    assert!(error.message().contains("mulx"), "{error}");
}

#[test]
fn a_lost_device_is_told_with_what_was_under_way() {
    // The whole process loses the device, so run only if each test has its own process.
    if std::env::var_os("NEXTEST").is_none() {
        return;
    }
    let Some(executor) = executor() else { return };
    let stream = executor.create_stream().unwrap();
    let cuda: &CudaStream = stream.downcast().unwrap();
    let module = CudaModule::load(executor.context(), &image(PTX, "scale")).unwrap();
    let memory = Arc::new(ones(&executor, &*stream));
    stream.synchronize().unwrap();
    stream.annotate(&|| "platform gpu, thunk t3 (%fusion.2)".to_string());
    launch(&module, 0, &[256, 1], cuda).unwrap();
    let error = stream.synchronize().unwrap_err();
    assert!(error.message().starts_with("work on the GPU failed: CUDA_ERROR_ILLEGAL_ADDRESS ("), "{error}");
    assert!(error.message().contains("work in flight: platform gpu, thunk t3 (%fusion.2)"), "{error}");
    let error = stream.copy_to_host(&memory, 0, &mut [0; 4]).unwrap_err();
    assert!(matches!(error, Error::FailedPrecondition(_)), "{error}");
    assert!(
        error.message().starts_with("GPU 0 is no longer usable in this process, which must be restarted: CUDA_ERROR"),
        "{error}"
    );
    assert!(stream.record_event().is_err());
}
