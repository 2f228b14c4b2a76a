//! Tests of mbarriers: phases, a pipeline of a TMA producer thread and wgmma consumer warps, and findings of its
//! errors.

use simulated_gpu::machine::{Swizzle, TensorMap};

use super::bench::{Bench, hopper, kernel, map_words};

/// Number of iterations over K, each of 64 elements, and rows and columns of the product.
const TURNS: usize = 5;
const DEPTH: usize = 64 * TURNS;
const SIZE: usize = 64;

fn value(matrix: usize, row: usize, k: usize) -> i32 {
    (row * 5 + k * 3 + row * k % 7 + matrix) as i32 % 7 - 3
}

/// Waits for the phase with parity `PARITY` of the barrier at `%rd3`.
const WAIT: &str =
    "mov.b32 %r4, 0; WAIT_NUMBER: { .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%rd3], PARITY;
    selp.b32 %r4, 1, 0, p; } setp.eq.s32 %p4, %r4, 0; @%p4 bra WAIT_NUMBER;";

/// Returns a kernel body: thread 128 copies tiles through two stages, and threads 0 to 127 multiply them. `%r0` is the
/// index of the stage, `%r1` the parity of the phase in which it is filled, and `%r2` the iteration.
fn pipeline() -> String {
    let wait = |number: &str, parity: &str| WAIT.replace("WAIT_NUMBER", number).replace("PARITY", parity);
    let sums: Vec<String> = (0..SIZE / 2).map(|i| format!("%f{i}")).collect();
    let zeros: String = sums.iter().map(|sum| format!("mov.f32 {sum}, 0f00000000; ")).collect();
    let stores: String = (0..SIZE / 2)
        .map(|i| {
            let place = (i / 2 % 2 * 8 * SIZE + i / 4 * 8 + i % 2) * 4;
            format!("st.global.f32 [%rd8+{place}], %f{i};\n")
        })
        .collect();
    let products: String = (0..4)
        .map(|step| {
            format!(
                "add.s64 %rd6, %rd5, {:#x}; add.s64 %rd7, %rd6, 512;
                 {{ .reg .pred p; setp.eq.u32 p, 0, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {{{}}}, %rd6, %rd7, p, 1, 1, 0, 0; }}\n",
                (1u64 << 62) | (64 << 32) | (1 << 16) | (2 * step),
                sums.join(", ")
            )
        })
        .collect();
    let next = "add.s32 %r0, %r0, 1; setp.eq.s32 %p3, %r0, 2; selp.b32 %r0, 0, %r0, %p3; xor.b32 %r5, %r1, 1;
        selp.b32 %r1, %r5, %r1, %p3; add.s32 %r2, %r2, 1;";
    format!(
        "mov.b32 %r0, 0; mov.b32 %r1, 0; mov.b32 %r2, 0; setp.ne.u32 %p1, %r9, 0; @%p1 bra $begun;
         mbarrier.init.shared::cta.b64 [bars], 1; mbarrier.init.shared::cta.b64 [bars+8], 1;
         mbarrier.init.shared::cta.b64 [bars+16], 4; mbarrier.init.shared::cta.b64 [bars+24], 4;
         fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;
         $begun: bar.sync 0; setp.eq.u32 %p2, %r9, 128; @%p2 bra $fill; setp.gt.u32 %p2, %r9, 128; @%p2 bra $end;
         {zeros}
         $turn: mul.wide.u32 %rd2, %r0, 8; mov.b64 %rd3, bars; add.s64 %rd3, %rd3, %rd2;
         {wait_for_stage}
         mul.wide.u32 %rd4, %r0, 16384; mov.b64 %rd5, tile; add.s64 %rd5, %rd5, %rd4; shr.u64 %rd5, %rd5, 4;
         wgmma.fence.sync.aligned;
         {products}
         wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 1;
         and.b32 %r3, %r9, 31; setp.ne.u32 %p5, %r3, 0; @%p5 bra $told;
         setp.eq.u32 %p5, %r2, 0; @%p5 bra $told; xor.b32 %r6, %r0, 1;
         mul.wide.u32 %rd2, %r6, 8; mov.b64 %rd3, bars; add.s64 %rd3, %rd3, %rd2;
         mbarrier.arrive.shared::cta.b64 _, [%rd3+16];
         $told: {next} setp.lt.u32 %p6, %r2, {TURNS}; @%p6 bra $turn;
         wgmma.wait_group.sync.aligned 0; // the last
         shr.u32 %r3, %r9, 5; mul.lo.s32 %r3, %r3, 16; and.b32 %r4, %r9, 31; shr.u32 %r5, %r4, 2; add.s32 %r3, %r3, %r5;
         and.b32 %r5, %r9, 3; mul.lo.s32 %r5, %r5, 2; mad.lo.s32 %r3, %r3, {SIZE}, %r5; mul.wide.u32 %rd8, %r3, 4;
         add.s64 %rd8, %rd8, %rd0;
         {stores}
         bra $end;
         $fill: mul.wide.u32 %rd2, %r0, 8; mov.b64 %rd9, bars; add.s64 %rd9, %rd9, %rd2; add.s64 %rd3, %rd9, 16;
         xor.b32 %r7, %r1, 1; {wait_for_place}
         mbarrier.arrive.expect_tx.shared::cta.b64 _, [%rd9], 16384;
         mul.wide.u32 %rd4, %r0, 16384; mov.b64 %rd5, tile; add.s64 %rd5, %rd5, %rd4; add.s64 %rd6, %rd5, 8192;
         mul.lo.s32 %r6, %r2, 64; mov.b32 %r8, 0;
         cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%rd5], [%m0, {{%r6, %r8}}], [%rd9];
         cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%rd6], [%m1, {{%r6, %r8}}], [%rd9];
         {next} setp.lt.u32 %p6, %r2, {TURNS}; @%p6 bra $fill; $end:",
        wait_for_stage = wait("$stage", "%r1"),
        wait_for_place = wait("$place", "%r7"),
    )
}

/// Runs a pipeline of `threads` threads and returns the product that it stores.
fn run(body: &str, threads: u32) -> Result<Vec<f32>, String> {
    run_on(Bench::new(), body, threads)
}

fn run_on(mut bench: Bench, body: &str, threads: u32) -> Result<Vec<f32>, String> {
    let bits = |matrix, row, k| (value(matrix, row, k) as f32).to_bits() >> 16;
    let mut parameters = Vec::new();
    for matrix in 0..2 {
        let pair = |i: usize| [0, 1].map(|half| bits(matrix, 2 * i / DEPTH, 2 * i % DEPTH + half));
        let words: Vec<u32> = (0..SIZE * DEPTH / 2).map(|i| pair(i)[0] | (pair(i)[1] << 16)).collect();
        let map = TensorMap {
            width: 2,
            rank: 2,
            address: bench.words(&words),
            sizes: [DEPTH as u64, SIZE as u64, 1, 1, 1],
            strides: [2, 2 * DEPTH as u64, 0, 0, 0],
            extents: [64, SIZE as u32, 1, 1, 1],
            steps: [1; 5],
            swizzle: Swizzle::Bytes128,
        };
        parameters.extend(map_words(&map.encode()));
    }
    let into = bench.fresh(SIZE * SIZE * 4);
    parameters.push(into);
    let text = hopper(2, 1, ".shared .align 8 .b8 bars[32]; .reg .f32 %f<32>;", body);
    let text = text.replace("0)\n{", &format!("0)\n.reqntid {threads}, 1, 1\n{{"));
    bench.try_run_with(&text, 1, threads, 32768, &parameters).map_err(|finding| finding.to_string())?;
    Ok(bench.read(into, SIZE * SIZE).into_iter().map(f32::from_bits).collect())
}

#[test]
fn stages_go_round() {
    // In ascending and, with an odd number of threads, in descending order.
    for threads in [160, 161] {
        for (number, found) in run(&pipeline(), threads).unwrap().iter().enumerate() {
            let (row, column) = (number / SIZE, number % SIZE);
            let sum: i32 = (0..DEPTH).map(|k| value(0, row, k) * value(1, column, k)).sum();
            assert_eq!(*found, sum as f32, "row {row}, column {column}");
        }
    }
}

/// Runs the pipeline with a replacement, and checks the finding.
fn finding(from: &str, to: &str, expected: &[&str]) {
    let body = pipeline();
    assert!(body.contains(from), "{from}");
    let told = run(&body.replacen(from, to, 1), 160).expect_err(to);
    assert!(expected.iter().all(|part| told.contains(part)), "{from} -> {to}\n{told}\n{expected:?}");
}

#[test]
fn waits_that_are_missing() {
    // Missing wait for a full stage, or for an empty one.
    finding(
        "@%p4 bra $stage;",
        "",
        &["racecheck", "multiplies 16 bytes of shared memory", "by a bulk copy begun by thread (128"],
    );
    finding(
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%rd3], %r1;",
        "setp.eq.u32 p, 0, 0;",
        &["initcheck", "multiplies 16 bytes of shared memory"],
    );
    finding(
        "xor.b32 %r7, %r1, 1;",
        "mov.b32 %r7, 1;",
        &["racecheck", "writes 8192 bytes of shared memory", "thread (128, 0, 0)"],
    );
    // The stage of the current iteration is released while its wgmma are pending.
    let not_first = "setp.eq.u32 %p5, %r2, 0; @%p5 bra $told; xor.b32 %r6, %r0, 1;";
    finding(not_first, "mov.b32 %r6, %r0;", &["racecheck", "are read by a wgmma begun by thread ("]);
    finding(
        "wgmma.wait_group.sync.aligned 1;",
        "",
        &["racecheck", "writes 8192 bytes", "no wgmma.wait_group that it knows of"],
    );
    finding("wgmma.wait_group.sync.aligned 0; // the last", "", &["racecheck", "reads a register of a wgmma"]);
}

#[test]
fn order_is_watched_where_writes_are_not() {
    run_on(Bench::unchecked(), &pipeline(), 160).unwrap();
    let wait = "mbarrier.try_wait.parity.shared::cta.b64 p, [%rd3], %r1;";
    let told = run_on(Bench::unchecked(), &pipeline().replace(wait, "setp.eq.u32 p, 0, 0;"), 161).unwrap_err();
    assert!(told.contains("racecheck"), "{told}");
}

#[test]
fn phases_that_never_end() {
    finding(
        "[bars+16], 4;",
        "[bars+16], 5;",
        &[
            "synccheck",
            "no thread can go on",
            "thread 128 for phase 0 of the mbarrier at 0x10 (1 arrivals and 0 bytes are missing)",
        ],
    );
    finding(
        "_, [%rd9], 16384;",
        "_, [%rd9], 16400;",
        &[
            "synccheck",
            "no thread can go on: thread 0 for phase 0 of the mbarrier at 0x0 (0 arrivals and 16 bytes are missing)",
        ],
    );
    finding(
        "_, [%rd9], 16384;",
        "_, [%rd9], 16368;",
        &["synccheck", "copies bring 16384 bytes to phase 0", "expects 16368"],
    );
    finding("_, [%rd3+16];", "_, [%rd3];", &["synccheck", "no thread can go on"]);
    finding("_, [%rd3+16];", "_, [%rd3+16], 3;", &["synccheck", "3 arrivals at the mbarrier at 0x"]);
}

#[test]
fn warp_groups_that_are_not_right() {
    finding("wgmma.fence.sync.aligned;", "", &["synccheck", "no wgmma.fence before"]);
    finding("@%p2 bra $fill;", "@%p2 bra $fill; setp.lt.u32 %p2, %r9, 32; @%p2 bra $end;", &["synccheck"]);
    finding("shr.u64 %rd5, %rd5, 4;", "shr.u64 %rd5, %rd5, 4; add.s64 %rd5, %rd5, 0x2000000000000;", &["base offset"]);
    finding(
        "shr.u64 %rd5, %rd5, 4;",
        "shr.u64 %rd5, %rd5, 4; add.s64 %rd5, %rd5, 4000;",
        &["memcheck", "outside of the"],
    );
    finding("mul.lo.s32 %r6, %r2, 64;", "mov.b64 %m0, 0;", &["memcheck", "no allocation is near it"]);
}

/// Runs a body with a barrier `bar` of two arrivals that thread 0 has initialised, and checks the finding.
fn alone(threads: u32, body: &str, expected: &str) {
    let made = "setp.ne.u32 %p1, %r9, 0; @%p1 bra $made; mbarrier.init.shared.b64 [bar], 2; $made: bar.sync 0;";
    let text = hopper(0, 1, ".shared .align 8 .b8 bar[16];", &format!("{made}\n{body}"));
    let mut bench = Bench::new();
    let into = bench.fresh(4 * threads as usize);
    let told = match bench.try_run(&text, 1, threads, &[into]) {
        Ok(()) => "nothing".to_owned(),
        Err(finding) => finding.to_string(),
    };
    assert!(told.contains(expected), "{body}\n{told}\n{expected}");
}

#[test]
fn barriers_that_are_misused() {
    let arrive = "mbarrier.arrive.shared::cta.b64 _, [bar];";
    alone(1, arrive, "nothing");
    alone(2, arrive, "nothing");
    // Two arrivals of the first phase, and one of the second.
    alone(3, arrive, "nothing");
    alone(1, "mbarrier.arrive.shared::cta.b64 _, [bar], 3;", "3 arrivals at the mbarrier at 0x0, whose phase 0");
    alone(1, "mbarrier.arrive.shared::cta.b64 _, [bar+8];", "has not been initialised");
    alone(1, "mbarrier.arrive.shared::cta.b64 _, [bar+4];", "not aligned to 8 bytes");
    alone(1, "mbarrier.arrive.shared::cta.b64 _, [bar+1024];", "outside of the 1024 bytes of shared memory");
    alone(1, "mbarrier.init.shared::cta.b64 [bar], 2;", "initialised again");
    alone(1, "mbarrier.inval.shared::cta.b64 [bar]; mbarrier.init.shared::cta.b64 [bar], 2;", "nothing");
    alone(
        1,
        "mbarrier.inval.shared::cta.b64 [bar]; mbarrier.arrive.shared::cta.b64 _, [bar];",
        "has not been initialised",
    );
    alone(1, "mbarrier.init.shared::cta.b64 [bar+8], 0;", "is to have 0 arrivals");
    alone(1, "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 1048576;", "can expect 1048575");
    alone(1, "st.shared.b32 [bar], 1; mbarrier.arrive.shared::cta.b64 _, [bar];", "has been overwritten");
    alone(1, "ld.shared.b32 %r1, [bar]; st.global.b32 [%rd0], %r1;", "nobody has written");
    alone(1, "mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 2;", "neither 0 nor 1");
    let unordered = "setp.ne.u32 %p2, %r9, 0; @%p2 bra $other; mbarrier.init.shared::cta.b64 [bar+8], 2; $other:
        mbarrier.arrive.shared::cta.b64 _, [bar+8];";
    alone(2, unordered, "was initialised by thread 0, with nothing between");
}

/// Returns the words that threads store from `%r4` after a body.
fn words(threads: u32, body: &str) -> Result<Vec<u32>, String> {
    let made = "setp.ne.u32 %p1, %r9, 0; @%p1 bra $made; mbarrier.init.shared.b64 [bar], 33; $made: bar.sync 0;";
    let store = "mul.wide.u32 %rd1, %r9, 4; add.s64 %rd1, %rd1, %rd0; st.global.b32 [%rd1], %r4;";
    let declarations = ".shared .align 8 .b8 bar[8]; .shared .align 4 .b8 word[256];";
    let text = hopper(0, 1, declarations, &format!("{made} {body} {store}"));
    let mut bench = Bench::new();
    let into = bench.fresh(4 * threads as usize);
    bench.try_run(&text, 1, threads, &[into]).map_err(|finding| finding.to_string())?;
    Ok(bench.read(into, threads as usize))
}

#[test]
fn arrivals_order_what_is_before_them() {
    // Thread 32 stores, and the threads of the first warp wait for it; all of them arrive.
    let body = "setp.ne.u32 %p2, %r9, 32; @%p2 bra $others; st.shared.b32 [word], 7; $others:
        { .reg .b64 state; .reg .pred p; mbarrier.arrive.shared::cta.b64 state, [bar];
        AGAIN: mbarrier.test_wait.shared::cta.b64 p, [bar], state; @!p bra AGAIN; } ld.shared.b32 %r4, [word];";
    assert_eq!(words(33, body).unwrap(), [7; 33]);
    // A store after the arrival is not ordered.
    let late = body
        .replace("st.shared.b32 [word], 7; $others:", "$others:")
        .replace("AGAIN: ", "@%p2 bra AGAIN; st.shared.b32 [word], 7; AGAIN: ");
    let told = words(33, &late).unwrap_err();
    assert!(told.contains("racecheck") || told.contains("initcheck"), "{told}");
    // A thread that does not retry the test has not observed the phase.
    let unasked = body.replace("@!p bra AGAIN;", "");
    let told = words(33, &unasked).unwrap_err();
    assert!(told.contains("racecheck"), "{told}");
}

#[test]
fn instructions_need_their_target() {
    let of = |target: &str, body: &str| {
        let text = kernel(0, ".shared .align 8 .b8 bar[8];", body).replace("sm_80", target);
        let mut memory = simulated_gpu::machine::Memory::new(1 << 20, true);
        let exact = simulated_gpu::code::Approximations::Exact;
        simulated_gpu::program::Program::load(&text, &mut memory, 90, exact)
            .map(|_| ())
            .map_err(|error| error.to_string())
    };
    let later = "mbarrier.init.shared::cta.b64 [bar], 1;";
    assert_eq!(of("sm_90", later), Ok(()));
    assert!(of("sm_80", later).unwrap_err().contains("needs the target sm_90 or later, and the module is for sm_80"));
    for exact in ["wgmma.fence.sync.aligned;", "setmaxnreg.dec.sync.aligned.u32 40;"] {
        assert_eq!(of("sm_90a", exact), Ok(()));
        assert!(of("sm_90", exact).unwrap_err().contains("needs the target sm_90a, and the module is for sm_90"));
    }
    assert!(of("sm_90a", "setmaxnreg.dec.sync.aligned.u32 41;").unwrap_err().contains("is not known"));
}
