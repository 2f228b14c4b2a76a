//! Snapshot tests of loops on both sides of their limits, `tests/suite/snapshots/*-loops.snap`, and tests of their
//! vectors and loads.

use std::fmt::Write;

use xla_hlo::Module;
use xla_hlo::text::parse_module;
use xla_llvm::fused::{BlockLoop, BlockPhase, BlockRounds, KernelSource, PhaseWork};
use xla_llvm::target::Target;

use crate::manifest::described_with_code;
use crate::strategies::emitted;

/// Returns the program of an entry's body, with a sum.
fn program(body: &str) -> Module {
    let text = format!(
        "HloModule program
         sum {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }}
         ENTRY main {{ {body} }}\n"
    );
    parse_module(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Returns the strategy and the launch of a program on a processor with vectors of 256 bits.
fn loops(body: &str) -> String {
    described_with_code(&emitted("", &program(body), &Target::whole("x86-64-v3").unwrap()))
}

/// Returns the LLVM IR of a program.
fn ir(body: &str, cpu: &str) -> String {
    emitted("", &program(body), &Target::whole(cpu).unwrap()).1
}

/// Threads share the windows of a scatter if there are many elements and windows are disjoint: by a batch dimension or
/// by a component of their start.
#[test]
fn scatters_that_threads_share() {
    let rows = "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1";
    let unique = format!("{rows}, unique_indices=true");
    let cells =
        "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0,1}, index_vector_dim=1";
    let batch = "update_window_dims={}, inserted_window_dims={1}, input_batching_dims={0},
                 scatter_dims_to_operand_dims={1}, scatter_indices_batching_dims={0}, index_vector_dim=2";
    let mut table = String::new();
    for (input, indices, updates, attributes) in [
        ("100,64", "255", "255,64", rows),
        ("100,64", "256", "256,64", rows),
        ("100,63", "261", "261,63", rows),
        ("40,64", "256", "256,64", &unique),
        ("63,64", "300", "300,64", &unique),
        ("50,100", "256,2", "256,64", cells),
        ("32,100", "32,511", "32,511", batch),
        ("32,100", "32,512", "32,512", batch),
        ("0,100", "0,512", "0,512", batch),
    ] {
        let body = format!(
            "x = f32[{input}] parameter(0) i = s32[{indices}] parameter(1) u = f32[{updates}] parameter(2)
             ROOT r = f32[{input}] scatter(x, i, u), {attributes}, to_apply=sum"
        );
        writeln!(table, "{updates} into {input}, {attributes}\n  {}", loops(&body)).unwrap();
    }
    insta::assert_snapshot!("scatter-loops", table);
}

/// Loops over each operand of a concatenation, from a number of operands on: if rows are few, or operands are long.
#[test]
fn concatenations_of_many_operands() {
    let mut table = String::new();
    for (rows, columns, count) in [(3, 5, 7), (3, 5, 8), (4096, 5, 8), (4097, 17, 8), (4097, 18, 8), (3, 0, 8)] {
        let operand = |i: usize| format!("x{i} = f32[{rows},{columns}] parameter({i})\n");
        let operands: String = (0..count).map(operand).collect();
        let names: Vec<String> = (0..count).map(|i| format!("x{i}")).collect();
        // One more column, so that the result has elements.
        let body = format!(
            "{operands} y = f32[{rows},1] parameter({count})
             ROOT r = f32[{rows},{}] concatenate({}, y), dimensions={{1}}",
            columns * count + 1,
            names.join(", ")
        );
        writeln!(table, "{count} operands of {rows} x {columns}, and a column\n  {}", loops(&body)).unwrap();
    }
    insta::assert_snapshot!("concatenation-loops", table);
}

/// A loop over a dimension that a reshape merged is split, so that no iteration divides its number; only into loops of
/// whole numbers of iterations.
#[test]
fn loops_over_merged_dimensions() {
    let mut table = String::new();
    for body in [
        "x = f32[6,35] parameter(0) t = f32[35,6] transpose(x), dimensions={1,0} ROOT r = f32[210] reshape(t)",
        "x = f32[35] parameter(0) b = f32[6,35] broadcast(x), dimensions={1} ROOT r = f32[210] reshape(b)",
        "x = f32[6] parameter(0) b = f32[6,35] broadcast(x), dimensions={0} ROOT r = f32[210] reshape(b)",
        "x = f32[6,35] parameter(0) t = f32[35,6] transpose(x), dimensions={1,0} f = f32[210] reshape(t)
         ROOT r = f32[209] slice(f), slice={[0:209]}",
        "x = f32[35] parameter(0) b = f32[6,35] broadcast(x), dimensions={1} f = f32[210] reshape(b)
         ROOT r = f32[140] slice(f), slice={[0:140]}",
        "x = f32[2,3,35] parameter(0) t = f32[35,3,2] transpose(x), dimensions={2,1,0} ROOT r = f32[210] reshape(t)",
    ] {
        writeln!(table, "{}\n  {}", body.split("parameter(0) ").last().unwrap(), loops(body)).unwrap();
    }
    insta::assert_snapshot!("merged-loops", table);
}

/// Threads have several loads in flight, fewer where a load is followed by much code.
#[test]
fn loads_in_flight() {
    let loads = |sines: usize| {
        let chain: String = (0..sines).map(|i| format!("v{} = f32[512,4096] sine(v{i})\n", i + 1)).collect();
        let body = format!(
            "v0 = f32[512,4096] parameter(0) {chain} z = f32[] constant(0)
             ROOT r = f32[512] reduce(v{sines}, z), dimensions={{1}}, to_apply=sum"
        );
        let (_, ir) = emitted("", &program(&body), &Target::nvptx("sm_90").unwrap());
        ir.matches(" = load ").count()
    };
    assert!(loads(140) < loads(1), "{} loads with much code, {} with little", loads(140), loads(1));
}

/// Returns the largest number of lanes of a vector of f32.
fn most_lanes(ir: &str) -> usize {
    let lanes = ir.split('<').filter_map(|text| text.split_once(" x float>")?.0.parse().ok());
    lanes.max().unwrap_or(1)
}

/// Sums along a row have up to four vectors, and no more lanes than a short row has elements.
#[test]
fn lanes_of_short_rows() {
    let lanes = |cpu: &str, extent: usize| {
        let body = format!(
            "x = f32[5,{extent}] parameter(0) z = f32[] constant(0)
             ROOT r = f32[5] reduce(x, z), dimensions={{1}}, to_apply=sum"
        );
        most_lanes(&ir(&body, cpu))
    };
    let of = |cpu| [7, 8, 9, 16, 17, 33, 100].map(|extent| lanes(cpu, extent));
    assert_eq!(of("x86-64-v3"), [1, 8, 16, 16, 32, 32, 32]);
    assert_eq!(of("x86-64-v4"), [1, 8, 16, 16, 32, 64, 64]);
}

/// An index has no effect along a dimension that slices cover as a whole.
#[test]
fn indices_of_whole_slices_are_not_read() {
    let reads = |rows: usize| {
        let body = format!(
            "x = f32[{rows},4] parameter(0) i = s32[5,1] parameter(1)
             ROOT r = f32[5,8,4] gather(x, i), offset_dims={{1,2}}, collapsed_slice_dims={{}}, start_index_map={{0}},
             index_vector_dim=1, slice_sizes={{8,4}}"
        );
        ir(&body, "x86-64-v3").contains("load i32")
    };
    assert_eq!([8, 9].map(reads), [false, true]);
}

/// All results are computed in the tiles of a matmul if they are elementwise functions of its sums.
#[test]
fn matmuls_of_several_results() {
    let mut table = String::new();
    let operands = "x = f32[64,64] parameter(0) y = f32[64,64] parameter(1)
                    d = f32[64,64] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}";
    for results in [
        "n = f32[64,64] negate(d) ROOT r = (f32[64,64], f32[64,64]) tuple(d, n)",
        "n = f32[64,64] negate(d) ROOT r = (f32[64,64], f32[64,64]) tuple(n, x)",
        "t = f32[64,64] transpose(d), dimensions={1,0} ROOT r = (f32[64,64], f32[64,64]) tuple(d, t)",
        "n = s32[64,64] convert(d) c = s32[64,64] copy(n) ROOT r = (f32[64,64], s32[64,64]) tuple(d, c)",
    ] {
        let module = program(&format!("{operands} {results}"));
        writeln!(table, "{results}").unwrap();
        for target in [Target::whole("x86-64-v3"), Target::nvptx("sm_90")] {
            writeln!(table, "  {}", described_with_code(&emitted("", &module, &target.unwrap()))).unwrap();
        }
    }
    insta::assert_snapshot!("matmul-loops", table);
}

/// Blocks of threads transpose as many arrays through shared memory as fit into it.
#[test]
fn transposes_of_many_arrays() {
    let mut table = String::new();
    for (ty, count) in [("f32", 1), ("f32", 11), ("f32", 12), ("f64", 5), ("f64", 6)] {
        let array = |i: usize| {
            let sum = if i == 0 { "s0 = $ copy(t0)".to_string() } else { format!("s{i} = $ add(s{}, t{i})", i - 1) };
            format!("x{i} = {ty}[64,96] parameter({i}) t{i} = $ transpose(x{i}), dimensions={{1,0}} {sum}\n")
        };
        let arrays: String = (0..count).map(array).collect();
        let body = format!("{arrays} ROOT r = $ negate(s{})", count - 1).replace('$', &format!("{ty}[96,64]"));
        let kernel = emitted("", &program(&body), &Target::nvptx("sm_90").unwrap());
        writeln!(table, "{count} of {ty}\n  {}", described_with_code(&kernel)).unwrap();
    }
    insta::assert_snapshot!("transpose-loops", table);
}

/// Loops that one block runs, and estimated cycles of longer ones: in elements, rows by one thread, a warp and a block,
/// columns, sums of products, windows and copies.
#[test]
fn loops_of_one_block() {
    let sums = "z = f32[] constant(0) s = f32[$R] reduce(x, z), dimensions={1}, to_apply=sum
                b = f32[$R,$C] broadcast(s), dimensions={0}";
    let bodies = [
        "ROOT r = f32[$R,$C] negate(x)",
        "e = f32[$R,$C] tanh(x) ROOT r = f32[$R,$C] add(e, e)",
        "z = f32[] constant(0) ROOT r = f32[$R] reduce(x, z), dimensions={1}, to_apply=sum",
        "z = f32[] constant(0) ROOT r = f32[$C] reduce(x, z), dimensions={0}, to_apply=sum",
        &format!("{sums} ROOT r = f32[$R,$C] divide(x, b)"),
        &format!("{sums} d = f32[$R,$C] divide(x, b) ROOT r = (f32[$R], f32[$R,$C]) tuple(s, d)"),
        "ROOT r = f32[$R,$R] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
        "z = f32[] constant(0) ROOT r = f32[$R,$C] reduce-window(x, z), window={size=1x3 pad=0_0x1_1}, to_apply=sum",
        "z = f32[] constant(0)
         ROOT r = f32[$R,$C] reduce-window(x, z), window={size=1x$C pad=0_0x$P_0}, to_apply=sum",
    ];
    let target = Target::nvptx("sm_90").unwrap();
    let mut table = String::new();
    let mut add = |name: &str, work: PhaseWork<'_>| {
        let phase = BlockPhase { work, waits: false };
        let name = name.split("ROOT r = ").last().unwrap();
        let plan = BlockLoop::new("loop", (Vec::new(), vec![phase]), BlockRounds::Counted(10), 3, &target);
        let text = plan.map_or_else(|reason| reason.to_string(), |plan| plan.to_string());
        writeln!(table, "  {name}: {text}").unwrap();
    };
    for body in bodies {
        for (rows, columns) in [(4, 8), (4, 1000), (64, 64), (100, 40), (1000, 4), (7, 511), (300, 300)] {
            let sizes = [("$R", rows), ("$C", columns), ("$P", columns - 1)];
            let text = format!("x = f32[$R,$C] parameter(0) {body}");
            let text = sizes.iter().fold(text, |text, (name, size)| text.replace(name, &size.to_string()));
            let module = program(&text);
            let source = KernelSource::of_computation(&module, module.entry_id(), |_| false).unwrap();
            add(&format!("{body}, {rows} x {columns}"), PhaseWork::Compute { source, pointers: vec![0, 1, 2] });
        }
    }
    for bytes in [4, 1000, 100_000, 100_002, 100_004] {
        add(&format!("copy of {bytes} bytes"), PhaseWork::Copy { from: 0, to: 1, bytes });
    }
    insta::assert_snapshot!("block-loops", table);
}
