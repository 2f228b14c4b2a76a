//! One scheduled instruction to a routine of launches; equal kernels share their code.

use xla_hlo::ops::{Op, Scatter};
use xla_hlo::{ArrayShape, Module, Result};
use xla_llvm::fused::{Kernel, KernelSource, is_scalar_computation};
use xla_service::thunks::{KernelRef, Lowered, Lowering, LoweringContext};

use crate::codegen::blocks;
use crate::device::{Routine, Step, Word};
use crate::kernels::{self, KernelCode, Kernels};

/// Collects what the sequence refers to.
pub(crate) struct GpuLowering<'m> {
    /// Kernels, by the numbers that plans have for functions.
    pub kernels: Kernels<'m>,
    module: &'m Module,
    plans: Vec<Plan>,
}

/// A routine whose kernels are not generated yet.
#[derive(Default)]
pub(crate) struct Plan {
    /// Bytes of each scratch memory.
    pub scratch: Vec<usize>,
    pub steps: Vec<PlannedStep>,
}

/// A step of a routine whose kernels are not generated yet.
pub(crate) enum PlannedStep {
    /// A launch of a kernel, by its number among the [`Kernels`], on so many blocks, or on as many as its units need.
    Launch { kernel: u32, blocks: Option<u32>, arguments: Vec<Word> },
    /// A copy of an array of the thunk to another one.
    Copy { from: usize, to: usize },
}

impl<'m> GpuLowering<'m> {
    pub fn new(module: &'m Module) -> GpuLowering<'m> {
        GpuLowering { kernels: Kernels::default(), module, plans: Vec::new() }
    }

    /// The routines, by [`KernelRef::index`], for kernels that have been generated.
    pub fn routines(&self, kernels: &[Kernel]) -> Result<Vec<Routine>> {
        self.plans.iter().map(|plan| plan.routine(kernels)).collect()
    }

    /// Launches a kernel on all operands and results.
    fn kernel(&mut self, cx: &LoweringContext<'_>, source: KernelSource<'m>) -> PlannedStep {
        let arguments = (0..cx.operands.len() + cx.results.len()).map(Word::Array).collect();
        PlannedStep::Launch { kernel: self.kernels.number(KernelCode::Fused(source)), blocks: None, arguments }
    }

    /// Updates are combined into the results, which hold the inputs by then. `None` where the combiner is no kernel's.
    fn scatter(&mut self, cx: &LoweringContext<'_>, scatter: &Scatter) -> Option<Plan> {
        let mut shapes = cx.operands.iter().map(|operand| &operand.shape);
        if !is_scalar_computation(self.module, scatter.computation) || !shapes.all(ArrayShape::is_static) {
            return None;
        }
        let copies = cx.results.iter().enumerate().filter(|(i, result)| cx.operands[*i].slice != result.slice);
        let copies = copies.map(|(from, _)| PlannedStep::Copy { from, to: cx.operands.len() + from });
        let mut plan = kernels::scatter::plan(&mut self.kernels, self.module, cx, scatter)
            .unwrap_or_else(|| self.scatter_in_order(cx));
        plan.steps.splice(0..0, copies);
        Some(plan)
    }

    /// Updates are combined one after the other.
    fn scatter_in_order(&mut self, cx: &LoweringContext<'_>) -> Plan {
        let inputs = cx.instruction().operands().to_vec();
        let (module, computation, root) = (self.module, cx.computation, cx.instruction);
        let step = self.kernel(cx, KernelSource { module, computation, root, inputs, in_place: true });
        Plan { scratch: Vec::new(), steps: vec![step] }
    }
}

impl Lowering for GpuLowering<'_> {
    fn lower(&mut self, cx: &LoweringContext<'_>) -> Result<Lowered> {
        let plan = match cx.instruction().op() {
            Op::Scatter(scatter) => self.scatter(cx, scatter),
            Op::Sort(sort) => kernels::sort::plan(&mut self.kernels, self.module, cx, sort),
            _ => KernelSource::of_instruction(self.module, cx).map(|source| {
                kernels::scan::plan(&mut self.kernels, &source)
                    .unwrap_or_else(|| Plan { scratch: Vec::new(), steps: vec![self.kernel(cx, source)] })
            }),
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
                PlannedStep::Launch { kernel, blocks: count, arguments } => {
                    let function = *kernel as usize;
                    let blocks = count.map_or_else(|| blocks(&kernels[function]), Ok)?;
                    if blocks > 0 {
                        routine.steps.push(Step::Launch { function, blocks, arguments: arguments.clone() });
                    }
                }
            }
        }
        Ok(routine)
    }
}
