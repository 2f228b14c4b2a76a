//! End-to-end tests of thunks on the host, compared with the evaluator: a backend that lowers only `add` of f32 and
//! uses the fallback for the rest.

mod runs;
mod whole_loops;

use xla_hlo::builder::{ComputationBuilder, ModuleBuilder};
use xla_hlo::eval::RandomState;
use xla_hlo::ops::{CompareDirection, CustomCallRegistry};
use xla_hlo::{
    ArrayShape, CompId, ElementType, Error, InputOutputAlias, InstrId, Literal, Op, Opcode, ParameterLeaf, Result,
    Scalar, Shape, VerifiedModule, eval,
};
use xla_passes::buffers::{BufferAssignment, BufferOptions, assign_buffers};
use xla_passes::schedule::insert_copies::insert_copies;
use xla_passes::schedule::schedule_module;
use xla_passes::{PassContext, TargetProfile, stages};

use super::*;
use crate::executable::{Argument, Executable, ExecutionContext};
use crate::executor::{DeviceMemory, StreamExecutor};
use crate::host::{HostExecutor, HostMemory, HostStream, HostTransfer, PoolLimits, host_shape};
use crate::options::FallbackPolicy;
use crate::signature::ungroup;
use crate::{CancelToken, CompileOptions, OptimizedModule, TransferManager};

const F32: ElementType = ElementType::F32;
const S32: ElementType = ElementType::S32;

/// Schedules a module and assigns its buffers.
pub(super) fn prepare(module: VerifiedModule) -> (VerifiedModule, BufferAssignment) {
    let mut module = module.into_inner();
    let profile = TargetProfile::generic();
    let cx = PassContext::new(&profile);
    stages::canonicalize(&profile).run(&mut module, &cx).unwrap();
    schedule_module(&mut module).unwrap();
    insert_copies(&mut module).unwrap();
    let assignment = assign_buffers(&module, &BufferOptions::default()).unwrap();
    (VerifiedModule::new(module).unwrap(), assignment)
}

/// Lowers `add` of f32 arrays to kernel 0.
pub(super) fn lower_add(cx: &LoweringContext<'_>) -> Result<Lowered> {
    let is_add = cx.instruction().opcode() == Opcode::Add && cx.results[0].shape.element_type() == F32;
    let kernel = KernelRef { index: 0, name: "add_f32".to_string() };
    Ok(if is_add { Lowered::Kernel(kernel) } else { Lowered::NotMine })
}

/// Launcher of kernel 0.
#[derive(Debug)]
struct Adder;

impl Launcher for Adder {
    fn kernel(&self, kernel: &KernelRef, launch: &mut Launch<'_>) -> Result<()> {
        assert_eq!((kernel.index, kernel.name.as_str()), (0, "add_f32"));
        let read = |array: &ArraySlice| -> Vec<f32> {
            let memory: &HostMemory = launch.buffers.memory(array.slice.allocation).unwrap().downcast().unwrap();
            let bytes = &memory.bytes()[array.slice.offset..array.slice.offset + array.slice.size];
            bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
        };
        let (a, b) = (read(&launch.thunk.operands[0]), read(&launch.thunk.operands[1]));
        let sum: Vec<u8> = a.iter().zip(&b).flat_map(|(a, b)| (a + b).to_le_bytes()).collect();
        let target = launch.thunk.results[0].slice;
        launch.context.stream.copy_to_device(&sum, launch.buffers.memory_mut(target.allocation)?, target.offset)
    }

    fn library_call(&self, call: &LibraryRef, _: &mut Launch<'_>) -> Result<()> {
        Err(Error::internal(format!("{} was never lowered", call.name)))
    }
}

fn program(module: VerifiedModule) -> ThunkExecutable {
    let (module, program) = lowered(module);
    ThunkExecutable::new(module, program, std::sync::Arc::new(Adder))
}

/// Returns a module and its thunks.
fn lowered(module: VerifiedModule) -> (OptimizedModule, ThunkProgram) {
    let (module, _) = prepare(module);
    let module = OptimizedModule::new(module);
    let (buffers, options) = (BufferOptions::default(), CompileOptions::default());
    let program = ThunkProgram::new(&module, &mut lower_add, &HostTransfer, &buffers, &options).unwrap();
    (module, program)
}

/// Host device for one test, which checks when dropped that all memory was freed.
struct Host(HostExecutor, RandomState, CustomCallRegistry, CancelToken);

impl Host {
    fn new() -> Host {
        let limits = PoolLimits { in_use: Some(1 << 24), retained: 1 << 24 };
        Host(HostExecutor::new("test", 0, limits), RandomState::new(), CustomCallRegistry::new(), CancelToken::new())
    }

    fn context(&self) -> ExecutionContext<'_> {
        ExecutionContext {
            executor: &self.0,
            stream: &HostStream,
            transfer: &HostTransfer,
            random: &self.1,
            custom_calls: &self.2,
            cancel: &self.3,
            run: crate::RunContext::nothing(),
            logical_device: None,
        }
    }

    fn upload(&self, literal: &Literal) -> DeviceMemory {
        let shape = host_shape(literal.array_shape()).unwrap();
        let mut memory = self.0.allocate(shape.byte_size()).unwrap();
        HostTransfer.write(&HostStream, literal, &shape, &mut memory, 0).unwrap();
        memory
    }

    /// Runs a program with shared and with donated arguments; checks that the results agree and returns them.
    fn run(&self, program: &ThunkExecutable, arguments: &[Literal]) -> Result<Literal> {
        let leaves: Vec<Literal> = arguments.iter().cloned().flat_map(ungroup).collect();
        let shared: Vec<_> = leaves.iter().map(|l| std::sync::Arc::new(self.upload(l))).collect();
        let first = self.launch(program, shared.iter().cloned().map(Argument::Shared).collect())?;
        for (memory, literal) in shared.iter().zip(&leaves) {
            let shape = host_shape(literal.array_shape())?;
            let now = HostTransfer.read(&HostStream, memory, 0, &shape)?;
            assert_eq!(now, *literal, "a shared argument was written");
        }
        let donated = leaves.iter().map(|l| Argument::Donated(self.upload(l))).collect();
        assert_eq!(self.launch(program, donated)?, first);
        Ok(first)
    }

    fn launch(&self, program: &ThunkExecutable, arguments: Vec<Argument>) -> Result<Literal> {
        let results = program.execute(&self.context(), arguments)?;
        let leaves = program.signature().outputs().iter().zip(&results);
        let literals = leaves.map(|(leaf, m)| HostTransfer.read(&HostStream, m, 0, &leaf.shape));
        program.signature().group_results(program.signature().results_of(literals.collect::<Result<_>>()?)?)
    }
}

/// Compares a module's thunks with the evaluator, and returns the sequence as text.
fn check(module: VerifiedModule, arguments: &[Literal]) -> String {
    let expected = eval::evaluate(&module, arguments.to_vec()).unwrap();
    let program = program(module);
    let host = Host::new();
    assert_eq!(host.run(&program, arguments).unwrap(), expected, "\n{}", program.sequence());
    let text = program.sequence().to_string();
    let uploaded = program.memory_analysis().constant_bytes;
    drop(program);
    assert_eq!(host.0.memory_stats().bytes_in_use, 0, "memory leaked, {uploaded} bytes of constants");
    text
}

fn f32s(values: &[f32]) -> Literal {
    Literal::from_fn(&ArrayShape::new(F32, [values.len()]), |i| Scalar::Float(values[i].into())).unwrap()
}

fn s32(value: i64) -> Literal {
    Literal::scalar(S32, Scalar::Signed(value))
}

fn vector() -> Shape {
    Shape::array(F32, [4])
}

/// Builds a module whose entry takes an `f32[4]`, plus any parameters that `f` adds, and returns the result of `f`.
fn entry(f: impl FnOnce(&mut ComputationBuilder<'_>, InstrId) -> InstrId) -> VerifiedModule {
    let mut module = ModuleBuilder::new("test");
    let mut b = module.computation("main");
    let x = b.parameter(vector()).unwrap();
    let root = f(&mut b, x);
    let main = b.finish(root);
    module.finish(main).unwrap()
}

#[test]
fn kernels_fallbacks_and_constants() {
    let module = entry(|b, x| {
        let c = b.constant(f32s(&[1.0, 2.0, 3.0, 4.0])).unwrap();
        let sum = b.add(x, c).unwrap();
        let negated = b.negate(sum).unwrap();
        b.add(negated, x).unwrap()
    });
    let text = check(module, &[f32s(&[0.5, -1.0, 7.0, 0.0])]);
    insta::assert_snapshot!(text, @r"
    t0: kernel add_f32 %add (a0[0..16] f32[4]{0}, a1[0..16] f32[4]{0}) -> (a2[0..16] f32[4]{0})
    t1: host-fallback %negate (a2[0..16] f32[4]{0}) -> (a2[0..16] f32[4]{0})
    t2: kernel add_f32 %add.1 (a2[0..16] f32[4]{0}, a0[0..16] f32[4]{0}) -> (a2[0..16] f32[4]{0})
    ");
}

#[test]
fn results_that_are_arguments_or_equal() {
    let module = entry(|b, x| {
        let sum = b.add(x, x).unwrap();
        let inner = b.tuple([sum, x]).unwrap();
        b.tuple([x, inner, sum]).unwrap()
    });
    let text = check(module, &[f32s(&[1.0, 2.0, 3.0, 4.0])]);
    insta::assert_snapshot!(text, @r"
    t0: kernel add_f32 %add (a0[0..16] f32[4]{0}, a0[0..16] f32[4]{0}) -> (a2[0..16] f32[4]{0})
    t1: copy %copy (a0[0..16] f32[4]{0}) -> (a1[0..16] f32[4]{0})
    t2: copy %copy.1 (a0[0..16] f32[4]{0}) -> (a3[0..16] f32[4]{0})
    t3: copy %copy.2 (a2[0..16] f32[4]{0}) -> (a4[0..16] f32[4]{0})
    ");
    check(entry(|_, x| x), &[f32s(&[1.0, 2.0, 3.0, 4.0])]);
    check(entry(|b, _| b.tuple([]).unwrap()), &[f32s(&[0.0; 4])]);
}

/// Builds `state = (counter, total); while counter < 5 { total += total; counter += 1 }`.
fn doubling_loop(module: &mut ModuleBuilder, name: &str) -> (CompId, CompId) {
    let state = Shape::Tuple(vec![Shape::scalar(S32), vector()]);
    let mut b = module.computation(format!("{name}_condition"));
    let s = b.parameter(state.clone()).unwrap();
    let counter = b.get_tuple_element(s, 0).unwrap();
    let limit = b.constant(s32(5)).unwrap();
    let less = b.compare(CompareDirection::Lt, counter, limit).unwrap();
    let condition = b.finish(less);
    let mut b = module.computation(format!("{name}_body"));
    let s = b.parameter(state).unwrap();
    let counter = b.get_tuple_element(s, 0).unwrap();
    let total = b.get_tuple_element(s, 1).unwrap();
    let one = b.constant(s32(1)).unwrap();
    let next = b.add(counter, one).unwrap();
    let doubled = b.add(total, total).unwrap();
    let root = b.tuple([next, doubled]).unwrap();
    (condition, b.finish(root))
}

#[test]
fn loops_run_in_place() {
    let mut module = ModuleBuilder::new("loop");
    let (condition, body) = doubling_loop(&mut module, "double");
    let mut b = module.computation("main");
    let start = b.parameter(Shape::scalar(S32)).unwrap();
    let x = b.parameter(vector()).unwrap();
    let init = b.tuple([start, x]).unwrap();
    let end = b.while_loop(condition, body, init).unwrap();
    let total = b.get_tuple_element(end, 1).unwrap();
    let sum = b.add(total, x).unwrap();
    let root = b.tuple([sum, total]).unwrap();
    let main = b.finish(root);
    let module = module.finish(main).unwrap();
    check(module.clone(), &[s32(5), f32s(&[1.0, 2.0, 3.0, 4.0])]);
    let text = check(module, &[s32(0), f32s(&[1.0, 2.0, 3.0, 4.0])]);
    assert!(!text.contains("trip-count"), "the counter starts at an argument");
    insta::assert_snapshot!(text, @r"
    t0: copy %copy (a0[0..4] s32[]) -> (a4[0..4] s32[])
    t1: copy %copy.1 (a1[0..16] f32[4]{0}) -> (a5[0..16] f32[4]{0})
    t2: while %while (a4[0..4] s32[], a5[0..16] f32[4]{0}) -> (a4[0..4] s32[], a5[0..16] f32[4]{0})
     condition, predicate in a6[0..1]:
      t3: host-fallback %compare (a4[0..4] s32[], a2[0..4] s32[]) -> (a6[0..1] pred[])
     body:
      t4: host-fallback %add (a4[0..4] s32[], a3[0..4] s32[]) -> (a4[0..4] s32[])
      t5: kernel add_f32 %add.1 (a5[0..16] f32[4]{0}, a5[0..16] f32[4]{0}) -> (a5[0..16] f32[4]{0})
    t6: kernel add_f32 %add (a5[0..16] f32[4]{0}, a1[0..16] f32[4]{0}) -> (a4[0..16] f32[4]{0})
    ");
}

/// Builds a branch computation `f32[4] -> f32[4]`.
fn branch(
    module: &mut ModuleBuilder,
    name: &str,
    f: impl FnOnce(&mut ComputationBuilder<'_>, InstrId) -> InstrId,
) -> CompId {
    let mut b = module.computation(name);
    let x = b.parameter(vector()).unwrap();
    let root = f(&mut b, x);
    b.finish(root)
}

#[test]
fn conditionals_choose_by_predicate_and_by_index() {
    let mut module = ModuleBuilder::new("branches");
    let double = branch(&mut module, "double", |b, x| b.add(x, x).unwrap());
    let same = branch(&mut module, "same", |_, x| x);
    let mut b = module.computation("main");
    let p = b.parameter(Shape::scalar(ElementType::Pred)).unwrap();
    let x = b.parameter(vector()).unwrap();
    let root = b.conditional(p, (double, x), (same, x)).unwrap();
    let main = b.finish(root);
    let module = module.finish(main).unwrap();
    for p in [false, true] {
        let p = Literal::scalar(ElementType::Pred, Scalar::Pred(p));
        check(module.clone(), &[p, f32s(&[1.0, 2.0, 3.0, 4.0])]);
    }

    let mut module = ModuleBuilder::new("switch");
    let double = branch(&mut module, "double", |b, x| b.add(x, x).unwrap());
    let same = branch(&mut module, "same", |_, x| x);
    let negate = branch(&mut module, "negate", |b, x| b.negate(x).unwrap());
    let mut b = module.computation("main");
    let i = b.parameter(Shape::scalar(S32)).unwrap();
    let x = b.parameter(vector()).unwrap();
    let y = b.negate(x).unwrap();
    let root = b.switch(i, &[(double, x), (same, y), (negate, y)]).unwrap();
    let main = b.finish(root);
    let module = module.finish(main).unwrap();
    let mut text = String::new();
    for i in [-1, 0, 1, 2, 3, i64::from(i32::MIN), i64::from(i32::MAX)] {
        text = check(module.clone(), &[s32(i), f32s(&[1.0, 2.0, 3.0, 4.0])]);
    }
    insta::assert_snapshot!(text, @r"
    t0: host-fallback %negate (a1[0..16] f32[4]{0}) -> (a2[0..16] f32[4]{0})
    t1: conditional %conditional (a0[0..4] s32[], a1[0..16] f32[4]{0}, a2[0..16] f32[4]{0}, a2[0..16] f32[4]{0}) -> (a2[0..16] f32[4]{0}) by Index in a0[0..4]
     branch 0:
      t2: kernel add_f32 %add (a1[0..16] f32[4]{0}, a1[0..16] f32[4]{0}) -> (a2[0..16] f32[4]{0})
     branch 1:
     branch 2:
      t3: host-fallback %negate (a2[0..16] f32[4]{0}) -> (a2[0..16] f32[4]{0})
    ");
}

#[test]
fn control_flow_nests() {
    let mut module = ModuleBuilder::new("nested");
    let (condition, body) = doubling_loop(&mut module, "inner");
    let looping = branch(&mut module, "looping", |b, x| {
        let two = b.constant(s32(2)).unwrap();
        let init = b.tuple([two, x]).unwrap();
        let end = b.while_loop(condition, body, init).unwrap();
        b.get_tuple_element(end, 1).unwrap()
    });
    let negate = branch(&mut module, "negate", |b, x| b.negate(x).unwrap());
    let mut b = module.computation("main");
    let p = b.parameter(Shape::scalar(ElementType::Pred)).unwrap();
    let x = b.parameter(vector()).unwrap();
    let root = b.conditional(p, (looping, x), (negate, x)).unwrap();
    let main = b.finish(root);
    let module = module.finish(main).unwrap();
    for p in [false, true] {
        check(module.clone(), &[Literal::scalar(ElementType::Pred, Scalar::Pred(p)), f32s(&[1.0, 2.0, 3.0, 4.0])]);
    }
    let program = program(module);
    let ids: Vec<u32> = program.sequence().walk().map(|thunk| thunk.id.0).collect();
    assert!(ids.is_sorted(), "{ids:?}");
    for thunk in program.sequence().walk() {
        assert_eq!(program.sequence().find(thunk.id), Some(thunk));
    }
    let coverage = program.sequence().coverage();
    assert_eq!((coverage.control_flow, coverage.kernels), (2, 1));
    assert!(program.sequence().to_string().contains("trip-count=3"), "{}", program.sequence());
    assert!(coverage.fallbacks.contains(&"negate".to_string()), "{coverage:?}");
}

#[test]
fn aliased_arguments_are_reused_when_donated() {
    let mut module = entry(|b, x| b.add(x, x).unwrap()).into_inner();
    let parameter = ParameterLeaf { parameter: 0, path: vec![] };
    module.attributes_mut().input_output_alias =
        vec![InputOutputAlias { output: vec![], parameter, must_alias: false }];
    let module = VerifiedModule::new(module).unwrap();
    check(module.clone(), &[f32s(&[1.0, 2.0, 3.0, 4.0])]);
    let program = program(module);
    let analysis = program.memory_analysis();
    assert_eq!((analysis.argument_bytes, analysis.output_bytes, analysis.alias_bytes), (16, 16, 16));
    let host = Host::new();
    let argument = host.upload(&f32s(&[1.0; 4]));
    let address = argument.downcast::<HostMemory>().unwrap().as_ptr();
    let results = program.execute(&host.context(), vec![Argument::Donated(argument)]).unwrap();
    assert_eq!(results[0].downcast::<HostMemory>().unwrap().as_ptr(), address);
}

#[test]
fn a_forbidden_fallback_names_the_instruction() {
    let (module, assignment) = prepare(entry(|b, x| b.negate(x).unwrap()));
    let error = ThunkSequence::from_module(&module, &assignment, &mut lower_add, FallbackPolicy::Forbid).unwrap_err();
    assert!(matches!(error, Error::Unimplemented(_)), "{error}");
    assert_eq!(
        error.message(),
        "%negate of main: the backend does not lower negate (f32[4]{0}), and the host fallback is forbidden"
    );
}

#[test]
fn errors_of_a_lowering_get_the_place() {
    let (module, assignment) = prepare(entry(|b, x| b.negate(x).unwrap()));
    let mut broken = |_: &LoweringContext<'_>| -> Result<Lowered> { Err(Error::resource_exhausted("no registers")) };
    let error = ThunkSequence::from_module(&module, &assignment, &mut broken, FallbackPolicy::Allow).unwrap_err();
    assert_eq!(error.message(), "%negate of main: no registers");
}

#[test]
fn one_instruction_on_literals() {
    let module = entry(|b, x| b.add(x, x).unwrap());
    let main = module.entry_id();
    let add = module.entry().root();
    assert!(matches!(module.entry()[add].op(), Op::Binary(_)));
    let x = f32s(&[1.0, 2.0, 3.0, 4.0]);
    let sum = evaluate_instruction(&module, main, add, vec![x.clone(), x], &RandomState::new()).unwrap();
    assert_eq!(sum, f32s(&[2.0, 4.0, 6.0, 8.0]));
}

#[test]
fn launches_with_the_wrong_number_of_arguments_are_refused() {
    let program = program(entry(|_, x| x));
    let host = Host::new();
    assert!(program.execute(&host.context(), vec![]).is_err());
}
