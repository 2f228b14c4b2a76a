//! Tests of arithmetic instructions, against values computed by hand.

use simulated_gpu::code::Approximations;

use super::bench::{Bench, kernel};

/// Runs an instruction on three words: `%rd1`, `%r1`, `%rs1` and `%p1` hold the first one, and so on. The result is
/// register 4 of any kind.
fn result(instruction: &str, words: [u64; 3]) -> u64 {
    result_of(Bench::new(), instruction, words)
}

fn result_of(mut bench: Bench, instruction: &str, words: [u64; 3]) -> u64 {
    let store = match instruction {
        text if text.contains("%rd4") => "st.global.b64 [%rd0], %rd4;",
        text if text.contains("%rs4") => "st.global.b16 [%rd0], %rs4;",
        text if text.contains("%p4") => "selp.b32 %r5, 1, 0, %p4; st.global.b32 [%rd0], %r5;",
        _ => "st.global.b32 [%rd0], %r4;",
    };
    let narrow: String = (1..4)
        .map(|i| format!("cvt.u32.u64 %r{i}, %rd{i}; cvt.u16.u64 %rs{i}, %rd{i}; setp.ne.u64 %p{i}, %rd{i}, 0;\n"))
        .collect();
    let into = bench.words(&[0, 0]);
    bench.run(&kernel(4, "", &format!("{narrow}{instruction};\n{store}")), 1, 1, &[into, words[0], words[1], words[2]]);
    let found = bench.read(into, 2);
    u64::from(found[0]) | u64::from(found[1]) << 32
}

/// Approximate instructions: each case has the low, the exact and the high result.
#[test]
fn approximations() {
    let cases = [
        ("rcp.approx.ftz.f32 %r4, %r1", f(4.0), [0x3e7f_ffff, 0x3e80_0000, 0x3e80_0001]),
        ("ex2.approx.f32 %r4, %r1", f(3.0), [0x40ff_fffe, 0x4100_0000, 0x4100_0002]),
        ("div.full.f32 %r4, %r1, %r1", f(-3.0), [0x3f7f_fffe, 0x3f80_0000, 0x3f80_0002]),
        ("lg2.approx.f32 %r4, %r1", f(1.0), [f(-(2f32.powi(-22))), 0, f(2f32.powi(-22))]),
        ("lg2.approx.f32 %r4, %r1", f(4.0), [0x3fff_fffc, 0x4000_0000, 0x4000_0002]),
        ("tanh.approx.f32 %r4, %r1", f(100.0), [f(1.0 - 2f32.powi(-11)), f(1.0), f(1.0 + 2f32.powi(-11))]),
        // Infinities and zeros have no error, and neither have exact instructions.
        ("rcp.approx.ftz.f32 %r4, %r1", 0, [f(f32::INFINITY); 3]),
        ("ex2.approx.ftz.f32 %r4, %r1", f(-127.0), [0; 3]),
        ("div.rn.f32 %r4, %r1, %r1", f(3.0), [f(1.0); 3]),
    ];
    for (instruction, word, expected) in cases {
        let sides = [Approximations::Low, Approximations::Exact, Approximations::High];
        let found = sides.map(|side| result_of(Bench::with(side), instruction, [word, 0, 0]));
        assert_eq!(found, expected, "{instruction} gives {found:x?}");
    }
}

fn check(cases: &[(&str, [u64; 3], u64)]) {
    for (instruction, words, expected) in cases {
        let found = result(instruction, *words);
        assert_eq!(found, *expected, "{instruction} of {words:x?} gives {found:#x}, not {expected:#x}");
    }
}

fn f(value: f32) -> u64 {
    u64::from(value.to_bits())
}

fn d(value: f64) -> u64 {
    value.to_bits()
}

const MINUS: u64 = u64::MAX;
const NAN: u64 = 0x7fc0_0000;

#[test]
fn integers() {
    check(&[
        ("add.s32 %r4, %r1, %r2", [0xffff_ffff, 2, 0], 1),
        ("sub.s64 %rd4, %rd1, %rd2", [1, 3, 0], MINUS - 1),
        ("add.s16 %rs4, %rs1, %rs2", [0xffff, 3, 0], 2),
        ("mul.lo.s32 %r4, %r1, %r2", [0x1_0001, 0x1_0001, 0], 0x2_0001),
        ("mul.hi.u32 %r4, %r1, %r2", [0xffff_ffff, 0xffff_ffff, 0], 0xffff_fffe),
        ("mul.hi.s32 %r4, %r1, %r2", [0xffff_ffff, 7, 0], 0xffff_ffff),
        ("mul.hi.u64 %rd4, %rd1, %rd2", [MINUS, MINUS, 0], MINUS - 1),
        ("mul.hi.s64 %rd4, %rd1, %rd2", [MINUS, 7, 0], MINUS),
        ("mul.hi.u16 %rs4, %rs1, %rs2", [0xffff, 0xffff, 0], 0xfffe),
        ("mul.wide.u32 %rd4, %r1, %r2", [0xffff_ffff, 0xffff_ffff, 0], 0xffff_fffe_0000_0001),
        ("mul.wide.s32 %rd4, %r1, %r2", [0xffff_ffff, 7, 0], MINUS - 6),
        ("mul.wide.u16 %r4, %rs1, %rs2", [0xffff, 0x100, 0], 0xff_ff00),
        ("mad.lo.s64 %rd4, %rd1, %rd2, %rd3", [5, 7, 11], 46),
        ("mad.wide.s32 %rd4, %r1, %r2, %rd3", [0xffff_fffe, 3, 10], 4),
        ("div.s32 %r4, %r1, %r2", [0xffff_fff9, 2, 0], 0xffff_fffd),
        ("div.u64 %rd4, %rd1, %rd2", [MINUS, 2, 0], MINUS / 2),
        ("rem.s32 %r4, %r1, %r2", [0xffff_fff9, 2, 0], 0xffff_ffff),
        ("min.s32 %r4, %r1, %r2", [0xffff_ffff, 2, 0], 0xffff_ffff),
        ("min.u32 %r4, %r1, %r2", [0xffff_ffff, 2, 0], 2),
        ("max.s64 %rd4, %rd1, %rd2", [MINUS, 2, 0], 2),
        ("max.u16 %rs4, %rs1, %rs2", [0x8000, 2, 0], 0x8000),
        ("add.s16x2 %r4, %r1, %r2", [0x0001_ffff, 0x0002_0003, 0], 0x0003_0002),
        ("max.s16x2 %r4, %r1, %r2", [0x0001_ffff, 0x0002_0003, 0], 0x0002_0003),
        ("neg.s32 %r4, %r1", [5, 0, 0], 0xffff_fffb),
        ("abs.s32 %r4, %r1", [0xffff_fffb, 0, 0], 5),
        ("abs.s16 %rs4, %rs1", [0x8000, 0, 0], 0x8000),
    ]);
}

#[test]
fn bits() {
    check(&[
        ("and.b64 %rd4, %rd1, %rd2", [0xff00, 0x0ff0, 0], 0x0f00),
        ("or.b16 %rs4, %rs1, %rs2", [0xff00, 0x0ff0, 0], 0xfff0),
        ("xor.b32 %r4, %r1, %r2", [0xff00, 0x0ff0, 0], 0xf0f0),
        ("not.b32 %r4, %r1", [0xff00, 0, 0], 0xffff_00ff),
        ("and.pred %p4, %p1, %p2", [1, 0, 0], 0),
        ("not.pred %p4, %p2", [1, 0, 0], 1),
        // Shift amounts are clamped to the width.
        ("shl.b32 %r4, %r1, %r2", [1, 33, 0], 0),
        ("shl.b64 %rd4, %rd1, %r2", [1, 33, 0], 1 << 33),
        ("shr.u32 %r4, %r1, %r2", [0x8000_0000, 31, 0], 1),
        ("shr.s32 %r4, %r1, %r2", [0x8000_0000, 99, 0], 0xffff_ffff),
        ("shr.u64 %rd4, %rd1, %r2", [MINUS, 64, 0], 0),
        ("shr.s16 %rs4, %rs1, %r2", [0x8000, 4, 0], 0xf800),
        // The amount is a 32-bit word; upper bits are ignored.
        ("shl.b64 %rd4, %rd1, %r2", [1, 0x1_0000_0002, 0], 4),
        ("bfe.u32 %r4, %r1, 4, 8", [0xabcd_ef12, 0, 0], 0xf1),
        ("bfe.s32 %r4, %r1, 4, 8", [0xabcd_ef12, 0, 0], 0xffff_fff1),
        ("bfe.u64 %rd4, %rd1, 60, 8", [0xa000_0000_0000_0000, 0, 0], 0xa),
        ("bfe.s32 %r4, %r1, 28, 8", [0xa000_0000, 0, 0], 0xffff_fffa),
        ("bfi.b32 %r4, %r1, %r2, 8, 8", [0xabcd, 0x1111_1111, 0], 0x1111_cd11),
        ("bfi.b64 %rd4, %rd1, %rd2, 60, 8", [0xff, 0, 0], 0xf << 60),
        ("popc.b64 %r4, %rd1", [0xf0f0, 0, 0], 8),
        ("clz.b32 %r4, %r1", [0, 0, 0], 32),
        ("clz.b64 %r4, %rd1", [1, 0, 0], 63),
        ("brev.b32 %r4, %r1", [1, 0, 0], 0x8000_0000),
        ("prmt.b32 %r4, %r1, %r2, 0x7531", [0x3322_1100, 0x7766_5544, 0], 0x7755_3311),
        // Bit 3 of a selector replicates the byte's sign.
        ("prmt.b32 %r4, %r1, %r2, 0xb090", [0x8322_1100, 0, 0], 0xff00_0000),
        ("shf.l.wrap.b32 %r4, %r1, %r2, %r3", [0x8000_0000, 0x1, 1], 3),
        ("shf.r.wrap.b32 %r4, %r1, %r2, %r3", [0x8000_0000, 0x1, 33], 0xc000_0000),
        ("shf.l.clamp.b32 %r4, %r1, %r2, %r3", [0xabc, 0x1, 40], 0xabc),
        ("lop3.b32 %r4, %r1, %r2, %r3, 0x96", [0xff, 0x0f, 0x33], 0xff ^ 0x0f ^ 0x33),
        ("lop3.b32 %r4, %r1, %r2, %r3, 0xe8", [0b1100, 0b1010, 0b1001], 0b1000),
        ("selp.b32 %r4, %r1, %r2, %p3", [4, 5, 1], 4),
        ("selp.b64 %rd4, %rd1, %rd2, %p3", [4, 5, 0], 5),
        ("mov.b64 %rd4, {%r1, %r2}", [4, 5, 0], 5 << 32 | 4),
        ("mov.b64 {_, %r4}, %rd1", [7 << 32, 0, 0], 7),
        ("mov.b32 {%rs4, %rs5}, %r1", [0x1234_5678, 0, 0], 0x5678),
    ]);
}

#[test]
fn comparisons() {
    check(&[
        ("setp.lt.s32 %p4, %r1, %r2", [0xffff_ffff, 0, 0], 1),
        ("setp.lt.u32 %p4, %r1, %r2", [0xffff_ffff, 0, 0], 0),
        ("setp.ge.s64 %p4, %rd1, %rd2", [MINUS, 0, 0], 0),
        ("setp.eq.b16 %p4, %rs1, %rs2", [0x1_0005, 5, 0], 1),
        ("setp.lt.f32 %p4, %r1, %r2", [f(-0.0), f(0.0), 0], 0),
        ("setp.eq.f32 %p4, %r1, %r2", [f(-0.0), f(0.0), 0], 1),
        ("setp.ne.f32 %p4, %r1, %r2", [NAN, f(0.0), 0], 0),
        ("setp.neu.f32 %p4, %r1, %r2", [NAN, f(0.0), 0], 1),
        ("setp.equ.f32 %p4, %r1, %r2", [NAN, f(0.0), 0], 1),
        ("setp.ltu.f64 %p4, %rd1, %rd2", [d(1.0), d(f64::NAN), 0], 1),
        ("setp.geu.f64 %p4, %rd1, %rd2", [d(1.0), d(2.0), 0], 0),
        ("setp.num.f32 %p4, %r1, %r2", [NAN, f(0.0), 0], 0),
        ("setp.nan.f16 %p4, %rs1, %rs2", [0x7e00, 0, 0], 1),
        ("setp.gt.f16 %p4, %rs1, %rs2", [0x3c00, 0xbc00, 0], 1),
        ("setp.lt.and.s32 %p4, %r1, %r2, %p3", [1, 2, 0], 0),
        ("setp.lt.or.s32 %p4, %r1, %r2, !%p3", [2, 1, 0], 1),
        ("setp.lt.s32 %p5|%p4, %r1, %r2", [1, 2, 0], 0),
        // Lower halves: 1 and -1; upper halves: 1 and 2.
        ("setp.gt.f16x2 %p4|%p5, %r1, %r2", [0x3c00_3c00, 0x4000_bc00, 0], 1),
        ("setp.gt.f16x2 %p5|%p4, %r1, %r2", [0x3c00_3c00, 0x4000_bc00, 0], 0),
        ("setp.le.bf16x2 %p5|%p4, %r1, %r2", [0x3f80_3f80, 0x4000_bf80, 0], 1),
        ("setp.gt.and.f16x2 %p4|%p5, %r1, %r2, %p3", [0x3c00_3c00, 0x4000_bc00, 0], 0),
    ]);
}

#[test]
fn singles_and_doubles() {
    let tiny = f32::from_bits(1);
    check(&[
        ("add.f32 %r4, %r1, %r2", [f(1.0), f(2.5), 0], f(3.5)),
        // `mul` followed by `add` would round twice.
        ("mul.rn.f32 %r4, %r1, %r2", [f(1.0 + f32::EPSILON), f(1.0 - f32::EPSILON), 0], f(1.0)),
        (
            "fma.rn.f32 %r4, %r1, %r2, %r3",
            [f(1.0 + f32::EPSILON), f(1.0 - f32::EPSILON), f(-1.0)],
            f(-f32::EPSILON * f32::EPSILON),
        ),
        ("fma.rn.f64 %rd4, %rd1, %rd2, %rd3", [d(3.0), d(5.0), d(1.0)], d(16.0)),
        ("sub.rn.f64 %rd4, %rd1, %rd2", [d(3.0), d(5.0), 0], d(-2.0)),
        // Subnormals are kept, and a NaN result is the canonical one.
        ("mul.f32 %r4, %r1, %r2", [f(tiny), f(2.0), 0], 2),
        ("add.f32 %r4, %r1, %r2", [NAN | 1, f(2.0), 0], 0x7fff_ffff),
        ("sub.f32 %r4, %r1, %r2", [f(f32::INFINITY), f(f32::INFINITY), 0], 0x7fff_ffff),
        ("div.rn.f32 %r4, %r1, %r2", [f(1.0), f(-0.0), 0], f(f32::NEG_INFINITY)),
        ("rcp.rn.f32 %r4, %r1", [f(4.0), 0, 0], f(0.25)),
        ("sqrt.rn.f64 %rd4, %rd1", [d(2.0), 0, 0], d(std::f64::consts::SQRT_2)),
        ("ex2.approx.ftz.f32 %r4, %r1", [f(-130.0), 0, 0], f(0.0)),
        ("lg2.approx.f32 %r4, %r1", [f(8.0), 0, 0], f(3.0)),
        ("neg.f32 %r4, %r1", [NAN, 0, 0], NAN | 1 << 31),
        ("abs.f64 %rd4, %rd1", [d(-0.0), 0, 0], 0),
        // `copysign` takes the sign from the first operand.
        ("copysign.f32 %r4, %r1, %r2", [f(-1.0), f(3.0), 0], f(-3.0)),
        ("min.f32 %r4, %r1, %r2", [NAN, f(3.0), 0], f(3.0)),
        ("max.f32 %r4, %r1, %r2", [f(-0.0), f(0.0), 0], f(0.0)),
        ("min.f64 %rd4, %rd1, %rd2", [d(0.0), d(-0.0), 0], d(-0.0)),
        ("max.NaN.f32 %r4, %r1, %r2", [NAN, f(3.0), 0], 0x7fff_ffff),
        // Packed: two elements at once.
        ("add.rn.f32x2 %rd4, %rd1, %rd2", [f(1.0) | f(2.0) << 32, f(3.0) | f(5.0) << 32, 0], f(4.0) | f(7.0) << 32),
        ("add.f32 %r4, %r1, 0f3F800000", [f(1.0), 0, 0], f(2.0)),
        ("add.f32 %r4, %r1, 1.5", [f(1.0), 0, 0], f(2.5)),
    ]);
}

#[test]
fn halves() {
    check(&[
        ("add.rn.f16 %rs4, %rs1, %rs2", [0x3c00, 0x3c00, 0], 0x4000),
        // 2048 + 1 is halfway between two values, and the even one is below.
        ("add.rn.f16 %rs4, %rs1, %rs2", [0x6800, 0x3c00, 0], 0x6800),
        ("mul.rn.f16 %rs4, %rs1, %rs2", [0x7bff, 0x4000, 0], 0x7c00),
        // 2048 + 1 plus a small amount is above the midpoint; rounding twice would lose it.
        ("fma.rn.f16 %rs4, %rs1, %rs2, %rs3", [0x3c01, 0x3c01, 0x6800], 0x6801),
        ("fma.rn.bf16 %rs4, %rs1, %rs2, %rs3", [0x3f81, 0x3f80, 0x4380], 0x4381),
        ("add.rn.bf16 %rs4, %rs1, %rs2", [0x3f80, 0x3f80, 0], 0x4000),
        ("max.f16 %rs4, %rs1, %rs2", [0x7e00, 0x3c00, 0], 0x3c00),
        ("neg.f16 %rs4, %rs1", [0x3c00, 0, 0], 0xbc00),
        ("fma.rn.f16x2 %r4, %r1, %r2, %r3", [0x3c00_4000, 0x4000_4000, 0x3c00_3c00], 0x4200_4500),
        ("fma.rn.f32.f16 %r4, %rs1, %rs2, %r3", [0x4000, 0x4200, f(0.5)], f(6.5)),
    ]);
}

#[test]
fn conversions() {
    check(&[
        ("cvt.u64.u32 %rd4, %r1", [MINUS, 0, 0], 0xffff_ffff),
        ("cvt.s64.s32 %rd4, %r1", [0x8000_0000, 0, 0], 0xffff_ffff_8000_0000),
        ("cvt.s64.s8 %rd4, %rd1", [0x1_80, 0, 0], MINUS - 127),
        // The result is narrower than its register, and is sign-extended from the narrow type.
        ("cvt.s8.s64 %rs4, %rd1", [0x1_80, 0, 0], 0xff80),
        ("cvt.u8.u32 %r4, %r1", [0x1_80, 0, 0], 0x80),
        ("cvt.sat.s8.s32 %r4, %r1", [1000, 0, 0], 127),
        ("cvt.sat.u8.s32 %r4, %r1", [0xffff_ffff, 0, 0], 0),
        ("cvt.rn.f32.s32 %r4, %r1", [0xffff_ffff, 0, 0], f(-1.0)),
        ("cvt.rn.f32.u64 %r4, %rd1", [MINUS, 0, 0], f(18_446_744_073_709_551_616.0)),
        // One bit above the midpoint: a conversion through a double would be wrong.
        ("cvt.rn.f32.u64 %r4, %rd1", [0x0100_0001_0000_0001 << 3, 0, 0], 0x5d00_0001),
        ("cvt.rz.f32.s32 %r4, %r1", [0x7fff_ffff, 0, 0], 0x4eff_ffff),
        ("cvt.rp.f32.f64 %r4, %rd1", [d(1.0 + f64::EPSILON), 0, 0], 0x3f80_0001),
        ("cvt.rm.f32.f64 %r4, %rd1", [d(-1.0 - f64::EPSILON), 0, 0], 0xbf80_0001),
        ("cvt.rzi.s32.f32 %r4, %r1", [f(-1.9), 0, 0], 0xffff_ffff),
        ("cvt.rni.s32.f32 %r4, %r1", [f(2.5), 0, 0], 2),
        ("cvt.rmi.s32.f32 %r4, %r1", [f(-1.1), 0, 0], 0xffff_fffe),
        ("cvt.rzi.u32.f32 %r4, %r1", [f(-5.0), 0, 0], 0),
        ("cvt.rzi.s32.f32 %r4, %r1", [f(1e30), 0, 0], 0x7fff_ffff),
        ("cvt.rzi.s32.f32 %r4, %r1", [NAN, 0, 0], 0),
        ("cvt.rzi.s64.f64 %rd4, %rd1", [d(f64::NAN), 0, 0], 1 << 63),
        ("cvt.rzi.s16.f32 %rs4, %r1", [f(70_000.0), 0, 0], 0x7fff),
        ("cvt.rni.f32.f32 %r4, %r1", [f(-0.4), 0, 0], f(-0.0)),
        ("cvt.rpi.f64.f64 %rd4, %rd1", [d(1.2), 0, 0], d(2.0)),
        ("cvt.rn.f32.f64 %r4, %rd1", [d(0.1), 0, 0], f(0.1)),
        ("cvt.f64.f32 %rd4, %r1", [f(0.1), 0, 0], d(f64::from(0.1f32))),
        ("cvt.rn.f16.f32 %rs4, %r1", [f(65_520.0), 0, 0], 0x7c00),
        ("cvt.rn.f16.f64 %rs4, %rd1", [d(1.0 + 1.0 / 2048.0 + 1e-12), 0, 0], 0x3c01),
        ("cvt.f32.f16 %r4, %rs1", [1, 0, 0], f(5.960_464_5e-8)),
        ("cvt.rn.bf16.f32 %rs4, %r1", [0x3f80_8000, 0, 0], 0x3f80),
        // The first operand is the upper half. TF32 rounds ties away from zero, up to infinity, and keeps subnormals.
        ("cvt.rn.bf16x2.f32 %r4, %r1, %r2", [f(1.0), 0x3f80_8000, 0], 0x3f80_3f80),
        ("cvt.rn.bf16x2.f32 %r4, %r1, %r2", [0x0000_8001, NAN, 0], 0x0001_7fff),
        ("cvt.rn.f16x2.f32 %r4, %r1, %r2", [f(-0.0), f(65_520.0), 0], 0x8000_7c00),
        ("cvt.rna.tf32.f32 %r4, %r1", [0x3f80_1000, 0, 0], 0x3f80_2000),
        ("cvt.rna.tf32.f32 %r4, %r1", [0x3f80_0fff, 0, 0], 0x3f80_0000),
        ("cvt.rna.tf32.f32 %r4, %r1", [0xbf80_3000, 0, 0], 0xbf80_4000),
        ("cvt.rna.tf32.f32 %r4, %r1", [0x7f7f_ffff, 0, 0], 0x7f80_0000),
        ("cvt.rna.tf32.f32 %r4, %r1", [0x7f7f_efff, 0, 0], 0x7f7f_e000),
        ("cvt.rna.tf32.f32 %r4, %r1", [0xff80_0000, 0, 0], 0xff80_0000),
        ("cvt.rna.tf32.f32 %r4, %r1", [0xff80_0001, 0, 0], 0x7fff_ffff),
        ("cvt.rna.tf32.f32 %r4, %r1", [0x8000_1000, 0, 0], 0x8000_2000),
        ("cvt.rna.tf32.f32 %r4, %r1", [0x0000_0fff, 0, 0], 0),
        ("cvt.rna.tf32.f32 %r4, %r1", [0x8000_0000, 0, 0], 0x8000_0000),
        ("cvt.sat.f32.f32 %r4, %r1", [f(-3.0), 0, 0], f(0.0)),
    ]);
}
