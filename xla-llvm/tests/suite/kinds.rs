//! Kinds of kernels: the first of the list that has a plan is used (`tests/data/kinds/*.hlo`), and a kind can be added.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;

use inkwell::context::Context;
use xla_hlo::ops::{Op, UnaryOp};
use xla_hlo::text::parse_module;
use xla_hlo::{Module, Result};
use xla_llvm::denormals::Denormals;
use xla_llvm::emitter::{EmitOptions, Emitter};
use xla_llvm::fused::{
    KERNEL_KINDS, Kernel, KernelCode, KernelKind, KernelPlan, KernelSource, LaunchPlan, PlanArgument, PlanCommand,
};
use xla_llvm::lanes::Scalar;
use xla_llvm::simt::Register;
use xla_llvm::target::Target;

/// Returns the names and programs of the cases, sorted by name.
fn cases() -> Vec<(String, Module)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/kinds");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let name = |path: &PathBuf| path.file_stem().unwrap().to_string_lossy().into_owned();
    let read = |path: &PathBuf| parse_module(&std::fs::read_to_string(path).unwrap()).unwrap();
    paths.iter().map(|path| (name(path), read(path))).collect()
}

/// Returns the entry as a fusion, or its root as an operation.
fn source(module: &Module) -> KernelSource<'_> {
    let entry = module.entry_id();
    let fusion = KernelSource::of_computation(module, entry, |_| false);
    fusion.unwrap_or_else(|| KernelSource::of_operation(module, entry, module.entry().root()))
}

fn gpu() -> Target {
    Target::nvptx("sm_90").unwrap()
}

/// Returns the first kind with a plan for a source, and the plan.
fn chosen<'m>(kinds: &[KernelKind], source: &KernelSource<'m>) -> Option<(&'static str, LaunchPlan<'m>)> {
    kinds.iter().find_map(|kind| Some((kind.name(), kind.plan(source, &gpu())?)))
}

/// Emits the kernels of a plan into one module. Returns their interfaces and the LLVM IR.
fn emitted(plan: &LaunchPlan<'_>) -> (Vec<Kernel>, String) {
    let (context, target) = (Context::create(), gpu());
    let emitter = Emitter::new(&context, "kernels", &target, EmitOptions::default());
    let emit =
        |(number, code): (usize, &KernelCode<'_>)| code.emit(&emitter, &format!("k{number}_{}", code.label())).unwrap();
    let kernels = plan.codes.iter().enumerate().map(emit).collect();
    (kernels, emitter.finish().unwrap().print_to_string().to_string())
}

#[test]
fn every_kind_is_chosen() {
    let (mut table, mut names) = (String::new(), BTreeSet::new());
    for (case, module) in cases() {
        let source = source(&module);
        let Some((name, plan)) = chosen(KERNEL_KINDS, &source) else {
            writeln!(table, "{case}: no kind").unwrap();
            continue;
        };
        names.insert(name);
        let LaunchPlan { scratch, rng_delta, commands, .. } = &plan;
        writeln!(table, "{case}: {name}, scratch memories of {scratch:?} bytes, random numbers: {rng_delta:?}")
            .unwrap();
        let kernels = emitted(&plan).0;
        for command in commands {
            match command {
                PlanCommand::Launch { function, arguments } => {
                    let Kernel { name, strategy, .. } = &kernels[*function];
                    writeln!(table, "  {name} ({strategy}) {arguments:?}").unwrap();
                }
                PlanCommand::Copy { operand, result } => {
                    writeln!(table, "  copy of operand {operand} to result {result}").unwrap();
                }
            }
        }
    }
    insta::assert_snapshot!("kinds", table);
    assert_eq!(names, KERNEL_KINDS.iter().map(KernelKind::name).collect());
}

/// Matrices that fit into the shared memory of a block are factored by one kernel.
#[test]
fn matrices_that_fit_into_shared_memory() {
    for (ty, most) in [("f32", 64), ("f64", 64), ("c64", 64), ("c128", 32)] {
        for (rows, fits) in [(most, true), (most + 1, false)] {
            let shape = format!("{ty}[2,{rows},{rows}]");
            let text = format!(
                "HloModule m\nENTRY main {{ a = {shape} parameter(0) ROOT b = {shape} cholesky(a), lower=true }}\n"
            );
            let module = parse_module(&text).unwrap();
            let kind = chosen(KERNEL_KINDS, &source(&module)).map(|(name, _)| name);
            assert_eq!(kind, fits.then_some("small-matrix"), "{shape}");
        }
    }
}

/// New kind, for the test: negates an array of f32 in two launches. The first one stores half of each element to
/// scratch memory, the second one negates the sum of both halves.
#[derive(Clone, Debug, PartialEq)]
struct HalvedNegation {
    elements: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum NegationPhase {
    Halve,
    Negate,
}

impl KernelPlan for HalvedNegation {
    type Phase = NegationPhase;

    const NAME: &'static str = "halved-negation";
    const READS_SOURCE: bool = false;

    fn new(source: &KernelSource<'_>, _: &Target) -> Option<HalvedNegation> {
        match source.instruction().op() {
            Op::Unary(unary) if unary.op == UnaryOp::Negate => {
                let shape = source.instruction().shape().as_array()?;
                Some(HalvedNegation { elements: shape.element_count() as u64 })
            }
            _ => None,
        }
    }

    fn phases(&self) -> Vec<NegationPhase> {
        vec![NegationPhase::Halve, NegationPhase::Negate]
    }

    fn commands(&self, _: &KernelSource<'_>) -> Vec<PlanCommand<NegationPhase>> {
        let [from, to, half] = [PlanArgument::Array(0), PlanArgument::Array(1), PlanArgument::Scratch(0)];
        vec![
            PlanCommand::launch(NegationPhase::Halve, [from, half]),
            PlanCommand::launch(NegationPhase::Negate, [half, to]),
        ]
    }

    fn scratch_bytes(&self) -> Vec<usize> {
        vec![4 * self.elements as usize]
    }

    fn describe(&self, phase: NegationPhase) -> String {
        format!("halved-negation {phase:?}")
    }

    fn emit(&self, _: &KernelSource<'_>, phase: NegationPhase, emitter: &Emitter<'_>, name: &str) -> Result<Kernel> {
        let kernel = emitter.simt_kernel(name, 2, 0)?;
        let [from, to] = kernel.pointers[..] else { panic!("two arrays") };
        let block = emitter.register(Register::Block)?.zext(64);
        let x = emitter.load_lanes(from, block, Scalar::F32, 1, None);
        let half = emitter.splat_constant(emitter.context().f32_type().const_float(0.5).into(), 1);
        let value = match phase {
            NegationPhase::Halve => x * half,
            NegationPhase::Negate => -(x + x),
        };
        emitter.store_lanes(value, to, block, None);
        emitter.end_kernel()?;
        Ok(Kernel {
            name: name.to_string(),
            work_items: self.elements,
            block: Some(1),
            shared_bytes: 0,
            dynamic_shared_bytes: 0,
            maps: Vec::new(),
            scratch_bytes: 0,
            work: 0.0,
            denormals: Denormals::MayFlush,
            strategy: self.describe(phase),
        })
    }
}

/// The kind is one type with an implementation, and one entry of a list. The plans of other work stay.
#[test]
fn a_kind_can_be_added() {
    let with_negation = [&[KernelKind::of::<HalvedNegation>()], KERNEL_KINDS].concat();
    for (case, module) in cases() {
        let source = source(&module);
        let [before, after] = [KERNEL_KINDS, &with_negation].map(|kinds| chosen(kinds, &source).map(|(name, _)| name));
        let expected = if case == "single-kernel" { Some("halved-negation") } else { before };
        assert_eq!(after, expected, "{case}");
    }
    let module = cases().into_iter().find(|(case, _)| case == "single-kernel").unwrap().1;
    let source = source(&module);
    let plan = KernelKind::first_plan(&with_negation, &source, &gpu()).unwrap();
    let (kernels, ir) = emitted(&plan);
    let ir = ir.split_once("define").map_or(String::new(), |(_, body)| format!("define{body}"));
    let strategies: Vec<&str> = kernels.iter().map(|kernel| kernel.strategy.as_str()).collect();
    insta::assert_snapshot!("added-kind", format!("{strategies:?}\n{:#?}\n{ir}", plan.commands));
    // Equal plans share their code in each phase, also if their sources differ.
    let again = KernelKind::first_plan(&with_negation, &source, &gpu()).unwrap();
    for (own, code) in plan.codes.iter().enumerate() {
        for (other, code_again) in again.codes.iter().enumerate() {
            assert_eq!(code.is_same(code_again), own == other, "phases {own} and {other}");
        }
        assert!(code.source().is_none());
    }
}
