//! Tests that a concatenation of many operands reads only the operand that contains an element.

use std::fmt::Write;

use inkwell::context::Context;
use xla_hlo::text::parse_module;
use xla_llvm::emitter::{EmitOptions, Emitter};
use xla_llvm::fused::{KernelSource, emit_kernel};
use xla_llvm::target::Target;

/// Returns LLVM IR of a function of a concatenation of `count` arrays, each of shape `operand`, which has no loops over
/// operands.
fn concatenation(count: usize, operand: &str, result: &str, dimension: usize, target: &Target) -> String {
    let mut text = String::from("HloModule m\nENTRY e {\n");
    for i in 0..count {
        writeln!(text, "  x{i} = {operand} parameter({i})\n  y{i} = {operand} negate(x{i})").unwrap();
    }
    let operands = Vec::from_iter((0..count).map(|i| format!("y{i}"))).join(", ");
    writeln!(text, "  c = {result} concatenate({operands}), dimensions={{{dimension}}}").unwrap();
    writeln!(text, "  ROOT r = {result} negate(c)\n}}").unwrap();
    emitted(&text, target)
}

/// Returns LLVM IR of the entry as one kernel.
fn emitted(text: &str, target: &Target) -> String {
    emitted_with_scratch(text, target).0
}

/// Returns LLVM IR of the entry as one kernel, and the bytes of its scratch memory.
fn emitted_with_scratch(text: &str, target: &Target) -> (String, u64) {
    let module = parse_module(text).unwrap();
    let source = KernelSource::of_computation(&module, module.entry_id(), |_| false).unwrap();
    let context = Context::create();
    let emitter = Emitter::new(&context, "kernels", target, EmitOptions::default());
    let kernel = emit_kernel(&emitter, &source, "kernel").unwrap();
    (emitter.finish().unwrap().print_to_string().to_string(), kernel.scratch_bytes)
}

/// Returns the maximum number of array reads in a basic block of such a concatenation.
fn reads_of_a_block(operand: &str, result: &str, dimension: usize, target: &Target) -> usize {
    let ir = concatenation(64, operand, result, dimension, target);
    let (_, body) = ir.split_once("define").unwrap();
    let mut counts = vec![0];
    for line in body.lines() {
        let reads = ["= load <", "= load float", "@llvm.masked.load", "@llvm.masked.gather"];
        match line.starts_with(|c: char| c.is_ascii_alphanumeric()) && line.contains(':') {
            true => counts.push(0),
            false if line.starts_with("declare") => {}
            false => *counts.last_mut().unwrap() += usize::from(reads.iter().any(|read| line.contains(read))),
        }
    }
    counts.into_iter().max().unwrap()
}

#[test]
fn concatenation_of_many_arrays_reads_one_for_a_row() {
    for cpu in ["x86-64", "x86-64-v3", "x86-64-v4"] {
        let reads = reads_of_a_block("f32[2,48]", "f32[128,48]", 0, &Target::whole(cpu).unwrap());
        assert_eq!(reads, 1, "{cpu}");
    }
    let reads = reads_of_a_block("f32[2,48]", "f32[128,48]", 0, &Target::nvptx("sm_90").unwrap());
    assert!(reads <= 8, "{reads} reads on a GPU");
}

#[test]
fn concatenation_of_many_arrays_reads_few_for_a_vector() {
    for cpu in ["x86-64", "x86-64-v3", "x86-64-v4"] {
        let reads = reads_of_a_block("f32[4,5]", "f32[4,320]", 1, &Target::whole(cpu).unwrap());
        assert!((1..=8).contains(&reads), "{reads} reads for {cpu}");
    }
}

#[test]
fn concatenation_of_many_arrays_loads_addresses_in_its_branches() {
    // Halves of 48 are no power of two.
    let sizes = [(64, "f32[4,320]"), (48, "f32[4,240]")];
    let levels = ["x86-64", "x86-64-v3", "x86-64-v4"];
    for ((count, result), cpu) in sizes.into_iter().flat_map(|size| levels.map(|cpu| (size, cpu))) {
        let ir = concatenation(count, "f32[4,5]", result, 1, &Target::whole(cpu).unwrap());
        let (_, body) = ir.split_once("entry:").unwrap();
        let (entry, _) = body.split_once("br ").unwrap();
        let addresses = entry.matches("= load ptr").count();
        assert!(addresses <= 4, "{addresses} addresses in front of the loop over {count} for {cpu}");
    }
}

/// Returns LLVM IR of a concatenation along `dimension` of arrays of two rows and 1 to `sizes` columns each, or rows.
fn of_sizes(count: usize, sizes: usize, dimension: usize) -> String {
    let size = |i: usize| 1 + i % sizes;
    let shape = |columns: usize| if dimension == 1 { format!("f32[2,{columns}]") } else { format!("f32[{columns},2]") };
    let mut text = String::from("HloModule m\nENTRY e {\n");
    for i in 0..count {
        writeln!(text, "  x{i} = {} parameter({i})", shape(size(i))).unwrap();
    }
    let operands = Vec::from_iter((0..count).map(|i| format!("x{i}"))).join(", ");
    let result = shape((0..count).map(size).sum());
    writeln!(text, "  ROOT c = {result} concatenate({operands}), dimensions={{{dimension}}}\n}}").unwrap();
    emitted(&text, &Target::whole("x86-64-v3").unwrap())
}

#[test]
fn concatenation_has_code_for_each_kind_of_operand() {
    for dimension in [0, 1] {
        let blocks = |count, sizes| of_sizes(count, sizes, dimension).matches("\n\n").count();
        assert_eq!(blocks(100, 10), blocks(1000, 10), "100 and 1,000 operands of ten sizes");
        let [few, many] = [20, 40].map(|sizes| blocks(400, sizes));
        assert!(many <= 3 * few, "{few} blocks for 20 sizes, {many} for 40");
    }
}

#[test]
fn concatenation_has_no_branch_for_an_element() {
    // Operands have 1 to 10 rows of two numbers each: the only loops are over operands and over their elements.
    let ir = of_sizes(1000, 10, 0);
    assert!(ir.matches("icmp").count() <= 10 * 6, "{} comparisons", ir.matches("icmp").count());
}

/// Tiles of transposed operands are in scratch memory.
#[test]
fn kinds_of_operands_share_scratch_memory() {
    let scratch_bytes = |count: usize| {
        let mut text = String::from("HloModule m\nENTRY e {\n");
        for i in 0..count {
            let columns = 64 + i;
            writeln!(text, "  x{i} = f32[{columns},64] parameter({i})").unwrap();
            writeln!(text, "  y{i} = f32[64,{columns}] transpose(x{i}), dimensions={{1,0}}").unwrap();
        }
        let operands = Vec::from_iter((0..count).map(|i| format!("y{i}"))).join(", ");
        let columns: usize = (0..count).map(|i| 64 + i).sum();
        writeln!(text, "  ROOT c = f32[64,{columns}] concatenate({operands}), dimensions={{1}}\n}}").unwrap();
        emitted_with_scratch(&text, &Target::whole("x86-64-v3").unwrap()).1
    };
    let [few, many] = [9, 18].map(scratch_bytes);
    assert!(few > 0, "operands are not transposed by tiles");
    assert_eq!(few, many, "9 and 18 kinds of operands");
}
