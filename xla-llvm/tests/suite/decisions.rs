//! Snapshot tests of the strategies on both sides of their limits: `tests/suite/snapshots/*-decisions.snap`.

use std::fmt::Write;

use xla_hlo::ElementType;
use xla_hlo::text::parse_module;
use xla_llvm::emitter::EmitOptions;
use xla_llvm::target::Target;

use crate::contractions::dot;
use crate::manifest::described_with_code;
use crate::strategies::{emitted, emitted_with};

/// Appends the strategies and launches of a program on GPUs without and with wgmma, on one line if they are equal.
fn of_threads(table: &mut String, name: &str, text: &str) {
    let module = parse_module(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let strategies =
        ["sm_90", "sm_90a"].map(|cpu| described_with_code(&emitted(name, &module, &Target::nvptx(cpu).unwrap())));
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
    table += &dots("mk,kn", ElementType::S8, &few[8..11]);
    table += &dots("mk,kn", ElementType::U16, &few[8..11]);
    table += &dots("mk,kn", ElementType::BF16, &few);
    table += &dots("km,nk", ElementType::F16, &few[8..]);
    let runs = [[128, 64, 128], [128, 63, 128], [128, 68, 128], [127, 64, 128], [64, 64, 64], [63, 64, 64]];
    for letters in ["mk,kn", "km,nk", "mk,nk"] {
        table += &dots(letters, ElementType::BF16, &runs);
    }
    insta::assert_snapshot!("tile-decisions", table);
}

/// Register tiles of CPUs: least work, sums along K, operands that are packed, parts of K, and work items of threads.
#[test]
fn register_tiles() {
    use ElementType::*;
    let few = [[2, 64, 64], [2, 63, 65], [64, 64, 2], [64, 64, 1], [1, 64, 64], [33, 37, 45], [200, 200, 200]];
    let along_k = [[16, 96, 32], [17, 96, 32], [16, 95, 32], [5, 32, 64], [5, 31, 64], [2, 64, 64], [3, 64, 64]];
    let packed = [[100, 256, 16], [100, 255, 16], [100, 255, 100], [100, 256, 100], [100, 257, 128], [20, 257, 128]];
    let in_parts = [[60, 384, 100], [60, 386, 100], [60, 768, 600], [60, 1021, 100], [700, 4096, 600]];
    // Sums of all row tiles exceed their memory limit, which applies only to parts of K.
    let tall = [[9000, 64, 300], [9000, 1024, 300]];
    let all = [&few[..], &along_k, &packed, &in_parts, &tall];
    let mut table = String::new();
    for (letters, types, extents) in [
        ("mk,kn", [F32; 3], &all[..]),
        ("mk,nk", [F32; 3], &all[..]),
        ("km,kn", [F32; 3], &all[2..3]),
        ("mk,nk", [BF16, BF16, F32], &all[1..2]),
        ("mk,nk", [BF16, F32, F32], &all[1..2]),
        ("mk,nk", [F64; 3], &all[1..3]),
        ("mk,kn", [C64; 3], &all[..1]),
        ("mk,kn", [S8, S8, S32], &all[..1]),
    ] {
        for &[m, k, n] in extents.iter().copied().flatten() {
            let module = parse_module(&dot(letters, &[('m', m), ('k', k), ('n', n)], types)).unwrap();
            let of = |threads| {
                let options = EmitOptions { threads, ..EmitOptions::default() };
                described_with_code(&emitted_with("", &module, &Target::whole("x86-64-v3").unwrap(), options))
            };
            writeln!(table, "{letters} of {}, {m} x {k} x {n}\n  {}\n  {}", types[0], of(1), of(8)).unwrap();
        }
    }
    insta::assert_snapshot!("register-tile-decisions", table);
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

/// Returns the program of an entry's body, with a sum and two comparisons.
fn program(body: &str) -> String {
    format!(
        "HloModule program
         sum {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }}
         keeps {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = pred[] compare(a, b), direction=GE }}
         before {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = pred[] compare(a, b), direction=LT }}
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

/// Values of rows that a processor keeps in scratch memory: costly ones that two loops want, as far as there is room.
#[test]
fn values_kept_of_rows() {
    let of_row = "z = f32[] constant(0) s = f32[4] reduce(v, z), dimensions={1}, to_apply=sum
                  b = f32[4,$N] broadcast(s), dimensions={0}";
    let costly = format!("v = f32[4,$N] exponential(x) {of_row} ROOT r = f32[4,$N] divide(v, b)");
    let cheap = format!("v = f32[4,$N] negate(x) {of_row} ROOT r = f32[4,$N] divide(v, b)");
    let once = format!("v = f32[4,$N] exponential(x) {of_row} ROOT r = f32[4,$N] divide(x, b)");
    let two = format!(
        "u = f32[4,$N] exponential(x) v = f32[4,$N] tanh(u) {of_row} w = f32[4,$N] divide(v, b)
         ROOT r = f32[4,$N] add(w, u)"
    );
    // Two rows of bytes are more than there is memory for from half as many elements on.
    let mut table = String::new();
    for (name, body) in [("costly", costly), ("cheap", cheap), ("wanted once", once), ("two", two)] {
        for extent in [100, 16_384, 16_385, 32_768, 32_769] {
            let text = program(&format!("x = f32[4,$N] parameter(0) {body}").replace("$N", &extent.to_string()));
            let kernel = emitted(name, &parse_module(&text).unwrap(), &Target::whole("x86-64-v3").unwrap());
            writeln!(table, "{name}, rows of {extent}\n  {}", described_with_code(&kernel)).unwrap();
        }
    }
    insta::assert_snapshot!("row-decisions", table);
}

/// Work items of loops that threads share: rows, or chunks of rows where nothing is reduced again for each of them.
#[test]
fn work_items_of_shared_loops() {
    let mut table = String::new();
    for body in [
        "x = f32[2,$N] parameter(0) ROOT r = f32[2,$N] negate(x)",
        "x = f32[$N,2] parameter(0) ROOT r = f32[2,$N] transpose(x), dimensions={1,0}",
        "x = f32[2,$N] parameter(0) z = f32[] constant(0) s = f32[2] reduce(x, z), dimensions={1}, to_apply=sum
         b = f32[2,$N] broadcast(s), dimensions={0} ROOT r = f32[2,$N] divide(x, b)",
        "x = f32[$N,8] parameter(0) z = f32[] constant(0) ROOT r = f32[$N] reduce(x, z), dimensions={1}, to_apply=sum",
        "x = f32[8,$N] parameter(0) z = f32[] constant(0) ROOT r = f32[$N] reduce(x, z), dimensions={0}, to_apply=sum",
        "x = f32[2,8,$N] parameter(0) z = f32[] constant(0)
         ROOT r = f32[2,$N] reduce(x, z), dimensions={1}, to_apply=sum",
        "x = f32[$N] parameter(0) z = f32[] constant(0) ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=sum",
    ] {
        writeln!(table, "{}", body.split("ROOT").last().unwrap().trim()).unwrap();
        for extent in [7, 64, 4096, 4097, 100_000] {
            let module = parse_module(&program(body).replace("$N", &extent.to_string())).unwrap();
            let options = EmitOptions { threads: 8, ..EmitOptions::default() };
            let kernel = emitted_with("", &module, &Target::whole("x86-64-v3").unwrap(), options);
            writeln!(table, "  {extent}: {}", described_with_code(&kernel)).unwrap();
        }
    }
    insta::assert_snapshot!("work-item-decisions", table);
}

/// Costs of operations, by which loops are spread over threads.
#[test]
fn costs() {
    let mut table = String::new();
    for body in [
        "x = f32[100] parameter(0) ROOT r = f32[100] negate(x)",
        "x = f32[100] parameter(0) ROOT r = f32[100] sqrt(x)",
        "x = f32[100] parameter(0) ROOT r = f32[100] tanh(x)",
        "x = f32[100] parameter(0) ROOT r = f32[100] add(x, x)",
        "x = f32[100] parameter(0) ROOT r = f32[100] divide(x, x)",
        "x = f32[100] parameter(0) ROOT r = f32[100] power(x, x)",
        "x = f32[20,5] parameter(0) z = f32[] constant(0) ROOT r = f32[20] reduce(x, z), dimensions={1}, to_apply=sum",
        "x = f32[100] parameter(0) z = f32[] constant(0)
         ROOT r = f32[100] reduce-window(x, z), window={size=100 pad=99_0}, to_apply=sum",
        "x = f32[102] parameter(0) z = f32[] constant(0)
         ROOT r = f32[100] reduce-window(x, z), window={size=3}, to_apply=sum",
        "x = f32[12] parameter(0) s = f32[4] parameter(1) z = f32[] constant(0)
         ROOT r = f32[12] select-and-scatter(x, s, z), window={size=3 stride=3}, select=keeps, scatter=sum",
        "x = f32[2,64] parameter(0) ROOT r = f32[2,64] sort(x), dimensions={1}, to_apply=before",
        "x = f32[2,64] parameter(0) ROOT r = (f32[2,3], s32[2,3]) topk(x), k=3, largest=true",
        "x = f32[6,10] parameter(0) y = f32[10,5] parameter(1)
         ROOT r = f32[6,5] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "x = f32[1,9,9,2] parameter(0) y = f32[3,3,2,4] parameter(1)
         ROOT r = f32[1,7,7,4] convolution(x, y), window={size=3x3}, dim_labels=b01f_01io->b01f",
    ] {
        let text = program(body);
        let kernel = emitted("", &parse_module(&text).unwrap(), &Target::whole("x86-64").unwrap());
        let root = body.split("ROOT").last().unwrap().trim();
        writeln!(table, "{root}\n  work {:.1}", kernel.0.work).unwrap();
    }
    insta::assert_snapshot!("cost-decisions", table);
}

/// Attentions in tiles: of operands in rows of whole chunks, with heads of whole fragments.
#[test]
fn attentions() {
    let text = include_str!("../data/strategies/attention.hlo");
    let turned = |name: &str, shape: &str, turned: &str, dims: [&str; 2]| {
        let dots = |line: &str| line.contains(" dot(") && line.contains(name);
        let lines = text.lines().map(|line| match line {
            line if line.contains(&format!("{name} = ")) => line.replace(shape, turned),
            line if dots(line) => line.replace(dims[0], dims[1]),
            line => line.to_string(),
        });
        lines.collect::<Vec<_>>().join("\n")
    };
    let cases = [
        ("rows", text.to_string()),
        ("turned q", turned("q", "[2,128,64]", "[2,64,128]", ["lhs_contracting_dims={2}", "lhs_contracting_dims={1}"])),
        ("turned k", turned("k", "[2,256,64]", "[2,64,256]", ["rhs_contracting_dims={2}", "rhs_contracting_dims={1}"])),
        ("turned v", turned("v", "[2,256,64]", "[2,64,256]", ["rhs_contracting_dims={1}", "rhs_contracting_dims={2}"])),
        ("heads of 48", text.replace(",64]", ",48]")),
        ("heads of 56", text.replace(",64]", ",56]")),
        ("heads of 256", text.replace(",64]", ",256]")),
        ("heads of 512", text.replace(",64]", ",512]")),
        ("65 queries", text.replace("128", "65")),
        ("257 keys", text.replace("256", "257")),
        ("f16", text.replace("bf16", "f16")),
        ("f32", text.replace("bf16", "f32")),
    ];
    let mut table = String::new();
    cases.iter().for_each(|(name, text)| of_threads(&mut table, name, text));
    // Gradients of keys, of which the queries are the values or another array is.
    let sum = include_str!("../data/strategies/score-sum.hlo");
    let other = |shape: &str, k: usize| {
        let (front, rest) = sum.split_once("dot(dn, q)").unwrap();
        let rest = rest.replace("rhs_contracting_dims={1}", &format!("rhs_contracting_dims={{{k}}}"));
        format!("{front}dot(dn, w){rest}").replace("  scores =", &format!("  w = {shape} parameter(7)\n  scores ="))
    };
    for (name, text) in [
        ("gradients", sum.to_string()),
        ("gradients by heads of 48", sum.replace(",64]", ",48]")),
        ("gradients by heads of 56", sum.replace(",64]", ",56]")),
        ("gradients by another array", other("bf16[2,128,64]", 1)),
        ("gradients by a turned array", other("bf16[2,64,128]", 2)),
        ("gradients in f32", sum.replace("bf16", "f32")),
    ] {
        of_threads(&mut table, name, &text);
    }
    insta::assert_snapshot!("attention-decisions", table);
}

/// Radices of lengths with small prime factors, convolutions for others, and blocks of lines of a vector's width.
#[test]
fn radices_of_transforms() {
    let lengths = [1, 2, 8, 31, 37, 60, 100, 256, 1000, 1024, 4093, 4096, 65536];
    let mut programs: Vec<String> = lengths.iter().map(|n| transform("FFT", &[], &[*n])).collect();
    for count in [3, 4, 16, 100] {
        programs.extend([8, 64, 256].map(|n| transform("FFT", &[count], &[n])));
    }
    for n in [1, 2, 15, 64, 74] {
        programs.extend([transform("RFFT", &[2], &[n]), transform("IRFFT", &[2], &[n])]);
    }
    for dims in [&[64, 100][..], &[1, 6], &[5, 1], &[3, 4, 5]] {
        programs.extend([transform("IFFT", &[2], dims), transform("IRFFT", &[], dims)]);
    }
    let mut table = String::new();
    for text in programs {
        let module = parse_module(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        writeln!(table, "{}", text.lines().find_map(|line| line.trim().strip_prefix("ROOT y = ")).unwrap()).unwrap();
        for cpu in ["x86-64", "x86-64-v3", "x86-64-v4"] {
            let kernel = emitted("fft", &module, &Target::whole(cpu).unwrap());
            writeln!(table, "  {cpu:10} {}", described_with_code(&kernel)).unwrap();
        }
    }
    insta::assert_snapshot!("transform-decisions", table);
}

/// Returns a transform of the last dimensions of an array in single precision.
fn transform(kind: &str, batch: &[usize], dims: &[usize]) -> String {
    let list = |dims: &[usize]| dims.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
    let (mut half, all) = (batch.to_vec(), [batch, dims].concat());
    let (last, others) = dims.split_last().unwrap();
    half.extend(others);
    half.push(last / 2 + 1);
    let (real, complex, half) =
        (format!("f32[{}]", list(&all)), format!("c64[{}]", list(&all)), format!("c64[{}]", list(&half)));
    let (operand, result) = match kind {
        "RFFT" => (real, half),
        "IRFFT" => (half, real),
        _ => (complex.clone(), complex),
    };
    format!(
        "HloModule m
        ENTRY main {{
          x = {operand} parameter(0)
          ROOT y = {result} fft(x), fft_type={kind}, fft_length={{{}}}
        }}",
        list(dims)
    )
}
