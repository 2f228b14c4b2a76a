//! Snapshot tests of the cases of `tests/passes`, in which the evaluator must agree on input and output.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use xla_hlo::text::{PrintOptions, parse_module, print_module};
use xla_hlo::{Module, verify};
use xla_passes::registry::{self, Counted};
use xla_passes::{FusionProfile, PassContext, PassOptions, Pipeline, PipelineReport, TargetProfile, stages};

use crate::profiles::attention;
use crate::support::{Case, difference, evaluate, parse_file};

/// Maximum number of element operations of a case.
const STEPS: u64 = 10_000_000;

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/passes")
}

fn pipeline(passes: &str, profile: &TargetProfile) -> Pipeline {
    match passes.strip_prefix("stage ") {
        Some("canonicalize") => stages::canonicalize(profile),
        Some("simplify") => stages::simplify(profile),
        Some("fuse") => stages::fuse(profile),
        Some("standard") => stages::standard(profile),
        Some(other) => panic!("there is no stage {other}"),
        None => registry::pipeline(passes.split(", ")).expect("passes of the registry"),
    }
}

fn run(pipeline: &Pipeline, module: &mut Module, profile: &TargetProfile) -> PipelineReport {
    let options = PassOptions { verify: true, ..PassOptions::default() };
    let cx = PassContext::new(profile).with_options(options);
    pipeline.run(module, &cx).expect("the passes succeed")
}

/// Returns the profile for a file. Its second line may state which operations and types the target lacks, `// lacks:
/// OPCODE, TYPE, ...`, or one additional ability: `// also: splits-any-reduction`, `// also: attention`, `// also:
/// matrices-of-4-rows`.
fn profile_for(text: &str, able: &TargetProfile) -> TargetProfile {
    let second = text.lines().nth(1).unwrap_or_default();
    let names = second.strip_prefix("// lacks: ").into_iter().flat_map(|names| names.split(", "));
    let profile = able.clone().without(names).expect("what a target may lack");
    match second.strip_prefix("// also: ") {
        None => profile,
        Some("splits-any-reduction") => TargetProfile { splits_any_reduction: true, ..profile },
        Some("attention") => {
            TargetProfile { fusion: FusionProfile { attention: attention(), ..profile.fusion }, ..profile }
        }
        Some("matrices-of-4-rows") => {
            use xla_hlo::ElementType::{C64, C128, F32, F64};
            let small_matrices = [F32, F64, C64, C128].map(|ty| (ty, 4)).into();
            let names = ["cholesky", "triangular-solve"];
            TargetProfile { small_matrices, ..profile.without(names).expect("what a target may lack") }
        }
        Some(other) => panic!("no file knows a target that also does {other}"),
    }
}

/// Runs a case; returns the result and the number of applications of each rule.
fn check(passes: &str, case: &Case, profile: &TargetProfile) -> (String, PipelineReport) {
    let before = parse_module(&case.text).unwrap_or_else(|e| panic!("case {}: {e}", case.name));
    verify::check(&before).unwrap_or_else(|e| panic!("case {}: {e}", case.name));
    let mut after = before.clone();
    let pipeline = pipeline(passes, profile);
    let report = run(&pipeline, &mut after, profile);
    for seed in 0..4 {
        let special = seed < 2 && !case.approximate;
        let (old, new) = (evaluate(&before, seed, special, STEPS), evaluate(&after, seed, special, STEPS));
        let (Ok(old), Ok(new)) = (old, new) else { panic!("case {}: it does not evaluate", case.name) };
        if let Some(difference) = difference(&old, &new, case.approximate) {
            panic!("case {}, inputs {seed}: {difference}\n{after}", case.name);
        }
    }
    check_counts(&report, &case.name);
    let again = run(&pipeline, &mut after.clone(), profile);
    assert!(
        !again.is_changed() || passes.starts_with("stage standard"),
        "case {}: a second run changes it:\n{after}",
        case.name
    );
    (
        print_module(&after, &PrintOptions { layouts: passes.contains("layout"), ..PrintOptions::short_parsable() }),
        report,
    )
}

/// Checks that passes count the rewrites that the registry documents: each change of a counting pass has a rewrite, and
/// the other passes have none.
fn check_counts(report: &PipelineReport, case: &str) {
    for run in &report.runs {
        let info = registry::passes().iter().find(|info| info.name == run.pass).expect("a pass of the registry");
        let counts = !matches!(info.counted, Counted::Nothing);
        let is_counted = if counts { run.changed <= !run.rewrites.is_empty() } else { run.rewrites.is_empty() };
        assert!(is_counted, "case {case}: {} changed {}, counted {:?}", run.pass, run.changed, run.rewrites);
    }
}

/// Returns the generic target with every ability that a pass queries, and few threads, so that effects are visible in
/// small programs.
fn able() -> TargetProfile {
    let TargetProfile { fusion, dot, layout, .. } = TargetProfile::able();
    TargetProfile { threads: 4, fusion, dot, layout, ..TargetProfile::generic() }
}

/// Declares the tests of each file of cases, so that they are separate tests.
macro_rules! files {
    ($($name:ident)*) => {
        /// Names of the files of cases.
        const FILES: &[&str] = &[$(stringify!($name)),*];

        $(mod $name {
            #[test]
            fn cases_become_their_snapshots() {
                super::cases_become_their_snapshots(stringify!($name));
            }

            #[test]
            fn every_rewrite_alone_keeps_the_program() {
                super::every_rewrite_alone_keeps_the_program(stringify!($name));
            }
        })*
    };
}

files! {
    alias_row_outputs annotate_trip_counts assign_layouts common_subexpressions
    common_subexpressions_of_custom_calls dead_code drop_zero_sized drop_zero_sized_alone expand_async
    expand_batch_norms expand_bit_generators expand_bitcast_converts expand_cholesky expand_clamps
    expand_collectives expand_custom_calls expand_ffts expand_functions expand_linalg_in_blocks expand_ragged_dots
    expand_rng expand_scaled_dots expand_scans expand_select_and_scatter expand_stochastic_converts expand_top_k
    expand_triangular_solves flatten_call_graph fold_constants fold_kernels fuse fuse_attention fuse_epilogues
    fuse_outputs fuse_rows fuse_scores hoist_invariants inline_calls inline_maps insert_copies merge_dots
    normalize_floats normalize_layouts order_right_operands order_right_operands_of_stage pad_dynamic
    reshape_to_bitcast schedule several_devices simplify_algebra_arithmetic simplify_algebra_broadcast
    simplify_algebra_convert simplify_algebra_convert_moves simplify_algebra_convolution simplify_algebra_dot
    simplify_algebra_gather simplify_algebra_logic simplify_algebra_reduce simplify_algebra_reshape
    simplify_algebra_slice simplify_algebra_slice_of simplify_algebra_transpose simplify_conditionals simplify_loops
    simplify_sorts simplify_tokens simplify_tuples sink_slices solve_counting_loops split_reductions
    split_reductions_of_any split_windows standard standard_effects standard_lacking unify_convolution_types
    unify_dot_types unroll_loops widen_linalg
}

fn text(file: &str) -> String {
    fs::read_to_string(directory().join(file).with_extension("hlo")).expect("a readable file")
}

/// A limit of rewrites may stop between any two of them: the result must still be an equivalent program.
fn every_rewrite_alone_keeps_the_program(file: &str) {
    // Numbers from one random state depend on how many of the earlier generators were expanded.
    if file == "expand_rng" {
        return;
    }
    let text = text(file);
    let (passes, cases) = parse_file(&text);
    let profile = profile_for(&text, &able());
    let pipeline = pipeline(&passes, &profile);
    for case in &cases {
        let before = parse_module(&case.text).unwrap_or_else(|e| panic!("case {}: {e}", case.name));
        let all: u64 = run(&pipeline, &mut before.clone(), &profile).rewrites().values().sum();
        // The other test checks the full number.
        for limit in (0..all.min(12)).chain(all.saturating_sub(1).max(12)..all) {
            let options = PassOptions { verify: true, max_rewrites: Some(limit), ..PassOptions::default() };
            let mut after = before.clone();
            let report = pipeline.run(&mut after, &PassContext::new(&profile).with_options(options));
            let report = report.unwrap_or_else(|e| panic!("case {}, {limit} rewrites: {e}", case.name));
            assert_eq!(report.rewrites().values().sum::<u64>(), limit, "case {}", case.name);
            let (old, new) = (evaluate(&before, 2, false, STEPS), evaluate(&after, 2, false, STEPS));
            let (Ok(old), Ok(new)) = (old, new) else { panic!("case {}: it does not evaluate", case.name) };
            if let Some(difference) = difference(&old, &new, case.approximate) {
                panic!("case {}, {limit} rewrites: {difference}\n{after}", case.name);
            }
        }
    }
}

/// Endings of the names of cases that no rule may rewrite.
const STAYS: [&str; 2] = [" stays", " stay"];

/// Prefix of the line with the rules that a case of a snapshot applies.
const RULES: &str = "// by ";

fn cases_become_their_snapshots(file: &str) {
    let text = text(file);
    let (passes, cases) = parse_file(&text);
    let profile = profile_for(&text, &able());
    let laws = xla_passes::rule_names();
    let mut out = String::new();
    for case in &cases {
        let (result, report) = check(&passes, case, &profile);
        let rules: Vec<&str> = report.rewrites().keys().copied().filter(|rule| laws.contains(rule)).collect();
        let stays = STAYS.iter().any(|end| case.name.ends_with(end));
        assert!(!stays || !report.is_changed(), "case {} is changed by {rules:?}", case.name);
        let comment = if rules.is_empty() { String::new() } else { format!("{RULES}{}\n", rules.join(", ")) };
        writeln!(out, "// === {}\n{comment}{}", case.name, body(&result)).expect("writing to a string");
    }
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(file.to_string(), out);
    });
}

#[test]
fn each_file_is_listed() {
    let entries = fs::read_dir(directory()).expect("the directory of cases");
    let paths = entries.map(|e| e.expect("an entry").path()).filter(|p| p.extension().is_some_and(|e| e == "hlo"));
    let mut names: Vec<String> = paths.map(|p| p.file_stem().expect("a name").to_string_lossy().into_owned()).collect();
    names.sort();
    assert_eq!(FILES, names, "the list `files!` names each file of cases, sorted");
}

#[test]
fn each_rule_has_a_case() {
    let snapshots: Vec<String> = FILES
        .iter()
        .map(|file| directory().join("snapshots").join(file).with_extension("snap"))
        .map(|path| fs::read_to_string(path).expect("each file has a snapshot"))
        .collect();
    let applied: BTreeSet<&str> = snapshots
        .iter()
        .flat_map(|snapshot| snapshot.lines().filter_map(|line| line.strip_prefix(RULES)))
        .flat_map(|rules| rules.split(", "))
        .collect();
    let untested: Vec<&str> = xla_passes::rule_names().into_iter().filter(|r| !applied.contains(r)).collect();
    assert!(untested.is_empty(), "rules without a case: {untested:?}");
}

/// Returns the text without the header of a module that had none.
fn body(text: &str) -> &str {
    match text.split_once('\n') {
        Some((header, rest)) if header.starts_with("HloModule") => rest.trim(),
        _ => text.trim(),
    }
}

/// Passes whose cases need more than a module: options of the target, memory limits and spaces that are checked by
/// running programs in them, and tiled layouts.
const ELSEWHERE: [&str; 4] = ["allow-tf32", "assign-memory-spaces", "rematerialize", "tile-layouts"];

#[test]
fn each_pass_has_cases() {
    let named: Vec<String> = FILES.iter().map(|file| parse_file(&text(file)).0).collect();
    let has_file = |pass: &str| named.iter().flat_map(|passes| passes.split(", ")).any(|name| name == pass);
    let without: Vec<&str> = registry::list().map(|(name, _)| name).filter(|name| !has_file(name)).collect();
    assert_eq!(without, ELSEWHERE, "passes that no file of tests/passes names");
}
