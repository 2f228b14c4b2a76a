//! Tests of `cp.async`, whose data is visible only after a wait, and of `ldmatrix`, by the figures of the PTX ISA.

use super::bench::{Bench, kernel};

/// Each of 32 threads copies 16 bytes from `%rd0` to its own part of shared memory, at `%rd4`.
const COPY: &str = "mul.wide.u32 %rd2, %r9, 16; add.s64 %rd3, %rd0, %rd2; mov.b64 %rd5, tile; add.s64 %rd4, %rd5, %rd2;
    cp.async.cg.shared.global [%rd4], [%rd3], 16;";
/// Stores the first word of the next thread's part to `%rd1`.
const NEXT: &str = "add.s32 %r1, %r9, 1; and.b32 %r1, %r1, 31; mul.wide.u32 %rd6, %r1, 16; add.s64 %rd6, %rd5, %rd6;
    ld.shared.b32 %r4, [%rd6]; mul.wide.u32 %rd7, %r9, 4; add.s64 %rd7, %rd1, %rd7; st.global.b32 [%rd7], %r4;";
/// Stores the first word of this thread's own part to `%rd1`.
const OWN: &str =
    "ld.shared.b32 %r4, [%rd4]; mul.wide.u32 %rd7, %r9, 4; add.s64 %rd7, %rd1, %rd7; st.global.b32 [%rd7], %r4;";

/// Returns the words that 32 threads store, with a source of consecutive numbers from 100 on, or the finding.
fn run(body: &str) -> Result<Vec<u32>, String> {
    let mut bench = Bench::new();
    let from = bench.words(&(100..228).collect::<Vec<u32>>());
    let into = bench.fresh(128);
    let text = kernel(2, ".shared .align 16 .b8 tile[1024];", body);
    bench.try_run(&text, 1, 32, &[from, into]).map_err(|finding| finding.to_string())?;
    Ok(bench.read(into, 32))
}

fn finding(body: &str, expected: &[&str]) {
    let told = run(body).expect_err(body);
    assert!(expected.iter().all(|part| told.contains(part)), "{body}\n{told}\n{expected:?}");
}

#[test]
fn copies_that_are_waited_for() {
    let others: Vec<u32> = (0..32).map(|thread| 100 + (thread + 1) % 32 * 4).collect();
    for wait in ["cp.async.wait_all;", "cp.async.commit_group; cp.async.wait_group 0;"] {
        assert_eq!(run(&format!("{COPY} {wait} bar.sync 0; {NEXT}")).unwrap(), others);
    }
    let own: Vec<u32> = (0..32).map(|thread| 100 + thread * 4).collect();
    assert_eq!(run(&format!("{COPY} cp.async.wait_all; {OWN}")).unwrap(), own);
    // A later group may be pending.
    let later = "cp.async.ca.shared.global [%rd4+512], [%rd3], 8; cp.async.commit_group;";
    let body = format!("{COPY} cp.async.commit_group; {later} cp.async.wait_group 1; bar.sync 0; {NEXT}");
    assert_eq!(run(&body).unwrap(), others);
}

#[test]
fn zeros_follow_what_is_read() {
    let sized =
        |from: &str, bytes: u32| COPY.replace("[%rd3], 16;", &format!("{from}, 16, {bytes}; cp.async.wait_all;"));
    assert_eq!(run(&format!("{} {OWN}", sized("[%rd3]", 4))).unwrap()[3], 112);
    let second = OWN.replace("[%rd4];", "[%rd4+4];");
    assert_eq!(run(&format!("{} {second}", sized("[%rd3]", 4))).unwrap(), [0; 32]);
    // Bytes that are not read need not be valid memory.
    assert_eq!(run(&format!("{} {OWN}", sized("[256]", 0))).unwrap(), [0; 32]);
    finding(&format!("{} {OWN}", sized("[256]", 16)), &["memcheck", "no allocation is near it"]);
    finding(&format!("{} {OWN}", sized("[%rd3]", 17)), &["17 bytes are copied to 16 bytes"]);
    finding(&format!("{} {OWN}", sized("[%rd3+4]", 16)), &["not aligned"]);
    finding(&COPY.replace("[%rd4],", "[%rd4+1024],"), &["outside of the 1024 bytes of shared memory"]);
}

#[test]
fn a_missing_wait_is_found() {
    let nobody = &["initcheck", "shared memory", "nobody has written"];
    finding(&format!("{COPY} {OWN}"), nobody);
    finding(&format!("{COPY} cp.async.commit_group; bar.sync 0; {NEXT}"), nobody);
    finding(&format!("{COPY} cp.async.commit_group; cp.async.wait_group 1; bar.sync 0; {NEXT}"), nobody);
    // A wait for groups does not wait for uncommitted copies.
    finding(&format!("{COPY} cp.async.wait_group 0; {OWN}"), nobody);
    // The start of a copy invalidates the previous content.
    finding(&format!("{COPY} cp.async.wait_all; cp.async.cg.shared.global [%rd4], [%rd3], 16; {OWN}"), nobody);
}

#[test]
fn a_missing_barrier_is_found() {
    finding(&format!("{COPY} cp.async.wait_all; {NEXT}"), &["initcheck", "shared memory"]);
    let first = "ld.shared.b32 %r4, [%rd5]; st.global.b32 [%rd1], %r4;";
    finding(&format!("{COPY} cp.async.wait_all; {first}"), &["racecheck", "thread (1, 0, 0)", "shared memory"]);
    // Another thread still reads the stage that is overwritten.
    let again = "cp.async.cg.shared.global [%rd4], [%rd3], 16; cp.async.wait_all;";
    finding(&format!("{COPY} cp.async.wait_all; bar.sync 0; {NEXT} {again}"), &["racecheck", "shared memory"]);
    assert!(run(&format!("{COPY} cp.async.wait_all; bar.sync 0; {NEXT} bar.sync 0; {again}")).is_ok());
}

#[test]
fn sources_are_watched() {
    let mut bench = Bench::new();
    let words = [bench.fresh(512), bench.fresh(128)];
    let text = kernel(2, ".shared .align 16 .b8 tile[1024];", &format!("{COPY} cp.async.wait_all; {OWN}"));
    let told = bench.try_run(&text, 1, 32, &words).unwrap_err().to_string();
    assert!(told.contains("initcheck"), "{told}");
    finding(&format!("st.global.b32 [%rd0+16], %r9; {COPY}"), &["racecheck", "global memory"]);
}

/// Returns the registers after a load of four matrices of 16-bit numbers. Element `c` of row `r` of matrix `i` is `256
/// i + 16 r + c`.
fn matrices(instruction: &str, address: &str) -> Result<Vec<u32>, String> {
    let mut bench = Bench::new();
    let elements: Vec<u32> =
        (0..32).flat_map(|row| (0..8).map(move |column| row / 8 * 256 + row % 8 * 16 + column)).collect();
    let from = bench.words(&elements.chunks(2).map(|pair| pair[0] | pair[1] << 16).collect::<Vec<_>>());
    let into = bench.fresh(512);
    let body = format!(
        "{COPY} cp.async.wait_all; bar.sync 0; ldmatrix.sync.aligned.m8n8.{instruction} {{%r0, %r1, %r2, %r3}}, [{address}];
        add.s64 %rd7, %rd1, %rd2; st.global.v4.b32 [%rd7], {{%r0, %r1, %r2, %r3}};"
    );
    let text = kernel(2, ".shared .align 16 .b8 tile[1024];", &body);
    bench.try_run(&text, 1, 32, &[from, into]).map_err(|finding| finding.to_string())?;
    Ok(bench.read(into, 128))
}

#[test]
fn matrices_of_shared_memory() {
    let pair = |low: u32, high: u32| low | high << 16;
    let plain = matrices("x4.shared.b16", "%rd4").unwrap();
    let transposed = matrices("x4.trans.shared.b16", "%rd4").unwrap();
    for lane in 0..32 {
        let (group, within) = (lane / 4, lane % 4);
        for matrix in 0..4 {
            let at = (lane * 4 + matrix) as usize;
            let row = 256 * matrix + 16 * group + 2 * within;
            assert_eq!(plain[at], pair(row, row + 1), "lane {lane}, matrix {matrix}");
            let column = 256 * matrix + 16 * 2 * within + group;
            assert_eq!(transposed[at], pair(column, column + 16), "lane {lane}, matrix {matrix}");
        }
    }
    let told = matrices("x4.shared.b16", "%rd4+8").unwrap_err();
    assert!(told.contains("not aligned to 16 bytes"), "{told}");
    // Lanes read the copies of other lanes without synchronization.
    let early =
        format!("{COPY} cp.async.wait_all; ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%r0, %r1, %r2, %r3}}, [%rd4];");
    finding(&early, &["racecheck", "shared memory"]);
    finding(
        "setp.lt.u32 %p1, %r9, 8; @!%p1 bra $end; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [tile]; $end:",
        &["synccheck"],
    );
}
