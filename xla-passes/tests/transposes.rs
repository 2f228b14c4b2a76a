//! How many transposes, and of how many bytes, programs are left with before they are fused; a table to read, not a test that fails.
//!
//! `XLA_PROGRAMS=DIR:DIR cargo nextest run -p xla-passes --run-ignored only --no-capture transposes`

use std::path::{Path, PathBuf};
use std::{env, fs};

use xla_hlo::text::parse_module;
use xla_hlo::{Module, Op};
use xla_passes::{FusionProfile, PassContext, PassOptions, TargetProfile, stages};

/// Files named `*.hlo` in a directory, and `module.hlo` in its directories.
fn programs(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a directory");
    let mut programs: Vec<PathBuf> = entries
        .map(|e| e.expect("an entry").path())
        .map(|p| if p.is_dir() { p.join("module.hlo") } else { p })
        .filter(|p| p.is_file() && p.extension().is_some_and(|e| e == "hlo"))
        .collect();
    programs.sort();
    programs
}

/// Transposes of the computations that run as programs, and their bytes.
fn transposes(module: &Module) -> (usize, usize) {
    let all = module.iter().flat_map(|(_, computation)| computation.iter());
    let sizes = all.filter(|(_, i)| matches!(i.op(), Op::Transpose(_))).filter_map(|(_, i)| i.shape().as_array());
    sizes.fold((0, 0), |(count, bytes), shape| (count + 1, bytes + shape.byte_size()))
}

#[test]
#[ignore = "prints a table"]
#[expect(clippy::print_stdout, reason = "a table to read")]
fn transposes_of_programs() {
    let Some(directories) = env::var_os("XLA_PROGRAMS") else { return };
    let mut profile = TargetProfile { threads: 8, fusion: FusionProfile::folds(), ..TargetProfile::generic() };
    profile.vector_bytes = 64;
    let (mut programs_seen, mut total) = (0, (0, 0));
    for path in env::split_paths(&directories).flat_map(|d| programs(&d)) {
        let text = fs::read_to_string(&path).expect("a readable program");
        let Ok(mut module) = parse_module(&text) else { continue };
        let options = PassOptions { until: Some("layout".into()), ..PassOptions::default() };
        let cx = PassContext::new(&profile).with_options(options);
        if stages::standard(&profile).run(&mut module, &cx).is_err() {
            continue;
        }
        let (count, bytes) = transposes(&module);
        programs_seen += 1;
        total = (total.0 + count, total.1 + bytes);
        if count > 0 {
            println!("{count:5} {bytes:12} {}", path.display());
        }
    }
    println!("{:5} {:12} in {programs_seen} programs", total.0, total.1);
}
