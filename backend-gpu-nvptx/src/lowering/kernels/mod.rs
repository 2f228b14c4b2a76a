//! Kernels of a program with their sources and numbers; equal kernels share their code.

pub(crate) mod attention;
pub(crate) mod block_loop;
pub(crate) mod helper;
pub(crate) mod random;
pub(crate) mod scan;
pub(crate) mod scatter;
pub(crate) mod small_matrix;
pub(crate) mod sort;
pub(crate) mod split_k;
pub(crate) mod tiles;
pub(crate) mod top_k;

use std::collections::{BTreeSet, HashMap};

use xla_hlo::{CompId, Module, Result};
use xla_llvm::emitter::Emitter;
use xla_llvm::fused::{
    AttentionDecode, AttentionPhase, BlockLoop, Kernel, KernelSource, KernelTable, RadixPhase, RadixSortPlan,
    ScanPhase, ScanPlan, ScatterPhase, SmallMatrixPlan, SortPhase, SortPlan, SplitK, SplitKPhase, ThreadedScatter,
    TopKPhase, TopKPlan, WholeSums, emit_kernel,
};

use helper::HelperProgram;

/// Origin of a kernel's code.
#[derive(Clone, Debug)]
pub(crate) enum KernelCode<'m> {
    /// Fusion, or a single operation.
    Fused(KernelSource<'m>),
    /// Matmul, alone or in a fusion, with other tiles than the default ones.
    Tiled { source: KernelSource<'m>, tiles: WholeSums },
    /// Phase of a decode attention.
    Attention { source: KernelSource<'m>, plan: AttentionDecode, phase: AttentionPhase },
    /// Phase of a scan by thread blocks.
    Scan { source: KernelSource<'m>, plan: ScanPlan, phase: ScanPhase },
    /// Phase of a split-K matmul.
    SplitK { source: KernelSource<'m>, plan: SplitK, phase: SplitKPhase },
    /// Phase of a radix sort.
    RadixSort { module: &'m Module, plan: RadixSortPlan, phase: RadixPhase, label: String },
    /// Phase of a merge sort.
    Sort { module: &'m Module, plan: SortPlan, phase: SortPhase, label: String },
    /// Phase of a scatter with one thread for each update.
    Scatter { module: &'m Module, scatter: Box<ThreadedScatter>, phase: ScatterPhase, label: String },
    /// Phase of a top-k of rows.
    TopK { module: &'m Module, computation: CompId, plan: TopKPlan, phase: TopKPhase, label: String },
    /// Factorisation or solution of a small matrix.
    SmallMatrix { module: &'m Module, computation: CompId, plan: SmallMatrixPlan, label: String },
    /// Whole loop.
    Loop { plan: Box<BlockLoop<'m>>, label: String },
    /// Store of the random counter.
    Counter,
    /// Helper kernel.
    Helper(HelperProgram),
}

impl KernelCode<'_> {
    /// Emits the kernel's function into the emitter's module.
    pub fn emit(&self, emitter: &Emitter<'_>, name: &str) -> Result<Kernel> {
        match self {
            KernelCode::Fused(source) => emit_kernel(emitter, source, name),
            KernelCode::Tiled { source, tiles } => tiles.emit(source, emitter, name),
            KernelCode::Attention { source, plan, phase } => plan.emit(source, *phase, emitter, name),
            KernelCode::Scan { source, plan, phase } => plan.emit(source, *phase, emitter, name),
            KernelCode::SplitK { source, plan, phase } => plan.emit(source, *phase, emitter, name),
            KernelCode::RadixSort { module, plan, phase, .. } => plan.emit(module, *phase, emitter, name),
            KernelCode::Sort { module, plan, phase, .. } => plan.emit(module, *phase, emitter, name),
            KernelCode::Scatter { module, scatter, phase, .. } => scatter.emit(module, *phase, emitter, name),
            KernelCode::TopK { module, computation, plan, phase, .. } => {
                plan.emit(module, *computation, *phase, emitter, name)
            }
            KernelCode::SmallMatrix { module, computation, plan, .. } => plan.emit(module, *computation, emitter, name),
            KernelCode::Loop { plan, .. } => plan.emit(emitter, name),
            KernelCode::Counter => random::emit(emitter, name),
            KernelCode::Helper(program) => program.emit(emitter, name),
        }
    }

    /// Returns the number of 64-bit arguments of its function: first addresses, then numbers.
    pub fn parameters(&self) -> usize {
        match self {
            KernelCode::Fused(source) | KernelCode::Tiled { source, .. } => source.pointer_count(),
            KernelCode::Attention { source, plan, phase } => plan.words(*phase, source),
            KernelCode::Scan { source, plan, phase } => plan.words(*phase, source),
            KernelCode::SplitK { source, plan, phase } => plan.words(*phase, source),
            KernelCode::RadixSort { plan, phase, .. } => plan.words(*phase),
            KernelCode::Sort { plan, phase, .. } => plan.words(*phase),
            KernelCode::Scatter { scatter, .. } => scatter.words(),
            KernelCode::TopK { phase, .. } => phase.words(),
            KernelCode::SmallMatrix { plan, .. } => plan.words(),
            KernelCode::Loop { plan, .. } => plan.words(),
            KernelCode::Counter => random::WORDS,
            KernelCode::Helper(program) => program.parameters(),
        }
    }

    /// Returns the label for messages and profiles: the name of an instruction.
    pub fn label(&self) -> &str {
        match self {
            KernelCode::Fused(source)
            | KernelCode::Tiled { source, .. }
            | KernelCode::Attention { source, .. }
            | KernelCode::Scan { source, .. }
            | KernelCode::SplitK { source, .. } => source.module[source.computation][source.root].name(),
            KernelCode::RadixSort { label, .. }
            | KernelCode::Sort { label, .. }
            | KernelCode::Scatter { label, .. }
            | KernelCode::TopK { label, .. }
            | KernelCode::SmallMatrix { label, .. }
            | KernelCode::Loop { label, .. } => label,
            KernelCode::Helper(program) => program.label(),
            KernelCode::Counter => "counter",
        }
    }

    /// Whether two kernels without sources have the same code.
    fn is_same(&self, other: &KernelCode<'_>) -> bool {
        match (self, other) {
            (KernelCode::Sort { plan, phase, .. }, KernelCode::Sort { plan: other, phase: of_other, .. }) => {
                (plan, phase) == (other, of_other)
            }
            (
                KernelCode::Scatter { scatter, phase, .. },
                KernelCode::Scatter { scatter: other, phase: of_other, .. },
            ) => (scatter, phase) == (other, of_other),
            (KernelCode::RadixSort { plan, phase, .. }, KernelCode::RadixSort { plan: other, phase: of_other, .. }) => {
                (plan, phase) == (other, of_other)
            }
            (KernelCode::TopK { plan, phase, .. }, KernelCode::TopK { plan: other, phase: of_other, .. }) => {
                (plan, phase) == (other, of_other)
            }
            (KernelCode::SmallMatrix { plan, .. }, KernelCode::SmallMatrix { plan: other, .. }) => plan == other,
            (KernelCode::Counter, KernelCode::Counter) => true,
            (KernelCode::Helper(program), KernelCode::Helper(other)) => program == other,
            (
                KernelCode::Fused(_)
                | KernelCode::Tiled { .. }
                | KernelCode::Attention { .. }
                | KernelCode::Scan { .. }
                | KernelCode::SplitK { .. }
                | KernelCode::RadixSort { .. }
                | KernelCode::Sort { .. }
                | KernelCode::Scatter { .. }
                | KernelCode::TopK { .. }
                | KernelCode::SmallMatrix { .. }
                | KernelCode::Loop { .. }
                | KernelCode::Helper(_)
                | KernelCode::Counter,
                _,
            ) => false,
        }
    }
}

/// Kernels of a program, without duplicates.
#[derive(Debug, Default)]
pub(crate) struct Kernels<'m> {
    codes: Vec<KernelCode<'m>>,
    /// Table that finds equal sources.
    sources: KernelTable<'m>,
    /// Numbers of kernels with sources, by the source's number and the role.
    known: HashMap<(u32, KernelRole), u32>,
    /// Read-only arguments of each launched kernel, by its number.
    unwritten: HashMap<u32, BTreeSet<u32>>,
}

/// Part of a source's work that a kernel does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum KernelRole {
    All,
    Tiled(WholeSums),
    Attention(AttentionPhase),
    Scan(ScanPhase),
    SplitK(SplitK, SplitKPhase),
}

impl<'m> Kernels<'m> {
    /// Returns the number of a kernel in the program, which is new unless an equal kernel exists.
    pub fn number(&mut self, code: KernelCode<'m>) -> u32 {
        let next = self.codes.len() as u32;
        let known = match &code {
            KernelCode::Fused(source) => self.of_source(source, KernelRole::All, next),
            KernelCode::Attention { source, phase, .. } => self.of_source(source, KernelRole::Attention(*phase), next),
            KernelCode::Scan { source, phase, .. } => self.of_source(source, KernelRole::Scan(*phase), next),
            KernelCode::Tiled { source, tiles } => self.of_source(source, KernelRole::Tiled(*tiles), next),
            KernelCode::SplitK { source, plan, phase } => {
                self.of_source(source, KernelRole::SplitK(*plan, *phase), next)
            }
            KernelCode::RadixSort { .. }
            | KernelCode::Sort { .. }
            | KernelCode::Scatter { .. }
            | KernelCode::TopK { .. }
            | KernelCode::SmallMatrix { .. }
            | KernelCode::Loop { .. }
            | KernelCode::Helper(_)
            | KernelCode::Counter => {
                let known = self.codes.iter().position(|known| known.is_same(&code));
                known.map_or(next, |known| known as u32)
            }
        };
        if known == next {
            self.codes.push(code);
        }
        known
    }

    fn of_source(&mut self, source: &KernelSource<'m>, role: KernelRole, next: u32) -> u32 {
        let source = self.sources.number(source.clone());
        *self.known.entry((source, role)).or_insert(next)
    }

    /// Records the read-only arguments of a launch; the kernel keeps the intersection over all of its launches.
    pub fn launched(&mut self, kernel: u32, unwritten: BTreeSet<u32>) {
        let known = self.unwritten.entry(kernel).or_insert_with(|| unwritten.clone());
        known.retain(|argument| unwritten.contains(argument));
    }

    /// Returns the read-only arguments of a kernel.
    pub fn unwritten(&self, kernel: usize) -> impl Iterator<Item = u32> {
        self.unwritten.get(&(kernel as u32)).into_iter().flatten().copied()
    }

    /// Returns the kernels in the order of their numbers.
    pub fn codes(&self) -> &[KernelCode<'m>] {
        &self.codes
    }
}
