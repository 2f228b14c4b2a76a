//! Tests of loops that a backend compiles to one kernel.

use super::*;

/// Backend that accepts only loops whose body has exactly `steps` steps.
struct Whole {
    steps: usize,
    asked: Vec<LoopRounds>,
}

impl Lowering for Whole {
    fn lower(&mut self, _: &LoweringContext<'_>) -> Result<Lowered> {
        Ok(Lowered::NotMine)
    }

    fn lower_loop(&mut self, cx: &LoopContext<'_>) -> Result<Option<KernelRef>> {
        self.asked.push(cx.rounds);
        let known = |step: &LoopStep| {
            let slices = |arrays: &[ArraySlice]| arrays.iter().map(|array| array.slice).collect::<Vec<_>>();
            let (reads, writes) = (slices(cx.operands), slices(cx.results));
            step.operands.iter().all(|array| reads.contains(&array.slice))
                && step.results.iter().all(|array| writes.contains(&array.slice))
        };
        assert!(cx.condition.iter().chain(cx.body).all(known));
        let is_tested = matches!(cx.rounds, LoopRounds::Tested { .. });
        assert_eq!(cx.operands.iter().any(|array| array.slice == cx.predicate), is_tested);
        assert_eq!(cx.condition.is_empty(), !is_tested);
        let kernel = KernelRef { index: self.asked.len() as u32 - 1, name: "loop".to_string() };
        Ok((cx.body.len() == self.steps).then_some(kernel))
    }
}

/// Returns the thunks of a loop that starts at an argument, or at 0.
fn thunks(starts_at_argument: bool, lowering: &mut Whole) -> String {
    let mut module = ModuleBuilder::new("loop");
    let (condition, body) = doubling_loop(&mut module, "double");
    let mut b = module.computation("main");
    let start = b.parameter(Shape::scalar(S32)).unwrap();
    let x = b.parameter(vector()).unwrap();
    let zero = b.constant(s32(0)).unwrap();
    let init = b.tuple([if starts_at_argument { start } else { zero }, x]).unwrap();
    let end = b.while_loop(condition, body, init).unwrap();
    let total = b.get_tuple_element(end, 1).unwrap();
    let main = b.finish(total);
    let (module, _) = prepare(module.finish(main).unwrap());
    let (buffers, options) = (BufferOptions::default(), CompileOptions::default());
    let module = OptimizedModule::new(module);
    ThunkProgram::new(&module, lowering, &HostTransfer, &buffers, &options).unwrap().sequence.to_string()
}

#[test]
fn a_loop_that_is_not_counted_is_launched_again_while_its_predicate_holds() {
    let mut whole = Whole { steps: 2, asked: Vec::new() };
    insta::assert_snapshot!(thunks(true, &mut whole));
    assert_eq!(whole.asked, [LoopRounds::Tested { at_most: 1 << 14 }]);
}

#[test]
fn a_counted_loop_is_a_launch() {
    let mut whole = Whole { steps: 2, asked: Vec::new() };
    insta::assert_snapshot!(thunks(false, &mut whole));
    assert_eq!(whole.asked, [LoopRounds::Counted(5)]);
}

#[test]
fn a_loop_that_is_not_wanted_is_lowered_step_by_step() {
    let mut whole = Whole { steps: 3, asked: Vec::new() };
    let refused = thunks(true, &mut whole);
    assert_eq!(whole.asked.len(), 1);
    assert!(refused.contains("body:\n") && refused.contains("host-fallback %compare"), "{refused}");
    let numbers: Vec<u32> = refused
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix('t')?.split_once(':')?.0.parse().ok())
        .collect();
    assert!(numbers.is_sorted() && numbers.last() == Some(&(numbers.len() as u32 - 1)), "{refused}");
}
