//! Tests of collective instructions of a warp, and of barriers.

use super::bench::{Bench, kernel};

/// Runs a body that computes `%r4` from the thread index in `%r9`; returns the results of all threads.
fn lanes(body: &str, threads: u32) -> Vec<u32> {
    let store = "mul.wide.u32 %rd1, %r9, 4; add.s64 %rd1, %rd1, %rd0; st.global.b32 [%rd1], %r4;";
    let mut bench = Bench::new();
    let into = bench.fresh(threads as usize * 4);
    bench.run(&kernel(1, "", &format!("{body} {store}")), 1, threads, &[into]);
    bench.read(into, threads as usize)
}

#[test]
fn shuffles() {
    let all = |modifier: &str, operands: &str| lanes(&format!("shfl.sync.{modifier}.b32 %r4, %r9, {operands};"), 64);
    assert_eq!(all("bfly", "5, 31, -1")[33], 32 + (1 ^ 5));
    assert_eq!(all("up", "3, 0, -1")[2..5], [2, 0, 1]);
    assert_eq!(all("down", "3, 31, -1")[27..31], [30, 31, 29, 30]);
    assert_eq!(all("idx", "7, 31, -1")[40], 39);
    // Segments of eight lanes: the segment mask is in the upper byte of the operand.
    assert_eq!(all("idx", "1, 0x181f, -1")[8..18], [9, 9, 9, 9, 9, 9, 9, 9, 17, 17]);
    assert_eq!(all("up", "1, 0x1800, -1")[7..10], [6, 8, 8]);
    let outside = lanes("shfl.sync.up.b32 %r4|%p1, %r9, 1, 0, -1; selp.b32 %r4, 1, 0, %p1;", 32);
    assert_eq!(outside[..3], [0, 1, 1]);
}

#[test]
fn some_lanes_alone() {
    let body =
        "mov.b32 %r4, 99; setp.lt.u32 %p1, %r9, 8; @!%p1 bra $end; shfl.sync.bfly.b32 %r4, %r9, 4, 31, 0xff; $end:";
    assert_eq!(lanes(body, 32)[3..9], [7, 0, 1, 2, 3, 99]);
}

#[test]
fn votes_matches_and_reductions() {
    let odd = "and.b32 %r1, %r9, 1; setp.ne.u32 %p1, %r1, 0;";
    assert_eq!(lanes(&format!("{odd} vote.sync.ballot.b32 %r4, %p1, -1;"), 32)[9], 0xaaaa_aaaa);
    assert_eq!(lanes(&format!("{odd} vote.sync.any.pred %p2, %p1, -1; selp.b32 %r4, 1, 0, %p2;"), 32)[0], 1);
    assert_eq!(lanes(&format!("{odd} vote.sync.all.pred %p2, !%p1, -1; selp.b32 %r4, 1, 0, %p2;"), 32)[0], 0);
    assert_eq!(lanes(&format!("{odd} vote.sync.uni.pred %p2, %p1, -1; selp.b32 %r4, 1, 0, %p2;"), 32)[0], 0);
    assert_eq!(lanes(&format!("{odd} match.any.sync.b32 %r4, %r1, -1;"), 32)[3], 0xaaaa_aaaa);
    assert_eq!(lanes(&format!("{odd} match.all.sync.b32 %r4|%p2, %r1, -1;"), 32)[3], 0);
    assert_eq!(lanes("redux.sync.add.s32 %r4, %r9, -1;", 64)[40], (32..64).sum::<u32>());
    assert_eq!(lanes("redux.sync.max.u32 %r4, %r9, -1;", 32)[0], 31);
}

/// Reverses an array through shared memory.
const REVERSE: &str =
    "mul.wide.u32 %rd2, %r9, 4; mov.b64 %rd3, tile; add.s64 %rd4, %rd3, %rd2; st.shared.b32 [%rd4], %r9; BARRIER
    sub.s32 %r1, 63, %r9; mul.wide.u32 %rd5, %r1, 4; add.s64 %rd6, %rd3, %rd5; ld.shared.b32 %r4, [%rd6];
    add.s64 %rd7, %rd0, %rd2; st.global.b32 [%rd7], %r4;";

#[test]
fn barriers() {
    for barrier in ["bar.sync 0;", "bar.sync 3, 64;", "barrier.cta.sync 0;"] {
        let mut bench = Bench::new();
        let into = bench.fresh(256);
        let text = kernel(1, ".shared .align 4 .b8 tile[256];", &REVERSE.replace("BARRIER", barrier));
        bench.run(&text, 3, 64, &[into]);
        assert_eq!(bench.read(into, 64), (0..64).rev().collect::<Vec<u32>>(), "{barrier}");
    }
}

#[test]
fn a_race_without_the_barrier() {
    let mut bench = Bench::new();
    let into = bench.fresh(256);
    let text = kernel(1, ".shared .align 4 .b8 tile[256];", &REVERSE.replace("BARRIER", "bar.warp.sync -1;"));
    let finding = bench.try_run(&text, 1, 64, &[into]).unwrap_err().to_string();
    // The other warp has not run yet.
    assert!(finding.starts_with("initcheck: kernel k, block (0, 0, 0), thread (0, 0, 0), PTX line "), "{finding}");
}
