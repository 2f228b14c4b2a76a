//! Tests of the reasons of fusion decisions.

use xla_hlo::text::parse_module;
use xla_passes::{FusionDecision, FusionRecorder, PassContext, Pipeline, TargetProfile, registry};

fn decisions(text: &str, passes: &str, change: impl Fn(&mut TargetProfile)) -> Vec<FusionDecision> {
    let mut profile = TargetProfile::generic();
    change(&mut profile);
    let mut module = parse_module(text).expect("the test's module");
    let pipeline: Pipeline = registry::pipeline(passes.split(',')).expect("passes of the registry");
    let recorder = FusionRecorder::default();
    pipeline.run(&mut module, &PassContext::new(&profile).with_observer(&recorder)).expect("it runs");
    recorder.take()
}

fn lines(decisions: &[FusionDecision]) -> String {
    decisions.iter().map(|d| format!("{d}\n")).collect()
}

const KERNELS: &str = include_str!("programs/kernels.hlo");

#[test]
fn each_producer_and_reader_has_a_reason() {
    insta::assert_snapshot!(lines(&decisions(KERNELS, "fuse", |_| ())));
}

#[test]
fn limits_are_named() {
    let text = include_str!("programs/limits_are_named.hlo");
    let few_operands = lines(&decisions(text, "fuse", |p| p.fusion.max_operands = 3));
    let few_instructions = lines(&decisions(text, "fuse", |p| p.fusion.max_instructions = 2));
    insta::assert_snapshot!(format!("{few_operands}\n{few_instructions}"));
}

#[test]
fn updates_in_place_say_what_they_keep_out() {
    let text = include_str!("programs/updates_in_place_say_what_they_keep_out.hlo");
    insta::assert_snapshot!(lines(&decisions(text, "fuse", |_| ())));
}

#[test]
fn rows_and_outputs_have_reasons_too() {
    let text = include_str!("programs/rows_and_outputs_have_reasons_too.hlo");
    let rows = lines(&decisions(text, "fuse,fuse-rows,fuse-outputs", |p| p.fusion.row_kernels = true));
    let outputs = lines(&decisions(text, "fuse,fuse-outputs", |_| ()));
    insta::assert_snapshot!(format!("{rows}\n{outputs}"));
}

#[test]
fn decisions_are_found_by_name() {
    let all = decisions(KERNELS, "fuse", |_| ());
    let found: Vec<&FusionDecision> = all.iter().filter(|d| d.concerns("%both")).collect();
    assert!(!found.is_empty() && found.len() < all.len(), "{found:?}");
    assert!(!all.iter().any(|d| d.concerns("bot")));
    assert!(all.iter().filter(|d| d.reason.is_fused()).count() < all.len());
}

#[test]
fn decisions_are_written_for_programs() {
    let all = decisions(KERNELS, "fuse", |_| ());
    insta::assert_snapshot!(xla_passes::analysis::json(&all));
}
