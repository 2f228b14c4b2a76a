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

const KERNELS: &str = "
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(a, b)
}

ENTRY main {
  x = f32[64,256] parameter(0)
  w = f32[256,64] parameter(1)
  table = f32[2] constant({1, 2})
  half = f32[] constant(0.5)
  start = f32[] parameter(2)
  halves = f32[64,256] broadcast(half), dimensions={}
  scaled = f32[64,256] multiply(x, halves)
  exp = f32[64,256] exponential(scaled)
  total = f32[64] reduce(exp, start), dimensions={1}, to_apply=add
  columns = f32[256] reduce(exp, half), dimensions={0}, to_apply=add
  both = f32[64,256] add(scaled, exp)
  product = f32[64,64] dot(both, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  shifted = f32[64,64] add(product, product)
  turned = f32[64,64] transpose(shifted), dimensions={1,0}
  kept = f32[64,64] negate(turned)
  wide = f32[128] concatenate(total, total), dimensions={0}
  pairs = f32[2,64] reshape(wide)
  ROOT out = (f32[64], f32[256], f32[64,64], f32[64,64], f32[2,64], f32[2]) tuple(total, columns, kept, turned, pairs, table)
}";

#[test]
fn each_producer_and_reader_has_a_reason() {
    insta::assert_snapshot!(lines(&decisions(KERNELS, "fuse", |_| ())));
}

#[test]
fn limits_are_named() {
    let text = "
ENTRY main {
  a = f32[64] parameter(0)
  b = f32[64] parameter(1)
  c = f32[64] parameter(2)
  sum = f32[64] add(a, b)
  big = f32[64] multiply(sum, c)
  ROOT out = f32[64] negate(big)
}";
    let few_operands = lines(&decisions(text, "fuse", |p| p.fusion.max_operands = 3));
    let few_instructions = lines(&decisions(text, "fuse", |p| p.fusion.max_instructions = 2));
    insta::assert_snapshot!(format!("{few_operands}\n{few_instructions}"));
}

#[test]
fn updates_in_place_say_what_they_keep_out() {
    let text = "
ENTRY main {
  buffer = f32[64] parameter(0)
  at = s32[] parameter(1)
  zero = s32[] constant(0)
  part = f32[4] dynamic-slice(buffer, at), dynamic_slice_sizes={4}
  other = f32[4] dynamic-slice(buffer, zero), dynamic_slice_sizes={4}
  new = f32[4] add(part, other)
  ROOT out = f32[64] dynamic-update-slice(buffer, new, at)
}";
    insta::assert_snapshot!(lines(&decisions(text, "fuse", |_| ())));
}

#[test]
fn rows_and_outputs_have_reasons_too() {
    let text = "
max {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT larger = f32[] maximum(a, b)
}

ENTRY main {
  x = f32[64,256] parameter(0)
  least = f32[] constant(-inf)
  top = f32[64] reduce(x, least), dimensions={1}, to_apply=max
  spread = f32[64,256] broadcast(top), dimensions={0}
  centred = f32[64,256] subtract(x, spread)
  weights = f32[64,256] exponential(centred)
  doubled = f32[64,256] add(x, x)
  tops = f32[64,256] broadcast(top), dimensions={0}
  more = f32[64,256] multiply(doubled, tops)
  down = f32[256] reduce(more, least), dimensions={0}, to_apply=max
  ROOT out = (f32[64,256], f32[256], f32[64,256]) tuple(weights, down, doubled)
}";
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
