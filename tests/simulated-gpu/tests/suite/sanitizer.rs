//! Tests of findings: for each class, kernels that have the error.

use super::bench::{Bench, kernel};

/// Returns the finding of a body that runs with an array of four words and uninitialised memory of four words.
fn finding(body: &str, blocks: u32, threads: u32) -> String {
    let mut bench = Bench::new();
    let words = [bench.words(&[1, 2, 3, 4]), bench.fresh(16)];
    let text = kernel(2, ".shared .align 16 .b8 tile[16];", body);
    match bench.try_run(&text, blocks, threads, &words) {
        Ok(()) => "nothing".to_owned(),
        Err(finding) => finding.to_string(),
    }
}

fn found(body: &str, blocks: u32, threads: u32, expected: &[&str]) {
    let told = finding(body, blocks, threads);
    assert!(expected.iter().all(|part| told.contains(part)), "{body}\n{told}\n{expected:?}");
}

#[test]
fn memcheck() {
    let line = "kernel k, block (0, 0, 0), thread (0, 0, 0), PTX line ";
    found(
        "ld.global.b32 %r1, [%rd0+16];",
        1,
        1,
        &["memcheck: ", line, "4 bytes at ", "that is at offset 16 of the allocation of 16 bytes"],
    );
    found("st.global.b32 [%rd0+-4], %r9;", 1, 1, &["memcheck", "offset -4 of the allocation"]);
    found("ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%rd0+4];", 1, 1, &["memcheck", "16 bytes at", "not aligned"]);
    found("ld.global.b32 %r1, [256];", 1, 1, &["memcheck", "no allocation is near it"]);
    found("st.shared.b32 [tile+16], %r9;", 1, 1, &["memcheck", "outside of the 16 bytes of shared memory"]);
    found(
        "mul.wide.u32 %rd2, %r9, 4; add.s64 %rd2, %rd2, %rd0; ld.global.b32 %r1, [%rd2];",
        1,
        5,
        &["thread (4, 0, 0)", "offset 16"],
    );
    let mut bench = Bench::new();
    let freed = bench.words(&[1]);
    bench.free(freed);
    let told = bench.try_run(&kernel(1, "", "ld.global.b32 %r1, [%rd0];"), 1, 1, &[freed]).unwrap_err().to_string();
    assert!(told.contains("has been freed"), "{told}");
}

#[test]
fn initcheck() {
    found(
        "ld.global.b32 %r1, [%rd1]; st.global.b32 [%rd0], %r1;",
        1,
        1,
        &["initcheck", "reads 4 bytes of global memory", "nobody has written"],
    );
    found("ld.shared.b32 %r1, [tile]; st.global.b32 [%rd0], %r1;", 1, 1, &["initcheck", "shared memory"]);
    found("st.global.b8 [%rd1], 1; ld.global.b16 %r1, [%rd1]; st.global.b32 [%rd0], %r1;", 1, 1, &["initcheck"]);
    found("st.global.b32 [%rd1], 1; ld.global.b32 %r1, [%rd1];", 1, 1, &["nothing"]);
}

#[test]
fn racecheck() {
    let by = "by thread (0, 0, 0) of block (0, 0, 0)";
    // Threads of one block.
    found(
        "st.shared.b32 [tile], %r9;",
        1,
        2,
        &["racecheck", "thread (1, 0, 0)", "writes 4 bytes of shared memory", "were written", by],
    );
    found("st.shared.b32 [tile], 7;", 1, 2, &["nothing"]);
    found(
        "mov.u32 %r1, %ctaid.x; st.global.b32 [%rd1], %r1;",
        2,
        2,
        &["racecheck", "block (1, 0, 0)", "global memory", "of block (0, 0, 0)"],
    );
    found(
        "ld.global.b32 %r1, [%rd0]; st.global.b32 [%rd0], %r9;",
        1,
        2,
        &["racecheck", "with nothing between to order it"],
    );
    // Writes to different bytes of a word do not conflict.
    found("mul.wide.u32 %rd2, %r9, 1; add.s64 %rd2, %rd2, %rd1; st.global.b8 [%rd2], %r9;", 1, 4, &["nothing"]);
    // A barrier orders the threads of a block, but not blocks.
    let handed_on = "setp.eq.u32 %p1, %r9, 0; @%p1 st.global.b32 [%rd1], 5; SYNC ld.global.b32 %r1, [%rd1]; red.global.add.u32 [%rd0], %r1;";
    found(&handed_on.replace("SYNC", "bar.sync 0;"), 1, 64, &["nothing"]);
    found(&handed_on.replace("SYNC", "bar.warp.sync -1;"), 1, 32, &["nothing"]);
    found(
        &handed_on.replace("SYNC", "bar.warp.sync -1;"),
        1,
        64,
        &["racecheck", "thread (32, 0, 0)", "were written", by],
    );
    found(&handed_on.replace("SYNC", ""), 1, 2, &["racecheck", "thread (1, 0, 0)"]);
    // Atomics are ordered among each other, but not with plain accesses.
    found("red.global.add.u32 [%rd0], 1;", 2, 2, &["nothing"]);
    found("red.global.add.u32 [%rd0], 1; ld.global.b32 %r1, [%rd0]; st.global.b32 [%rd1], %r1;", 1, 2, &["racecheck"]);
    found("st.shared.b32 [tile], 0; bar.sync 0; atom.shared.add.u32 %r1, [tile], %r9;", 1, 64, &["nothing"]);
    found("st.shared.b32 [tile], 0; atom.shared.add.u32 %r1, [tile], %r9;", 1, 64, &["racecheck", "shared memory"]);
    // Relaxed accesses, by which blocks communicate, are ordered in the same manner.
    let told = "mov.u32 %r1, %ctaid.x; st.relaxed.gpu.global.b32 [%rd1], %r1; LOAD %r2, [%rd1]; red.global.add.u32 [%rd0], %r2;";
    found(&told.replace("LOAD", "ld.relaxed.gpu.global.b32"), 2, 1, &["nothing"]);
    found(&told.replace("LOAD", "ld.global.b32"), 2, 1, &["racecheck", "block (1, 0, 0)", "global memory"]);
    // Reads whose values are never used.
    found("setp.eq.u32 %p1, %r9, 0; ld.global.b32 %r1, [%rd0]; @%p1 st.global.b32 [%rd0], 9;", 1, 1, &["nothing"]);
    found("ld.global.b32 %r1, [%rd1];", 1, 1, &["nothing"]);
    // The expected value of a compare-and-swap may be read without ordering.
    let exchange = "ld.global.b32 %r1, [%rd0]; $again: add.s32 %r2, %r1, 1; atom.global.cas.b32 %r3, [%rd0], %r1, %r2;
        setp.ne.u32 %p1, %r3, %r1; mov.b32 %r1, %r3; @%p1 bra $again;";
    found(exchange, 2, 4, &["nothing"]);
}

#[test]
fn synccheck() {
    let some = "setp.lt.u32 %p1, %r9, 8; @%p1 bra $end; ";
    found(
        &format!("{some} bar.sync 0; $end:"),
        1,
        64,
        &["synccheck", "barrier 0 waits for 64 threads, and only 56 come; thread 0 has ended"],
    );
    found(
        &format!("{some} shfl.sync.bfly.b32 %r1, %r9, 1, 31, 0xff; $end:"),
        1,
        32,
        &["synccheck", "not in the mask 0x000000ff"],
    );
    found(
        &format!("{some} bar.sync 1; bra $stop; $end: bar.sync 2; $stop:"),
        1,
        32,
        &["synccheck", "barrier 2 waits for 32 threads"],
    );
    let apart =
        format!("{some} bar.warp.sync -1; shfl.sync.bfly.b32 %r1, %r9, 1, 31, -1; bra $stop; $end: bar.sync 0; $stop:");
    found(&apart, 1, 32, &["synccheck", "the lane waits for thread 0, which waits at the barrier of PTX line"]);
    // A lane that has ended cannot provide a value.
    found(
        &format!("{some} shfl.sync.idx.b32 %r1, %r9, 3, 31, -1; $end:"),
        1,
        32,
        &["synccheck", "thread 3, which takes no part"],
    );
    // Lanes of a warp at different `bar.sync` instructions of one barrier.
    found(
        &format!("{some} bar.sync 0; bra $stop; $end: bar.sync 0; $stop:"),
        1,
        32,
        &["synccheck", "different barriers"],
    );
}

#[test]
fn launches() {
    found("trap;", 1, 1, &["launch: kernel k", "the kernel traps"]);
    found("", 1, 2000, &["2000 threads in a block, and can have 1 to 1024"]);
    let mut bench = Bench::new();
    let exact = kernel(0, "", "").replace("k()", "k() .reqntid 32, 1, 1");
    assert!(bench.try_run(&exact, 1, 32, &[]).is_ok());
    let told = bench.try_run(&exact, 1, 16, &[]).unwrap_err().to_string();
    assert!(told.contains("blocks of [16, 1, 1], against its .reqntid"), "{told}");
    let told = bench.try_run(&kernel(2, "", ""), 1, 1, &[1]).unwrap_err().to_string();
    assert!(told.contains("it has 16 bytes of parameters, and is given 8"), "{told}");
}
