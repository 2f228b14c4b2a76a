//! Tests that instructions with effects are kept, ordered, and neither merged nor removed.

use xla_hlo::text::parse_module;
use xla_hlo::{Module, Opcode};
use xla_passes::{
    CommonSubexpressions, DeadCode, InlineCalls, Pass, PassContext, Schedule, SimplifyAlgebra, SimplifyConditionals,
    SimplifyLoops, SimplifyTuples, TargetProfile, UnrollLoops,
};

/// Runs passes that remove and merge instructions on a program.
fn simplified(instructions: &str) -> Module {
    let text = format!(
        "ENTRY main {{\n x = f32[4] parameter(0)\n t = token[] after-all()\n {instructions}\n ROOT r = f32[4] negate(x)\n}}"
    );
    let mut module = parse_module(&text).unwrap();
    let profile = TargetProfile::generic();
    let cx = PassContext::new(&profile);
    let passes: [&dyn Pass; 9] = [
        &InlineCalls,
        &SimplifyTuples,
        &SimplifyAlgebra,
        &CommonSubexpressions,
        &SimplifyConditionals,
        &SimplifyLoops,
        &UnrollLoops,
        &DeadCode,
        &Schedule,
    ];
    for pass in passes {
        pass.run(&mut module, &cx).unwrap_or_else(|e| panic!("{}: {e}", pass.name()));
        xla_hlo::verify::check(&module).unwrap_or_else(|e| panic!("{}: {e}", pass.name()));
    }
    module
}

fn count(module: &Module, opcode: Opcode) -> usize {
    module.iter().map(|(_, c)| c.iter().filter(|(_, i)| i.opcode() == opcode).count()).sum()
}

#[test]
fn effects_are_neither_removed_nor_merged() {
    let module = simplified(
        "a = (f32[4], token[]) infeed(t)\n b = (f32[4], token[]) infeed(t)\n o = token[] outfeed(x, t)\n \
         p = token[] outfeed(x, t)\n s = (f32[4], u32[], token[]) send(x, t)\n d = token[] send-done(s)\n \
         e = (f32[4], u32[], token[]) recv(t)\n f = (f32[4], token[]) recv-done(e)\n \
         g = (f32[4], u32[], token[]) recv(t)\n h = (f32[4], token[]) recv-done(g)",
    );
    let counts = [
        (Opcode::Infeed, 2),
        (Opcode::Outfeed, 2),
        (Opcode::Send, 1),
        (Opcode::SendDone, 1),
        (Opcode::Recv, 2),
        (Opcode::RecvDone, 2),
        (Opcode::AfterAll, 1),
    ];
    for (opcode, expected) in counts {
        assert_eq!(count(&module, opcode), expected, "{opcode}");
    }
}

#[test]
fn tokens_and_control_dependencies_order_the_schedule() {
    let module = simplified(
        "o = token[] outfeed(x, t)\n q = token[] after-all()\n p = token[] outfeed(x, q), control-predecessors={o}\n \
         u = token[] after-all(p)\n y = f32[4] add-dependency(x, u)\n z = token[] outfeed(y, q)",
    );
    let entry = module.entry();
    let order: Vec<&str> = entry.sequence().into_iter().map(|id| entry[id].name()).collect();
    let at = |name: &str| order.iter().position(|n| *n == name).unwrap_or_else(|| panic!("{name} in {order:?}"));
    assert!(at("o") < at("p") && at("p") < at("u") && at("u") < at("y") && at("y") < at("z"), "{order:?}");
}

#[test]
fn an_async_start_goes_with_its_done() {
    let begun = "((f32[4]), f32[4], s32[])";
    let module = simplified(&format!(
        "s = {begun} sine-start(x)\n d = f32[4] sine-done(s)\n u = {begun} sine-start(x)\n v = f32[4] sine-done(u)\n \
         c = (f32[4], f32[4], u32[]) copy-start(x)\n e = f32[4] copy-done(c)"
    ));
    assert_eq!(count(&module, Opcode::AsyncStart) + count(&module, Opcode::CopyStart), 0);
    let used = simplified(&format!(
        "s = {begun} sine-start(x)\n d = f32[4] sine-done(s)\n u = {begun} sine-start(x)\n v = f32[4] sine-done(u)\n \
         o = token[] outfeed(d, t)\n p = token[] outfeed(v, t)"
    ));
    assert_eq!((count(&used, Opcode::AsyncStart), count(&used, Opcode::AsyncDone)), (2, 2));
    let dead_result =
        simplified("s = ((f32[4], token[]), token[], s32[]) outfeed-start(x, t)\n d = token[] outfeed-done(s)");
    assert_eq!((count(&dead_result, Opcode::AsyncStart), count(&dead_result, Opcode::AsyncDone)), (1, 1));
}
