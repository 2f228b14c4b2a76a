//! Tests of loads, stores, state spaces, atomics and control flow.

use super::bench::{Bench, kernel};

#[test]
fn elements_of_all_sizes_are_loaded_and_stored() {
    let body = "ld.global.u8 %r1, [%rd0]; ld.global.s8 %r2, [%rd0+1]; ld.global.s16 %r3, [%rd0+2]; ld.global.b16 %rs1, [%rd0+4];
        ld.global.v2.b32 {%r4, %r5}, [%rd0+8]; st.global.v4.b32 [%rd1], {%r1, %r2, %r3, %r4}; st.global.b32 [%rd1+16], %r5;
        st.global.b8 [%rd1+20], %r5; st.global.b16 [%rd1+22], %rs1; st.global.b8 [%rd1+21], %r1; ld.global.s32 %rd5, [%rd0+12];
        st.global.b64 [%rd1+24], %rd5;";
    let mut bench = Bench::new();
    let from = bench.words(&[0x8001_80ff, 0x1234, 7, 0x8000_0009]);
    let into = bench.fresh(32);
    bench.run(&kernel(2, "", body), 1, 1, &[from, into]);
    let expected = [0xff, 0xffff_ff80, 0xffff_8001, 7, 0x8000_0009, 0x1234_ff09, 0x8000_0009, 0xffff_ffff];
    assert_eq!(bench.read(into, 8), expected);
}

#[test]
fn shared_and_local_memory_have_addresses_of_their_own() {
    let declarations = ".shared .align 16 .b8 tile[64]; .local .align 8 .b8 depot[16]; .reg .b64 %SP; .reg .b64 %SPL;";
    let body = "mov.b64 %SPL, depot; cvta.local.u64 %SP, %SPL; st.local.b32 [%SPL+4], 5; ld.b32 %r1, [%SP+4];
        mov.b64 %rd2, tile; st.shared.b32 [%rd2+8], 6; cvta.shared.u64 %rd3, %rd2; ld.b32 %r2, [%rd3+8];
        st.shared.b32 [tile+12], 7; ld.shared.b32 %r3, [tile+12]; cvta.to.shared.u64 %rd4, %rd3; ld.shared.b32 %r4, [%rd4+12];
        st.global.v4.b32 [%rd0], {%r1, %r2, %r3, %r4};";
    let mut bench = Bench::new();
    let into = bench.fresh(16);
    bench.run(&kernel(1, declarations, body), 2, 1, &[into]);
    assert_eq!(bench.read(into, 4), [5, 6, 7, 7]);
}

#[test]
fn dynamic_shared_memory_comes_behind_what_is_declared() {
    let text = kernel(
        1,
        ".shared .align 4 .b8 fixed[20];",
        "mov.b64 %rd2, fixed; mov.b64 %rd3, more; sub.s64 %rd4, %rd3, %rd2; st.shared.b32 [more+4], %rd4; ld.shared.b32 %r1, [more+4];
         st.global.b32 [%rd0], %r1;",
    );
    let text = text.replace(".visible", ".extern .shared .align 16 .b8 more[];\n.visible");
    let mut bench = Bench::new();
    let into = bench.fresh(4);
    bench.try_run_with(&text, 1, 1, 8, &[into]).unwrap();
    assert_eq!(bench.read(into, 1), [32]);
    let finding = bench.try_run_with(&text, 1, 1, 4, &[into]).unwrap_err();
    assert!(finding.problem.message.contains("outside of the 36 bytes of shared memory"), "{finding}");
}

#[test]
fn variables_of_the_module_begin_with_their_values() {
    let text = kernel(1, "", "ld.global.b32 %r1, [table+4]; mov.b64 %rd1, table; ld.const.b64 %rd2, [one];
        st.global.b32 [%rd0], %r1; st.global.b32 [%rd0+4], %rd2; ld.global.b32 %r2, [%rd1+8]; st.global.b32 [%rd0+8], %r2;");
    let variables =
        ".global .align 4 .b32 table[3] = {5, -6};\n.const .align 8 .f64 one = 0d3FF0000000000001;\n.visible";
    let mut bench = Bench::new();
    let into = bench.fresh(12);
    bench.run(&text.replace(".visible", variables), 1, 1, &[into]);
    assert_eq!(bench.read(into, 3), [0xffff_fffa, 1, 0]);
}

#[test]
fn atomics_change_memory_and_give_what_was_there() {
    let cases = [
        ("atom.global.add.u32 %r1, [%rd0], 5;", 7u32, 12u32),
        ("atom.global.add.f32 %r1, [%rd0], 0f3F800000;", 2f32.to_bits(), 3f32.to_bits()),
        ("atom.global.max.s32 %r1, [%rd0], -5;", 7, 7),
        ("atom.global.max.u32 %r1, [%rd0], -5;", 7, 0xffff_fffb),
        ("atom.relaxed.gpu.global.cas.b32 %r1, [%rd0], 7, 9;", 7, 9),
        ("atom.relaxed.gpu.global.cas.b32 %r1, [%rd0], 8, 9;", 7, 7),
        ("atom.global.exch.b32 %r1, [%rd0], 9;", 7, 9),
        ("atom.global.and.b32 %r1, [%rd0], 6;", 7, 6),
        ("atom.global.xor.b32 %r1, [%rd0], 6;", 7, 1),
        ("atom.global.inc.u32 %r1, [%rd0], 7;", 7, 0),
        ("atom.global.dec.u32 %r1, [%rd0], 9;", 0, 9),
    ];
    for (instruction, before, after) in cases {
        let mut bench = Bench::new();
        let (at, into) = (bench.words(&[before]), bench.fresh(4));
        bench.run(&kernel(2, "", &format!("{instruction} st.global.b32 [%rd1], %r1;")), 1, 1, &[at, into]);
        assert_eq!((bench.read(at, 1)[0], bench.read(into, 1)[0]), (after, before), "{instruction}");
    }
    // No update of concurrent ones is lost.
    let mut bench = Bench::new();
    let at = bench.words(&[1]);
    bench.run(&kernel(1, "", "red.global.add.u32 [%rd0], 1;"), 5, 100, &[at]);
    assert_eq!(bench.read(at, 1), [501]);
}

#[test]
fn branches_and_guards() {
    // Sum of all numbers up to the thread's index.
    let body = "mov.b32 %r1, 0; mov.b32 %r2, %r9; mul.wide.u32 %rd1, %r9, 4; add.s64 %rd1, %rd1, %rd0;
        $again: setp.eq.s32 %p1, %r2, 0; @%p1 bra $done; add.s32 %r1, %r1, %r2; sub.s32 %r2, %r2, 1; bra.uni $again;
        $done: and.b32 %r3, %r9, 1; setp.ne.s32 %p2, %r3, 0; @!%p2 neg.s32 %r1, %r1; st.global.b32 [%rd1], %r1;";
    let mut bench = Bench::new();
    let into = bench.fresh(16);
    bench.run(&kernel(1, "", body), 1, 4, &[into]);
    assert_eq!(bench.read(into, 4), [0, 1, (-3i32) as u32, 6]);
}

#[test]
fn threads_know_where_they_are() {
    let body = "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %nctaid.x; mov.u32 %r4, %laneid; mad.lo.s32 %r5, %r1, %r2, %r9;
        mul.wide.u32 %rd1, %r5, 16; add.s64 %rd1, %rd1, %rd0; st.global.v4.b32 [%rd1], {%r9, %r1, %r3, %r4};";
    let mut bench = Bench::new();
    let into = bench.fresh(2 * 40 * 16);
    bench.run(&kernel(1, "", body), 2, 40, &[into]);
    let words = bench.read(into, 2 * 40 * 4);
    assert_eq!(words[73 * 4..][..4], [33, 1, 2, 1]);
}

#[test]
fn parameters_have_generic_addresses() {
    let text = kernel(2, ".reg .b64 %at, %there;", "mov.b64 %at, p1; cvta.param.u64 %there, %at; ld.b32 %r1, [%there+4]; ld.param.b32 %r2, [%at];
        cvta.param.u64 %rd5, p1; sub.s64 %rd5, %rd5, %there; st.global.b32 [%rd0], %r1; st.global.b32 [%rd0+4], %r2; st.global.b32 [%rd0+8], %rd5;");
    let mut bench = Bench::new();
    let into = bench.fresh(12);
    bench.run(&text, 1, 1, &[into, 7 << 32 | 9]);
    assert_eq!(bench.read(into, 3), [7, 9, 0]);
    let beyond = text.replace("[%there+4]", "[%there+8]");
    let finding = bench.try_run(&beyond, 1, 1, &[into, 0]).unwrap_err().to_string();
    assert!(finding.contains("outside of the kernel's parameters"), "{finding}");
}

#[test]
fn scopes_have_registers_and_labels_of_their_own() {
    // Outer registers keep their values, and each scope branches to its own label.
    let scope =
        "{ .reg .b32 %r<3>; .reg .pred p; mov.b32 %r1, NUMBER; setp.eq.u32 p, 0, 0; @p bra DONE; mov.b32 %r1, 99; DONE:
        { .reg .b32 a; add.s32 a, %r1, 1; st.global.b32 [%rd0+PLACE], a; } }";
    let both =
        [("10", "0"), ("20", "4")].map(|(number, place)| scope.replace("NUMBER", number).replace("PLACE", place));
    let body = format!("mov.b32 %r1, 5; {} st.global.b32 [%rd0+8], %r1;", both.concat());
    let mut bench = Bench::new();
    let into = bench.fresh(12);
    bench.run(&kernel(1, "", &body), 1, 1, &[into]);
    assert_eq!(bench.read(into, 3), [11, 21, 5]);
}

#[test]
fn registers_of_32_bits_are_addresses_of_shared_memory() {
    let body = "mov.b32 %r1, 1; sub.s32 %r1, %r1, 2; mov.b64 %rd1, tile; cvt.u32.u64 %r2, %rd1; add.s32 %r2, %r2, 5; add.s32 %r2, %r2, %r1;
        st.shared.b32 [%r2], 8; ld.shared.b32 %r3, [tile+4]; st.global.b32 [%rd0], %r3;";
    let mut bench = Bench::new();
    let into = bench.fresh(4);
    bench.run(&kernel(1, ".shared .align 8 .b8 tile[8];", body), 1, 1, &[into]);
    assert_eq!(bench.read(into, 1), [8]);
}
