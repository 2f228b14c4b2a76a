//! Tests of graphs on a GPU. Without one, they print a message and pass.

use xla_service::thunks::Selector;
use xla_service::{DeviceMemory, Stream, StreamExecutor};

use super::recording::Recording;
use super::{GraphBases, GraphCounts, GraphSlot};
use crate::cuda::library::Libraries;
use crate::cuda::module::CudaModule;
use crate::cuda::stream::CudaStream;
use crate::cuda::tests::{PTX, THREADS, bytes, executor, filled, floats, image, launch, ones};
use crate::executor::CudaExecutor;

/// Kernel that decrements a number, and stores whether it is not yet zero.
const COUNT: &str = include_str!("../count.ptx");

fn counting(executor: &CudaExecutor) -> CudaModule {
    let mut one_thread = image(COUNT, "count");
    one_thread.functions[0].threads = 1;
    CudaModule::load(executor.context(), &one_thread).unwrap()
}

#[test]
fn a_graph_is_changed_in_place_when_addresses_change() {
    let Some(executor) = executor() else { return };
    let stream = executor.create_stream().unwrap();
    let cuda: &CudaStream = stream.downcast().unwrap();
    let module = CudaModule::load(executor.context(), &image(PTX, "scale")).unwrap();
    let libraries = Libraries::new(executor.context());
    let slot = GraphSlot::default();
    let mut held = Vec::new();
    for factor in [2, 2, 3] {
        let memories = [(); 2].map(|()| ones(&executor, &*stream));
        let [one, two] = memories.each_ref().map(|m| cuda.address_of(m, 0, m.byte_size()).unwrap());
        let mut recording = Recording::default();
        let first = recording.kernel(module.call(0, 1, &[one, factor]).unwrap(), &[]);
        let copied = recording.copy(one, two, THREADS * 4, &[first]);
        recording.kernel(module.call(0, 1, &[two, 5]).unwrap(), &[copied]);
        slot.run(recording, None, &libraries, cuda).unwrap();
        let [one, two] = memories.each_ref().map(|m| floats(m, &*stream));
        assert_eq!((one[THREADS - 1], two[THREADS - 1]), (factor as f32, 5.0 * factor as f32));
        held.push(memories);
    }
    assert_eq!(slot.counts(), GraphCounts { launches: 3, builds: 1, changes: 6, sent: 0 });
}

#[test]
fn notes_become_graphs_and_loops_of_the_device() {
    let Some(executor) = executor() else { return };
    let stream = executor.create_stream().unwrap();
    let cuda: &CudaStream = stream.downcast().unwrap();
    let scale = CudaModule::load(executor.context(), &image(PTX, "scale")).unwrap();
    let count = counting(&executor);
    let libraries = Libraries::new(executor.context());
    let slot = GraphSlot::default();
    for rounds in [4u32, 1, 4] {
        let memory = ones(&executor, &*stream);
        let [counter, predicate] = [&rounds.to_ne_bytes()[..], &[0]].map(|bytes| filled(&executor, &*stream, bytes));
        let capture = cuda.capture();
        let [condition, body] = [(); 2].map(|()| capture.capture());
        let at = |memory: &DeviceMemory, stream: &CudaStream| stream.address_of(memory, 0, memory.byte_size()).unwrap();
        launch(&count, 0, &[at(&counter, &condition), at(&predicate, &condition)], &condition).unwrap();
        // Copies through scratch memory, which is dropped before the work is sent.
        let mut aside = executor.allocate(memory.byte_size()).unwrap();
        body.copy(&memory, 0..memory.byte_size(), &mut aside, 0).unwrap();
        launch(&scale, 0, &[at(&aside, &body), 2], &body).unwrap();
        let mut memory = memory;
        body.copy(&aside, 0..aside.byte_size(), &mut memory, 0).unwrap();
        drop(aside);
        let another = filled(&executor, &*stream, &[0xff; THREADS * 4]);
        let [condition, body] = [condition, body].map(|stream| stream.end_capture());
        let predicate = at(&predicate, &capture);
        capture.record(|recording, after| recording.repeat(condition, predicate, body, after));
        launch(&scale, 0, &[at(&memory, &capture), 3], &capture).unwrap();
        assert!(capture.synchronize().is_err() && capture.record_event().is_err());
        assert_eq!(floats(&memory, &*stream), [1.0; THREADS], "notes are not sent");
        let recording = capture.end_capture();
        slot.run(recording, None, &libraries, cuda).unwrap();
        assert_eq!(floats(&memory, &*stream), [3.0 * 2f32.powi(rounds as i32 - 1); THREADS]);
        assert_eq!(bytes(&*stream, &another), [0xff; THREADS * 4], "scratch memory is kept until the work is sent");
    }
    // Without the conditional nodes of CUDA 12.4, the host decides; the results are the same.
    assert_eq!(slot.counts().launches + slot.counts().sent, 3);
}

#[test]
fn buffers_that_alternate_change_nothing() {
    let Some(executor) = executor() else { return };
    let stream = executor.create_stream().unwrap();
    let cuda: &CudaStream = stream.downcast().unwrap();
    let module = CudaModule::load(executor.context(), &image(PTX, "scale")).unwrap();
    let libraries = Libraries::new(executor.context());
    let slot = GraphSlot::default();
    let memories = [(); 6].map(|()| ones(&executor, &*stream));
    let addresses = memories.each_ref().map(|memory| cuda.address_of(memory, 0, memory.byte_size()).unwrap());
    let run = |number: usize| {
        let bases = GraphBases([addresses[number]].into());
        if slot.launch(&bases, cuda).unwrap() {
            return;
        }
        let mut recording = Recording::default();
        recording.kernel(module.call(0, 1, &[addresses[number], 2]).unwrap(), &[]);
        slot.run(recording, Some(bases), &libraries, cuda).unwrap();
    };
    for number in [0, 1, 0, 1, 0, 1] {
        run(number);
    }
    assert_eq!(slot.counts(), GraphCounts { launches: 6, builds: 2, changes: 0, sent: 0 });
    for number in [2, 3, 0, 4, 5, 0] {
        run(number);
    }
    assert_eq!(slot.counts(), GraphCounts { launches: 12, builds: 4, changes: 2, sent: 0 }, "1 became 4, and 2 5");
    let values = memories.each_ref().map(|memory| floats(memory, &*stream)[THREADS - 1]);
    assert_eq!(values, [32.0, 8.0, 2.0, 2.0, 2.0, 2.0]);
}

/// Runs a conditional with three branches, which multiply by 2, 3 and 5, on its own or inside a loop of the device.
fn chosen(selector: Selector, content: &[u8], rounds: Option<u32>) -> Option<f32> {
    let executor = executor()?;
    let stream = executor.create_stream().unwrap();
    let cuda: &CudaStream = stream.downcast().unwrap();
    let scale = CudaModule::load(executor.context(), &image(PTX, "scale")).unwrap();
    let count = counting(&executor);
    let memory = ones(&executor, &*stream);
    let selected = filled(&executor, &*stream, content);
    let at = |memory: &DeviceMemory, stream: &CudaStream| stream.address_of(memory, 0, memory.byte_size()).unwrap();
    let branches = [2, 3, 5].map(|factor| {
        let branch = cuda.capture();
        launch(&scale, 0, &[at(&memory, &branch), factor], &branch).unwrap();
        branch.end_capture()
    });
    let body = cuda.capture();
    let address = at(&selected, &body);
    body.record(|recording, after| recording.choose((selector, address), branches.into(), after));
    launch(&scale, 0, &[at(&memory, &body), 7], &body).unwrap();
    let mut recording = body.end_capture();
    if let Some(rounds) = rounds {
        let [counter, predicate] = [&rounds.to_ne_bytes()[..], &[0]].map(|bytes| filled(&executor, &*stream, bytes));
        let condition = cuda.capture();
        launch(&count, 0, &[at(&counter, &condition), at(&predicate, &condition)], &condition).unwrap();
        let looped = cuda.capture();
        let (condition, predicate) = (condition.end_capture(), at(&predicate, &looped));
        looped.record(|outer, after| outer.repeat(condition, predicate, recording, after));
        recording = looped.end_capture();
    }
    let slot = GraphSlot::default();
    slot.run(recording, None, &Libraries::new(executor.context()), cuda).unwrap();
    let counts = slot.counts();
    assert_eq!((counts.launches, counts.sent), (1, 0));
    Some(floats(&memory, &*stream)[THREADS - 1])
}

#[test]
fn a_conditional_of_the_device_runs_the_branch_that_is_chosen() {
    for (content, factor) in [(1u8, 2.0), (0, 3.0)] {
        let Some(value) = chosen(Selector::Predicate, &[content], None) else { return };
        assert_eq!(value, factor * 7.0, "predicate {content}");
    }
    for (index, factor) in [(0i32, 2.0), (1, 3.0), (2, 5.0), (3, 5.0), (-1, 5.0), (i32::MIN, 5.0), (i32::MAX, 5.0)] {
        let Some(value) = chosen(Selector::Index, &index.to_le_bytes(), None) else { return };
        assert_eq!(value, factor * 7.0, "index {index}");
    }
}

#[test]
fn a_loop_of_the_device_has_conditionals_in_it() {
    let Some(value) = chosen(Selector::Index, &1i32.to_le_bytes(), Some(3)) else { return };
    assert_eq!(value, 21.0 * 21.0);
}
