//! Snapshot tests of the PTX of small programs, each of which shows one property that kernels rely on.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use xla_hlo::{VerifiedModule, text};
use xla_service::{AotCompilationOptions, Assembler, CompileOptions};

/// Returns the PTX of a program for an architecture.
fn ptx(module: &str, target: &str) -> String {
    ptx_with(module, target, CompileOptions::default())
}

/// Returns the PTX of a program that is compiled with options.
fn ptx_with(module: &str, target: &str, compile: CompileOptions) -> String {
    let module = VerifiedModule::new(text::parse_module(module).unwrap()).unwrap();
    let compiler = backend_gpu_nvptx::platform().compiler();
    let options = AotCompilationOptions {
        compile,
        target: Some(target.to_string()),
        assembler: Assembler::None,
        ..AotCompilationOptions::default()
    };
    let files = compiler.ahead_of_time().unwrap().compile_ahead_of_time(vec![module], &options).unwrap();
    let texts = files.into_iter().filter(|file| file.name.ends_with(".ptx"));
    texts.map(|file| String::from_utf8(file.bytes).unwrap()).collect::<Vec<_>>().join("\n")
}

/// Returns PTX without comments and register declarations; registers and labels are renumbered in the order of their
/// first use.
fn plain(ptx: &str) -> String {
    let lines = ptx.lines().map(|line| line.split("//").next().unwrap_or_default().trim_end());
    let lines = lines.filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with(".reg"));
    let mut names = Names::default();
    lines.map(|line| names.renamed(line) + "\n").collect()
}

#[derive(Default)]
struct Names {
    new: HashMap<String, usize>,
    counts: HashMap<String, usize>,
}

impl Names {
    fn renamed(&mut self, line: &str) -> String {
        let mut text = String::new();
        let mut rest = line;
        while let Some(at) = rest.find(['%', '$']) {
            let (before, from) = rest.split_at(at);
            let end =
                from[1..].find(|c: char| !c.is_ascii_alphanumeric() && c != '_').map_or(from.len(), |end| end + 1);
            text += before;
            text += &self.name(&from[..end]);
            rest = &from[end..];
        }
        text + rest
    }

    /// Renames `%r17` to its ordinal among names of its kind; names without a number are kept.
    fn name(&mut self, old: &str) -> String {
        let kind = old.trim_end_matches(|c: char| c.is_ascii_digit());
        if kind.len() == old.len() || kind.ends_with("_param_") {
            return old.to_string();
        }
        let kind = if kind.starts_with('$') { "$L" } else { kind };
        let count = self.counts.entry(kind.to_string()).or_default();
        let number = *self.new.entry(old.to_string()).or_insert_with(|| {
            *count += 1;
            *count
        });
        format!("{kind}{number}")
    }
}

#[test]
fn kernels_of_programs() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ptx/programs");
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty());
    for path in paths {
        let (module, name) = (fs::read_to_string(&path).unwrap(), path.file_stem().unwrap().to_str().unwrap());
        // wgmma instructions need the architecture-specific target.
        let target = if name.starts_with("warp_groups") { "sm_90a" } else { "sm_90" };
        // Attention in 16 bits is one kernel if probabilities may have more of them.
        let compile = CompileOptions { excess_precision: name.ends_with("attention"), ..CompileOptions::default() };
        insta::assert_snapshot!(name, plain(&ptx_with(&module, target, compile)), &module);
    }
}

#[test]
fn tensor_cores_know_tf32_from_sm_80_on() {
    let module = include_str!("programs/matmul_with_tf32.hlo");
    for (target, has_unit) in [("sm_70", false), ("sm_75", false), ("sm_80", true), ("sm_90", true), ("sm_100", true)] {
        let text = ptx(module, target);
        for instruction in ["mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "cvt.rna.tf32.f32"] {
            assert_eq!(text.contains(instruction), has_unit, "{instruction} for {target}");
        }
        assert_eq!(text.contains("fma.rn.f32"), !has_unit, "{target}");
    }
}

#[test]
fn warp_groups_multiply_on_one_architecture() {
    let module = include_str!("programs/warp_groups.hlo");
    for (target, has_groups) in [("sm_80", false), ("sm_90", false), ("sm_90a", true), ("sm_100a", false)] {
        let text = ptx(module, target);
        for instruction in ["wgmma.mma_async", "cp.async.bulk.tensor", "mbarrier.try_wait"] {
            assert_eq!(text.contains(instruction), has_groups, "{instruction} for {target}");
        }
        assert_eq!(text.contains("mma.sync"), !has_groups, "{target}");
    }
}

#[test]
fn numbers_of_registers_do_not_matter() {
    let text = "\tld.global.v2.b32 \t{%r7, %r3}, [%rd12+8]; // a load\n\t.reg .b32 %r<9>;\n$L__BB0_4:\n\tadd.s32 %r1, %r3, %ctaid.x;\n";
    assert_eq!(plain(text), "\tld.global.v2.b32 \t{%r1, %r2}, [%rd1+8];\n$L1:\n\tadd.s32 %r3, %r2, %ctaid.x;\n");
}
