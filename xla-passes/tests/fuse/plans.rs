//! Snapshot tests of the cases of `tests/fuse/plans`, and of those of `tests/passes` that fuse: from programs to
//! kernels for a CPU and for a GPU.
//!
//! A file begins with `// passes: a, b` and the computations that its cases call. A case begins with `// === title`. A
//! title that ends with `: N = 1, 2` is a case for each of these values of `{N}`, which are usually on both sides of a
//! limit. A line `// target: limit = value, ...` in a case changes the targets, and `// explain` prints the reasons as
//! well.

use std::fmt::Write;
use std::path::Path;
use std::{fs, iter};

use xla_hlo::ElementType;
use xla_passes::{EpilogueProfile, FusionProfile, TargetProfile};

use crate::plan::{self, kernels};
use crate::profiles::attention;

/// Returns a CPU with eight threads, and vectors of 32 bytes.
fn cpu() -> TargetProfile {
    use ElementType::{C64, C128, F32, F64};
    TargetProfile {
        vector_bytes: 32,
        l1_bytes: 32 << 10,
        l2_bytes: 1 << 20,
        l3_bytes: 32 << 20,
        threads: 8,
        clock_hz: 3e9,
        memory_bandwidth: 8e10,
        cache_bandwidth: 4e11,
        launch_seconds: 1e-7,
        fusion: FusionProfile {
            epilogues: EpilogueProfile::contractions([F32, F64, C64, C128], 1 << 18),
            ..FusionProfile::reductions()
        },
        ..TargetProfile::generic()
    }
}

/// Returns a GPU with 132 multiprocessors, on which a launch takes as long as reading 10 MB.
pub fn gpu() -> TargetProfile {
    TargetProfile {
        vector_bytes: 16,
        l1_bytes: 128 << 10,
        l2_bytes: 1 << 20,
        l3_bytes: 50 << 20,
        threads: 132,
        clock_hz: 1.7e9,
        memory_bandwidth: 3.3e12,
        cache_bandwidth: 1e13,
        launch_seconds: 3e-6,
        fusion: FusionProfile {
            max_live_registers: 208,
            max_code: 4096,
            horizontal_bytes: 1 << 20,
            max_transposed_bytes: 1 << 20,
            epilogues: EpilogueProfile::contractions(ElementType::ALL.iter().copied(), 1 << 18),
            attention: attention(),
            ..FusionProfile::reductions()
        },
        ..TargetProfile::generic()
    }
}

/// Sets a value that a line `// target: ...` names.
fn change(profile: &mut TargetProfile, name: &str, value: usize) {
    let fusion = &mut profile.fusion;
    match name {
        "threads" => profile.threads = value,
        "max_instructions" => fusion.max_instructions = value,
        "max_row_instructions" => fusion.max_row_instructions = value,
        "max_code" => fusion.max_code = value as u64,
        "max_live_registers" => fusion.max_live_registers = value,
        "max_operands" => fusion.max_operands = value,
        "horizontal_bytes" => fusion.horizontal_bytes = value,
        "row_kernels" => fusion.row_kernels = value != 0,
        "multi_output" => fusion.multi_output = value != 0,
        "reduce_epilogue" => fusion.reduce_epilogue = value != 0,
        "in_place_update" => fusion.in_place_update = value != 0,
        "excess_precision" => fusion.attention.excess_precision = value != 0,
        "full_precision" => fusion.attention.full_precision = value != 0,
        "any_head_order" => fusion.attention.any_head_order = value != 0,
        "least_flops" => fusion.epilogues.least_flops = value as u64,
        "least_queries" => fusion.attention.least_queries = value,
        "least_keys" => fusion.attention.least_keys = value,
        "few_queries" => fusion.attention.few_queries = value,
        "few_keys" => fusion.attention.few_keys = value,
        _ => panic!("no limit is called {name}"),
    }
}

fn changed(mut profile: TargetProfile, text: &str) -> TargetProfile {
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix("// target: "));
    for (name, value) in lines.flat_map(|line| line.split(", ")).filter_map(|pair| pair.split_once(" = ")) {
        change(&mut profile, name, value.parse().expect("a number"));
    }
    profile
}

/// Returns the kernels, and the reasons if the case requests them.
fn outcome(text: &str, passes: &str, profile: TargetProfile) -> String {
    let (module, decisions) = plan::fuse(text, passes, &changed(profile, text));
    let explains = text.lines().any(|line| line.trim() == "// explain");
    let reasons = decisions.iter().filter(|_| explains).map(ToString::to_string);
    iter::once(kernels(&module)).chain(reasons).collect::<Vec<_>>().join("\n    ")
}

/// Returns the title of a case and the values of `{N}`.
fn values(title: &str) -> (&str, Vec<&str>) {
    title.split_once(": N = ").map_or((title, vec![""]), |(title, list)| (title, list.split(", ").collect()))
}

fn check(folder: &str, file: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder).join(file).with_extension("hlo");
    let text = fs::read_to_string(path).expect("a readable file");
    let passes = text.lines().next().and_then(|line| line.strip_prefix("// passes: ")).expect("a line of passes");
    let mut out = String::new();
    let mut cases = text.split("\n// === ");
    let functions = cases.next().unwrap_or_default();
    for case in cases {
        let (title, body) = case.split_once('\n').expect("a case has a body");
        let (title, values) = values(title);
        writeln!(out, "=== {title}").expect("writing to a string");
        for value in values {
            let body = format!("{functions}\n{}", body.replace("{N}", value));
            // Only GPUs have attention kernels.
            let targets = if passes.contains("attention") { [gpu(), gpu()] } else { [cpu(), gpu()] };
            let [cpu, gpu] = targets.map(|profile| outcome(&body, passes, profile));
            let value = if value.is_empty() { String::new() } else { format!("{value} ") };
            if cpu == gpu {
                writeln!(out, "{value}both: {cpu}").expect("writing to a string");
            } else {
                writeln!(out, "{value}cpu: {cpu}\n{value}gpu: {gpu}").expect("writing to a string");
            }
        }
    }
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(file, out);
    });
}

macro_rules! files {
    ($folder:literal: $($name:ident)*) => {
        $(#[test] fn $name() { check($folder, stringify!($name)); })*
    };
}

files! { "fuse/plans": rules accesses limits updates rows outputs epilogues constants }

files! {
    "passes":
    fuse fuse_rows fuse_attention fuse_scores alias_row_outputs fold_kernels reshape_to_bitcast
}
