//! Tests of the client's contract, on the interpreter and on a platform that fails on demand.

mod buffers;
mod hammer;
mod joined;
mod launches;
mod per_device;
mod processes;
mod raw_calls;
mod sizes;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use xla_hlo::builder::ModuleBuilder;
use xla_hlo::{
    ArrayShape, ElementType, Error, InputOutputAlias, Layout, Literal, Module, ParameterLeaf, Result, Scalar, Shape,
    VerifiedModule,
};

use super::*;
use crate::executable::{Argument, CostAnalysis, Executable, ExecutionContext, MemoryAnalysis};
use crate::executor::DeviceMemory;
use crate::host::{HostExecutor, HostTransfer, PoolLimits, host_shape};
use crate::platform::Platform;
use crate::signature::Signature;
use crate::{
    CompileOptions, Compiler, OptimizedModule, PlatformRegistry, StreamExecutor, TransferManager, interpreter,
};

const F32: ElementType = ElementType::F32;

fn f32s(values: &[f32]) -> Literal {
    let shape = ArrayShape::new(F32, [values.len()]);
    Literal::from_fn(&shape, |i| Scalar::Float(values[i].into())).unwrap()
}

/// Builds `(x, y) -> (x + y, (x))`. The name makes the program of each test distinct in the cache.
fn sum_module(name: &str) -> VerifiedModule {
    let mut module = ModuleBuilder::new(name);
    let mut b = module.computation("main");
    let x = b.parameter(Shape::array(F32, [3])).unwrap();
    let y = b.parameter(Shape::array(F32, [3])).unwrap();
    b.name(y, "y");
    let sum = b.add(x, y).unwrap();
    let inner = b.tuple([x]).unwrap();
    let root = b.tuple([sum, inner]).unwrap();
    let main = b.finish(root);
    module.finish(main).unwrap()
}

fn client() -> Client {
    client_of(1)
}

/// Creates a client with this number of devices.
fn client_of(devices: usize) -> Client {
    let mut registry = PlatformRegistry::new();
    registry.register(interpreter::platform());
    let options = ClientOptions { devices: Some(devices), ..ClientOptions::default() };
    Client::with_options(&registry, "interpreter", options).unwrap()
}

fn sum_program(client: &Client) -> LoadedExecutable {
    client.compile(&sum_module("sum"), &CompileOptions::default()).unwrap()
}

fn message<T: fmt::Debug>(result: Result<T>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn values_go_in_and_come_out() {
    let client = client();
    let program = sum_program(&client);
    let x = client.buffer(&f32s(&[1.0, 2.0, 3.0])).unwrap();
    let y = client.buffer(&f32s(&[10.0, 20.0, 30.0])).unwrap();
    let results = program.execute(&[&x, &y]).unwrap();
    assert_eq!(results.len(), 2);
    assert_eq!(results[0].to_literal().unwrap(), f32s(&[11.0, 22.0, 33.0]));
    assert_eq!(results[1].to_literal().unwrap(), f32s(&[1.0, 2.0, 3.0]));
    // Nothing was donated, so the inputs can be used again.
    assert_eq!(program.execute(&[&x, &x]).unwrap()[0].to_literal().unwrap(), f32s(&[2.0, 4.0, 6.0]));
    let tree = program.run(vec![f32s(&[1.0; 3]), f32s(&[2.0; 3])]).unwrap();
    assert_eq!(tree, Literal::tuple(vec![f32s(&[3.0; 3]), Literal::tuple(vec![f32s(&[1.0; 3])])]));
}

/// Builds `x -> (x, (x + x))` of `s16[2,3]` with layouts in the header or on the instructions.
fn ordered_module(header: &str, parameter: &str, result: &str) -> VerifiedModule {
    let text = format!(
        "HloModule ordered{header}\nENTRY main {{\n x = s16[2,3]{parameter} parameter(0)\n y = s16[2,3] add(x, x)\n \
         t = (s16[2,3]{result}) tuple(y)\n ROOT r = (s16[2,3]{parameter}, (s16[2,3]{result})) tuple(x, t)\n}}"
    );
    VerifiedModule::new(xla_hlo::text::parse_module(&text).unwrap()).unwrap()
}

/// Returns the low byte of each 16-bit integer.
fn low_bytes(buffer: &Buffer) -> Vec<u8> {
    buffer.to_bytes().unwrap().chunks(2).map(|element| element[0]).collect()
}

#[test]
fn buffers_lie_in_the_layout_that_the_entry_asks_for() {
    let client = client();
    let header = ", entry_computation_layout={(s16[2,3]{0,1})->(s16[2,3]{1,0}, (s16[2,3]{0,1}))}";
    // Layouts in the header take precedence; without a header, those of the instructions apply.
    for (module, pass_through) in [
        (ordered_module(header, "{1,0}", "{1,0}"), [0, 1, 2, 3, 4, 5]),
        (ordered_module("", "{0,1}", "{0,1}"), [0, 3, 1, 4, 2, 5]),
    ] {
        let program = client.compile(&module, &CompileOptions::default()).unwrap();
        let shape = ArrayShape::new(ElementType::S16, [2, 3]);
        let literal = Literal::from_fn(&shape, |i| Scalar::Signed(i as i64)).unwrap();
        let argument = program.argument_buffer(0, &literal).unwrap();
        assert_eq!(argument.shape().to_string(), "s16[2,3]{0,1}");
        assert_eq!(low_bytes(&argument), [0, 3, 1, 4, 2, 5]);
        let results = program.execute(&[&argument]).unwrap();
        assert_eq!(low_bytes(&results[0]), pass_through);
        assert_eq!(low_bytes(&results[1]), [0, 6, 2, 8, 4, 10]);
        assert_eq!(results[0].to_literal().unwrap(), literal);
        let plain = client.buffer(&literal).unwrap();
        assert!(message(program.execute(&[&plain])).contains("must be s16[2,3]{0,1}, it is s16[2,3]{1,0}"));
    }
}

#[test]
fn wrong_arguments_are_named_with_both_shapes() {
    let (client, other) = (client(), client());
    let program = sum_program(&client);
    let x = client.buffer(&f32s(&[1.0; 3])).unwrap();
    let long = client.buffer(&f32s(&[1.0; 4])).unwrap();
    assert_eq!(message(program.execute(&[&x])), "sum takes 2 arguments, 1 were given");
    assert_eq!(
        message(program.execute(&[&x, &long])),
        "argument 1 (parameter 1 \"y\") of sum must be f32[3]{0}, it is f32[4]{0}"
    );
    assert_eq!(message(program.run(vec![f32s(&[1.0])])), "sum takes 2 parameters, 1 were given");
    assert!(
        message(program.run(vec![f32s(&[1.0]), f32s(&[1.0])])).contains("parameter 0 of sum is f32[3], not f32[1]")
    );
    let elsewhere = other.buffer(&f32s(&[1.0; 3])).unwrap();
    assert!(message(program.execute(&[&x, &elsewhere])).contains("belongs to another client"));
    let error = message(client.buffer_of_shape(&f32s(&[1.0]), &ArrayShape::new(F32, [2])));
    assert_eq!(error, "expected a literal of f32[2], found one of f32[1]");
    assert!(client.buffer(&Literal::tuple(vec![])).is_err());
}

#[test]
fn donated_buffers_cannot_be_used_again() {
    let client = client();
    let program = sum_program(&client);
    let x = client.buffer(&f32s(&[1.0; 3])).unwrap();
    let y = client.buffer(&f32s(&[2.0; 3])).unwrap();
    let handle = x.clone();
    let donate = ExecuteOptions { donate: vec![0].into(), ..ExecuteOptions::default() };
    let results = program.execute_with(&[&x, &y], &donate).unwrap();
    assert_eq!(results[0].to_literal().unwrap(), f32s(&[3.0; 3]));
    assert!(handle.is_donated());
    let error = handle.to_literal().unwrap_err();
    assert!(matches!(error, Error::FailedPrecondition(_)), "{error}");
    let error = program.execute(&[&x, &y]).unwrap_err();
    assert!(matches!(error, Error::FailedPrecondition(_)), "{error}");
    assert!(error.message().starts_with("argument 0 (parameter 0"), "{error}");
    assert!(!y.is_donated());
    // A donated argument of a call cannot be another argument of it, donated or not.
    let z = client.buffer(&f32s(&[2.0; 3])).unwrap();
    let twice = ExecuteOptions { donate: vec![0, 1].into(), ..ExecuteOptions::default() };
    let second = ExecuteOptions { donate: vec![1].into(), ..ExecuteOptions::default() };
    for (options, gone) in [(&donate, 1), (&second, 0), (&twice, 1)] {
        let error = message(program.execute_with(&[&z, &z], options));
        assert!(error.starts_with(&format!("argument {gone} (parameter {gone}")), "{error}");
        assert!(error.contains("was donated"), "{error}");
        assert!(!z.is_donated(), "a refused call donates nothing");
    }
    assert!(
        message(program.execute_with(&[&z, &z], &ExecuteOptions { donate: vec![2].into(), ..twice }))
            .contains("no argument 2")
    );
}

/// Compiles a sum whose result must overwrite the second argument.
fn in_place(client: &Client) -> LoadedExecutable {
    let mut module = sum_module("in_place").into_inner();
    let parameter = ParameterLeaf { parameter: 1, path: vec![] };
    module.attributes_mut().input_output_alias =
        vec![InputOutputAlias { output: vec![0], parameter, must_alias: true }];
    client.compile(&VerifiedModule::new(module).unwrap(), &CompileOptions::default()).unwrap()
}

#[test]
fn must_alias_demands_donation() {
    let client = client();
    let program = in_place(&client);
    let x = client.buffer(&f32s(&[1.0; 3])).unwrap();
    let y = client.buffer(&f32s(&[2.0; 3])).unwrap();
    assert!(message(program.execute(&[&x, &y])).contains("argument 1 (parameter 1 \"y\") of in_place must be donated"));
    program.execute_with(&[&x, &y], &ExecuteOptions { donate: vec![1].into(), ..ExecuteOptions::default() }).unwrap();
    program.run(vec![f32s(&[1.0; 3]), f32s(&[2.0; 3])]).unwrap();
}

#[test]
fn queued_programs_run_in_order_and_chain() {
    let client = client();
    let program = sum_program(&client);
    let one = client.buffer(&f32s(&[1.0; 3])).unwrap();
    let mut total = client.buffer(&f32s(&[0.0; 3])).unwrap();
    let queued = ExecuteOptions { donate: vec![0].into(), dispatch: Dispatch::Queued, ..ExecuteOptions::default() };
    for _ in 0..100 {
        total = program.execute_with(&[&total, &one], &queued).unwrap().swap_remove(0);
    }
    assert_eq!(total.to_literal().unwrap(), f32s(&[100.0; 3]));
    assert!(total.is_ready().unwrap());
    // The client may be dropped while its queue still has work that holds it.
    let last = program.execute_with(&[&total, &one], &queued).unwrap();
    drop((client, program, total));
    assert_eq!(last[0].to_literal().unwrap(), f32s(&[101.0; 3]));
}

#[test]
fn many_threads_run_one_program() {
    let client = client();
    let module = sum_module("shared");
    std::thread::scope(|scope| {
        for t in 0..8 {
            let (client, module) = (&client, &module);
            scope.spawn(move || {
                let program = client.compile(module, &CompileOptions::default()).unwrap();
                let x = client.buffer(&f32s(&[t as f32; 3])).unwrap();
                for i in 0..50 {
                    let dispatch = if i % 2 == 0 { Dispatch::Inline } else { Dispatch::Queued };
                    let options = ExecuteOptions { donate: vec![1].into(), dispatch, ..ExecuteOptions::default() };
                    let y = client.buffer(&f32s(&[i as f32; 3])).unwrap();
                    let results = program.execute_with(&[&x, &y], &options).unwrap();
                    assert_eq!(results[0].to_literal().unwrap(), f32s(&[(t + i) as f32; 3]));
                }
            });
        }
    });
    assert_eq!((client.cache().stats().misses, client.cache().stats().hits), (1, 7));
}

#[test]
fn options_and_modules_tell_programs_apart() {
    let client = client();
    let options = CompileOptions::default();
    let other = CompileOptions { threads: std::num::NonZeroUsize::new(1), ..options.clone() };
    client.compile(&sum_module("a"), &options).unwrap();
    client.compile(&sum_module("a"), &options).unwrap();
    client.compile(&sum_module("a"), &other).unwrap();
    client.compile(&sum_module("a"), &CompileOptions { allow_tf32: true, ..options.clone() }).unwrap();
    client.compile(&sum_module("b"), &options).unwrap();
    let stats = client.cache().stats();
    assert_eq!((stats.hits, stats.misses, stats.entries), (1, 4, 4));
}

#[test]
fn missing_abilities_name_the_platform() {
    let client = client();
    let program = sum_program(&client);
    assert_eq!(message(program.serialize()), "platform interpreter cannot serialise programs");
    assert_eq!(
        message(client.load(b"", &CompileOptions::default())),
        "platform interpreter cannot load serialised programs"
    );
}

#[test]
fn layouts_are_kept_on_the_way() {
    let client = client();
    let shape = ArrayShape::new(ElementType::S32, [2, 3]).with_layout(Some(Layout::from_minor_to_major(vec![0, 1])));
    let literal = Literal::from_fn(&shape, |i| Scalar::Signed(i as i64)).unwrap();
    let buffer = client.buffer_of_shape(&literal, &shape).unwrap();
    assert_eq!(buffer.shape().to_string(), "s32[2,3]{0,1}");
    assert_eq!(buffer.to_literal().unwrap(), literal);
}

/// Platform whose programs fail, panic or return too few results, depending on the module's name.
#[derive(Debug)]
struct Faulty {
    executor: Arc<dyn StreamExecutor>,
    compiled: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct FaultyProgram(VerifiedModule, Signature);

fn faulty_client() -> (Client, Arc<AtomicUsize>) {
    let compiled = Arc::new(AtomicUsize::new(0));
    let mut registry = PlatformRegistry::new();
    let executor = Arc::new(HostExecutor::new("faulty", 0, PoolLimits { in_use: Some(1 << 20), retained: 0 }));
    registry.register(Arc::new(Faulty { executor, compiled: compiled.clone() }));
    (Client::new(&registry, "faulty").unwrap(), compiled)
}

impl Platform for Faulty {
    fn name(&self) -> &str {
        "faulty"
    }
    fn check(&self) -> Result<()> {
        Ok(())
    }
    fn device_count(&self) -> usize {
        1
    }
    fn executor(&self, _: usize) -> Result<Arc<dyn StreamExecutor>> {
        Ok(self.executor.clone())
    }
    fn compiler(&self) -> Arc<dyn Compiler> {
        Arc::new(Faulty { executor: self.executor.clone(), compiled: self.compiled.clone() })
    }
    fn transfer_manager(&self) -> Arc<dyn TransferManager> {
        Arc::new(HostTransfer)
    }
}

impl Compiler for Faulty {
    fn run_hlo_passes(&self, module: VerifiedModule, _: &CompileOptions) -> Result<OptimizedModule> {
        self.compiled.fetch_add(1, Ordering::Relaxed);
        assert_ne!(module.name(), "panics-early", "no such module");
        Ok(OptimizedModule::new(module))
    }
    fn run_backend(&self, module: OptimizedModule, _: &CompileOptions) -> Result<Arc<dyn Executable>> {
        let signature = Signature::new(&module, host_shape)?;
        Ok(Arc::new(FaultyProgram(module.into_inner(), signature)))
    }
}

impl Executable for FaultyProgram {
    fn module(&self) -> &Module {
        &self.0
    }
    fn signature(&self) -> &Signature {
        &self.1
    }
    fn execute(&self, _: &ExecutionContext<'_>, _: Vec<Argument>) -> Result<Vec<DeviceMemory>> {
        match self.0.name() {
            "panics" => panic!("oh no"),
            "fails" => Err(Error::resource_exhausted("no fuel")),
            _ => Ok(Vec::new()),
        }
    }
    fn memory_analysis(&self) -> MemoryAnalysis {
        MemoryAnalysis::default()
    }
    fn cost_analysis(&self) -> CostAnalysis {
        CostAnalysis::default()
    }
}

#[test]
fn failures_below_become_errors() {
    let (client, compiled) = faulty_client();
    let options = CompileOptions::default();
    let x = client.buffer(&f32s(&[1.0; 3])).unwrap();
    let expected = [
        ("panics", "internal error: a backend panicked: oh no"),
        ("fails", "platform faulty: no fuel"),
        ("forgets", "internal error: the backend returned 0 results instead of 2"),
    ];
    for (name, text) in expected {
        let program = client.compile(&sum_module(name), &options).unwrap();
        assert_eq!(message(program.execute(&[&x, &x])), text);
        let queued = ExecuteOptions { dispatch: Dispatch::Queued, ..ExecuteOptions::default() };
        let pending = program.execute_with(&[&x, &x], &queued).unwrap();
        for buffer in &pending {
            assert_eq!(message(buffer.wait()), text);
            assert_eq!(message(buffer.to_literal()), text);
        }
        // Executions that depend on a failed value fail with the same error.
        let next = program.execute_with(&[&x, &pending[0]], &queued);
        let cause = text.trim_start_matches("internal error: ");
        assert!(message(next.and_then(|buffers| buffers[0].to_literal())).contains(cause));
    }
    let before = compiled.load(Ordering::Relaxed);
    for _ in 0..2 {
        let error = client.compile(&sum_module("panics-early"), &options).unwrap_err();
        assert!(matches!(error, Error::Internal(_)), "{error}");
    }
    assert_eq!(compiled.load(Ordering::Relaxed), before + 2, "failed compilations are not remembered");
}

#[test]
fn memory_that_does_not_suffice_is_an_error() {
    let (client, _) = faulty_client();
    let shape = ArrayShape::new(F32, [1 << 19]);
    let error = client.buffer(&Literal::zeros(&shape).unwrap()).unwrap_err();
    assert!(matches!(error, Error::ResourceExhausted(_)), "{error}");
}
