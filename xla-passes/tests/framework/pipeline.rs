//! Tests of runs of pipelines: fixed points, limits, reports, observers, the verifier.

use std::sync::Mutex;

use xla_hlo::ops::{Unary, UnaryOp};
use xla_hlo::text::parse_module;
use xla_hlo::{Error, Module, Result};
use xla_passes::{
    DeadCode, Pass, PassContext, PassEvent, PassObserver, PassOptions, Pipeline, SimplifyAlgebra, SimplifyTuples,
    TargetProfile, stages,
};

const TEXT: &str = include_str!("programs/pipeline.hlo");

fn module() -> Module {
    parse_module(TEXT).expect("the test's module")
}

fn options() -> PassOptions {
    PassOptions { verify: true, ..PassOptions::default() }
}

/// Pass that replaces `abs` by `negate` and vice versa, without a fixpoint.
struct Restless;

impl Pass for Restless {
    fn name(&self) -> &'static str {
        "restless"
    }

    fn rewrite(&self, module: &mut Module, _: &PassContext<'_>) -> Result<()> {
        let entry = module.entry_id();
        let root = module[entry].root();
        let turned = match module[entry][root].opcode() {
            xla_hlo::Opcode::Abs => UnaryOp::Negate,
            _ => UnaryOp::Abs,
        };
        module.computation_mut(entry).set_op(root, Unary::from(turned).into());
        Ok(())
    }
}

/// Pass that sets the root to a shape that is invalid for its operation.
struct Breaks;

impl Pass for Breaks {
    fn name(&self) -> &'static str {
        "breaks"
    }

    fn rewrite(&self, module: &mut Module, _: &PassContext<'_>) -> Result<()> {
        let entry = module.entry_id();
        let root = module[entry].root();
        module.computation_mut(entry).set_shape(root, xla_hlo::Shape::array(xla_hlo::ElementType::F32, [7]));
        Ok(())
    }
}

struct Fails;

impl Pass for Fails {
    fn name(&self) -> &'static str {
        "fails"
    }

    fn rewrite(&self, _: &mut Module, _: &PassContext<'_>) -> Result<()> {
        Err(Error::unimplemented("this"))
    }
}

#[test]
fn a_fixed_point_ends_when_a_round_changes_nothing() {
    let profile = TargetProfile::generic();
    let pipeline = Pipeline::fixed_point("group", 10).pass(SimplifyAlgebra).pass(DeadCode);
    let mut module = module();
    let report = pipeline.run(&mut module, &PassContext::new(&profile).with_options(options())).expect("it runs");
    let changed: Vec<bool> = report.runs.iter().map(|r| r.changed).collect();
    assert_eq!(changed, [true, true, false, false]);
    assert!(report.unfinished.is_empty());
    assert_eq!(report.runs[1].path, "group.dead-code");
    assert_eq!(module.entry().len(), 2);
}

#[test]
fn a_group_that_never_rests_is_stopped_and_reported() {
    let profile = TargetProfile::generic();
    let pipeline = Pipeline::new("all").stage(Pipeline::fixed_point("group", 5).pass(Restless)).pass(DeadCode);
    let report = pipeline.run(&mut module(), &PassContext::new(&profile)).expect("it runs");
    assert_eq!(report.runs.len(), 6);
    assert_eq!(report.unfinished, ["all.group"]);
}

#[test]
fn until_stops_after_a_pass_or_a_stage() {
    let profile = TargetProfile::generic();
    for (until, runs) in [("simplify-tuples", 1), ("simplify-algebra", 2), ("first", 2), ("dead-code", 3)] {
        let first = Pipeline::new("first").pass(SimplifyTuples).pass(SimplifyAlgebra);
        let pipeline = Pipeline::new("all").stage(first).pass(DeadCode);
        let cx = PassContext::new(&profile).with_options(PassOptions { until: Some(until.into()), ..options() });
        let report = pipeline.run(&mut module(), &cx).expect("it runs");
        assert_eq!(report.runs.len(), runs, "until {until}");
        assert!(report.cut_at.is_some_and(|path| path.ends_with(until)));
    }
}

#[test]
fn until_a_pass_that_is_not_there_is_refused() {
    let profile = TargetProfile::generic();
    let cx = PassContext::new(&profile).with_options(PassOptions { until: Some("nothing".into()), ..options() });
    let error = stages::simplify(&profile).run(&mut module(), &cx).expect_err("there is no such pass");
    assert!(matches!(error, Error::InvalidArgument(_)));
    assert!(error.message().contains("nothing") && error.message().contains("simplify-loops"), "{error}");
}

#[test]
fn counts_cut_passes_and_rewrites() {
    let profile = TargetProfile::generic();
    let pipeline = Pipeline::new("all").pass(SimplifyAlgebra).pass(DeadCode);
    let cx = PassContext::new(&profile).with_options(PassOptions { max_passes: Some(1), ..options() });
    let report = pipeline.run(&mut module(), &cx).expect("it runs");
    assert_eq!((report.runs.len(), report.cut_at.as_deref()), (1, Some("all.dead-code")));
    let cx = PassContext::new(&profile).with_options(PassOptions { max_rewrites: Some(1), ..options() });
    let report = pipeline.run(&mut module(), &cx).expect("it runs");
    assert_eq!(report.rewrites().values().sum::<u64>(), 1);
    assert!(report.to_string().contains("rule involution: 1"), "{report}");
}

#[test]
fn disabled_passes_do_not_run() {
    let profile = TargetProfile::generic();
    let pipeline = Pipeline::new("all").pass(SimplifyAlgebra).pass(DeadCode);
    let disabled = ["dead-code".to_string()].into();
    let cx = PassContext::new(&profile).with_options(PassOptions { disabled, ..options() });
    let mut module = module();
    let report = pipeline.run(&mut module, &cx).expect("it runs");
    assert_eq!(report.runs.len(), 1);
    assert!(module.entry().find("unused").is_some());
}

#[test]
fn the_verifier_blames_the_pass() {
    let profile = TargetProfile::generic();
    let pipeline = Pipeline::new("all").pass(DeadCode).pass(Breaks);
    let error = pipeline.run(&mut module(), &PassContext::new(&profile).with_options(options())).expect_err("invalid");
    assert!(matches!(error, Error::Internal(_)));
    assert!(error.message().contains("after pass all.breaks"), "{error}");
    let unchecked = PassOptions { verify: false, ..options() };
    assert!(pipeline.run(&mut module(), &PassContext::new(&profile).with_options(unchecked)).is_ok());
}

#[test]
fn errors_name_the_pass() {
    let profile = TargetProfile::generic();
    let error = Pipeline::new("all").pass(Fails).run(&mut module(), &PassContext::new(&profile)).expect_err("it fails");
    assert!(matches!(error, Error::Unimplemented(_)));
    assert_eq!(error.message(), "in pass all.fails: this");
}

#[derive(Default)]
struct Watcher(Mutex<Vec<String>>);

impl PassObserver for Watcher {
    fn before(&self, event: &PassEvent<'_>) -> Result<()> {
        self.0.lock().expect("one thread").push(format!("{} {}", event.index, event.path));
        Ok(())
    }

    fn after(&self, event: &PassEvent<'_>) -> Result<()> {
        self.0.lock().expect("one thread").push(format!("{} {}", event.pass, event.changed));
        Ok(())
    }
}

#[test]
fn observers_see_each_pass() {
    let profile = TargetProfile::generic();
    let watcher = Watcher::default();
    let cx = PassContext::new(&profile).with_options(options()).with_observer(&watcher);
    Pipeline::new("all").pass(SimplifyTuples).pass(DeadCode).run(&mut module(), &cx).expect("it runs");
    let seen = watcher.0.into_inner().expect("one thread");
    assert_eq!(seen, ["0 all.simplify-tuples", "simplify-tuples false", "1 all.dead-code", "dead-code true"]);
}

#[test]
fn the_standard_pipeline_reads_as_a_list() {
    insta::assert_snapshot!(stages::standard(&TargetProfile::generic()).to_string());
}
