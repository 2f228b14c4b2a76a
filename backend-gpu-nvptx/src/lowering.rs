//! One scheduled instruction to a routine of launches; equal kernels share their code.

use xla_hlo::ops::{Op, Scatter};
use xla_hlo::{ArrayShape, Module, Result};
use xla_llvm::fused::{Kernel, KernelSource, KernelTable, is_scalar_computation};
use xla_service::thunks::{KernelRef, Lowered, Lowering, LoweringContext};

use crate::codegen::blocks;
use crate::device::{Routine, Step, Word};

/// Collects what the sequence refers to.
pub(crate) struct GpuLowering<'m> {
    /// Kernels, by the numbers that plans have for functions.
    pub kernels: KernelTable<'m>,
    module: &'m Module,
    plans: Vec<Plan>,
}

/// A routine whose kernels are not generated yet.
#[derive(Default)]
struct Plan {
    scratch: Vec<usize>,
    steps: Vec<PlannedStep>,
}

enum PlannedStep {
    Launch { kernel: u32, arguments: Vec<Word> },
    Copy { from: usize, to: usize },
}

impl<'m> GpuLowering<'m> {
    pub fn new(module: &'m Module) -> GpuLowering<'m> {
        GpuLowering { kernels: KernelTable::default(), module, plans: Vec::new() }
    }

    /// The routines, by [`KernelRef::index`], for kernels that have been generated.
    pub fn routines(&self, kernels: &[Kernel]) -> Result<Vec<Routine>> {
        self.plans.iter().map(|plan| plan.routine(kernels)).collect()
    }

    /// Launches a kernel on all operands and results.
    fn kernel(&mut self, cx: &LoweringContext<'_>, source: KernelSource<'m>) -> PlannedStep {
        let arguments = (0..cx.operands.len() + cx.results.len()).map(Word::Array).collect();
        PlannedStep::Launch { kernel: self.kernels.number(source), arguments }
    }

    /// Updates are combined into the results, which hold the inputs by then. `None` where the combiner is no kernel's.
    fn scatter(&mut self, cx: &LoweringContext<'_>, scatter: &Scatter) -> Option<Plan> {
        let mut shapes = cx.operands.iter().map(|operand| &operand.shape);
        if !is_scalar_computation(self.module, scatter.computation) || !shapes.all(ArrayShape::is_static) {
            return None;
        }
        let copies = cx.results.iter().enumerate().filter(|(i, result)| cx.operands[*i].slice != result.slice);
        let mut steps: Vec<PlannedStep> =
            copies.map(|(from, _)| PlannedStep::Copy { from, to: cx.operands.len() + from }).collect();
        let inputs = cx.instruction().operands().to_vec();
        let (module, computation, root) = (self.module, cx.computation, cx.instruction);
        steps.push(self.kernel(cx, KernelSource { module, computation, root, inputs, in_place: true }));
        Some(Plan { scratch: Vec::new(), steps })
    }
}

impl Lowering for GpuLowering<'_> {
    fn lower(&mut self, cx: &LoweringContext<'_>) -> Result<Lowered> {
        let plan = match cx.instruction().op() {
            Op::Scatter(scatter) => self.scatter(cx, scatter),
            _ => KernelSource::of_instruction(self.module, cx)
                .map(|source| Plan { scratch: Vec::new(), steps: vec![self.kernel(cx, source)] }),
        };
        let Some(plan) = plan else { return Ok(Lowered::NotMine) };
        self.plans.push(plan);
        let index = self.plans.len() as u32 - 1;
        Ok(Lowered::Kernel(KernelRef { index, name: cx.instruction().name().to_string() }))
    }
}

impl Plan {
    fn routine(&self, kernels: &[Kernel]) -> Result<Routine> {
        let mut routine = Routine { scratch: self.scratch.clone(), steps: Vec::new() };
        for step in &self.steps {
            match step {
                PlannedStep::Copy { from, to } => routine.steps.push(Step::Copy { from: *from, to: *to }),
                PlannedStep::Launch { kernel, arguments } => {
                    let function = *kernel as usize;
                    let blocks = blocks(&kernels[function])?;
                    if blocks > 0 {
                        routine.steps.push(Step::Launch { function, blocks, arguments: arguments.clone() });
                    }
                }
            }
        }
        Ok(routine)
    }
}
