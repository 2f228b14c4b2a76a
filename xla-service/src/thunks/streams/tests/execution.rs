//! Tests of programs on several streams of a device with a race detector.

use std::sync::{Arc, Mutex, MutexGuard};

use xla_hlo::eval::{self, RandomState};
use xla_hlo::ops::CustomCallRegistry;
use xla_hlo::text::parse_module;
use xla_hlo::{ArrayShape, Error, Literal, Result, Scalar, VerifiedModule};
use xla_passes::buffers::BufferOptions;

use super::random::without_each_edge;
use super::*;
use crate::executable::{Argument, Executable, ExecutionContext};
use crate::executor::{DeviceDescription, DeviceEvent, DeviceMemory, Event, MemoryStats, Stream, StreamExecutor};
use crate::host::{
    Clock, HostExecutor, HostMemory, HostStream, HostTransfer, MemoryAccess, PoolLimits, RaceDetector, RaceStream,
};
use crate::thunks::tests::{lower_add, prepare};
use crate::thunks::{Launch, Launcher, LibraryRef, StreamPool, ThunkExecutable, ThunkProgram};
use crate::{CancelToken, CompileOptions, OptimizedModule, TransferManager};

/// Device whose streams execute synchronously and report every access to a race detector.
#[derive(Debug)]
struct Watched {
    host: HostExecutor,
    watch: Watch,
    /// Number of streams created so far.
    made: Mutex<usize>,
}

/// Race detector and the errors it has found.
#[derive(Clone, Debug, Default)]
struct Watch(Arc<Mutex<(RaceDetector, Vec<Error>)>>);

impl Watch {
    fn lock(&self) -> MutexGuard<'_, (RaceDetector, Vec<Error>)> {
        self.0.lock().unwrap()
    }

    fn access(
        &self,
        stream: RaceStream,
        memory: &DeviceMemory,
        range: std::ops::Range<usize>,
        access: MemoryAccess,
        label: &str,
    ) {
        let address = memory.downcast::<HostMemory>().unwrap().as_ptr() as u64;
        let mut watch = self.lock();
        let outcome = watch.0.access(stream, address, range, access, label);
        watch.1.extend(outcome.err());
    }

    fn found(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().1).iter().map(|error| error.message().to_string()).collect()
    }
}

#[derive(Debug)]
struct WatchedStream {
    watch: Watch,
    id: RaceStream,
}

struct WatchedEvent(Clock);

impl DeviceEvent for WatchedEvent {
    fn is_reached(&self) -> Result<bool> {
        Ok(true)
    }

    fn wait(&self) -> Result<()> {
        Ok(())
    }
}

impl Stream for WatchedStream {
    fn copy_to_device(&self, source: &[u8], target: &mut DeviceMemory, offset: usize) -> Result<()> {
        self.watch.access(self.id, target, offset..offset + source.len(), MemoryAccess::Write, "to the device");
        HostStream.copy_to_device(source, target, offset)
    }

    fn copy_to_host(&self, source: &DeviceMemory, offset: usize, target: &mut [u8]) -> Result<()> {
        self.watch.access(self.id, source, offset..offset + target.len(), MemoryAccess::Read, "to the host");
        self.watch.lock().0.host_sync(self.id);
        HostStream.copy_to_host(source, offset, target)
    }

    fn copy(
        &self,
        from: &DeviceMemory,
        range: std::ops::Range<usize>,
        to: &mut DeviceMemory,
        offset: usize,
    ) -> Result<()> {
        self.watch.access(self.id, from, range.clone(), MemoryAccess::Read, "a copy");
        self.watch.access(self.id, to, offset..offset + range.len(), MemoryAccess::Write, "a copy");
        HostStream.copy(from, range, to, offset)
    }

    fn copy_within(&self, memory: &mut DeviceMemory, range: std::ops::Range<usize>, offset: usize) -> Result<()> {
        self.watch.access(self.id, memory, range.clone(), MemoryAccess::Read, "a copy");
        self.watch.access(self.id, memory, offset..offset + range.len(), MemoryAccess::Write, "a copy");
        HostStream.copy_within(memory, range, offset)
    }

    fn record_event(&self) -> Result<Event> {
        Ok(Event::new(WatchedEvent(self.watch.lock().0.record(self.id))))
    }

    fn wait_for(&self, event: &Event) -> Result<()> {
        let event = event.downcast::<WatchedEvent>().ok_or_else(|| Error::internal("an event of another device"))?;
        self.watch.lock().0.wait(self.id, &event.0);
        Ok(())
    }

    fn synchronize(&self) -> Result<()> {
        self.watch.lock().0.host_sync(self.id);
        Ok(())
    }
}

impl StreamExecutor for Watched {
    fn description(&self) -> &DeviceDescription {
        self.host.description()
    }

    fn allocate(&self, bytes: usize) -> Result<DeviceMemory> {
        self.host.allocate(bytes)
    }

    fn memory_stats(&self) -> MemoryStats {
        self.host.memory_stats()
    }

    fn create_stream(&self) -> Result<Box<dyn Stream>> {
        *self.made.lock().unwrap() += 1;
        Ok(Box::new(self.stream()))
    }
}

impl Watched {
    fn new() -> Watched {
        let limits = PoolLimits { in_use: Some(1 << 24), retained: 1 << 24 };
        Watched { host: HostExecutor::new("test", 0, limits), watch: Watch::default(), made: Mutex::new(0) }
    }

    fn stream(&self) -> WatchedStream {
        WatchedStream { watch: self.watch.clone(), id: self.watch.lock().0.stream() }
    }

    /// Runs a program on arguments that its stream has just written, and reads its results on that stream.
    fn run(&self, program: &ThunkExecutable, stream: &WatchedStream, arguments: &[Literal]) -> Result<Vec<Literal>> {
        let (random, custom_calls, cancel) = (RandomState::new(), CustomCallRegistry::new(), CancelToken::new());
        let context = ExecutionContext {
            executor: self,
            stream,
            transfer: &HostTransfer,
            random: &random,
            custom_calls: &custom_calls,
            cancel: &cancel,
            run: crate::RunContext::nothing(),
            logical_device: None,
        };
        let signature = program.signature();
        let upload = |(literal, leaf): (&Literal, &crate::signature::ArgumentLeaf)| {
            let mut memory = self.allocate(leaf.shape.byte_size()).unwrap();
            self.watch.access(stream.id, &memory, 0..memory.byte_size(), MemoryAccess::Write, "the upload");
            HostTransfer.write(stream, literal, &leaf.shape, &mut memory, 0).unwrap();
            Argument::Donated(memory)
        };
        let arguments = arguments.iter().zip(signature.arguments()).map(upload).collect();
        let memories = program.execute(&context, arguments)?;
        let download = |(memory, leaf): (&DeviceMemory, &crate::signature::ResultLeaf)| {
            self.watch.access(stream.id, memory, 0..memory.byte_size(), MemoryAccess::Read, "the download");
            HostTransfer.read(stream, memory, 0, &leaf.shape)
        };
        signature.results_of(memories.iter().zip(signature.outputs()).map(download).collect::<Result<_>>()?)
    }
}

/// Launcher of the add kernel that reports to the detector; fails at the given launch.
#[derive(Debug, Default)]
struct WatchedAdder {
    fails_at: Option<u32>,
}

impl Launcher for WatchedAdder {
    fn kernel(&self, _: &KernelRef, launch: &mut Launch<'_>) -> Result<()> {
        let thunk = launch.thunk;
        if self.fails_at == Some(thunk.id.0) {
            return Err(Error::internal("this launch fails"));
        }
        let stream: &WatchedStream = launch.context.stream.downcast()?;
        let mut values = Vec::new();
        for ArraySlice { slice, .. } in &thunk.operands {
            let (memory, range) = (launch.buffers.memory(slice.allocation)?, slice.offset..slice.offset + slice.size);
            stream.watch.access(stream.id, memory, range.clone(), MemoryAccess::Read, &thunk.place());
            let bytes = &memory.downcast::<HostMemory>()?.bytes()[range];
            values.push(bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect::<Vec<_>>());
        }
        let sum: Vec<u8> = values[0].iter().zip(&values[1]).flat_map(|(a, b)| (a + b).to_le_bytes()).collect();
        let slice = thunk.results[0].slice;
        let (memory, range) = (launch.buffers.memory_mut(slice.allocation)?, slice.offset..slice.offset + slice.size);
        stream.watch.access(stream.id, memory, range, MemoryAccess::Write, &thunk.place());
        HostStream.copy_to_device(&sum, memory, slice.offset)
    }

    fn library_call(&self, call: &LibraryRef, _: &mut Launch<'_>) -> Result<()> {
        Err(Error::internal(format!("{} was never lowered", call.name)))
    }
}

/// Two inputs, three branches, and their join.
const BRANCHES: &str = include_str!("programs/branches.hlo");

/// Loop with known trip count whose body has two independent halves, next to an independent kernel.
const LOOPING: &str = include_str!("programs/looping.hlo");

/// Program with a stream that starts after a thunk of another stream, and is waited for before the end.
const LATER: &str = include_str!("programs/later.hlo");

/// Compiles a program to several streams, before it becomes an executable.
fn compile(text: &str) -> (OptimizedModule, ThunkProgram) {
    let (module, _) = prepare(VerifiedModule::new(parse_module(text).unwrap()).unwrap());
    let module = OptimizedModule::new(module);
    let (buffers, options) = (BufferOptions { reuse_after: 8, ..BufferOptions::default() }, CompileOptions::default());
    let mut program = ThunkProgram::new(&module, &mut lower_add, &HostTransfer, &buffers, &options).unwrap();
    program.assign_streams(&profile(3), &small(20.0)).unwrap();
    (module, program)
}

fn executable(text: &str, sequence: &ThunkSequence, fails_at: Option<u32>) -> ThunkExecutable {
    let (module, mut program) = compile(text);
    program.sequence = sequence.clone();
    ThunkExecutable::new(module, program, Arc::new(WatchedAdder { fails_at }))
}

fn arguments() -> Vec<Literal> {
    let vector = |scale: f64| {
        let shape = ArrayShape::new(ElementType::F32, [16]);
        Literal::from_fn(&shape, |i| Scalar::Float(scale * i as f64)).unwrap()
    };
    vec![vector(1.0), vector(-3.0)]
}

fn expected(text: &str) -> Vec<Literal> {
    let module = VerifiedModule::new(parse_module(text).unwrap()).unwrap();
    crate::signature::ungroup(eval::evaluate(&module, arguments()).unwrap())
}

#[test]
fn programs_give_the_same_on_several_streams_and_nothing_races() {
    for text in [BRANCHES, LOOPING, LATER] {
        let (module, program) = compile(text);
        assert!(StreamPool::new(&program.sequence).is_needed(), "{}", program.sequence);
        let names: Vec<String> = program.dumps(&module).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["thunks.txt", "buffers.txt", "memory.json", "streams.txt", "timeline.svg"]);
        let program = ThunkExecutable::new(module, program, Arc::new(WatchedAdder::default()));
        let device = Watched::new();
        let stream = device.stream();
        // Repeated runs reuse the same memory and streams.
        for _ in 0..3 {
            assert_eq!(device.run(&program, &stream, &arguments()).unwrap(), expected(text), "{}", program.sequence());
        }
        assert_eq!(device.watch.found(), [""; 0], "{}", program.sequence());
        let most = program.sequence().walk().map(|thunk| thunk.stream.0).max().unwrap_or(0);
        assert_eq!(*device.made.lock().unwrap(), most as usize);
        drop(program);
        assert_eq!(device.memory_stats().bytes_in_use, 0);
    }
}

#[test]
fn one_stream_needs_no_other() {
    let (module, mut program) = compile(BRANCHES);
    program.assign_streams(&profile(1), &small(20.0)).unwrap();
    assert_eq!(program.dumps(&module).len(), 3);
    let program = ThunkExecutable::new(module, program, Arc::new(WatchedAdder::default()));
    let device = Watched::new();
    let stream = device.stream();
    assert_eq!(device.run(&program, &stream, &arguments()).unwrap(), expected(BRANCHES));
    assert_eq!(*device.made.lock().unwrap(), 0);
}

#[test]
fn every_edge_that_is_taken_away_is_found() {
    let (_, later) = compile(LATER);
    assert!(later.sequence.forks.is_empty() && later.sequence.joins.is_empty(), "{}", later.sequence);
    let (_, program) = compile(BRANCHES);
    insta::assert_snapshot!(program.sequence, @r"
    begin streams=[1, 2]
    t0: kernel add_f32 %a1 (a0[0..64] f32[16]{0}, a0[0..64] f32[16]{0}) -> (a2[0..64] f32[16]{0})
    t1: kernel add_f32 %a2 (a2[0..64] f32[16]{0}, a0[0..64] f32[16]{0}) -> (a2[0..64] f32[16]{0})
    t2: kernel add_f32 %b1 (a1[0..64] f32[16]{0}, a1[0..64] f32[16]{0}) -> (a4[0..64] f32[16]{0}) stream=1
    t3: kernel add_f32 %b2 (a4[0..64] f32[16]{0}, a1[0..64] f32[16]{0}) -> (a4[0..64] f32[16]{0}) stream=1
    t4: kernel add_f32 %ab (a2[0..64] f32[16]{0}, a4[0..64] f32[16]{0}) -> (a2[0..64] f32[16]{0}) waits=[t3]
    t5: kernel add_f32 %c1 (a0[0..64] f32[16]{0}, a1[0..64] f32[16]{0}) -> (a3[0..64] f32[16]{0}) stream=2
    t6: kernel add_f32 %c2 (a3[0..64] f32[16]{0}, a3[0..64] f32[16]{0}) -> (a3[0..64] f32[16]{0}) stream=2
    t7: kernel add_f32 %abc (a2[0..64] f32[16]{0}, a3[0..64] f32[16]{0}) -> (a2[0..64] f32[16]{0}) waits=[t6]
    ");
    let broken = without_each_edge(&program.sequence);
    assert_eq!(broken.len(), 4, "two streams begin, and each is waited for once");
    let broken = broken.into_iter().map(|sequence| (BRANCHES, sequence));
    for (text, sequence) in broken.chain(without_each_edge(&later.sequence).into_iter().map(|s| (LATER, s))) {
        let (program, device) = (executable(text, &sequence, None), Watched::new());
        let stream = device.stream();
        for _ in 0..2 {
            device.run(&program, &stream, &arguments()).unwrap();
        }
        let found = device.watch.found();
        assert!(found.iter().any(|error| error.starts_with("race: ")), "{sequence}");
    }
}

#[test]
fn a_program_that_fails_leaves_nothing_behind_that_races() {
    let (_, program) = compile(BRANCHES);
    let device = Watched::new();
    let stream = device.stream();
    let good = executable(BRANCHES, &program.sequence, None);
    for thunk in &program.sequence.thunks {
        let fails = matches!(thunk.kind, ThunkKind::Kernel(_));
        let bad = executable(BRANCHES, &program.sequence, fails.then_some(thunk.id.0));
        assert_eq!(device.run(&bad, &stream, &arguments()).is_err(), fails);
        assert_eq!(device.run(&good, &stream, &arguments()).unwrap(), expected(BRANCHES));
    }
    assert_eq!(device.watch.found(), [""; 0]);
}

#[test]
fn executions_at_the_same_time_have_streams_of_their_own() {
    let (_, program) = compile(BRANCHES);
    let program = executable(BRANCHES, &program.sequence, None);
    let device = Watched::new();
    let wanted = expected(BRANCHES);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let stream = device.stream();
                for _ in 0..5 {
                    assert_eq!(device.run(&program, &stream, &arguments()).unwrap(), wanted);
                }
            });
        }
    });
}
