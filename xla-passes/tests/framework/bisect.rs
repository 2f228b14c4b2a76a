//! Tests that bisection finds the pass, and the rewrite, that breaks a program.

use xla_hlo::ops::{Binary, BinaryOp};
use xla_hlo::text::parse_module;
use xla_hlo::{Error, InstrId, Module, Op, Opcode, Result};
use xla_passes::bisect::{Bisected, Culprit, Verdict, bisect};
use xla_passes::{DeadCode, Pass, PassContext, PassOptions, Pipeline, SimplifyAlgebra, SimplifyTuples, TargetProfile};

const TEXT: &str = include_str!("programs/bisect.hlo");

/// Pass that replaces additions by maxima, which is wrong, one at a time.
struct Wrong;

impl Pass for Wrong {
    fn name(&self) -> &'static str {
        "wrong"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        let entry = module.entry_id();
        let computation = module.computation_mut(entry);
        let adds: Vec<InstrId> = computation.ids().filter(|&id| computation[id].opcode() == Opcode::Add).collect();
        for add in adds.into_iter().filter(|_| cx.allow_rewrite("add-is-maximum")) {
            computation.set_op(add, Op::Binary(Binary { op: BinaryOp::Maximum }));
        }
        Ok(())
    }
}

struct Fails;

impl Pass for Fails {
    fn name(&self) -> &'static str {
        "fails"
    }

    fn rewrite(&self, module: &mut Module, _: &PassContext<'_>) -> Result<()> {
        module.set_name("half done");
        Err(Error::unimplemented("this"))
    }
}

fn pipeline() -> Pipeline {
    let first = Pipeline::fixed_point("first", 4).pass(SimplifyTuples).pass(SimplifyAlgebra).pass(DeadCode);
    Pipeline::new("all").stage(first).pass(Wrong).pass(DeadCode)
}

fn run(pipeline: &Pipeline, judge: impl Fn(&Module) -> Verdict) -> (Bisected, usize) {
    let module = parse_module(TEXT).expect("the test's module");
    let options = PassOptions { verify: true, ..PassOptions::default() };
    let mut asked = 0;
    let found = bisect(pipeline, &module, &TargetProfile::generic(), &options, &mut |probe| {
        asked += 1;
        Ok(judge(probe.module))
    });
    (found.expect("it can be bisected"), asked)
}

fn culprit(pipeline: &Pipeline, judge: impl Fn(&Module) -> Verdict) -> Culprit {
    match run(pipeline, judge).0 {
        Bisected::Broken(culprit) => *culprit,
        other => panic!("{other:?}"),
    }
}

fn count(module: &Module, opcode: Opcode) -> usize {
    module.entry().iter().filter(|(_, i)| i.opcode() == opcode).count()
}

#[test]
fn the_rewrite_of_a_wrong_pass_is_found() {
    for broken in 1..=3 {
        let judge = |m: &Module| if count(m, Opcode::Maximum) >= broken { Verdict::Bad } else { Verdict::Good };
        let found = culprit(&pipeline(), judge);
        assert_eq!((found.path.as_str(), found.rule), ("all.wrong", Some("add-is-maximum")));
        let after = found.after.expect("the bad module");
        assert_eq!(count(&found.before, Opcode::Maximum) + 1, broken);
        assert_eq!(count(&after, Opcode::Maximum), broken);
        // Options that reproduce the failure.
        let options = PassOptions {
            max_passes: Some(found.max_passes),
            max_rewrites: found.max_rewrites,
            ..PassOptions::default()
        };
        let profile = TargetProfile::generic();
        let mut again = parse_module(TEXT).expect("the test's module");
        pipeline().run(&mut again, &PassContext::new(&profile).with_options(options)).expect("it runs");
        assert_eq!(again.to_string(), after.to_string());
    }
}

#[test]
fn the_rule_of_the_simplifier_is_found() {
    let judge = |m: &Module| if count(m, Opcode::Negate) < 2 { Verdict::Bad } else { Verdict::Good };
    let found = culprit(&pipeline(), judge);
    assert_eq!((found.path.as_str(), found.rule), ("all.first.simplify-algebra", Some("involution")));
}

#[test]
fn a_pass_that_rewrites_without_asking_is_found() {
    let judge = |m: &Module| if count(m, Opcode::Exponential) == 0 { Verdict::Bad } else { Verdict::Good };
    let found = culprit(&pipeline(), judge);
    assert_eq!((found.path.as_str(), found.rule, found.max_rewrites), ("all.first.dead-code", None, None));
}

#[test]
fn a_pass_that_fails_is_found_without_asking_about_it() {
    let pipeline = Pipeline::new("all").pass(DeadCode).pass(Fails).pass(Wrong);
    let found = culprit(&pipeline, |_| Verdict::Good);
    assert_eq!(found.path, "all.fails");
    assert!(found.after.is_none() && found.error.is_some_and(|e| e.message().contains("this")));
}

#[test]
fn what_cannot_be_judged_is_left_out() {
    let pipeline = Pipeline::new("all").pass(SimplifyAlgebra).pass(DeadCode).pass(Wrong);
    // After dead code elimination the program cannot be judged; the final program is bad.
    let judge = |m: &Module| match (count(m, Opcode::Maximum), count(m, Opcode::Exponential)) {
        (1.., _) => Verdict::Bad,
        (_, 0) => Verdict::Skip,
        _ => Verdict::Good,
    };
    let found = culprit(&pipeline, judge);
    assert_eq!((found.path.as_str(), found.others), ("all.wrong", vec!["all.dead-code".to_string()]));
    assert_eq!(found.rule, None);
}

#[test]
fn programs_that_are_never_broken_or_always_are_told_apart() {
    assert!(matches!(run(&pipeline(), |_| Verdict::Good), (Bisected::Never, 2)));
    assert!(matches!(run(&pipeline(), |_| Verdict::Bad), (Bisected::AtStart, 1)));
    assert!(matches!(run(&Pipeline::new("empty"), |_| Verdict::Good), (Bisected::Never, 1)));
}

#[test]
fn ends_that_cannot_be_judged_are_an_error() {
    let module = parse_module(TEXT).expect("the test's module");
    let options = PassOptions::default();
    let judge = &mut |_: xla_passes::bisect::Probe<'_>| Ok(Verdict::Skip);
    let error = bisect(&pipeline(), &module, &TargetProfile::generic(), &options, judge).expect_err("all is skipped");
    assert!(error.message().contains("before all passes cannot be judged"), "{error}");
}
