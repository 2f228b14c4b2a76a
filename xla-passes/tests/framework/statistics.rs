//! Tests of the statistics of a pipeline run.

use xla_hlo::text::parse_module;
use xla_passes::{PassContext, PassOptions, Pipeline, PipelineStatistics, TargetProfile, registry};

/// Two equal exponentials of a double negation, and an unused sine.
const TEXT: &str = include_str!("programs/statistics.hlo");

/// Two calls of a function.
const CALL: &str = include_str!("programs/call.hlo");

fn statistics(text: &str, passes: &str, max_rewrites: Option<u64>) -> PipelineStatistics {
    let mut module = parse_module(text).expect("the test's module");
    let pipeline: Pipeline = registry::parse(passes).expect("passes of the registry");
    let profile = TargetProfile::generic();
    let options = PassOptions { verify: true, max_rewrites, ..PassOptions::default() };
    let cx = PassContext::new(&profile).with_options(options);
    pipeline.run(&mut module, &cx).expect("the passes succeed").statistics()
}

#[test]
fn rewrites_are_counted_by_pass_and_rule() {
    let table = statistics(TEXT, "inline-calls,[cse,algsimp,dce]*", None).to_string();
    insta::assert_snapshot!(table, @r"
    pass                              runs  changes  rewrites
    common-subexpressions                2        1         1
    simplify-algebra                     2        1         1
      involution                                            1
    dead-code                            2        1         -
    rewrites: 2; passes that changed nothing: 1
    ");
}

#[test]
fn rewrites_of_all_runs_of_a_pass_are_added() {
    let statistics = statistics(CALL, "inline-calls,cse,inline-calls", None);
    let [calls, merged] = &statistics.passes[..] else { panic!("{statistics:?}") };
    assert_eq!((calls.pass, calls.runs, calls.changes, calls.total()), ("inline-calls", 2, 1, 2));
    assert_eq!((merged.pass, merged.runs, merged.changes, merged.total()), ("common-subexpressions", 1, 0, 0));
}

#[test]
fn refused_rewrites_are_not_counted() {
    let statistics = statistics(CALL, "inline-calls", Some(1));
    assert_eq!(statistics.passes[0].total(), 1);
}
