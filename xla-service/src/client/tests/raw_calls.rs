//! Tests of custom calls on raw memory, on the interpreter and on a platform whose thunks run in host memory.

use xla_hlo::ops::{CallState, CustomCallContext, OnMemory, RawCall, RawCustomCall};
use xla_passes::buffers::BufferOptions;
use xla_passes::schedule::insert_copies::insert_copies;
use xla_passes::schedule::schedule_module;
use xla_passes::{PassContext, TargetProfile, stages};

use super::*;
use crate::RunContext;
use crate::thunks::{KernelRef, Launch, Launcher, LibraryRef, Lowered, LoweringContext, ThunkExecutable, ThunkProgram};

/// Platform that runs all thunks on the host, in host memory.
#[derive(Debug)]
struct Thunks(Arc<HostExecutor>);

impl Platform for Thunks {
    fn name(&self) -> &str {
        "thunks"
    }
    fn check(&self) -> Result<()> {
        Ok(())
    }
    fn device_count(&self) -> usize {
        1
    }
    fn executor(&self, _: usize) -> Result<Arc<dyn StreamExecutor>> {
        Ok(self.0.clone())
    }
    fn compiler(&self) -> Arc<dyn Compiler> {
        Arc::new(Thunks(self.0.clone()))
    }
    fn transfer_manager(&self) -> Arc<dyn TransferManager> {
        Arc::new(HostTransfer)
    }
}

impl Compiler for Thunks {
    fn run_hlo_passes(&self, module: VerifiedModule, _: &CompileOptions) -> Result<OptimizedModule> {
        let (mut module, profile) = (module.into_inner(), TargetProfile::generic());
        let context = PassContext::new(&profile);
        stages::canonicalize(&profile).run(&mut module, &context)?;
        stages::simplify(&profile).run(&mut module, &context)?;
        schedule_module(&mut module)?;
        insert_copies(&mut module)?;
        VerifiedModule::new(module).map(OptimizedModule::new)
    }
    fn run_backend(&self, module: OptimizedModule, options: &CompileOptions) -> Result<Arc<dyn Executable>> {
        let mut nothing = |_: &LoweringContext<'_>| Ok(Lowered::NotMine);
        let program = ThunkProgram::new(&module, &mut nothing, &HostTransfer, &BufferOptions::default(), options)?;
        Ok(Arc::new(ThunkExecutable::new(module, program, Arc::new(NoKernels))))
    }
}

#[derive(Debug)]
struct NoKernels;

impl Launcher for NoKernels {
    fn kernel(&self, kernel: &KernelRef, _: &mut Launch<'_>) -> Result<()> {
        Err(Error::internal(format!("{} was never lowered", kernel.name)))
    }
    fn library_call(&self, call: &LibraryRef, _: &mut Launch<'_>) -> Result<()> {
        Err(Error::internal(format!("{} was never lowered", call.name)))
    }
}

fn clients() -> [Client; 2] {
    ["interpreter", "thunks"].map(|name| {
        let mut registry = PlatformRegistry::new();
        registry.register(interpreter::platform());
        let limits = PoolLimits { in_use: Some(1 << 20), retained: 1 << 20 };
        registry.register(Arc::new(Thunks(Arc::new(HostExecutor::new("thunks", 0, limits)))));
        Client::new(&registry, name).unwrap()
    })
}

fn compile(client: &Client, text: &str) -> Result<LoadedExecutable> {
    let module = VerifiedModule::new(xla_hlo::text::parse_module(text).unwrap()).unwrap();
    client.compile(&module, &CompileOptions::default())
}

/// Handler that adds the run's [`Summand`] to each byte, and counts its stages.
#[derive(Clone, Default)]
struct AddBytes {
    stages: Arc<[AtomicUsize; 4]>,
    /// Address of the first operand in the last execution.
    address: Arc<AtomicUsize>,
    /// Bytes of the first operand in the last execution.
    seen: Arc<Mutex<Vec<u8>>>,
}

struct Summand(u8);

impl AddBytes {
    fn counts(&self) -> [usize; 4] {
        std::array::from_fn(|i| self.stages[i].load(Ordering::SeqCst))
    }

    fn count(&self, stage: usize) -> Result<()> {
        self.stages[stage].fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

impl RawCustomCall for AddBytes {
    fn instantiate(&self, call: &CustomCallContext<'_>) -> Result<CallState> {
        self.count(0)?;
        if call.config() == b"bad" { Err(Error::invalid_argument("no such option")) } else { Ok(Arc::new(7u8)) }
    }
    fn prepare(&self, _: &CustomCallContext<'_>, state: &CallState) -> Result<()> {
        assert_eq!(state.downcast_ref::<u8>(), Some(&7));
        self.count(1)
    }
    fn initialize(&self, _: &CustomCallContext<'_>, _: &CallState) -> Result<()> {
        self.count(2)
    }
    fn execute(&self, call: &mut RawCall<'_>) -> Result<()> {
        self.count(3)?;
        assert_eq!(call.state.downcast_ref::<u8>(), Some(&7));
        let summand = call.context.run().get::<Summand>().map_or(1, |summand| summand.0);
        let operand = &call.operands[0];
        self.address.store(operand.bytes.as_ptr().addr(), Ordering::SeqCst);
        *self.seen.lock().unwrap() = operand.bytes.to_vec();
        let result = &mut call.results[0].bytes;
        match operand.alias {
            Some(result) => assert_eq!((result, operand.bytes.len()), (0, 0)),
            None => result.copy_from_slice(operand.bytes),
        }
        result.iter_mut().for_each(|byte| *byte = byte.wrapping_add(summand));
        Ok(())
    }
}

const PLAIN: &str = "HloModule plain\nENTRY main {\n x = u8[4] parameter(0)\n \
                     ROOT y = u8[4] custom-call(x), custom_call_target=\"add_bytes\"\n}";

fn bytes(shape: &str, values: &str) -> Literal {
    xla_hlo::text::parse_literal(&format!("{shape} {values}")).unwrap()
}

#[test]
fn stages_run_once_for_a_program_or_a_run_and_values_go_along() {
    for client in clients() {
        let error = compile(&client, PLAIN).unwrap_err();
        assert!(
            error.message().contains("no handler is registered for the custom call target \"add_bytes\""),
            "{error}"
        );
        // Handlers can be registered while the client is in use.
        let handler = AddBytes::default();
        client.custom_calls().register("add_bytes", Arc::new(OnMemory(handler.clone())));
        let program = compile(&client, PLAIN).unwrap();
        assert_eq!(handler.counts(), [1, 0, 0, 0]);
        let x = client.buffer(&bytes("u8[4]", "{1, 2, 3, 255}")).unwrap();
        let results = program.execute(&[&x]).unwrap();
        assert_eq!(results[0].to_literal().unwrap(), bytes("u8[4]", "{2, 3, 4, 0}"));
        let in_place = handler.address.load(Ordering::SeqCst) == x.hold().unwrap().address().unwrap();
        assert_eq!(in_place, client.platform() == "thunks");
        let context = Some(Arc::new(RunContext::new(1).with(Summand(10))));
        let options = ExecuteOptions { context, ..ExecuteOptions::default() };
        let results = program.execute_with(&[&x], &options).unwrap();
        assert_eq!(results[0].to_literal().unwrap(), bytes("u8[4]", "{11, 12, 13, 9}"));
        assert_eq!(handler.counts(), [1, 2, 2, 2]);
        // A program keeps the handler it was loaded with; a later compilation uses the new one.
        let newer = AddBytes::default();
        client.custom_calls().register("add_bytes", Arc::new(OnMemory(newer.clone())));
        program.execute(&[&x]).unwrap();
        assert_eq!((handler.counts(), newer.counts()), ([1, 3, 3, 3], [0; 4]));
        compile(&client, PLAIN).unwrap().execute(&[&x]).unwrap();
        assert_eq!((handler.counts(), newer.counts()), ([1, 3, 3, 3], [1; 4]));
        let bad = PLAIN.replace("\"\n}", "\", backend_config=\"bad\"\n}");
        let error = compile(&client, &bad).unwrap_err();
        assert_eq!(error.message(), "custom call \"add_bytes\" (%y): no such option");
    }
}

#[test]
fn bytes_come_in_the_layout_that_the_call_states() {
    let call = |constraint: &str| {
        format!(
            "HloModule laid_out\nENTRY main {{\n x = s8[2,3]{{1,0}} parameter(0)\n \
             ROOT y = s8[2,3]{{1,0}} custom-call(x), custom_call_target=\"add_bytes\"{constraint}\n}}"
        )
    };
    for client in clients() {
        let handler = AddBytes::default();
        client.custom_calls().register("add_bytes", Arc::new(OnMemory(handler.clone())));
        let x = bytes("s8[2,3]", "{{0, 1, 2}, {3, 4, 5}}");
        for (constraint, seen) in [
            ("", [0, 1, 2, 3, 4, 5]),
            (", operand_layout_constraints={s8[2,3]{1,0}}", [0, 1, 2, 3, 4, 5]),
            (", operand_layout_constraints={s8[2,3]{0,1}}", [0, 3, 1, 4, 2, 5]),
        ] {
            compile(&client, &call(constraint)).unwrap().run(vec![x.clone()]).unwrap();
            assert_eq!(*handler.seen.lock().unwrap(), seen, "{} {constraint}", client.platform());
        }
    }
}

#[test]
fn results_are_read_in_the_layout_that_the_call_states() {
    let x = bytes("s8[2,3]", "{{0, 1, 2}, {3, 4, 5}}");
    let (same, across) = ("{{1, 2, 3}, {4, 5, 6}}", "{{1, 3, 5}, {2, 4, 6}}");
    let (columns, rows) = ("s8[2,3]{0,1}", "s8[2,3]{1,0}");
    let aliased = ", output_to_operand_aliasing={{}: (0, {})}";
    for client in clients() {
        client.custom_calls().register("add_bytes", Arc::new(OnMemory(AddBytes::default())));
        for (result, operand, attributes, expected) in [
            (rows, rows, "", same),
            (columns, columns, "", same),
            (columns, columns, aliased, same),
            (columns, rows, "", across),
            (rows, columns, "", "{{1, 4, 2}, {5, 3, 6}}"),
        ] {
            let text = format!(
                "HloModule laid_out\nENTRY main {{\n x = s8[2,3] parameter(0)\n \
                 y = {result} custom-call(x), custom_call_target=\"add_bytes\", \
                 operand_layout_constraints={{{operand}}}{attributes}\n ROOT z = (s8[2,3], s8[2,3]) tuple(x, y)\n}}"
            );
            let found = compile(&client, &text).unwrap().run(vec![x.clone()]).unwrap();
            let expected = Literal::tuple(vec![x.clone(), bytes("s8[2,3]", expected)]);
            assert_eq!(found, expected, "{} {text}", client.platform());
        }
    }
}

#[test]
fn aliased_operands_are_in_the_results_memory_and_tokens_keep_their_places() {
    let aliased = "HloModule aliased\nENTRY main {\n x = u8[4] parameter(0)\n \
                   y = u8[4] custom-call(x), custom_call_target=\"add_bytes\", output_to_operand_aliasing={{}: (0, {})}\n \
                   ROOT z = (u8[4], u8[4]) tuple(x, y)\n}";
    let tokens = "HloModule tokens\nENTRY main {\n x = u8[4] parameter(0)\n t = token[] after-all()\n \
                  r = (token[], u8[4]) custom-call(x, t), custom_call_target=\"with_token\"\n \
                  ROOT y = u8[4] get-tuple-element(r), index=1\n}";
    struct WithToken;
    impl RawCustomCall for WithToken {
        fn execute(&self, call: &mut RawCall<'_>) -> Result<()> {
            assert_eq!((call.operands.len(), call.results.len()), (2, 2));
            assert_eq!((call.operands[1].shape, call.results[0].shape), (&Shape::Token, &Shape::Token));
            assert!(call.operands[1].bytes.is_empty() && call.results[0].bytes.is_empty());
            call.results[1].bytes.copy_from_slice(call.operands[0].bytes);
            Ok(())
        }
    }
    for client in clients() {
        client.custom_calls().register("add_bytes", Arc::new(OnMemory(AddBytes::default())));
        client.custom_calls().register("with_token", Arc::new(OnMemory(WithToken)));
        let x = bytes("u8[4]", "{1, 2, 3, 4}");
        let result = compile(&client, aliased).unwrap().run(vec![x.clone()]).unwrap();
        assert_eq!(result, Literal::tuple(vec![x.clone(), bytes("u8[4]", "{2, 3, 4, 5}")]), "{}", client.platform());
        assert_eq!(compile(&client, tokens).unwrap().run(vec![x.clone()]).unwrap(), x);
    }
}

/// OpenBLAS uses megabytes of stack and does not check its limit.
#[test]
fn handlers_have_the_stack_of_a_c_program() {
    struct Deep;
    impl RawCustomCall for Deep {
        fn execute(&self, call: &mut RawCall<'_>) -> Result<()> {
            let mut frame = [0_u8; 4 << 20];
            std::hint::black_box(&mut frame).fill(1);
            call.results[0].bytes.fill(std::hint::black_box(&frame)[1 << 20]);
            Ok(())
        }
    }
    for client in clients() {
        client.custom_calls().register("add_bytes", Arc::new(OnMemory(Deep)));
        let x = client.buffer(&bytes("u8[4]", "{1, 2, 3, 4}")).unwrap();
        let options = ExecuteOptions { dispatch: Dispatch::Auto, ..ExecuteOptions::default() };
        let results = compile(&client, PLAIN).unwrap().execute_with(&[&x], &options).unwrap();
        assert_eq!(results[0].to_literal().unwrap(), bytes("u8[4]", "{1, 1, 1, 1}"));
    }
}

#[test]
fn errors_and_panics_of_handlers_are_those_of_the_run() {
    struct Faulty;
    impl RawCustomCall for Faulty {
        fn execute(&self, call: &mut RawCall<'_>) -> Result<()> {
            assert_eq!(call.operands[0].bytes[0], 1, "not one");
            Err(Error::not_found("nothing there"))
        }
    }
    for client in clients() {
        client.custom_calls().register("add_bytes", Arc::new(OnMemory(Faulty)));
        let program = compile(&client, PLAIN).unwrap();
        let one = message(program.run(vec![bytes("u8[4]", "{1, 1, 1, 1}")]));
        assert!(one.contains("custom call \"add_bytes\": nothing there"), "{one}");
        let two = message(program.run(vec![bytes("u8[4]", "{2, 1, 1, 1}")]));
        assert!(two.contains("not one"), "{two}");
        // Later runs are unaffected.
        client.custom_calls().register("add_bytes", Arc::new(OnMemory(AddBytes::default())));
        compile(&client, PLAIN).unwrap().run(vec![bytes("u8[4]", "{2, 1, 1, 1}")]).unwrap();
    }
}

#[test]
fn branches_that_are_never_taken_need_no_handlers() {
    let text = include_str!("programs/branches_that_are_never_taken_need_no_handlers.hlo");
    // The interpreter evaluates the module without passes.
    let [_, client] = clients();
    let program = compile(&client, text).unwrap();
    let x = client.buffer(&bytes("u8[4]", "{1, 2, 3, 255}")).unwrap();
    let results = program.execute(&[&x]).unwrap();
    assert_eq!(results[0].to_literal().unwrap(), bytes("u8[4]", "{255, 254, 253, 1}"));
    let error = compile(&client, &text.replace("constant(0)", "constant(1)")).unwrap_err();
    assert!(error.message().contains("no handler is registered for the custom call target \"of_another\""), "{error}");
}
