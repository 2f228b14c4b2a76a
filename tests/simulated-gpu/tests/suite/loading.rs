//! Tests of PTX that cannot be loaded, and of the error messages.

use simulated_gpu::code::Approximations;
use simulated_gpu::machine::Memory;
use simulated_gpu::program::Program;

use super::bench::kernel;

fn refused(text: &str) -> String {
    let mut memory = Memory::new(1 << 20, true);
    let told = Program::load(text, &mut memory, 80, Approximations::Exact).map(|_| ()).unwrap_err().to_string();
    assert_eq!(memory.free_and_total(), (1 << 20, 1 << 20), "what is refused leaves nothing behind");
    told
}

#[test]
fn what_is_not_known_is_told_with_its_line() {
    let of = |body: &str| refused(&kernel(1, "", body));
    assert_eq!(
        of("mulx.f32 %r1, %r2, %r3;"),
        "PTX line 10: the instruction `mulx.f32` is not known, or not with these operands"
    );
    for (body, expected) in [
        ("add.s32 %r1, %r2;", "`add.s32` is not known, or not with these"),
        ("add.s32 %r1, %r2, %x3;", "`%x3` is not declared"),
        ("add.s32 %r1, %r2, %r10;", "`%r10` is beyond the registers"),
        ("bra $nowhere;", "there is no label $nowhere"),
        ("$a: $a: ret;", "the label $a is there twice"),
        ("ld.global.b128 %r1, [%rd0];", "`ld.global.b128` is not known"),
        ("add.s32 %r1, %r2, %r3", "expected `,`, found `ret`"),
        ("call.uni nobody, (%r1);", "the function nobody is not declared"),
        ("st.const.b32 [%rd0], %r1;", "constant memory cannot be written"),
        ("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%r1}, {%r1}, {%r1}, {%r1};", "`mma.sync.aligned"),
    ] {
        assert!(of(body).contains(expected), "{body}\n{}", of(body));
    }
}

#[test]
fn modules_that_are_no_modules() {
    assert_eq!(refused(""), "PTX line 1: the module has no .target");
    assert_eq!(refused(".target sm_70\n.file 1"), "PTX line 2: the directive `.file` is not known");
    assert!(refused(".target sm_70 .visible .entry k() { add").contains("the end"));
    assert_eq!(
        refused(&kernel(0, "", "").replace("sm_80", "sm_90")),
        "the module is for sm_90, and the device is sm_80"
    );
    assert_eq!(
        refused(&kernel(0, "", "").replace("sm_80", "sm_70a")),
        "the module is for sm_70a, and the device is sm_80"
    );
    let big = kernel(0, "", "").replace(".visible", ".global .b8 small[8]; .global .b8 big[9999999];\n.visible");
    assert_eq!(refused(&big), "there is no memory for the variable big");
}
