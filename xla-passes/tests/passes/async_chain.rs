//! Tests of the order of instructions where async operations are replaced by synchronous ones.

use xla_hlo::Module;
use xla_hlo::text::parse_module;
use xla_passes::{ExpandAsync, ExpandCollectives, Pass, PassContext, TargetProfile};

fn expanded(instructions: &str) -> Module {
    let text = format!("ENTRY main {{\n x = f32[2] parameter(0)\n {instructions}\n}}");
    let mut module = parse_module(&text).unwrap();
    let profile = TargetProfile::generic();
    for pass in [&ExpandAsync as &dyn Pass, &ExpandCollectives] {
        pass.run(&mut module, &PassContext::new(&profile)).unwrap();
        xla_hlo::verify::check(&module).unwrap();
    }
    module
}

#[track_caller]
fn assert_order(module: &Module, names: &[&str]) {
    let entry = module.entry();
    let order: Vec<&str> = entry.sequence().into_iter().map(|id| entry[id].name()).collect();
    let places: Vec<_> = names.iter().map(|name| order.iter().position(|n| n == name)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{names:?} in {order:?}");
}

#[test]
fn what_stood_between_start_and_done_stays_in_front_of_users() {
    let module = expanded(
        "a = f32[2] cosine(x)\n s = ((f32[2]), f32[2], s32[]) sine-start(x), control-predecessors={a}\n \
         b = f32[2] tanh(x), control-predecessors={s}\n d = f32[2] sine-done(s), control-predecessors={b}\n \
         c = f32[2] floor(x), control-predecessors={d}\n u = f32[2] negate(d)\n \
         ROOT r = (f32[2], f32[2], f32[2], f32[2]) tuple(a, b, c, u)",
    );
    assert_order(&module, &["a", "d.1", "b", "u"]);
    assert_order(&module, &["b", "c"]);
}

#[test]
fn what_passes_through_makes_no_circle() {
    let module = expanded(
        "a = f32[2] cosine(x)\n p = f32[2] collective-permute(x), source_target_pairs={{0,0}}, \
         control-predecessors={a}\n u = f32[2] negate(p)\n ROOT r = (f32[2], f32[2]) tuple(a, u)",
    );
    assert_order(&module, &["x", "a", "u"]);
}
