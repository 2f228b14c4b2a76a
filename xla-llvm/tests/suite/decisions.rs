//! Snapshot tests of the strategies on both sides of their limits: `tests/suite/snapshots/*-decisions.snap`.

use std::fmt::Write;

use xla_hlo::ElementType;
use xla_hlo::text::parse_module;
use xla_llvm::target::Target;

use crate::contractions::dot;
use crate::strategies::emitted;

/// Appends the strategies of a program on GPUs without and with wgmma, on one line if they are equal.
fn of_threads(table: &mut String, name: &str, text: &str) {
    let module = parse_module(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let strategies = ["sm_90", "sm_90a"].map(|cpu| emitted(name, &module, &Target::nvptx(cpu).unwrap()).0);
    let [first, second] = &strategies;
    writeln!(table, "{name}\n  {first}").unwrap();
    if first != second {
        writeln!(table, "  with warp groups: {second}").unwrap();
    }
}

/// Returns the strategies of dots with given extents of M, K and N.
fn dots(letters: &str, ty: ElementType, extents: &[[usize; 3]]) -> String {
    let mut table = String::new();
    for &[m, k, n] in extents {
        let text = dot(letters, &[('m', m), ('k', k), ('n', n)], [ty; 3]);
        of_threads(&mut table, &format!("{ty} {letters} {m} x {k} x {n}"), &text);
    }
    table
}

/// Tiles shrink if there would be too few of them or if they would not be filled; each extent must be at least 16, with
/// enough work.
#[test]
fn tiles_of_matmuls() {
    let few = [
        [16, 1024, 16],
        [16, 1023, 16],
        [15, 2048, 2048],
        [16, 16, 2048],
        [16, 15, 2048],
        [17, 512, 2048],
        [32, 512, 4096],
        [33, 512, 4096],
        [64, 64, 64],
        [256, 256, 256],
        [1024, 1024, 1024],
        [2048, 64, 2048],
        [4096, 64, 100],
        [100, 64, 4096],
    ];
    let mut table = dots("mk,kn", ElementType::F32, &few);
    table += &dots("mk,kn", ElementType::F64, &few[8..]);
    table += &dots("mk,kn", ElementType::C128, &few[8..11]);
    table += &dots("mk,kn", ElementType::BF16, &few);
    table += &dots("km,nk", ElementType::F16, &few[8..]);
    let runs = [[128, 64, 128], [128, 63, 128], [128, 68, 128], [127, 64, 128], [64, 64, 64], [63, 64, 64]];
    for letters in ["mk,kn", "km,nk", "mk,nk"] {
        table += &dots(letters, ElementType::BF16, &runs);
    }
    insta::assert_snapshot!("tile-decisions", table);
}

/// Skinny matmuls with either operand small: number of rows, threads of a group, warps, and steps of a block.
#[test]
fn skinny_matmuls() {
    let mut table = String::new();
    let depths = [
        [1, 64, 4096],
        [1, 63, 4096],
        [1, 65, 4100],
        [1, 128, 4098],
        [1, 128, 4097],
        [1, 4096, 64],
        [1, 1 << 14, 16],
        [1, 1 << 15, 15],
    ];
    let sizes = [[2, 256, 2048], [3, 256, 2048], [8, 512, 1 << 15], [15, 512, 1 << 15], [4, 512, 1 << 11]];
    for letters in ["mk,kn", "mk,nk"] {
        for ty in [ElementType::F32, ElementType::BF16] {
            table += &dots(letters, ty, &depths);
            table += &dots(letters, ty, &sizes);
        }
        let turned: Vec<[usize; 3]> = sizes.iter().map(|&[m, k, n]| [n, k, m]).collect();
        table += &dots(letters, ElementType::F32, &turned);
    }
    insta::assert_snapshot!("skinny-decisions", table);
}

/// Returns the program of an entry's body, with a sum computation.
fn program(body: &str) -> String {
    format!(
        "HloModule program\nsum {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }}\n\
         ENTRY main {{ {body} }}\n"
    )
}

/// Reductions by one thread, by a warp, by a block, and by several threads of a column.
#[test]
fn reductions_of_threads() {
    let mut table = String::new();
    for (rows, extent) in
        [(1, 31), (20, 31), (20, 32), (20, 255), (20, 256), (20, 257), (20, 4096), (1, 1 << 16), (1 << 16, 64)]
    {
        let body = format!(
            "x = f32[{rows},{extent}] parameter(0) z = f32[] constant(0)
             ROOT r = f32[{rows}] reduce(x, z), dimensions={{1}}, to_apply=sum"
        );
        of_threads(&mut table, &format!("rows {rows} x {extent}"), &program(&body));
    }
    for (extent, columns) in
        [(1, 64), (31, 64), (32, 64), (33, 64), (400, 64), (4000, 31), (400, 1 << 16), (400, 1 << 20)]
    {
        let body = format!(
            "x = f32[{extent},{columns}] parameter(0) z = f32[] constant(0)
             ROOT r = f32[{columns}] reduce(x, z), dimensions={{0}}, to_apply=sum"
        );
        of_threads(&mut table, &format!("columns {extent} x {columns}"), &program(&body));
    }
    insta::assert_snapshot!("reduction-decisions", table);
}

/// Elements per thread: one if threads are idle otherwise, several neighbours in one access if not.
#[test]
fn elements_of_threads() {
    let mut table = String::new();
    for ty in ["f32", "bf16", "u8", "f64", "c128"] {
        for extent in [1 << 14, 1 << 18, (1 << 18) + 1, 1 << 20, (1 << 20) + 2, 1 << 22] {
            let body = format!("x = {ty}[{extent}] parameter(0) ROOT r = {ty}[{extent}] add(x, x)");
            of_threads(&mut table, &format!("{ty} {extent}"), &program(&body));
        }
    }
    for [rows, columns] in [[7, 4096], [8, 4096], [32, 32], [2048, 2048], [2048, 31]] {
        let body = format!(
            "x = f32[{rows},{columns}] parameter(0) ROOT r = f32[{columns},{rows}] transpose(x), dimensions={{1,0}}"
        );
        of_threads(&mut table, &format!("transpose {rows} x {columns}"), &program(&body));
    }
    insta::assert_snapshot!("thread-decisions", table);
}
