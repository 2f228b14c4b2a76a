//! Passes that run alone until they change nothing.

use xla_hlo::Error;
use xla_hlo::text::parse_module;
use xla_passes::TargetProfile;
use xla_tests::each_pass::at_rest;

const TEXT: &str = "ENTRY main { x = f32[4] parameter(0)\n d = f32[4] cosine(x)\n ROOT y = f32[4] negate(x) }";

#[test]
fn a_pass_runs_until_it_has_nothing_to_do() {
    let mut module = parse_module(TEXT).unwrap();
    assert!(at_rest("dead-code", &TargetProfile::able(), &mut module).unwrap());
    assert_eq!(module.entry().len(), 2);
    assert!(!at_rest("dead-code", &TargetProfile::able(), &mut module).unwrap());
}

#[test]
fn passes_that_want_others_in_front_say_so() {
    let mut module = parse_module(TEXT).unwrap();
    let schedule = at_rest("schedule", &TargetProfile::able(), &mut module);
    assert!(schedule.is_ok(), "{schedule:?}");
    let shared = include_str!("programs/passes_that_want_others_in_front_say_so.hlo");
    let refused = at_rest("schedule", &TargetProfile::able(), &mut parse_module(shared).unwrap());
    assert!(matches!(refused, Err(Error::FailedPrecondition(_))), "{refused:?}");
}
