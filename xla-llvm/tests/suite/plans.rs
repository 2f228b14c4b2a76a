//! Plans of kernels of several launches, on both sides of the limits between them: scratch memory has as many bytes as
//! the launches exchange. `tests/suite/snapshots/*-plans.snap`.

use std::fmt::Write;

use xla_hlo::Module;
use xla_hlo::text::parse_module;
use xla_llvm::fused::{
    AttentionDecode, KernelPlan, KernelSource, MatmulAlternatives, PlanArgument, PlanCommand, RadixPhase,
    RadixSortPlan, ScanPlan, ScatterPhase, SortPhase, SortPlan, SplitK, ThreadedScatter, TopKPlan,
};
use xla_llvm::target::Target;

use crate::contractions::dot;
use crate::manifest::codes_of_plan;

/// Returns the program of an entry computation's body, with a sum, a comparator of pairs and a combiner of writes.
fn program(ty: &str, body: &str) -> Module {
    // Complex numbers have no order.
    let direction = if ty.starts_with('c') { "EQ" } else { "LT" };
    let text = format!(
        "HloModule program
         sum {{ a = {ty}[] parameter(0) b = {ty}[] parameter(1) ROOT c = {ty}[] add(a, b) }}
         last {{ a = {ty}[] parameter(0) ROOT b = {ty}[] parameter(1) }}
         before {{ a = {ty}[] parameter(0) b = {ty}[] parameter(1)
                   ROOT c = pred[] compare(a, b), direction={direction} }}
         before_of_pair {{ a = {ty}[] parameter(0) b = {ty}[] parameter(1) c = s64[] parameter(2) d = s64[] parameter(3)
                           ROOT e = pred[] compare(a, b), direction={direction} }}
         before_of_four {{ a = {ty}[] parameter(0) b = {ty}[] parameter(1) c = s64[] parameter(2) d = s64[] parameter(3)
                           e = s64[] parameter(4) f = s64[] parameter(5) g = s64[] parameter(6) h = s64[] parameter(7)
                           ROOT i = pred[] compare(a, b), direction={direction} }}
         ENTRY main {{ {body} }}"
    );
    parse_module(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Returns the root of a program as the source of a kind of kernel.
fn operation(module: &Module) -> KernelSource<'_> {
    KernelSource::of_operation(module, module.entry_id(), module.entry().root())
}

/// Returns the arguments of all launches of a phase.
fn launches<P: KernelPlan>(plan: &P, source: &KernelSource<'_>, phase: P::Phase) -> Vec<Vec<PlanArgument>> {
    let of_phase = |command| match command {
        PlanCommand::Launch { function, arguments } if function == phase => Some(arguments),
        PlanCommand::Launch { .. } | PlanCommand::Copy { .. } => None,
    };
    plan.commands(source).into_iter().filter_map(of_phase).collect()
}

/// Returns the number of words that each phase takes.
fn words<P: KernelPlan>(plan: &P, source: &KernelSource<'_>) -> Vec<usize> {
    plan.phases().into_iter().map(|phase| launches(plan, source, phase)[0].len()).collect()
}

/// Returns the numbers that the launches of a phase take.
fn numbers<P: KernelPlan>(plan: &P, source: &KernelSource<'_>, phase: P::Phase) -> Vec<i64> {
    let number = |arguments: Vec<PlanArgument>| match arguments.last() {
        Some(PlanArgument::Number(number)) => Some(*number),
        _ => None,
    };
    launches(plan, source, phase).into_iter().filter_map(number).collect()
}

fn gpu() -> Target {
    Target::nvptx("sm_90").unwrap()
}

/// Operations that a fusion may contain, and those of the same name that it may not.
#[test]
fn operations_of_fusions() {
    for (body, is_fusible) in [
        ("x = s32[8] parameter(0) ROOT r = f32[8] bitcast-convert(x)", true),
        ("x = s32[8] parameter(0) ROOT r = s16[8,2] bitcast-convert(x)", false),
        ("x = s16[8,2] parameter(0) ROOT r = s32[8] bitcast-convert(x)", false),
        ("x = s32[8] parameter(0) ROOT r = s32[2,4] bitcast(x)", true),
        ("x = s32[8] parameter(0) ROOT r = f32[2,4] bitcast(x)", true),
        ("x = s32[8] parameter(0) ROOT r = s16[16] bitcast(x)", false),
        ("x = s32[8] parameter(0) ROOT r = s32[4] slice(x), slice={[0:8:2]}", true),
        ("x = s32[8] parameter(0) ROOT r = s32[<=8] add(x, x)", false),
        ("x = s32[8] parameter(0) ROOT r = s32[8] sort(x), dimensions={0}, to_apply=before", false),
        (
            "x = s32[8] parameter(0) z = s32[] constant(0) ROOT r = s32[] reduce(x, z), dimensions={0}, to_apply=sum",
            true,
        ),
    ] {
        let module = program("s32", body);
        let source = KernelSource::of_computation(&module, module.entry_id(), |_| false);
        assert_eq!(source.is_some(), is_fusible, "{body}");
    }
}

/// Rows of less than a block, of whole iterations, and in tiles whose totals blocks exchange in 64-bit words.
#[test]
fn scans() {
    let mut table = String::new();
    let lengths =
        [(3, 255), (3, 256), (3, 1000), (3, 1 << 14), (3, 1 << 15), (1, 1 << 20), (300, 1 << 15), (2, 99_999)];
    let types = ["f32", "u8", "f64", "c64", "c128"];
    let of_types = [1 << 17, 1 << 24].into_iter().flat_map(|length| types.map(|ty| (ty, (1, length))));
    for (ty, (rows, length)) in lengths.into_iter().map(|size| ("f32", size)).chain(of_types) {
        let body = format!(
            "x = {ty}[{rows},{length}] parameter(0) z = {ty}[] constant({})
             ROOT r = {ty}[{rows},{length}] reduce-window(x, z), window={{size=1x{length} pad=0_0x{}_0}}, to_apply=sum",
            if ty.starts_with('c') { "(0, 0)" } else { "0" },
            length - 1
        );
        let module = program(ty, &body);
        let source = KernelSource::of_computation(&module, module.entry_id(), |_| false).unwrap();
        writeln!(table, "{ty}[{rows},{length}]").unwrap();
        let Some(plan) = ScanPlan::new(&source, &gpu()) else { continue };
        let (words, bytes) = (words(&plan, &source), plan.scratch_bytes());
        writeln!(table, "  {plan:?}\n  {words:?} words, exchanged bytes: {:?}", bytes.first()).unwrap();
        table += &codes_of_plan(&plan, &source, &gpu());
    }
    insta::assert_snapshot!("scan-plans", table);
}

/// Rows that one block picks from, and rows in chunks, whose items have keys of 32 bits or of 64.
#[test]
fn top_k() {
    let mut table = String::new();
    for (ty, rows, length, k) in [
        ("f32", 1, 1 << 11, 8),
        ("f32", 1, 1 << 14, 8),
        ("f32", 1, 1 << 14, 0),
        ("bf16", 3, 1 << 20, 100),
        ("f64", 3, 1 << 20, 100),
        ("s64", 1000, 1 << 14, 5),
        ("s8", 1, 99_999, 1000),
        ("s8", 1, 99_999, 99_999),
    ] {
        let body = format!(
            "x = {ty}[{rows},{length}] parameter(0)
             ROOT r = ({ty}[{rows},{k}], s32[{rows},{k}]) topk(x), k={k}, largest=true"
        );
        let module = program(ty, &body);
        writeln!(table, "{k} of {ty}[{rows},{length}]").unwrap();
        let Some(plan) = TopKPlan::new(&operation(&module), &gpu()) else { continue };
        writeln!(table, "  {:?}, bytes of items: {:?}", plan.phases(), plan.scratch_bytes().first()).unwrap();
        table += &codes_of_plan(&plan, &operation(&module), &gpu());
    }
    insta::assert_snapshot!("top-k-plans", table);
}

/// Sorts by merging, and by digits where keys have few of them for the length of rows.
#[test]
fn sorts() {
    let mut table = String::new();
    for (ty, rows, length) in [
        ("f32", 1, 1),
        ("f32", 7, 100),
        ("f32", 1, 1 << 15),
        ("f32", 1, 1 << 20),
        ("u8", 1, 1 << 20),
        ("f64", 1, 1 << 22),
        ("s16", 100, 3000),
        ("s32", 3, (1 << 19) + 1),
    ] {
        let of_one = format!(
            "x = {ty}[{rows},{length}] parameter(0)
             ROOT r = {ty}[{rows},{length}] sort(x), dimensions={{1}}, to_apply=before"
        );
        let of_pair = format!(
            "x = {ty}[{rows},{length}] parameter(0) y = s64[{rows},{length}] parameter(1)
             ROOT r = ({ty}[{rows},{length}], s64[{rows},{length}]) sort(x, y), dimensions={{1}}, to_apply=before_of_pair"
        );
        // So many bytes that tiles are smaller.
        let of_four = format!(
            "x = {ty}[{rows},{length}] parameter(0) y = s64[{rows},{length}] parameter(1)
             v = s64[{rows},{length}] parameter(2) w = s64[{rows},{length}] parameter(3)
             ROOT r = ({ty}[{rows},{length}], s64[{rows},{length}], s64[{rows},{length}], s64[{rows},{length}])
             sort(x, y, v, w), dimensions={{1}}, to_apply=before_of_four"
        );
        for body in [of_one, of_pair, of_four] {
            let module = program(ty, &body);
            let source = operation(&module);
            writeln!(table, "{} of {ty}[{rows},{length}]", source.inputs.len()).unwrap();
            let plan = SortPlan::new(&source, &gpu()).unwrap();
            let (merges, bytes) = (numbers(&plan, &source, SortPhase::Merge), plan.scratch_bytes());
            let of_phases = words(&plan, &source);
            writeln!(table, "  merges of {merges:?}, {of_phases:?} words, bytes of arrays: {bytes:?}").unwrap();
            table += &codes_of_plan(&plan, &source, &gpu());
            let Some(radix) = RadixSortPlan::new(&source, &gpu()) else { continue };
            let (digits, words) = (numbers(&radix, &source, RadixPhase::Count), words(&radix, &source));
            let scratch = radix.scratch_bytes();
            let (bytes, counts) = scratch.split_at(scratch.len() - 2);
            writeln!(table, "  digits {digits:?}, {words:?} words, bytes of arrays: {bytes:?}, of counts: {counts:?}")
                .unwrap();
            table += &codes_of_plan(&radix, &source, &gpu());
        }
    }
    insta::assert_snapshot!("sort-plans", table);
}

/// Lengths of rows from which a sort by digits is faster than one by merging.
#[test]
fn sorts_by_digits() {
    let lengths: Vec<u64> = (8..22).flat_map(|bits| [(1 << bits) + 1, 3 << (bits - 1)]).collect();
    let mut table = String::new();
    for (ty, count) in ["s8", "s16", "s32", "s64"].into_iter().flat_map(|ty| [(ty, 1), (ty, 2)]) {
        for rows in [1, 3, 10, 30, 100, 300, 1000, 3000] {
            let is_by_digits = |length: &u64| {
                let array = |ty: &str| format!("{ty}[{rows},{length}]");
                let (x, y) = (array(ty), array("s64"));
                let body = match count {
                    1 => format!("x = {x} parameter(0) ROOT r = {x} sort(x), dimensions={{1}}, to_apply=before"),
                    _ => format!(
                        "x = {x} parameter(0) y = {y} parameter(1)
                         ROOT r = ({x}, {y}) sort(x, y), dimensions={{1}}, to_apply=before_of_pair"
                    ),
                };
                let module = program(ty, &body);
                RadixSortPlan::new(&operation(&module), &gpu()).is_some()
            };
            let mut possible = lengths.iter().filter(|&length| rows * length <= 1 << 26);
            let least = possible.find(|length| is_by_digits(length)).map_or("none".to_string(), u64::to_string);
            writeln!(table, "{rows} rows of {ty}, {count} arrays: {least}").unwrap();
        }
    }
    insta::assert_snapshot!("digit-plans", table);
}

/// Sums in parts, whose bytes are those of the results for each part.
#[test]
fn sums_in_parts() {
    use xla_hlo::ElementType::*;
    let mut table = String::new();
    for (letters, ty, [m, k, n]) in [
        ("mk,kn", F32, [64, 1 << 9, 64]),
        ("mk,kn", F32, [64, 1 << 10, 64]),
        ("mk,kn", F32, [64, 1 << 14, 64]),
        ("mk,kn", F32, [2048, 1 << 14, 2048]),
        ("mk,kn", BF16, [64, 1 << 14, 64]),
        ("mk,kn", F64, [70, 9999, 33]),
        ("mk,kn", C128, [70, 9999, 33]),
        ("mk,kn", F32, [1, 1 << 14, 64]),
        ("mk,kn", F32, [4, 1 << 14, 64]),
        ("mk,nk", F32, [4, 1 << 14, 64]),
        ("mk,nk", F32, [4, 1 << 18, 4]),
        ("mk,nk", BF16, [4, 1 << 14, 64]),
        ("bmk,bnk", F32, [4, 1 << 14, 64]),
        ("bmk,bkn", F32, [4, 1 << 14, 64]),
        ("mk,nk", F32, [4, 100, 64]),
        ("mk,nk", F32, [4, 1 << 18, 128]),
        ("mk,nk", F32, [4, 1 << 16, 512]),
        ("mk,nk", F32, [2, 1 << 14, 1 << 9]),
        ("mk,nk", F32, [2, 1 << 14, 1 << 11]),
        ("mk,kn", F32, [2, 1 << 14, 1 << 9]),
        ("mk,kn", F32, [2, 1 << 14, 1 << 11]),
        ("mk,kn", F32, [2, 1 << 12, 1 << 9]),
        ("kn,km", F32, [3, 1 << 15, 1 << 9]),
    ] {
        let text = dot(letters, &[('b', 3), ('m', m), ('k', k), ('n', n)], [ty; 3]);
        let module = parse_module(&text).unwrap();
        let source = KernelSource::of_computation(&module, module.entry_id(), |_| false).unwrap();
        writeln!(table, "{ty} {letters} {m} x {k} x {n}").unwrap();
        let Some(plan) = SplitK::new(&source, &gpu()) else { continue };
        let (words, bytes) = (words(&plan, &source), plan.scratch_bytes());
        writeln!(table, "  {plan:?}\n  {words:?} words, bytes of parts: {}", bytes[0]).unwrap();
        table += &codes_of_plan(&plan, &source, &gpu());
    }
    insta::assert_snapshot!("split-k-plans", table);
}

/// Other tiles that a GPU measures for a matmul, without warp groups and with them.
#[test]
fn alternatives() {
    use xla_hlo::ElementType::*;
    let mut table = String::new();
    for (letters, ty, [m, k, n]) in [
        ("mk,kn", F32, [128, 255, 128]),
        ("mk,kn", F32, [128, 256, 128]),
        ("mk,kn", F32, [512, 512, 512]),
        ("mk,kn", F32, [4096, 64, 4096]),
        ("mk,kn", F64, [512, 4096, 512]),
        ("mk,kn", BF16, [512, 512, 512]),
        ("mk,kn", BF16, [4096, 4096, 4096]),
        ("mk,nk", BF16, [256, 1 << 16, 256]),
        ("km,kn", F16, [1000, 1000, 1000]),
        ("mk,kn", S8, [17, 512, 100_000]),
    ] {
        let text = dot(letters, &[('m', m), ('k', k), ('n', n)], [ty; 3]);
        let module = parse_module(&text).unwrap();
        let source = KernelSource::of_computation(&module, module.entry_id(), |_| false).unwrap();
        for cpu in ["sm_90", "sm_90a"] {
            let alternatives = MatmulAlternatives::new(&source, &Target::nvptx(cpu).unwrap());
            // The name ends with a hash of the program.
            let name =
                alternatives.as_ref().and_then(|all| all.name.rsplit_once(" (")).map_or("none", |(name, _)| name);
            writeln!(table, "{letters} of {ty}, {m} x {k} x {n}, {cpu}: {}", name.replace("; ", "\n  ")).unwrap();
        }
    }
    insta::assert_snapshot!("matmul-alternatives", table);
}

/// Attentions of few queries, whose keys are cut into parts where heads are few.
#[test]
fn attentions_of_few_queries() {
    let text = include_str!("../data/strategies/attention.hlo");
    let mut table = String::new();
    for (batches, queries, keys, head) in [
        (2, 1, 4096, 64),
        (2, 1, 255, 64),
        (2, 1, 64, 64),
        (2, 8, 4096, 64),
        (2, 9, 4096, 64),
        (2, 16, 4096, 64),
        (2, 17, 4096, 64),
        (2, 4, 4096, 40),
        (2, 4, 4096, 36),
        (2, 4, 4096, 256),
        (2, 4, 4096, 512),
        (500, 1, 4096, 64),
        (1, 1, 1 << 18, 128),
    ] {
        let sizes = [("[2,", batches), (",128", queries), (",256", keys), (",64]", head)];
        let text = sizes.iter().fold(text.to_string(), |text, &(old, new)| {
            let (front, end) = (&old[..1], if old.ends_with([',', ']']) { &old[old.len() - 1..] } else { "" });
            text.replace(old, &format!("{front}{new}{end}"))
        });
        for (from, to) in [("bf16", "bf16"), ("bf16", "f32")] {
            let module = parse_module(&text.replace(from, to)).unwrap();
            let source = KernelSource::of_computation(&module, module.entry_id(), |_| false).unwrap();
            writeln!(table, "{batches} x {queries} queries, {keys} keys, heads of {head} in {to}").unwrap();
            let Some(plan) = AttentionDecode::new(&source, &gpu()) else { continue };
            let (words, bytes) = (words(&plan, &source), plan.scratch_bytes());
            writeln!(table, "  {plan}; {words:?} words, bytes of parts: {:?}", bytes.first()).unwrap();
            table += &codes_of_plan(&plan, &source, &gpu());
        }
    }
    insta::assert_snapshot!("attention-decode-plans", table);
}

/// Scatters whose updates meet: by atomics, in copies of the array, by claims, and in order by sorted keys.
#[test]
fn scatters() {
    let mut table = String::new();
    for (ty, combiner, size, updates) in [
        ("f32", "sum", 100_000, 1),
        ("f32", "sum", 100_000, 10_000),
        ("f32", "sum", 64, 100_000),
        ("f32", "last", 100_000, 10_000),
        ("f64", "last", 1000, 10_000),
        ("u8", "last", 1000, 10_000),
        ("c64", "sum", 1000, 10),
        ("c64", "sum", 1000, 10_000),
    ] {
        let body = format!(
            "x = {ty}[{size}] parameter(0) i = s32[{updates},1] parameter(1) u = {ty}[{updates}] parameter(2)
             ROOT r = {ty}[{size}] scatter(x, i, u), update_window_dims={{}}, inserted_window_dims={{0}},
             scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply={combiner}"
        );
        let module = program(ty, &body);
        let source = operation(&module);
        writeln!(table, "{updates} to {ty}[{size}], {combiner}").unwrap();
        let Some(plan) = ThreadedScatter::new(&source, &gpu()) else { continue };
        let (phases, words, bytes) = (plan.phases(), words(&plan, &source), plan.scratch_bytes());
        let merges = numbers(&plan, &source, ScatterPhase::Sort(SortPhase::Merge)).len();
        writeln!(table, "  {phases:?}, {words:?} words, scratch bytes: {bytes:?}, merges of keys: {merges}").unwrap();
        table += &codes_of_plan(&plan, &source, &gpu());
    }
    insta::assert_snapshot!("scatter-plans", table);
}
